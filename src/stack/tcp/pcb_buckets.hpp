// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lwip/tcp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stack/tcp/frame.hpp"

namespace catena::stack {

/// lwIP finds a connection by walking its global lists of PCBs. They are divided into buckets here, hashed by the
/// peer's address and port: while lwIP works for a connection, it has the lists of the connection's bucket, and for
/// timers the lists of all armed buckets. A bucket is armed from its use until none of its PCBs has a
/// timer, so idle connections cost no time.
class PcbBuckets {
 public:
  using Key = std::array<std::uint64_t, 4>;
  /// `key`: random, so peers cannot choose their bucket.
  explicit PcbBuckets(Key const& key);

  std::size_t bucket_of(Segment const& segment) const;
  std::size_t bucket_of(tcp_pcb const& pcb) const;

  /// Loads a bucket into lwIP's lists, and puts it back at the end of its life. Scopes nest: an event of a connection
  /// may work for another one. A loaded bucket stays as it is.
  class Scope {
   public:
    Scope(PcbBuckets& buckets, std::size_t bucket);
    ~Scope();
    Scope(Scope const&) = delete;
    Scope& operator=(Scope const&) = delete;

   private:
    PcbBuckets* buckets_;  ///< null: the bucket is loaded already
    std::size_t bucket_;
    tcp_pcb* outer_active_ = nullptr;
    tcp_pcb* outer_waiting_ = nullptr;
  };

  /// Calls `work` with the connections of all armed buckets in lwIP's lists. Not within a Scope.
  template <typename Work>
  void with_armed(Work const& work) {
    join_armed();
    work();
    deal();
  }
  /// Arms the buckets with connections in TIME-WAIT, whose timer has seconds of time.
  void arm_waiting();

 private:
  static constexpr std::size_t kBuckets = 16384;  ///< a power of two
  using Bitmap = std::array<std::uint64_t, kBuckets / 64>;
  struct Bucket {
    tcp_pcb* active = nullptr;
    tcp_pcb* waiting = nullptr;  ///< in TIME-WAIT
    bool is_loaded = false;
  };

  static void set(Bitmap& bits, std::size_t bucket) { bits[bucket / 64] |= std::uint64_t{1} << (bucket % 64); }
  std::size_t bucket_of(std::uint64_t high, std::uint64_t low, std::uint16_t port) const;
  void join_armed();
  /// Puts the joined buckets back, and arms those with a timer.
  void deal();

  Key key_;
  std::vector<Bucket> buckets_;
  Bitmap armed_ = {};
  Bitmap waiting_ = {};  ///< buckets with connections in TIME-WAIT
  std::vector<std::size_t> joined_;
};

}  // namespace catena::stack
