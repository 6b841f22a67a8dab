// SPDX-License-Identifier: Apache-2.0
#include "stack/tcp/pcb_buckets.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include <lwip/priv/tcp_priv.h>

namespace catena::stack {
namespace {

/// The product of two numbers of 64 bits, folded to 64 bits.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

/// Whether a timer of lwIP may have work: for data, ACKs and a FIN to be sent, for data out of order or refused by the
/// application, and for the states before and after those of an open connection.
bool has_timer(tcp_pcb const& pcb) {
  return (pcb.state != ESTABLISHED && pcb.state != CLOSE_WAIT) || pcb.unacked != nullptr || pcb.unsent != nullptr ||
         pcb.ooseq != nullptr || pcb.refused_data != nullptr || pcb.rtime >= 0 || pcb.persist_backoff != 0 ||
         (pcb.flags & (TF_ACK_DELAY | TF_ACK_NOW | TF_CLOSEPEND | TF_NAGLEMEMERR)) != 0;
}

/// Puts `list` in front of `to`.
void append(tcp_pcb*& to, tcp_pcb* list) {
  if (list == nullptr) {
    return;
  }
  tcp_pcb* last = list;
  while (last->next != nullptr) {
    last = last->next;
  }
  last->next = to;
  to = list;
}

}  // namespace

PcbBuckets::PcbBuckets(Key const& key) : key_(key), buckets_(kBuckets) {}

std::size_t PcbBuckets::bucket_of(std::uint64_t high, std::uint64_t low, std::uint16_t port) const {
  const std::uint64_t address = fold(high ^ key_[0], low ^ key_[1]);
  return fold(address ^ key_[2], port ^ key_[3]) & (kBuckets - 1);
}

std::size_t PcbBuckets::bucket_of(Segment const& segment) const {
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), segment.remote.data(), sizeof words);
  return bucket_of(words[0], words[1], segment.remote_port);
}

std::size_t PcbBuckets::bucket_of(tcp_pcb const& pcb) const {
  std::array<std::uint64_t, 2> words{};
  if (IP_IS_V4_VAL(pcb.remote_ip)) {
    std::memcpy(words.data(), &ip_2_ip4(&pcb.remote_ip)->addr, 4);
  } else {
    std::memcpy(words.data(), ip_2_ip6(&pcb.remote_ip)->addr, sizeof words);
  }
  return bucket_of(words[0], words[1], pcb.remote_port);
}

PcbBuckets::Scope::Scope(PcbBuckets& buckets, std::size_t bucket)
    : buckets_(buckets.buckets_[bucket].is_loaded ? nullptr : &buckets), bucket_(bucket) {
  if (buckets_ != nullptr) {
    Bucket& loaded = buckets_->buckets_[bucket];
    loaded.is_loaded = true;
    outer_active_ = std::exchange(tcp_active_pcbs, loaded.active);
    outer_waiting_ = std::exchange(tcp_tw_pcbs, loaded.waiting);
  }
}

PcbBuckets::Scope::~Scope() {
  if (buckets_ != nullptr) {
    buckets_->buckets_[bucket_] = {std::exchange(tcp_active_pcbs, outer_active_),
                                   std::exchange(tcp_tw_pcbs, outer_waiting_), false};
    Bucket const& bucket = buckets_->buckets_[bucket_];
    if (bucket.active != nullptr) {
      set(buckets_->armed_, bucket_);
    }
    if (bucket.waiting != nullptr) {
      set(buckets_->waiting_, bucket_);
    }
  }
}

void PcbBuckets::arm_waiting() {
  for (std::size_t word = 0; word < armed_.size(); ++word) {
    armed_[word] |= waiting_[word];
  }
}

void PcbBuckets::join_armed() {
  joined_.clear();
  for (std::size_t word = 0; word < armed_.size(); ++word) {
    const std::uint64_t armed = std::exchange(armed_[word], 0);
    waiting_[word] &= ~armed;
    for (std::uint64_t bits = armed; bits != 0; bits &= bits - 1) {
      const std::size_t bucket = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
      joined_.push_back(bucket);
      buckets_[bucket].is_loaded = true;
      append(tcp_active_pcbs, std::exchange(buckets_[bucket].active, nullptr));
      append(tcp_tw_pcbs, std::exchange(buckets_[bucket].waiting, nullptr));
    }
  }
}

void PcbBuckets::deal() {
  const auto deal_list = [this](tcp_pcb* list, tcp_pcb* Bucket::*lists, Bitmap& marks,
                                bool (*is_marked)(tcp_pcb const&)) {
    while (list != nullptr) {
      tcp_pcb* const pcb = std::exchange(list, list->next);
      const std::size_t at = bucket_of(*pcb);
      pcb->next = std::exchange(buckets_[at].*lists, pcb);
      if (is_marked(*pcb)) {
        set(marks, at);
      }
    }
  };
  deal_list(std::exchange(tcp_active_pcbs, nullptr), &Bucket::active, armed_, &has_timer);
  deal_list(std::exchange(tcp_tw_pcbs, nullptr), &Bucket::waiting, waiting_, [](tcp_pcb const&) { return true; });
  for (const std::size_t bucket : joined_) {
    buckets_[bucket].is_loaded = false;
  }
}

}  // namespace catena::stack
