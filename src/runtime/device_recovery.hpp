// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/device_side.hpp"
#include "runtime/device_stage.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace catena::runtime {

/// Brings a running chain back to its device, once that can be opened again after it was lost: makes another device
/// side beside the packets, and hands it to the stages one after another, the last one first, because each gets units
/// that those in front of it have put on the device. Meanwhile and until then the CPU implementations serve.
class DeviceRecovery {
 public:
  /// What is lost and returns as one.
  struct Part {
    DeviceSide* side;                  ///< at the start; outlives this
    std::vector<DeviceStage*> stages;  ///< the last one first; polled while this looks after them
    std::function<Result<std::unique_ptr<DeviceSide>>()> make;  ///< opens the device again; called until it succeeds
  };
  explicit DeviceRecovery(std::vector<Part> parts);
  ~DeviceRecovery() { stop(); }
  DeviceRecovery(DeviceRecovery const&) = delete;
  DeviceRecovery& operator=(DeviceRecovery const&) = delete;

  /// Begins to look after the parts, in a thread of its own.
  void start();
  /// Ends that; nothing is handed to a stage any more. What was handed over lives as long as this.
  void stop();

  /// How often a part was found without its device, and how often it was brought back to it. Any thread.
  std::uint64_t losses() const { return losses_.load(std::memory_order_relaxed); }
  std::uint64_t returns() const { return returns_.load(std::memory_order_relaxed); }

 private:
  struct State {
    Part part;
    std::vector<std::unique_ptr<DeviceSide>> sides;  ///< made since; those before the last are out of use
    bool is_lost = false;
    std::chrono::milliseconds delay{0};  ///< between the last try and the next
    std::chrono::steady_clock::time_point next_try{};
    DeviceSide& current() { return sides.empty() ? *part.side : *sides.back(); }
  };
  void watch();
  void look_after(State& state);
  Result<bool> bring_back(State& state, std::unique_ptr<DeviceSide> side);
  bool sleep(std::chrono::microseconds time);

  std::vector<State> states_;
  std::atomic<std::uint64_t> losses_{0};
  std::atomic<std::uint64_t> returns_{0};
  std::mutex mutex_;
  std::condition_variable stopping_changed_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace catena::runtime
