// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/device_side.hpp"
#include "pipeline/device_stage.hpp"
#include "pipeline/generations.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/retry_delay.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace catena::runtime {

/// Returns a running chain to its device after a loss, once the device can be opened again. Creates a new device side
/// while packets run, and binds the stages to it one by one. The last stage comes first, since each stage gets units
/// that upstream stages have put on the device. Until then the CPU implementations process the packets.
class DeviceRecovery {
 public:
  /// Interval of look() calls.
  static constexpr std::chrono::microseconds kPeriod{5000};

  /// A device side and its stages, lost and restored together.
  struct Part {
    DeviceSide* side;                  ///< at the start; outlives this
    std::vector<DeviceStage*> stages;  ///< the last one first; all are polled while this monitors them
    std::function<Result<std::unique_ptr<DeviceSide>>()> make;  ///< opens the device again; called until it succeeds
    /// Bounds of launches on a reopened device, for each NF of the chain by position. Null: the whole device.
    std::function<Result<std::vector<kernel::LaunchBounds>>(device::Device&)> bounds = {};
  };
  explicit DeviceRecovery(std::vector<Part> parts);
  DeviceRecovery(DeviceRecovery const&) = delete;
  DeviceRecovery& operator=(DeviceRecovery const&) = delete;

  /// Checks for lost parts and restores them if possible, until `pause` ends. One thread at a time, which is the only
  /// one to bind the stages. New device sides live as long as this.
  void look(Pause& pause);
  /// Counts losses since the last look(). Call after the last one.
  void count_last_losses();

  /// How often a part was found without its device, and how often its device was restored. Any thread.
  std::uint64_t losses() const { return losses_.load(std::memory_order_relaxed); }
  std::uint64_t returns() const { return returns_.load(std::memory_order_relaxed); }

 private:
  struct State {
    Part part;
    Generations<DeviceSide> sides;  ///< held by the stages
    RetryDelay retries;
    bool is_lost = false;
  };
  void monitor(State& state, Pause& pause);
  static Result<bool> bring_back(State& state, std::unique_ptr<DeviceSide> side, Pause& pause);

  std::vector<State> states_;
  std::atomic<std::uint64_t> losses_{0};
  std::atomic<std::uint64_t> returns_{0};
};

}  // namespace catena::runtime
