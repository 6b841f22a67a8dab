// SPDX-License-Identifier: Apache-2.0
#include "encryptor.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>

namespace catena::ipsec {
namespace {

// Equally spaced slots share few sets of the first-level cache, so by now prepare()'s lines have left it, and
// processors do not guess the next slot: the headers are asked for some packets ahead.
constexpr std::uint32_t kHeadersAhead = 4;
constexpr std::ptrdiff_t kCacheLineBytes = 64;
// on a device's way to work the headers may be in no cache at all: loads of more packets must be in flight
constexpr std::uint32_t kPrefetchFlows = 12;

/// The longest datagram whose text has at most `text_bytes` (at least 5); text_length() the other way round.
constexpr std::uint32_t longest_inner(std::uint32_t text_bytes) {
  return (text_bytes & ~std::uint32_t{3}) - kEspTrailerBytes;
}

class OutboundSharder final : public nf::Sharder {
 public:
  OutboundSharder(std::shared_ptr<const OutboundIndex> index, std::shared_ptr<const Owners> owners)
      : index_(std::move(index)), first_takes_all_(index_->first_takes_all()), owners_(std::move(owners)) {}

  std::optional<std::uint32_t> shard_of(packet::Packet const& packet) override {
    if (first_takes_all_) {
      return (*owners_)[0];
    }
    const std::uint32_t number = index_->find(packet::flow_of(packet.frame(), packet.layers()));
    return number < index_->size() ? std::optional((*owners_)[number]) : std::nullopt;
  }

 private:
  std::shared_ptr<const OutboundIndex> index_;
  bool first_takes_all_;
  std::shared_ptr<const Owners> owners_;
};

}  // namespace

Encryptor::Encryptor(std::shared_ptr<const Tunnels> tunnels, std::shared_ptr<StateCounts> states,
                     std::shared_ptr<const OutboundIndex> index, std::unique_ptr<cipher::CryptoBurst> crypto,
                     nf::Shard shard, std::uint32_t mtu, std::shared_ptr<packet::ErrorBudget> errors,
                     std::shared_ptr<Owners> owners)
    : IpsecNf(std::move(tunnels), std::move(states), std::move(crypto), shard, std::move(owners)),
      index_(std::move(index)),
      errors_(std::move(errors)),
      mtu_(mtu) {
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    fronts_.push_back(sessions_[i].outer.front);
    numbers_.push_back(first_numbers(i));
  }
}

Encryptor::Numbers Encryptor::first_numbers(std::uint32_t number) const {
  Association const& association = sessions_[number].association;
  return {.next = association.first_sequence,
          .limit = owns(number) ? std::min(association.soft_limit, association.sequence_end()) : 0,
          .extended = association.extended_sequence};
}

Result<std::unique_ptr<nf::Nf>> Encryptor::replicate(std::uint32_t shard) const {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<cipher::CryptoBurst> crypto, cipher::CryptoBurst::create());
  return std::make_unique<Encryptor>(tunnels_, states_, index_, std::move(crypto), nf::Shard{shard, shard_.count}, mtu_,
                                     errors_, owners_);
}

std::shared_ptr<packet::ErrorBudget> Encryptor::make_budget() {
  constexpr std::uint32_t kErrorsPerSecond = 1000;
  return std::make_shared<packet::ErrorBudget>(kErrorsPerSecond, kErrorsPerSecond);
}

std::unique_ptr<nf::Sharder> Encryptor::sharder() const { return std::make_unique<OutboundSharder>(index_, owners_); }

bool Encryptor::may_be_cut(packet::Packet const& packet, std::uint32_t number, nf::Outcome& outcome) {
  constexpr std::uint32_t kDontFragment = 0x4000;
  Association const& association = sessions_[number].association;
  const std::uint32_t inner_df = packet::load_be16(packet.l3() + 6) & kDontFragment;
  if (((inner_df & association.policy.df_keep) | association.policy.df_set) == 0) {
    packet.set_mtu(static_cast<std::uint16_t>(mtu_));
    return true;
  }
  const std::uint32_t taken = fronts_[number] + cipher::kIcvBytes + kEspTrailerBytes + kMaxPadBytes;
  const std::uint32_t fits = mtu_ > taken ? longest_inner(mtu_ - fronts_[number] - cipher::kIcvBytes) : 0;
  // a sender that lets its packets be cut does not listen (RFC 1191 section 3)
  if (inner_df == 0 || fits < packet::kMinMtu || !packet::may_report(packet) || !errors_->take(packet.arrival_ns())) {
    drop(packet, kTooLong, std::nullopt, outcome);
    return false;
  }
  packet::make_icmp_error(packet, packet::fragmentation_needed(static_cast<std::uint16_t>(fits)), association.source);
  outcome.reply(packet);
  if (outcome.recording()) {
    outcome.record(packet, packet::Verdict::kReply, -1, concat("\"mtu\":", fits));
  }
  return false;
}

nf::Hints Encryptor::hints() const {
  nf::Hints hints = IpsecNf::hints();
  hints.prepare_reads |= packet::kIcmpErrorReads;
  return hints;
}

