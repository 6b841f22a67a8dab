// SPDX-License-Identifier: Apache-2.0
#include "decryptor.hpp"

#include <algorithm>

namespace catena::ipsec {
namespace {

constexpr std::uint32_t kMinTextBytes = 4;  // a dummy packet may have an empty payload
constexpr std::uint8_t kNatKeepalive = 0xFF;
constexpr std::uint16_t kIkePort = 500;
constexpr std::uint16_t kIkeNatPort = 4500;  // RFC 3947

/// The ESP part of a packet, or why there is none.
struct EspBytes {
  enum class Kind {
    kNone,
    kKeyExchange,  ///< IKE to a tunnel's end, or a NAT-keepalive
    kMalformed,
    kEsp,
  } kind = Kind::kNone;
  const std::uint8_t* begin = nullptr;
  std::uint32_t length = 0;
};

/// RFC 3948: a NAT-keepalive (section 2.3), or IKE after the non-ESP marker (section 2.2).
bool is_key_exchange(const std::uint8_t* payload, std::uint32_t length) {
  return (length == 1 && payload[0] == kNatKeepalive) || (length >= 4 && packet::load_be32(payload) == 0);
}

EspBytes find_in_udp(const std::uint8_t* frame, packet::Layers const& layers) {
  const std::uint8_t* payload = frame + layers.payload;
  const std::uint32_t length = layers.payload_length;
  if ((layers.flags & packet::kFragment) != 0) {
    return {.kind = EspBytes::Kind::kMalformed};
  }
  if (is_key_exchange(payload, length)) {
    return {.kind = EspBytes::Kind::kKeyExchange};
  }
  if (length < cipher::kEspBytes) {
    return {.kind = EspBytes::Kind::kMalformed};
  }
  return {EspBytes::Kind::kEsp, payload, length};
}

EspBytes find_esp(const std::uint8_t* frame, packet::Layers const& layers, InboundIndex const& index) {
  const std::uint8_t* ip = frame + layers.l3;
  if (ip[9] == packet::kProtocolEsp) {
    if ((layers.flags & packet::kFragment) != 0 || layers.payload_length < cipher::kEspBytes) {
      return {.kind = EspBytes::Kind::kMalformed};
    }
    return {EspBytes::Kind::kEsp, frame + layers.payload, layers.payload_length};
  }
  const std::uint32_t destination = packet::load_be32(ip + 16);
  if ((layers.flags & packet::kUdp) == 0) {
    // without ports it may be the rest of ESP in UDP, which is not put together again here
    const bool may_be_esp = ip[9] == packet::kProtocolUdp && index.receives_udp(destination);
    return {.kind = may_be_esp ? EspBytes::Kind::kMalformed : EspBytes::Kind::kNone};
  }
  const std::uint16_t port = packet::load_be16(frame + layers.l4 + 2);
  if (index.receives_udp(destination, port)) {
    return find_in_udp(frame, layers);
  }
  // IKE makes the associations, so it cannot be in one (RFC 4301 section 4.4.1)
  const bool is_ike =
      port == kIkePort || (port == kIkeNatPort && is_key_exchange(frame + layers.payload, layers.payload_length));
  return {.kind = is_ike && index.is_tunnel_end(destination) ? EspBytes::Kind::kKeyExchange : EspBytes::Kind::kNone};
}

/// What prepare() and complete() read of a packet: on a device's way to work it is in no cache, neither when rx has
/// passed it on nor when the device has written it, and loads of many packets must be in flight.
constexpr std::uint32_t kPrefetchPackets = 12;
constexpr std::uint32_t kHeaderBytes = packet::kEthernetBytes + 20 + 8;  ///< of IPv4 and ESP, or IPv4 and UDP's ports

void prefetch_headers(packet::Packet const& packet) {
  __builtin_prefetch(packet.frame() + packet::kEthernetBytes);
  __builtin_prefetch(packet.frame() + kHeaderBytes);
}

/// Of an authentic packet that cannot go on.
DropReasonId reason_of(std::uint32_t status) {
  switch (status) {
    case kDummy:
      return kDropDummy;
    case kCongested:
      return kDropCongestion;
    default:
      return kMalformed;
  }
}

class InboundSharder final : public nf::Sharder {
 public:
  InboundSharder(std::shared_ptr<const InboundIndex> index, std::shared_ptr<const Owners> owners)
      : index_(std::move(index)), recent_(*index_), owners_(std::move(owners)) {}

