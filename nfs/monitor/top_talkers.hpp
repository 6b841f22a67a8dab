// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace catena::monitor {

/// Traffic from one source to one destination.
struct Talker {
  std::uint32_t src;  ///< host order
  std::uint32_t dst;
  std::uint64_t packets;  ///< like `bytes`, including the counter's previous pairs
  std::uint64_t bytes;
  std::uint64_t excess_bytes;  ///< upper bound of the bytes of other pairs in `bytes`
};

/// The address pairs with the most bytes, in bounded memory: the Space-Saving algorithm (Metwally, Agrawal and El
/// Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005) with bytes as counts. While
/// there are no more pairs than counters, all numbers are exact. After that a new pair takes over the counter with the
/// fewest bytes, and with it a known excess. Every pair with more than 1/counters of all bytes is included. Not thread
/// safe.
class TopTalkers {
 public:
  /// `counters`: at least 1.
  explicit TopTalkers(std::size_t counters);

  void add(std::uint32_t src, std::uint32_t dst, std::uint64_t packets, std::uint64_t bytes);
  /// Starts with the counts of `parts` together. Before the first add().
  void fill(std::span<const std::shared_ptr<const TopTalkers>> parts);
  /// All pairs with a counter, unordered.
  std::vector<Talker> all() const;
  /// Upper bound of a pair without a counter, as `excess_bytes`: 0 while no counter was taken over.
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
    std::size_t* position;  ///< of this counter in heap_; stored in positions_
  };

  /// True if `a` belongs above `b` in the heap: the pair with the fewest bytes is on top.
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

/// The first `count` pairs over all of `parts`, most bytes first; equal ones in the order of their addresses. For parts
/// without a counter of a pair, the upper bound of the pair is added, as if it had taken over a counter now.
std::vector<Talker> top_of(std::span<const std::shared_ptr<const TopTalkers>> parts, std::size_t count);

}  // namespace catena::monitor
