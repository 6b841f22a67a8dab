// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ipc/message.hpp"
#include "stack/segment/segment.hpp"
#include "stack/tcp/tcp.hpp"
#include "stack/tx/tx_stage.hpp"

namespace catena::stack {

/// The configuration of a stack's process.
struct StackSettings {
  TcpOptions tcp;
  TxOptions tx;
  /// Of engine_table(), where tx.mode uses one: a later one replaces a lost one, and the CPU the last one.
  std::vector<std::string> engines{"cpu"};
  SegmentShape shape;  ///< of each application; tcp.receive_window is its rx_bytes
  std::uint64_t tx_buffer_bytes = std::uint64_t{256} << 20U;
  std::uint32_t max_applications = 64;
  std::uint32_t max_of_process = 32;  ///< of these; one process leaves room for others
};

/// Frames from the supervisor to the process, in this order: kStart once, then kConnection and kMemory for each
/// application; and back: kReady or kFailed once, then kReport.
enum class StackCall : std::uint32_t {
  kStart = 1,   ///< a StackSettings
  kConnection,  ///< the application's socket, and the number of its process (pid_t)
  kMemory,      ///< its segment, of the shape of the settings
  kReady,
  kFailed,  ///< a Status
  kReport,  ///< a StackReport
};
inline constexpr std::uint32_t kMaxStackFrame = 4096;
inline constexpr int kStackControlFd = 3;
inline constexpr int kStackPortFd = 4;

void put(ipc::Writer& writer, StackSettings const& settings);
/// InvalidArgument: settings of another version.
Result<StackSettings> take_settings(std::span<const std::byte> body);

/// Sends the two frames of an application, which is of the process `process`, to the process at the other end of
/// `control`: kConnection with `connection`, and kMemory with a new segment. Both descriptors remain the caller's. One
/// thread at a time: the frames stay together. ResourceExhausted: no memory. Errors of ipc::send_frame().
Status send_application(int control, SegmentShape const& shape, int connection, pid_t process);

}  // namespace catena::stack
