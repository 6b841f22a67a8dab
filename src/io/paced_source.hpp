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

/// The times of an even stream of `per_second` packets: that of packet n is n / per_second seconds, rounded down to ns,
/// however far the stream goes.
class EvenTimes {
 public:
  explicit EvenTimes(std::uint64_t per_second)
      : per_second_(per_second), step_ns_(kNsPerSecond / per_second), step_rest_(kNsPerSecond % per_second) {}

  /// That of packet `number`, in ns. Numbers never go back, nor forward by more than 2^24.
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

/// What sources of artificial traffic share: how many packets may come, their numbers and their arrival times. Those
/// are the times of an even stream, so that they do not depend on how fast the chain is: in a packet they count from 0,
/// in its unit, where there is a rate, from the first receive() on.
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
  /// `packets_per_s` 0: as fast as the chain takes them; `count` 0: without end.
  PacedSource(std::uint64_t packets_per_s, std::uint64_t count)
      : PacedSource(packets_per_s, static_cast<double>(packets_per_s),
                    count != 0 ? std::optional(count) : std::nullopt) {}
  /// The packets that `turns` gives of all of them.
  PacedSource(std::uint64_t packets_per_s, std::uint64_t count, FlowTurns const& turns)
      : PacedSource(packets_per_s, turns.part_of(packets_per_s),
                    count != 0 || turns.empty() ? std::optional(turns.of_first(count)) : std::nullopt) {}

  /// Enters the next packets into `slots`, each with index_of() its number and the arrival_ns() of that. Other threads
  /// see them when it returns.
  virtual void fill(memory::PacketPool& pool, std::span<const std::uint32_t> slots) = 0;
  std::uint64_t index_of(std::uint64_t number) const { return first_index_ + number; }
  std::uint64_t arrival_ns(std::uint64_t number) { return times_.at(number); }

  /// ", 1024 flows, 1000 packets/s, 5 packets, seed 1", without what is not limited.
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
  /// `all_per_s`: of all packets, for their times; `packets_per_s`: of its own.
  PacedSource(std::uint64_t all_per_s, double packets_per_s, std::optional<std::uint64_t> count)
      : packets_per_s_(packets_per_s), count_(count), times_(all_per_s != 0 ? all_per_s : kNominalPacketsPerSecond) {
    if (packets_per_s != 0) {
      schedule_.emplace(packets_per_s);
    }
  }

  /// Until `packets` are there, at least. False: there are not so many slots now.
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

  /// Frames that are written past the caches have left the core before it can take a lock, which a pool has: so many
  /// together cost that once, whatever the size of a unit.
  static constexpr std::uint32_t kFilledAtOnce = memory::kDefaultUnitPackets;
  static constexpr std::uint64_t kNominalPacketsPerSecond = 10'000'000;  ///< where the configuration gives no rate

  double packets_per_s_;
  std::optional<std::uint64_t> count_;  ///< none: without end
  EvenTimes times_;
  std::optional<Schedule> schedule_;
  Counter made_;
  std::uint64_t first_index_ = 0;      ///< of packet 0
  std::vector<std::uint32_t> filled_;  ///< slots; those from taken_ on wait for a unit
  std::size_t taken_ = 0;
};

}  // namespace catena::io
