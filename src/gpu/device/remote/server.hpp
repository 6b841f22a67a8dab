// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <cstdint>

#include "base/core/file_descriptor.hpp"
#include "gpu/device/device.hpp"
#include "gpu/device/remote/black_box.hpp"
#include "gpu/device/remote/compilations.hpp"

/// The process that owns a device, for other processes without one. Clients do not trust each other. Each has its own
/// numbers and memory, and device memory is zeroed before a client gets it.
namespace catena::device::remote {

struct ServerLimits {
  std::chrono::milliseconds launch_on(DeviceInfo const& info) const {
    constexpr std::chrono::seconds kGpu{2};
    constexpr std::chrono::seconds kCpu{30};
    return launch.count() != 0 ? launch : info.is_cpu ? kCpu : kGpu;
  }

  /// Maximum time of work without progress: a longer kernel counts as endless. 0: two seconds, or 30 seconds if the
  /// device is this machine's CPU, whose driver compiles a kernel at its first launch.
  std::chrono::milliseconds launch{0};
  std::uint64_t device_bytes = std::uint64_t{64} << 30;  ///< of one client
  std::uint64_t host_bytes = std::uint64_t{64} << 30;    ///< of one client: mapped and pinned
  bool one_at_a_time = false;  ///< launches of all clients run one after another: `--share temporal`
};

/// Serves the clients whose sockets arrive over `control` (see supervisor.hpp), each in its own thread, until the other
/// end of `control` is gone. Then, and once the device has failed or makes no progress within `limits.launch`, the
/// process must end: only that frees a device from a kernel. `box` receives the reason, and any thread calls `end` with
/// the exit status. `end` terminates the process at once, without destructors that could wait for the device. `judge`:
/// judges the sources of untrusted clients. `store`: keeps their compiled programs, and must outlive everything.
[[noreturn]] void serve(Device& device, FileDescriptor control, ServerLimits const& limits, BlackBox& box,
                        void (*end)(int), SourceJudge judge, BinaryStore& store);

/// Kernels that a client may run.
enum class Trust : std::uint32_t {
  kOwn,       ///< any kernel: the client belongs to the process that started the server
  kStranger,  ///< kernels judged and compiled by the server: a sandboxed process
};

/// A message on `control`: a client's number and its Trust, with the server's end of a socketpair.
inline constexpr std::uint32_t kAddClient = 1;

// exit status of a server
inline constexpr int kExitSupervisorGone = 0;
inline constexpr int kExitNoDevice = 64;      ///< the device could not be opened; the reason is in the box
inline constexpr int kExitDeviceFailed = 65;  ///< permanently: a kernel trapped, or the device is lost
inline constexpr int kExitEndless = 66;       ///< work took longer than ServerLimits::launch

}  // namespace catena::device::remote
