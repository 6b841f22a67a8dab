// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <cstdint>

#include "device/device.hpp"
#include "device/remote/black_box.hpp"
#include "device/remote/compilations.hpp"
#include "device/remote/socket.hpp"

/// The process that owns a device, for others who have none. Clients are strangers to one another: each has numbers and
/// memory of its own, and device memory is zero when one gets it.
namespace catena::device::remote {

struct ServerLimits {
  std::chrono::milliseconds launch_on(DeviceInfo const& info) const {
    constexpr std::chrono::seconds kGpu{2};
    constexpr std::chrono::seconds kCpu{30};
    return launch.count() != 0 ? launch : info.is_cpu ? kCpu : kGpu;
  }

  /// How long work may go on without coming to an end: a kernel that takes longer is taken for endless. 0: two seconds,
  /// and half a minute where the device is this machine's CPU, whose driver compiles a kernel when it is first
  /// launched.
  std::chrono::milliseconds launch{0};
  std::uint64_t device_bytes = std::uint64_t{64} << 30;  ///< of one client
  std::uint64_t host_bytes = std::uint64_t{64} << 30;    ///< of one client: mapped and pinned
  bool one_at_a_time = false;  ///< launches of all clients run one after another: `--share temporal`
};

/// Serves the clients whose sockets come over `control` (see supervisor.hpp), each in a thread of its own, until the
/// other end of `control` is gone; then, and once the device has failed or does not come to an end within
/// `limits.launch`, the process has to end: nothing less frees a device from a kernel. `box` says why, and `end` is
/// called, by any thread, with the exit status; it ends the process at once, without a destructor that could wait for
/// the device. `judge`: of what strangers have compiled; `store`: where that is kept, which outlives all.
[[noreturn]] void serve(Device& device, Fd control, ServerLimits const& limits, BlackBox& box, void (*end)(int),
                        SourceJudge judge, BinaryStore& store);

/// What a client may have run.
enum class Trust : std::uint32_t {
  kOwn,       ///< what it likes: it is one with who started the server
  kStranger,  ///< kernels whose source the server has judged and compiled: a sandboxed process
};

/// What `control` carries: a client's number and how far it is trusted, with its end of a socketpair.
inline constexpr std::uint32_t kAddClient = 1;

// how a server ends
inline constexpr int kExitSupervisorGone = 0;
inline constexpr int kExitNoDevice = 64;      ///< it could not be opened; the reason is in the box
inline constexpr int kExitDeviceFailed = 65;  ///< for good: a kernel trapped, or the device is lost
inline constexpr int kExitEndless = 66;       ///< work went on longer than ServerLimits::launch

}  // namespace catena::device::remote
