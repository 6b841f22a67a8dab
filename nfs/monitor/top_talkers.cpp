// SPDX-License-Identifier: Apache-2.0
#include "top_talkers.hpp"

#include <algorithm>
#include <random>
#include <tuple>

namespace catena::monitor {

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
  Talker& least = heap_[0].talker;
  auto entry = positions_.extract(pair_of(least));  // its memory serves the new pair, at the same address
  entry.key() = pair;
  positions_.insert(std::move(entry));
  least = {src, dst, least.packets + packets, least.bytes + bytes, least.bytes};
  sift_down(0);
}

std::vector<Talker> TopTalkers::top(std::size_t count) const {
  std::vector<Talker> sorted;
  sorted.reserve(heap_.size());
  for (Counter const& counter : heap_) {
    sorted.push_back(counter.talker);
  }
  const std::size_t kept = std::min(count, sorted.size());
  std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(kept), sorted.end(),
                    [](Talker const& a, Talker const& b) {
                      return a.bytes != b.bytes ? a.bytes > b.bytes : pair_of(a) < pair_of(b);
                    });
  sorted.resize(kept);
  return sorted;
}

std::size_t TopTalkers::memory_bytes() const {
  // what a node of the map takes: key, value, hash value and link
  constexpr std::size_t kNodeBytes = 4 * sizeof(std::uint64_t);
  return counters_ * (sizeof(Counter) + kNodeBytes) + positions_.bucket_count() * sizeof(void*);
}

}  // namespace catena::monitor
