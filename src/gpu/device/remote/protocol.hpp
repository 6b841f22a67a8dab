// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

/// Protocol between a client and a device server, over two paths:
///  - calls over a socket, rare and synchronous: they create objects and pass descriptors;
///  - commands over a ring in shared memory, one ring per stream, asynchronous.
/// Objects are named by numbers that the server gave to this client, memory by a number and an offset, never by an
/// address. The server trusts no input: it copies a command before it reads it, and checks every number, offset and
/// length. The client trusts the server, which owns the device.
namespace catena::device::remote {

inline constexpr std::uint32_t kVersion = 3;

/// Calls over the socket. Each is one frame [ipc::FrameHeader][body]. The reply is also a frame; its body starts with a
/// Status (see message.hpp).
enum class Call : std::uint32_t {
  kHello = 1,            ///< version -> DeviceInfo; with a descriptor that signals the end of the server
  kAllocate,             ///< bytes -> buffer
  kAllocatePinned,       ///< bytes -> memory range, window (0: no window); with the memory
  kMapHost,              ///< bytes, offset, with the memory -> memory range, buffer
  kFree,                 ///< kind, number -> (no reply)
  kCreateStream,         ///< urgent -> stream; with its page
  kCreateCommandBuffer,  ///< partition (0: no partition) -> command buffer
  kRecordLaunch,         ///< command buffer, launch
  kRecordTimestamp,      ///< command buffer, time slot
  kDivide,               ///< units of each partition -> each partition and its units
  kCompile,              ///< source -> binary
  kLoad,                 ///< binary -> program
  kKernel,               ///< program, name -> kernel
};

/// Content of an argument in a launch.
enum class ArgumentKind : std::uint32_t {
  kBuffer,  ///< number (0: a null pointer)
  kBytes,   ///< by value
  kSizes,   ///< empty: see BufferSizes
};

/// Kinds of objects freed by kFree.
enum class Kind : std::uint32_t { kBuffer = 1, kMemoryRange, kStream, kCommandBuffer, kPartition, kProgram };

/// Longest body: a program with its source and headers, or its binary.
inline constexpr std::uint32_t kMaxFrameBytes = 64U << 20;

/// Commands of a stream, in its ring: [CommandHeader][a struct of the command, or its fields][padding to 8 bytes].
enum class Command : std::uint32_t {
  kCopy = 1,
  kFill,
  kLaunch,
  kEnqueue,
  kFinalize,
  kRecord,
  kFlush,
};
struct CommandHeader {
  Command command;
  std::uint32_t bytes;  ///< of the whole command, a multiple of 8
  std::uint32_t reply;  ///< 0, or a number if the client waits for the result
  std::uint32_t unused;
};
inline constexpr std::uint32_t kMaxCommandBytes = 8192;
inline constexpr std::uint32_t kMaxArgumentBytes = 4096;  ///< of one argument by value

struct CopyCommand {
  std::uint64_t buffer_offset;
  std::uint64_t memory_range_offset;
  std::uint64_t row_bytes;
  std::uint64_t stride;
  std::uint32_t rows;  ///< 0: one run of row_bytes bytes
  std::uint32_t buffer;
  std::uint32_t memory_range;
  std::uint32_t to_device;
};
struct FillCommand {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint32_t buffer;
  std::uint32_t value;
};
struct EnqueueCommand {  ///< also of kFinalize
  std::uint32_t command_buffer;
  std::uint32_t unused;
};
inline constexpr std::uint32_t kNoTime = std::numeric_limits<std::uint32_t>::max();
struct RecordCommand {
  std::uint64_t sequence;   ///< reported by StreamPage::reached
  std::uint32_t time_slot;  ///< kNoTime: an event without a time
  std::uint32_t unused;
};

inline constexpr std::uint32_t kRingBytes = 64U << 10;
inline constexpr std::uint32_t kReplyTextBytes = 1024;

/// Shared by one stream of a client and the server. The client writes `tail` and `ring`, the server all other fields.
struct StreamPage {
  // the client's
  alignas(64) std::atomic<std::uint64_t> tail;  ///< bytes put into the ring so far
  // the server's
  alignas(64) std::atomic<std::uint64_t> head;  ///< bytes taken out of the ring so far
  std::atomic<std::uint64_t> reached;           ///< sequence of the last kRecord that the device has reached
  std::atomic<std::uint32_t> is_broken;         ///< a command without a waiter failed: its Status is the reply
  std::atomic<std::uint32_t> replied;           ///< number of the last command whose reply is present
  std::uint32_t reply_code;
  std::array<char, kReplyTextBytes> reply_text;  ///< ends with a NUL
  alignas(64) std::array<std::byte, kRingBytes> ring;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// Times of a client's timestamps, in nanoseconds since an unspecified epoch.
inline constexpr std::uint32_t kTimeSlots = 8192;
inline constexpr std::int64_t kNotReached = std::numeric_limits<std::int64_t>::min();

/// Shared by a client and the server.
struct ClientPage {
  alignas(64) std::atomic<std::uint32_t> server_sleeps;  ///< set: the client signals the eventfd after putting a
                                                         ///< command
  alignas(64) std::array<std::atomic<std::int64_t>, kTimeSlots> times;
};

// limits of one client at a time
inline constexpr std::size_t kMaxStreams = 1024;
inline constexpr std::size_t kMaxObjects = 65536;  ///< of each other kind

}  // namespace catena::device::remote
