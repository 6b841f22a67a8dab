// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/flow_turns.hpp"
#include "io/schedule.hpp"
#include "io/source.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::io {

/// The times of an even stream of `per_second` packets: packet n is at n / per_second seconds, rounded down to ns,
/// without accumulated error.
class EvenTimes {
 public:
  explicit EvenTimes(std::uint64_t per_second)
      : per_second_(per_second), step_ns_(kNsPerSecond / per_second), step_rest_(kNsPerSecond % per_second) {}

  /// The time of packet `number`, in ns. Numbers never decrease, nor increase by more than 2^24.
  std::uint64_t at(std::uint64_t number) {
    const std::uint64_t steps = number - number_;
    number_ = number;
    ns_ += steps * step_ns_;
    rest_ += steps * step_rest_;
    if (rest_ >= per_second_) {
      ns_ += rest_ / per_second_;
      rest_ %= per_second_;
    }
    return ns_;
  }

 private:
  static constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

  std::uint64_t per_second_;
  std::uint64_t step_ns_;
  std::uint64_t step_rest_;  ///< of a ns, in parts of per_second_
  std::uint64_t number_ = 0;
  std::uint64_t ns_ = 0;
  std::uint64_t rest_ = 0;
};

/// Common base of synthetic traffic sources: packet limit, packet numbers and arrival times. The arrival times are
/// those of an even stream, independent of the chain's speed. Times in packets count from 0. Times in units, set only
/// if a rate is given, count from the first receive().
class PacedSource : public Source {
 public:
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) final {
    std::uint64_t allowed = pool.unit_packets();
    if (count_) {
      allowed = std::min(allowed, *count_ - made_);
    }
    if (schedule_.has_value()) {
      allowed = std::min(allowed, schedule_->due(Schedule::Clock::now()));
    }
    if (allowed == 0) {
      return absl::OkStatus();
    }
    const auto packets = static_cast<std::uint32_t>(allowed);
    if (made_ == 0) {
      first_index_ = next_index;
    }
    if (packets > filled_.size() - taken_ && !fill_more(pool, packets)) {
      starved = true;
      return absl::OkStatus();
    }
    std::copy_n(filled_.begin() + static_cast<std::ptrdiff_t>(taken_), packets, unit.slots());
    taken_ += packets;
    unit.count = packets;
    next_index = pool.meta().index[unit.slots()[packets - 1]] + 1;
    made_ += packets;
    if (schedule_.has_value()) {
      unit.arrival_ns = schedule_->due_ns(schedule_->taken());
      schedule_->take(packets);
      unit.last_arrival_ns = schedule_->due_ns(schedule_->taken() - 1);
    }
    return absl::OkStatus();
  }

  bool finished() const final { return count_ && made_ == *count_; }
  SourceCounts counts() const final { return {made_, {}}; }
  double offered_per_second() const final { return packets_per_s_; }
  double part_done() const final {
    if (!count_) {
      return -1;
    }
    return *count_ == 0 ? 1 : static_cast<double>(std::uint64_t{made_}) / static_cast<double>(*count_);
  }

 protected:
  /// `packets_per_s` 0: as fast as the chain takes them; `count` 0: endless.
  PacedSource(std::uint64_t packets_per_s, std::uint64_t count)
      : PacedSource(packets_per_s, static_cast<double>(packets_per_s),
                    count != 0 ? std::optional(count) : std::nullopt) {}
  /// Only the packets returned by `turns`.
  PacedSource(std::uint64_t packets_per_s, std::uint64_t count, FlowTurns const& turns)
      : PacedSource(packets_per_s, turns.part_of(packets_per_s),
                    count != 0 || turns.empty() ? std::optional(turns.of_first(count)) : std::nullopt) {}

  /// Writes the next packets to `slots` and enters each with the index_of() and arrival_ns() of its number. Makes them
  /// visible to other threads before it returns.
  virtual void fill(memory::PacketPool& pool, std::span<const std::uint32_t> slots) = 0;
  std::uint64_t index_of(std::uint64_t number) const { return first_index_ + number; }
  std::uint64_t arrival_ns(std::uint64_t number) { return times_.at(number); }

  /// ", 1024 flows, 1000 packets/s, 5 packets, seed 1", without the limits not set.
  static std::string describe_traffic(std::uint32_t flows, std::uint64_t packets_per_s, std::uint64_t count,
                                      std::uint64_t seed) {
    std::string text = concat(", ", flows, flows == 1 ? " flow" : " flows");
    if (packets_per_s != 0) {
      text += concat(", ", packets_per_s, " packets/s");
    }
    if (count != 0) {
      text += concat(", ", count, count == 1 ? " packet" : " packets");
    }
    return text + concat(", seed ", seed);
  }

 private:
  /// `all_per_s`: rate of all packets, for their times; `packets_per_s`: rate of its own packets.
  PacedSource(std::uint64_t all_per_s, double packets_per_s, std::optional<std::uint64_t> count)
      : packets_per_s_(packets_per_s), count_(count), times_(all_per_s != 0 ? all_per_s : kNominalPacketsPerSecond) {
    if (packets_per_s != 0) {
      schedule_.emplace(packets_per_s);
    }
  }

  /// Fills at least `packets` slots. False if too few are free.
  bool fill_more(memory::PacketPool& pool, std::uint32_t packets) {
    filled_.erase(filled_.begin(), filled_.begin() + static_cast<std::ptrdiff_t>(std::exchange(taken_, 0)));
    const std::size_t before = filled_.size();
    std::uint64_t wanted = std::max<std::uint64_t>(packets, kFilledAtOnce) - before;
    if (count_) {
      wanted = std::min(wanted, *count_ - made_ - before);
    }
    filled_.resize(before + wanted);
    if (!pool.acquire_slots(std::span(filled_).subspan(before))) {
      filled_.resize(packets);
      if (!pool.acquire_slots(std::span(filled_).subspan(before))) {
        filled_.resize(before);
        return false;
      }
    }
    fill(pool, std::span<const std::uint32_t>(filled_).subspan(before));
    return true;
  }

  /// A locked instruction, as in the pool, waits until the frames written past the caches have left the core. Filling
  /// this many at once pays for that once, whatever the size of a unit.
  static constexpr std::uint32_t kFilledAtOnce = memory::kDefaultUnitPackets;
  static constexpr std::uint64_t kNominalPacketsPerSecond = 10'000'000;  ///< if the configuration has no rate

  double packets_per_s_;
  std::optional<std::uint64_t> count_;  ///< nullopt: endless
  EvenTimes times_;
  std::optional<Schedule> schedule_;
  Counter made_;
  std::uint64_t first_index_ = 0;      ///< of packet 0
  std::vector<std::uint32_t> filled_;  ///< slots; from taken_ on, they wait for a unit
  std::size_t taken_ = 0;
};

}  // namespace catena::io
