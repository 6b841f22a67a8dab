// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/source.hpp"
#include "io/token_bucket.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace catena::io {

/// The times of an even stream of `per_second` packets: that of packet n is n / per_second seconds, rounded down to ns,
/// however far the stream goes.
class EvenTimes {
 public:
  explicit EvenTimes(std::uint64_t per_second)
      : per_second_(per_second), step_ns_(kNsPerSecond / per_second), step_rest_(kNsPerSecond % per_second) {}

  /// The next packet's, in ns.
  std::uint64_t next() {
    const std::uint64_t now = ns_;
    ns_ += step_ns_;
    rest_ += step_rest_;
    const bool carry = rest_ >= per_second_;
    ns_ += carry ? 1 : 0;
    rest_ -= carry ? per_second_ : 0;
    return now;
  }

 private:
  static constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

  std::uint64_t per_second_;
  std::uint64_t step_ns_;
  std::uint64_t step_rest_;  ///< of a ns, in parts of per_second_
  std::uint64_t ns_ = 0;
  std::uint64_t rest_ = 0;
};

/// What sources of artificial traffic share: how many packets may come, their numbers and their arrival times. Those
/// are the times of an even stream, so that they do not depend on how fast the chain is.
class PacedSource : public Source {
 public:
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) final {
    std::uint64_t allowed = pool.unit_packets();
    if (count_ != 0) {
      allowed = std::min(allowed, count_ - made_);
    }
    if (rate_.has_value()) {
      allowed = std::min(allowed, rate_->available(TokenBucket::Clock::now()));
    }
    if (allowed == 0) {
      return absl::OkStatus();
    }
    const auto packets = static_cast<std::uint32_t>(allowed);
    if (!pool.acquire_slots(unit, packets)) {
      starved = true;
      return absl::OkStatus();
    }
    unit.count = packets;
    fill(pool, unit, next_index);
    next_index += packets;
    made_ += packets;
    if (rate_.has_value()) {
      rate_->take(packets);
    }
    return absl::OkStatus();
  }

  bool finished() const final { return count_ != 0 && made_ == count_; }
  SourceCounts counts() const final { return {made_, {}}; }
  std::uint64_t offered_per_second() const final { return packets_per_s_; }
  double part_done() const final {
    return count_ == 0 ? -1 : static_cast<double>(std::uint64_t{made_}) / static_cast<double>(count_);
  }

 protected:
  /// `packets_per_s` 0: as fast as the chain takes them; `count` 0: without end.
  PacedSource(std::uint64_t packets_per_s, std::uint64_t count)
      : packets_per_s_(packets_per_s),
        count_(count),
        times_(packets_per_s != 0 ? packets_per_s : kNominalPacketsPerSecond) {
    if (packets_per_s != 0) {
      rate_.emplace(packets_per_s, memory::kDefaultUnitPackets, TokenBucket::Clock::now());
    }
  }

  /// Enters the unit's packets, each with the next_arrival_ns(); packet 0 has the number made().
  virtual void fill(memory::PacketPool& pool, memory::Unit const& unit, std::uint64_t next_index) = 0;
  std::uint64_t made() const { return made_; }
  std::uint64_t next_arrival_ns() { return times_.next(); }

  /// ", 1024 flows, 1000 packets/s, 5 packets, seed 1", without what is not limited.
  std::string describe_traffic(std::uint32_t flows, std::uint64_t seed) const {
    std::string text = concat(", ", flows, flows == 1 ? " flow" : " flows");
    if (packets_per_s_ != 0) {
      text += concat(", ", packets_per_s_, " packets/s");
    }
    if (count_ != 0) {
      text += concat(", ", count_, count_ == 1 ? " packet" : " packets");
    }
    return text + concat(", seed ", seed);
  }

 private:
  static constexpr std::uint64_t kNominalPacketsPerSecond = 10'000'000;  ///< where the configuration gives no rate

  std::uint64_t packets_per_s_;
  std::uint64_t count_;
  EvenTimes times_;
  std::optional<TokenBucket> rate_;
  Counter made_;
};

}  // namespace catena::io
