// SPDX-License-Identifier: Apache-2.0
#include "top_talkers.hpp"

#include <algorithm>
#include <random>
#include <tuple>

namespace catena::monitor {
namespace {

std::uint64_t pair_of(Talker const& talker) { return std::uint64_t{talker.src} << 32 | talker.dst; }

/// Adds to the counts of `to`, which may go below 0 and come back: all is modulo 2^64.
void add_counts(Talker& to, Talker const& more) {
  to.packets += more.packets;
  to.bytes += more.bytes;
  to.excess_bytes += more.excess_bytes;
}
void subtract_counts(Talker& from, Talker const& less) {
  from.packets -= less.packets;
  from.bytes -= less.bytes;
  from.excess_bytes -= less.excess_bytes;
}

/// Adds up the entries of each pair.
std::vector<Talker> by_pair(std::vector<Talker> entries) {
  std::sort(entries.begin(), entries.end(), [](Talker const& a, Talker const& b) { return pair_of(a) < pair_of(b); });
  std::vector<Talker> sums;
  for (Talker const& entry : entries) {
    if (!sums.empty() && pair_of(sums.back()) == pair_of(entry)) {
      add_counts(sums.back(), entry);
    } else {
      sums.push_back(entry);
    }
  }
  return sums;
}

}  // namespace

std::size_t TopTalkers::Hash::operator()(Pair pair) const {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{pair ^ seed} * (seed | 1);
  return static_cast<std::size_t>(static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64));
}

TopTalkers::TopTalkers(std::size_t counters)
    : counters_(counters), positions_(counters, Hash{[] {
                                        std::random_device random;
                                        return std::uint64_t{random()} << 32 | random();
                                      }()}) {
  heap_.reserve(counters);
}

bool TopTalkers::is_above(Counter const& a, Counter const& b) {
  return std::tuple(a.talker.bytes, pair_of(a.talker)) < std::tuple(b.talker.bytes, pair_of(b.talker));
}

void TopTalkers::sift_down(std::size_t at) {
  const Counter moving = heap_[at];
  while (2 * at + 1 < heap_.size()) {
    std::size_t child = 2 * at + 1;
    if (child + 1 < heap_.size() && is_above(heap_[child + 1], heap_[child])) {
      ++child;
    }
    if (!is_above(heap_[child], moving)) {
      break;
    }
    place(at, heap_[child]);
    at = child;
  }
  place(at, moving);
}

void TopTalkers::sift_up(std::size_t at) {
  const Counter moving = heap_[at];
  while (at > 0 && is_above(moving, heap_[(at - 1) / 2])) {
    place(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(at, moving);
}

void TopTalkers::add(std::uint32_t src, std::uint32_t dst, std::uint64_t packets, std::uint64_t bytes) {
  const Pair pair = Pair{src} << 32 | dst;
  if (const auto found = positions_.find(pair); found != positions_.end()) {
    Talker& talker = heap_[found->second].talker;
    talker.packets += packets;
    talker.bytes += bytes;
    sift_down(found->second);
    return;
  }
  if (heap_.size() < counters_) {
    std::size_t& position = positions_.emplace(pair, heap_.size()).first->second;
    heap_.push_back({{src, dst, packets, bytes, 0}, &position});
    sift_up(position);
    return;
  }
  has_shared_ = true;
  Talker& least = heap_[0].talker;
  auto entry = positions_.extract(pair_of(least));  // its memory serves the new pair, at the same address
  entry.key() = pair;
  positions_.insert(std::move(entry));
  least = {src, dst, least.packets + packets, least.bytes + bytes, least.bytes};
  sift_down(0);
}

void TopTalkers::fill(std::span<const std::shared_ptr<const TopTalkers>> parts) {
  for (Talker const& talker : top_of(parts, counters_)) {
    std::size_t& position = positions_.emplace(pair_of(talker), heap_.size()).first->second;
    heap_.push_back({talker, &position});
    sift_up(position);
  }
  // pairs without a counter, here or in a part, have at most the fewest bytes of all
  has_shared_ =
      heap_.size() == counters_ || std::ranges::any_of(parts, [](auto const& part) { return part->has_shared_; });
}

std::vector<Talker> TopTalkers::all() const {
  std::vector<Talker> talkers;
  talkers.reserve(heap_.size());
  for (Counter const& counter : heap_) {
    talkers.push_back(counter.talker);
  }
  return talkers;
}

Talker TopTalkers::missing() const {
  if (!has_shared_) {
    return {};
  }
  Talker const& least = heap_[0].talker;
  return {0, 0, least.packets, least.bytes, least.bytes};
}

std::size_t TopTalkers::memory_bytes() const {
  // what a node of the map takes: key, value, hash value and link
  constexpr std::size_t kNodeBytes = 4 * sizeof(std::uint64_t);
  return counters_ * (sizeof(Counter) + kNodeBytes) + positions_.bucket_count() * sizeof(void*);
}

std::vector<Talker> top_of(std::span<const std::shared_ptr<const TopTalkers>> parts, std::size_t count) {
  Talker missing_everywhere{};
  std::vector<Talker> entries;
  for (auto const& part : parts) {
    const Talker missing = part->missing();
    add_counts(missing_everywhere, missing);
    for (Talker talker : part->all()) {
      subtract_counts(talker, missing);
      entries.push_back(talker);
    }
  }
  std::vector<Talker> sums = by_pair(std::move(entries));
  for (Talker& sum : sums) {
    add_counts(sum, missing_everywhere);
  }
  const std::size_t kept = std::min(count, sums.size());
  std::partial_sort(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(kept), sums.end(),
                    [](Talker const& a, Talker const& b) {
                      return a.bytes != b.bytes ? a.bytes > b.bytes : pair_of(a) < pair_of(b);
                    });
  sums.resize(kept);
  return sums;
}

}  // namespace catena::monitor