  std::optional<std::uint32_t> shard_of(packet::Packet const& packet) override {
    const EspBytes esp = find_esp(packet.frame(), packet.layers(), *index_);
    if (esp.kind != EspBytes::Kind::kEsp) {
      return std::nullopt;
    }
    const auto number = recent_.find(packet::load_be32(esp.begin), packet::load_be32(packet.l3() + 16));
    return number ? std::optional((*owners_)[*number]) : std::nullopt;
  }

 private:
  std::shared_ptr<const InboundIndex> index_;
  RecentInbound recent_;
  std::shared_ptr<const Owners> owners_;
};

}  // namespace

Decryptor::Decryptor(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
                     std::shared_ptr<const InboundIndex> index, std::unique_ptr<cipher::CryptoBurst> crypto,
                     nf::Shard shard, Cleartext cleartext, std::shared_ptr<Owners> owners)
    : IpsecNf(std::move(tunnels), std::move(states), std::move(crypto), shard, std::move(owners)),
      index_(std::move(index)),
      recent_(*index_),
      cleartext_(cleartext) {
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    windows_.push_back(first_window(i));
    limits_.push_back(first_limit(i));
  }
}

ReplayWindow Decryptor::first_window(std::uint32_t number) const {
  // where numbers are extended both ends must agree on the high half of the first one
  Association const& association = sessions_[number].association;
  return ReplayWindow(association.replay_window, association.extended_sequence ? association.first_sequence - 1 : 0);
}

void Decryptor::begin(std::uint32_t number) {
  windows_[number] = first_window(number);
  limits_[number] = first_limit(number);
}

Result<std::unique_ptr<nf::Nf>> Decryptor::replicate(std::uint32_t shard) const {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<cipher::CryptoBurst> crypto, cipher::CryptoBurst::create());
  return std::make_unique<Decryptor>(tunnels_, states_, index_, std::move(crypto), nf::Shard{shard, shard_.count},
                                     cleartext_, owners_);
}

std::unique_ptr<nf::Sharder> Decryptor::sharder() const { return std::make_unique<InboundSharder>(index_, owners_); }

void Decryptor::resume(std::uint32_t number, SavedState const& state) {
  windows_[number] = ReplayWindow(sessions_[number].association.replay_window, state.next - 1, state.seen);
  limits_[number] = is_kept(number) ? state.next : UINT64_MAX;
}

SavedState Decryptor::state_of(std::uint32_t number) const {
  return {.next = windows_[number].highest() + 1, .seen = windows_[number].seen()};
}

bool Decryptor::may_continue(std::uint32_t number, std::uint64_t sequence) {
  if (!owns(number)) {
    return false;
  }
  if (!is_kept(number)) {
    return true;
  }
  limits_[number] = take(number, sequence);
  return sequence < limits_[number];
}

bool Decryptor::is_protected(packet::PacketFlow const& flow) const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [&](Session const& session) { return session.association.selector.may_match(flow); });
}

void Decryptor::prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) {
  const auto out = nf::array_of<Aux>(aux);
  const packet::MetaColumns meta = batch.meta();
  const auto slots = batch.slots();
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    if (i + kPrefetchPackets < slots.size()) {
      prefetch_headers(batch[i + kPrefetchPackets]);
    }
    const std::uint32_t slot = slots[i];
    const packet::Layers layers = meta.layers[slot];
    const std::uint8_t* frame = batch.memory() + std::size_t{slot} * packet::kSlotBytes + meta.offset[slot];
    const EspBytes esp = find_esp(frame, layers, *index_);
    if (esp.kind == EspBytes::Kind::kNone && cleartext_ == Cleartext::kDrop &&
        is_protected(packet::flow_of(frame, layers))) {
      drop(batch[i], kCleartext, std::nullopt, outcome);
      continue;
    }
    if (esp.kind == EspBytes::Kind::kNone || esp.kind == EspBytes::Kind::kKeyExchange) {
      out[i] = {};
      out[i].action = kLeave;
      continue;
    }
    if (esp.kind == EspBytes::Kind::kMalformed) {
      drop(batch[i], kMalformed, std::nullopt, outcome);
      continue;
    }
    const std::uint8_t* ip = frame + layers.l3;
    RecordedPacket what{packet::load_be32(esp.begin), packet::load_be32(esp.begin + 4)};
    const auto association = recent_.find(what.spi, packet::load_be32(ip + 16));
    if (!association) {
      drop(batch[i], kNoSa, what, outcome);
      continue;
    }
    const bool extended = sessions_[*association].association.extended_sequence;
    if (extended) {
      what.sequence = windows_[*association].extend(static_cast<std::uint32_t>(what.sequence));
    }
    const std::uint32_t text = esp.length - cipher::kTextOffset - cipher::kIcvBytes;
    if (esp.length < cipher::kTextOffset + kMinTextBytes + cipher::kIcvBytes ||
        text % 4 != 0) {  // RFC 4303 section 2.4
      drop(batch[i], kMalformed, what, outcome);
      continue;
    }
    out[i] = {.association = *association,
              .sequence = static_cast<std::uint32_t>(what.sequence),
              .sequence_high = static_cast<std::uint32_t>(what.sequence >> 32),
              .shift = static_cast<std::uint16_t>(esp.begin + cipher::kTextOffset - ip),
              .inner_length = 0,
              .text_length = static_cast<std::uint16_t>(text),
              .l3 = layers.l3,
              .action = extended ? kProcessExtended : kProcess};
  }
}

