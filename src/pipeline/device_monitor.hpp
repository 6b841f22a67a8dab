// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/device_recovery.hpp"
#include "pipeline/gpu_sharing.hpp"
#include "pipeline/pause.hpp"

#include <functional>
#include <mutex>
#include <thread>

namespace catena::runtime {

/// Monitors the device of a chain while its stages are polled: restores a lost device, and keeps NFs to their
/// partitions of it. One thread does both, since a stage accepts one binding at a time, and a binding depends on the
/// stage's current device.
class DeviceMonitor {
 public:
  /// Returns a lock against bind() of other threads at the stages; empty if other threads bind.
  using Admit = std::function<std::unique_lock<std::mutex>()>;
  /// Starts. `recovery`, `sharing`: null if not needed. Both outlive this, and so do the stages. `admit` is called
  /// before each check of a lost device.
  DeviceMonitor(DeviceRecovery* recovery, GpuSharing* sharing, std::function<share::TrafficSample()> traffic,
                Admit admit);
  /// Stops. Stages keep their bindings.
  ~DeviceMonitor();
  DeviceMonitor(DeviceMonitor const&) = delete;
  DeviceMonitor& operator=(DeviceMonitor const&) = delete;

 private:
  void watch();

  DeviceRecovery* recovery_;
  GpuSharing* sharing_;
  Admit admit_;
  Pause pause_;
  std::thread thread_;
};

}  // namespace catena::runtime
