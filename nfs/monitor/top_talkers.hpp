// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace catena::monitor {

/// What one source sent to one destination.
struct Talker {
  std::uint32_t src;  ///< host order
  std::uint32_t dst;
  std::uint64_t packets;  ///< like `bytes`, with those of pairs that had the counter before
  std::uint64_t bytes;
  std::uint64_t excess_bytes;  ///< at most so many of `bytes` are not the pair's own
};

/// The pairs of addresses with the most bytes, in bounded memory: the Space-Saving algorithm (Metwally, Agrawal and
/// El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005) with bytes for its counts.
/// While there are no more pairs than counters all numbers are exact. After that a new pair takes over the counter
/// with the fewest bytes, and with it an excess that is known. Every pair with more than 1/counters of all bytes is in.
/// Not thread safe.
class TopTalkers {
 public:
  /// `counters`: at least 1.
  explicit TopTalkers(std::size_t counters);

  void add(std::uint32_t src, std::uint32_t dst, std::uint64_t packets, std::uint64_t bytes);
  /// All pairs that have a counter, in no order.
  std::vector<Talker> all() const;
  /// What a pair without a counter may have sent at most, as `excess_bytes`: nothing, while no counter was taken over.
  Talker missing() const;
  std::size_t memory_bytes() const;

 private:
  using Pair = std::uint64_t;  // source, destination

  /// Keyed, because senders choose their addresses.
  struct Hash {
    std::uint64_t seed;
    std::size_t operator()(Pair pair) const;
  };

  struct Counter {
    Talker talker;
    std::size_t* position;  ///< of this counter in heap_; lives in positions_
  };

  /// Whether `a` has to be above `b` in the heap: the pair with the fewest bytes on top.
  static bool is_above(Counter const& a, Counter const& b);
  void sift_down(std::size_t at);
  void sift_up(std::size_t at);
  void place(std::size_t at, Counter const& counter) {
    heap_[at] = counter;
    *counter.position = at;
  }

  std::size_t counters_;
  bool has_shared_ = false;  // a counter was taken over
  std::vector<Counter> heap_;
  std::unordered_map<Pair, std::size_t, Hash> positions_;  // in heap_
};

/// The first `count` pairs over all of `parts`, most bytes first; equal ones in the order of their addresses. A pair
/// without a counter in some of these gets what it may have sent there, as if it had taken over a counter now.
std::vector<Talker> top_of(std::span<const std::shared_ptr<const TopTalkers>> parts, std::size_t count);

}  // namespace catena::monitor