void Decryptor::compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) {
  const auto in = nf::array_of<Aux>(aux);
  const auto out = nf::array_of<PacketResult>(results);
  std::array<std::uint32_t, cipher::CryptoBurst::kPackets> rows;
  std::array<bool, cipher::CryptoBurst::kPackets> good;
  for (std::uint32_t next = 0; next < batch.size();) {
    for (; next < batch.size() && !crypto_->full(); ++next) {
      if (in[next].action == kLeave) {
        out[next].status = kDone;
        continue;
      }
      rows[crypto_->size()] = next;
      std::uint8_t* text = batch[next].frame() + in[next].l3 + in[next].shift;
      const std::uint64_t iv = std::uint64_t{packet::load_be32(text - 8)} << 32 | packet::load_be32(text - 4);
      crypto_->add(sessions_[in[next].association].keys, text - cipher::kTextOffset, iv, in[next].text_length,
                   in[next].sequence_high);
    }
    const std::uint32_t packets = crypto_->size();
    const bool finished = crypto_->decrypt(good);
    for (std::uint32_t i = 0; i < packets && finished; ++i) {
      const std::uint32_t row = rows[i];
      out[row].status = good[i] ? decapsulate(batch[row], in[row]) : kBadIcv;
    }
  }
}

void Decryptor::complete(nf::Completion const& completion) {
  packet::Batch const& batch = completion.batch();
  nf::Outcome& outcome = completion.outcome();
  const auto in = completion.aux<Aux>();
  const auto out = completion.results<PacketResult>();
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (i + kPrefetchPackets < batch.size()) {
      prefetch_headers(batch[i + kPrefetchPackets]);
    }
    if (in[i].action != kLeave) {
      finish(batch[i], in[i], out[i].status, outcome);
    }
  }
}

void Decryptor::finish(packet::Packet const& packet, Aux const& aux, std::uint32_t status, nf::Outcome& outcome) {
  Association const& association = sessions_[aux.association].association;
  const RecordedPacket what = recorded(aux);
  if (status == kNotProcessed) {
    return drop(packet, kCryptoFailed, what, outcome);
  }
  if (status == kBadIcv) {
    return drop(packet, kDropBadIcv, what, outcome);
  }
  if (what.sequence >= limits_[aux.association] && !may_continue(aux.association, what.sequence)) {
    return drop(packet, kStateFailed, what, outcome);
  }
  // RFC 4303 section 3.4.3: only an authentic packet may move the window
  if (association.anti_replay && !windows_[aux.association].accept(what.sequence)) {
    return drop(packet, kReplay, what, outcome);
  }
  if (status != kDone) {
    return drop(packet, reason_of(status), what, outcome);
  }
  packet.reparse();
  if (!association.selector.matches(
          packet::flow_of(packet.frame(), packet.layers()))) {  // RFC 4301 section 5.2, step 4
    return drop(packet, kSelectorMismatch, what, outcome);
  }
  outcome.leave_by(packet, kProtectedOutput);
  if (outcome.recording()) {
    pass(packet, what, outcome);
  }
}

}  // namespace catena::ipsec
