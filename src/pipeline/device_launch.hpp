// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "pipeline/launch_trace.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::runtime {

/// The units of one launch of an NF on a device, and its state. Small units are given to the NF in groups. Reused for
/// launch after launch. One thread. Call order: begin() -> add() .. -> close_group() -> submit() -> poll() until true
/// -> clear(). Without a submit(), or after an error: see LaunchSettlement.
class DeviceLaunch {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t {
    kAtRest,   ///< nothing of it runs on the device
    kRunning,  ///< submitted
    kFailed,   ///< submitted work may still run
  };
  /// `batch`: empty. `pool` outlives this. `group_packets`: maximum number of packets of several units in a group; 0:
  /// each unit is a group. `lane`: LaunchTimeline::lane.
  DeviceLaunch(std::unique_ptr<nf::DeviceBatch> batch, memory::PacketPool& pool, std::uint32_t group_packets,
               std::uint32_t lane);

  /// Starts launch number `number`.
  void begin(std::uint32_t number, Clock::time_point now);
  bool has_room_for(memory::Unit const& unit) const { return open_packets_ + unit.count <= batch_->room(); }
  /// Adds a unit, and gives the NF the open group if it has no room for another unit. Precondition: has_room_for(unit).
  void add(memory::Unit& unit);
  /// Gives the NF the units added since the last group.
  void close_group();
  /// Whether no packet has room. Precondition: no group is open.
  bool is_full() const { return batch_->room() == 0; }
  /// Starts the work on the device. Errors: the device's; it may have started in part.
  Status submit(Clock::time_point now);
  /// Continues a submitted launch: starts the work after the moves into staging, once they are done. Errors: as
  /// submit().
  Status advance();
  /// True when all units are complete. Never waits. Errors: as submit().
  Result<bool> poll();
  /// The device counts as lost with this launch.
  void fail() { state_ = State::kFailed; }
  /// Nothing waits for it any more.
  void come_to_rest() { state_ = State::kAtRest; }
  /// Empties it: its units were passed on.
  void clear();

  State state() const { return state_; }
  /// Begin, start on the device, or failure, whichever is last.
  Clock::time_point since() const { return since_; }
  std::vector<memory::Unit*> const& units() const { return units_; }
  /// For each group the number of units up to its end.
  std::vector<std::size_t> const& group_ends() const { return group_ends_; }
  nf::DeviceBatch& batch() { return *batch_; }
  LaunchTimeline& timeline() { return timeline_; }

 private:
  Status checked(Status status);

  std::unique_ptr<nf::DeviceBatch> batch_;
  memory::PacketPool* pool_;
  std::uint32_t group_packets_;
  std::vector<memory::Unit*> units_;
  std::vector<std::size_t> group_ends_;  ///< in units_
  std::vector<std::uint32_t> slots_;     ///< of the groups
  std::uint32_t open_packets_ = 0;       ///< of units after the last group
  Clock::time_point since_;
  LaunchTimeline timeline_;
  State state_ = State::kAtRest;
};

}  // namespace catena::runtime
