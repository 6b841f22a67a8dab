// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/device_recovery.hpp"
#include "runtime/gpu_sharing.hpp"
#include "runtime/pause.hpp"

#include <functional>
#include <mutex>
#include <thread>

namespace catena::runtime {

/// Looks after the device of a chain while its stages are polled: brings it back where it was lost, and has NFs keep to
/// their parts of it. One thread does both, since a stage has one offer at a time, and who makes one must know which
/// device the stage has.
class Caretaker {
 public:
  /// What keeps others from making offers to the stages meanwhile; empty: others do.
  using Admit = std::function<std::unique_lock<std::mutex>()>;
  /// Begins. Null: there is nothing of that to do. Both outlive this, and so do the stages. `admit` is asked before
  /// each look at a lost device.
  Caretaker(DeviceRecovery* recovery, GpuSharing* sharing, std::function<share::TrafficSample()> traffic, Admit admit);
  /// Ends: stages keep what they have.
  ~Caretaker();
  Caretaker(Caretaker const&) = delete;
  Caretaker& operator=(Caretaker const&) = delete;

 private:
  void watch();

  DeviceRecovery* recovery_;
  GpuSharing* sharing_;
  Admit admit_;
  Pause pause_;
  std::thread thread_;
};

}  // namespace catena::runtime
