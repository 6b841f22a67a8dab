// SPDX-License-Identifier: Apache-2.0
#include "encryptor.hpp"

namespace catena::ipsec {
namespace {

constexpr std::uint64_t kLastSequence = 0xFFFFFFFF;  // RFC 4303 section 3.3.3: it must not cycle

}  // namespace

Encryptor::Encryptor(std::vector<Session> sessions, std::unique_ptr<CryptoBurst> crypto, std::uint32_t mtu)
    : IpsecNf(Direction::kEncrypt, std::move(sessions), std::move(crypto)), mtu_(mtu) {
  for (Session const& session : sessions_) {
    selectors_.push_back(session.association.selector);
    next_sequence_.push_back(session.association.first_sequence);
  }
}

std::optional<std::uint32_t> Encryptor::find(FlowKey const& flow) const {
  for (std::uint32_t i = 0; i < selectors_.size(); ++i) {
    if (selectors_[i].matches(flow)) {
      return i;
    }
  }
  return std::nullopt;
}

void Encryptor::prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) {
  const auto out = nf::array_of<Aux>(aux);
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const packet::Packet packet = batch[i];
    const auto association = find(flow_key(packet));
    if (!association) {
      drop(packet, kNoSa, std::nullopt, outcome);
      continue;
    }
    const std::uint32_t inner = packet.layers().l3_length;
    const std::uint32_t text = text_length(inner);
    const std::uint32_t front = sessions_[*association].outer.front;
    // Ethernet padding behind the datagram is overwritten, so only what is beyond it needs tailroom
    const std::uint32_t end = std::uint32_t{packet.offset()} + packet.layers().l3 + text + kIcvBytes;
    if (front + text + kIcvBytes > mtu_ || front > packet.headroom() || end > packet::kSlotBytes) {
      drop(packet, kTooLong, std::nullopt, outcome);
      continue;
    }
    std::uint64_t& next = next_sequence_[*association];
    if (next > kLastSequence) {
      drop(packet, kSequenceExhausted, std::nullopt, outcome);
      continue;
    }
    out[i] = {.association = *association,
              .sequence = static_cast<std::uint32_t>(next++),
              .l3 = packet.layers().l3,
              .shift = static_cast<std::uint16_t>(front),
              .inner_length = static_cast<std::uint16_t>(inner),
              .text_length = static_cast<std::uint16_t>(text),
              .action = kProcess};
  }
}

void Encryptor::compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) {
  const auto in = nf::array_of<Aux>(aux);
  const auto out = nf::array_of<PacketResult>(results);
  for (std::uint32_t first = 0; first < batch.size();) {
    std::uint32_t i = first;
    for (; i < batch.size() && !crypto_->full(); ++i) {
      Session const& session = sessions_[in[i].association];
      crypto_->add(session.keys, encapsulate(batch[i], in[i], session.outer), in[i].text_length);
    }
    const PacketStatus status = crypto_->encrypt() ? kDone : kNotProcessed;
    for (; first < i; ++first) {
      out[first].status = status;
    }
  }
}

void Encryptor::complete(packet::Batch const& batch, std::span<const std::byte> aux, std::span<const std::byte> results,
                         nf::SpillView const* /*spill*/, std::uint32_t /*first_row*/, nf::Outcome& outcome) {
  const auto in = nf::array_of<Aux>(aux);
  const auto out = nf::array_of<PacketResult>(results);
  const auto slots = batch.slots();
  packet::Layers* layers = batch.meta().layers;
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const packet::Packet packet = batch[i];
    const RecordedPacket what{sessions_[in[i].association].association.spi, in[i].sequence};
    if (out[i].status != kDone) {
      drop(packet, kCryptoFailed, what, outcome);
      continue;
    }
    layers[slots[i]] = layers_after_encapsulation(layers[slots[i]], in[i]);
    pass(packet, what, outcome);
  }
}

}  // namespace catena::ipsec
