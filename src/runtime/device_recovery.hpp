// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/device_side.hpp"
#include "runtime/device_stage.hpp"
#include "runtime/pause.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace catena::runtime {

/// Brings a running chain back to its device, once that can be opened again after it was lost: makes another device
/// side beside the packets, and hands it to the stages one after another, the last one first, because each gets units
/// that those in front of it have put on the device. Meanwhile and until then the CPU implementations serve.
class DeviceRecovery {
 public:
  /// How often look() is to be called.
  static constexpr std::chrono::microseconds kPeriod{5000};

  /// What is lost and returns as one.
  struct Part {
    DeviceSide* side;                  ///< at the start; outlives this
    std::vector<DeviceStage*> stages;  ///< the last one first; polled while this looks after them
    std::function<Result<std::unique_ptr<DeviceSide>>()> make;  ///< opens the device again; called until it succeeds
    /// What launches of each NF of the chain, by position, are to take of a device that was opened again. Null: all.
    std::function<Result<std::vector<kernel::LaunchBounds>>(device::Device&)> bounds = {};
  };
  explicit DeviceRecovery(std::vector<Part> parts);
  DeviceRecovery(DeviceRecovery const&) = delete;
  DeviceRecovery& operator=(DeviceRecovery const&) = delete;

  /// Looks whether parts are lost, and brings back what can be, until `pause` ends. One thread at a time, who alone
  /// makes offers to the stages. What is handed over lives as long as this.
  void look(Pause& pause);
  /// Counts what was lost since the last look, after the last one.
  void count_last_losses();

  /// How often a part was found without its device, and how often it was brought back to it. Any thread.
  std::uint64_t losses() const { return losses_.load(std::memory_order_relaxed); }
  std::uint64_t returns() const { return returns_.load(std::memory_order_relaxed); }

 private:
  struct State {
    Part part;
    std::vector<std::unique_ptr<DeviceSide>> sides;  ///< made since; those before the last are out of use
    std::vector<DeviceSide*> held;                   ///< what each of the stages has, or a part's first one
    bool is_lost = false;
    std::chrono::milliseconds delay{0};  ///< between the last try and the next
    std::chrono::steady_clock::time_point next_try{};
    DeviceSide& current() { return sides.empty() ? *part.side : *sides.back(); }
    void end_unheld_sides();
  };
  void look_after(State& state, Pause& pause);
  static Result<bool> bring_back(State& state, std::unique_ptr<DeviceSide> side, Pause& pause);

  std::vector<State> states_;
  std::atomic<std::uint64_t> losses_{0};
  std::atomic<std::uint64_t> returns_{0};
};

}  // namespace catena::runtime