bool Encryptor::may_continue(std::uint32_t number) {
  if (!owns(number)) {
    return false;
  }
  Numbers& numbers = numbers_[number];
  Association const& association = sessions_[number].association;
  if (numbers.next >= association.soft_limit && !numbers.soft_limit_passed) {
    numbers.soft_limit_passed = true;
    ++soft_limits_passed_;
    spdlog::warn("ipsec: the association with SPI {} needs new keys: it is at sequence number {} of {}",
                 association.spi, numbers.next, association.sequence_end() - 1);
  }
  numbers.limit = numbers.soft_limit_passed ? association.sequence_end()
                                            : std::min(association.soft_limit, association.sequence_end());
  if (is_kept(number)) {
    numbers.limit = std::min(numbers.limit, take(number, numbers.next));
  }
  return numbers.next < numbers.limit;
}

void Encryptor::resume(std::uint32_t number, SavedState const& state) {
  numbers_[number].next = state.next;
  numbers_[number].limit = state.next;
}

SavedState Encryptor::state_of(std::uint32_t number) const { return {.next = numbers_[number].next, .seen = {}}; }

std::vector<nf::Statistic> Encryptor::statistics() const { return {{"soft_limits_passed", soft_limits_passed_}}; }

void Encryptor::prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) {
  const auto out = nf::array_of<Aux>(aux);
  const packet::MetaColumns meta = batch.meta();
  const auto slots = batch.slots();
  OutboundIndex const& index = *index_;
  const bool first_takes_all = index.first_takes_all();
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    const std::uint32_t slot = slots[i];
    const packet::Layers layers = meta.layers[slot];
    const std::uint32_t offset = meta.offset[slot];
    if (!first_takes_all && i + kPrefetchFlows < slots.size()) {
      const std::uint32_t ahead = slots[i + kPrefetchFlows];
      __builtin_prefetch(batch.memory() + std::size_t{ahead} * packet::kSlotBytes + meta.offset[ahead] +
                         packet::kEthernetBytes);
    }
    const std::uint8_t* frame = batch.memory() + std::size_t{slot} * packet::kSlotBytes + offset;
    const std::uint32_t number = first_takes_all ? 0 : index.find(packet::flow_of(frame, layers));
    if (number == index.size()) {
      const bool is_part = index.may_match(packet::flow_of(frame, layers));
      drop(batch[i], is_part ? kDropFragment : kNoSa, std::nullopt, outcome);
      continue;
    }
    const std::uint32_t inner_length = packet::l3_length(frame, meta.length[slot], layers);
    const std::uint32_t text = text_length(inner_length);
    const std::uint32_t front = fronts_[number];
    // Ethernet padding after the datagram is overwritten, so only what is beyond it needs tailroom
    const std::uint32_t end = offset + layers.l3 + text + cipher::kIcvBytes;
    if (front > offset || end > packet::kSlotBytes) {
      drop(batch[i], kTooLong, std::nullopt, outcome);
      continue;
    }
    if (front + text + cipher::kIcvBytes > mtu_ && !may_be_cut(batch[i], number, outcome)) {
      continue;
    }
    Numbers& numbers = numbers_[number];
    if (numbers.next >= numbers.limit && !may_continue(number)) {
      const bool ended = numbers.next >= sessions_[number].association.sequence_end();
      drop(batch[i], ended ? kSequenceExhausted : kStateFailed, std::nullopt, outcome);
      continue;
    }
    const std::uint64_t sequence = numbers.next++;
    out[i] = {.association = number,
              .sequence = static_cast<std::uint32_t>(sequence),
              .sequence_high = static_cast<std::uint32_t>(sequence >> 32),
              .shift = static_cast<std::uint16_t>(front),
              .inner_length = static_cast<std::uint16_t>(inner_length),
              .text_length = static_cast<std::uint16_t>(text),
              .l3 = layers.l3,
              .action = numbers.extended ? kProcessExtended : kProcess};
  }
}

void Encryptor::compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) {
  const auto in = nf::array_of<Aux>(aux);
  const auto out = nf::array_of<PacketResult>(results);
  for (std::uint32_t first = 0; first < batch.size();) {
    std::uint32_t i = first;
    for (; i < batch.size() && !crypto_->full(); ++i) {
      Session const& session = sessions_[in[i].association];
      if (i + kHeadersAhead < batch.size()) {
        const std::uint8_t* ahead = batch[i + kHeadersAhead].frame();
        __builtin_prefetch(ahead - kCacheLineBytes / 2, 1);
        __builtin_prefetch(ahead + kCacheLineBytes / 2, 1);
      }
      crypto_->add(session.keys, encapsulate(batch[i], in[i], session.outer), whole_sequence(in[i]), in[i].text_length,
                   in[i].sequence_high);
    }
    const PacketStatus status = crypto_->encrypt() ? kDone : kNotProcessed;
    for (; first < i; ++first) {
      out[first].status = status;
    }
  }
}

void Encryptor::complete(nf::Completion const& completion) {
  packet::Batch const& batch = completion.batch();
  nf::Outcome& outcome = completion.outcome();
  const auto in = completion.aux<Aux>();
  const auto out = completion.results<PacketResult>();
  const auto slots = batch.slots();
  packet::Layers* layers = batch.meta().layers;
  const bool recording = outcome.recording();
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    if (out[i].status != kDone) {
      drop(batch[i], kCryptoFailed, recorded(in[i]), outcome);
      continue;
    }
    layers[slots[i]] = layers_after_encapsulation(in[i]);
    outcome.leave_by(batch[i], kProtectedOutput);
    if (recording) {
      pass(batch[i], recorded(in[i]), outcome);
    }
  }
}

}  // namespace catena::ipsec
