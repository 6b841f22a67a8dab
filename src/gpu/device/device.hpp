// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/core/process_needs.hpp"

/// One interface to CUDA GPUs and OpenCL devices. Backends are in src/gpu/device/<backend> under the same file names.
/// Order of use: probe()/open() -> compile() -> load() -> allocate -> create_stream() -> copies and launches -> Event.
///
/// Thread rule: a Device may be used from any thread. A Stream and its enqueued work belong to one thread at a time.
/// Only Event::wait and the destructor of a Stream wait for the device. There is no default stream.
///
/// Errors, all with the native code and its name in the text:
///   Unavailable        driver or device missing, or the device is lost (see Device::failed())
///   ResourceExhausted  out of device or pinned memory
///   InvalidArgument    a range outside a buffer, an unknown kernel, a launch that the device cannot do
///   Unimplemented      not supported by the device at all; only where a function says so
///   DeadlineExceeded   Event::wait reached its limit; the text names the awaited work
///   Internal           any other native error
namespace catena::device {

struct DeviceInfo {
  std::string backend;  ///< name of the Backend, e.g. "cuda"
  std::string name;     ///< e.g. "NVIDIA H200", "pthread-..."
  std::string driver;   ///< driver or platform with its version
  std::string target;   ///< target of compiled programs: "sm_90", "spir64 bitcode, LLVM 15"
  std::uint32_t compute_units = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t local_memory_bytes = 0;  ///< per work-group
  std::uint32_t max_group_size = 0;
  bool is_cpu = false;  ///< an OpenCL device made of this machine's own cores: for tests, never faster than the CPU
  std::uint32_t ordinal = 0;  ///< number among the devices of its backend, from 0
  /// Launches of all clients run one after another: a device server configured to do so.
  bool has_turns = false;
};

/// Source of a program: `files[0]` is compiled, the others may be included by name.
struct SourceFile {
  std::string name;
  std::string text;

  bool operator==(SourceFile const&) const = default;
};
struct ProgramSource {
  std::vector<SourceFile> files;
  std::vector<std::string> defines;  ///< "NAME=VALUE"
};
using Binary = std::vector<std::byte>;

/// Memory for kernels. allocate() makes device memory, freed with the object. map_host() makes a window on host memory,
/// closed with the object. Must not outlive its Device.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::size_t size() const = 0;
};

/// Pinned host memory, for copies at full speed. Owns the memory.
class PinnedBuffer {
 public:
  virtual ~PinnedBuffer() = default;
  virtual std::span<std::byte> bytes() = 0;
  /// The same memory for kernels, with the rules of Device::map_host(); null if kernels of the device cannot access
  /// host memory. Lives as long as the PinnedBuffer.
  virtual Buffer* window() = 0;
};

/// Marks a point on a stream.
class Event {
 public:
  virtual ~Event() = default;
  /// True when all work enqueued before the event is done. Never waits. Returns the error of failed work.
  virtual Result<bool> ready() = 0;
  /// Time from `earlier` to this event by the device's clock; negative if this event was reached first. Both must be
  /// timestamps (see Stream::record_timestamp()) of streams of one device. Accurate to about a microsecond.
  ///   InvalidArgument     this or `earlier` is no timestamp: events of Stream::record() have no time
  ///   FailedPrecondition  this or `earlier` is not ready() yet
  virtual Result<std::chrono::nanoseconds> since(Event& earlier);
  /// Waits at most `limit`. `what` names the waiting stage and device in the message of DeadlineExceeded.
  Status wait(std::chrono::nanoseconds limit, std::string_view what);
};

class Kernel {
 public:
  virtual ~Kernel() = default;
};

/// A loaded program. Must outlive its kernels' launches.
class Program {
 public:
  virtual ~Program() = default;
  /// The kernel named `name`, owned by the program. NotFound if the program has no such kernel.
  virtual Result<Kernel*> kernel(std::string_view name) = 0;
};

/// In place of an argument: the bytes of each buffer argument in order (0 for null), then the bytes of local memory,
/// each as u64 by value. The device layer fills them in, so a kernel can stay within its buffers regardless of the
/// origin of its other arguments.
struct BufferSizes {};

/// One kernel argument: a buffer (null: a null pointer), bytes passed by value, or the sizes of the buffers.
using KernelArgument = std::variant<Buffer*, std::span<const std::byte>, BufferSizes>;

/// The arguments of a kernel: `buffers` buffers, then a struct of `struct_bytes` bytes by value unless that is 0, then
/// BufferSizes.
struct LaunchForm {
  std::uint32_t buffers = 0;
  std::uint32_t struct_bytes = 0;
};

struct LaunchShape {
  std::uint32_t groups = 1;
  std::uint32_t group_size = 64;
  std::uint32_t local_bytes = 0;  ///< dynamic local memory; passed as the last argument on OpenCL
};

/// Rows of equal length at equal distances, the same on the host and on the device: row i starts `i * stride` bytes
/// after the first. For instance, the first bytes of consecutive slots.
struct RowShape {
  std::size_t row_bytes = 0;  ///< at least 1
  std::size_t stride = 0;     ///< bytes; at least row_bytes
  std::uint32_t rows = 0;
};

/// Accepts launches: a Stream runs them, a CommandBuffer records them.
class CommandRecorder {
 public:
  virtual ~CommandRecorder() = default;
  /// Copies bytes passed by value. Buffers and the kernel must live until the launch is done, for a command buffer as
  /// long as the command buffer.
  ///   InvalidArgument     the kernel does not take these arguments, or the device not this shape
  ///   FailedPrecondition  the command buffer was finalized or enqueued
  virtual Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) = 0;
};

/// A subset of a device's compute units. Recordings on partitions without a common unit run side by side, independent
/// of each other's load. Must outlive the command buffers created for it, and must not outlive its Device.
class Partition {
 public:
  virtual ~Partition() = default;
  virtual std::uint32_t compute_units() const = 0;
};

/// Recorded launches and timestamps, run by a stream in order, repeatedly and with the same arguments. If the device
/// can record them (a CUDA graph), enqueueing all of them costs the CPU less than a single launch. Must outlive its
/// runs. Belongs to one thread at a time.
class CommandBuffer : public CommandRecorder {
 public:
  /// Records a timestamp at this place: an event for Event::since(), reached again in each run. It reports the last run
  /// once an event of the stream after that run is ready; FailedPrecondition before the first. Owned by the command
  /// buffer. FailedPrecondition: the command buffer was finalized or enqueued.
  virtual Result<Event*> record_timestamp() = 0;
};

/// Runs enqueued work on the device, in order.
class Stream : public CommandRecorder {
 public:
  /// Waits for the enqueued work, so that its buffers may be freed next. A device that takes longer than ten seconds
  /// has failed, and the memory that it may still write is kept.
  ~Stream() override = default;
  /// `source` must stay unchanged until the copy is done.
  virtual Status copy_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source) = 0;
  virtual Status copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset) = 0;
  /// One copy of many rows; the bytes between rows stay unchanged. `source` starts at the first row and extends at
  /// least to the end of the last row. It must stay unchanged until the copy is done. `target_offset` is the offset of
  /// the first row. Without rows nothing happens, regardless of the other values. InvalidArgument: row_bytes is 0 or
  /// more than stride, rows extend beyond the span or the buffer, or the stride exceeds the limit of the device (CUDA:
  /// 2 GiB).
  virtual Status copy_rows_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source,
                                     RowShape const& shape) = 0;
  /// The opposite direction, with the same rules.
  virtual Status copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset,
                                   RowShape const& shape) = 0;
  virtual Status fill(Buffer& target, std::size_t offset, std::size_t bytes, std::uint8_t value) = 0;
  /// Enqueues the recorded commands of a command buffer of the same device.
  virtual Status enqueue(CommandBuffer& commands) = 0;
  /// Does the slow preparation of the first enqueue() now. No launches can be added afterwards.
  virtual Status finalize(CommandBuffer& commands) = 0;
  /// Records an event after everything enqueued so far. Also submits this work to the device, so the event becomes
  /// ready without further calls.
  virtual Result<std::unique_ptr<Event>> record() = 0;
  /// As record(), and the event keeps the time at which the device reached it, for Event::since(). More expensive than
  /// record(). Submits nothing to the device: a later record() or flush() does.
  virtual Result<std::unique_ptr<Event>> record_timestamp() = 0;
  /// Work enqueued from here on waits, on the device, for `event` of another stream of the same device. `event` must
  /// have been recorded before, and may be destroyed afterwards. Unimplemented: a device of another process.
  virtual Status wait_for(Event& event);
  /// Submits everything enqueued so far to the device without waiting.
  virtual Status flush() = 0;
};

/// Memory of the caller. If it maps an object (memfd_create()), another process can map the same memory by `fd` and
/// `offset`.
struct HostMemory {
  std::span<std::byte> bytes;
  int fd = -1;               ///< of the object, kept open by the caller; -1: no other process can map the memory
  std::uint64_t offset = 0;  ///< of `bytes` in the object

  HostMemory(std::span<std::byte> memory, int object = -1, std::uint64_t object_offset = 0)  // NOLINT: as a span is
      : bytes(memory), fd(object), offset(object_offset) {}
};

struct StreamOptions {
  /// Work of this stream takes precedence over waiting work of other streams. Only CUDA GPUs have priorities; other
  /// devices ignore it.
  bool is_urgent = false;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo const& info() const = 0;
  virtual Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) = 0;
  virtual Result<std::unique_ptr<PinnedBuffer>> allocate_pinned(std::size_t bytes) = 0;
  /// Maps the caller's memory for the device: kernels read and write the bytes of the Buffer directly, and copies from
  /// and to any part of it run as fast as copies of a PinnedBuffer. The Buffer is valid as a kernel argument only, not
  /// as source or target of a Stream's calls. A kernel sees all host writes made before its launch was enqueued. The
  /// host sees the kernel's writes once an event after the kernel is ready.
  /// The bytes must start at a page (a multiple of 4096 bytes) and outlive the Buffer. Once the device is lost they
  /// must stay until the process ends, because enqueued work may still write to them. Slow (maps every page).
  ///   InvalidArgument    no bytes, or they do not start at a page
  ///   ResourceExhausted  the driver cannot register the memory: too much, not mapped, or registered already
  ///   Unavailable        the device is lost
  ///   Unimplemented      kernels of this device cannot access host memory concurrently with the host: OpenCL devices
  ///                      other than the CPU
  virtual Result<std::unique_ptr<Buffer>> map_host(HostMemory const& memory) = 0;
  virtual Result<std::unique_ptr<Stream>> create_stream(StreamOptions const& options = {}) = 0;
  /// Creates an empty command buffer. Its launches run on `partition` only, in any stream; null: no such limit.
  virtual Result<std::unique_ptr<CommandBuffer>> create_command_buffer(Partition* partition = nullptr) = 0;
  /// Partitions of this device without a common compute unit, of at least the given number of units each: a device
  /// divides its units in groups (an H200: of 2). Slow (about 1 ms per partition).
  ///   InvalidArgument  a partition of 0 units, or more units than available; the text gives the available number
  ///   Unimplemented    the device cannot be divided: OpenCL devices, and CUDA before 12.4
  virtual Result<std::vector<std::unique_ptr<Partition>>> divide(std::span<const std::uint32_t> compute_units) = 0;
  /// Compiles source for this device. Slow (10 ms .. 1 s); kernel::build() keeps the results on disk. InvalidArgument
  /// with the compiler's log if the source is wrong; Unavailable if the compiler is missing; DeadlineExceeded if it
  /// does not finish within two minutes.
  virtual Result<Binary> compile(ProgramSource const& source) = 0;
  virtual Result<std::unique_ptr<Program>> load(std::span<const std::byte> binary) = 0;
  /// Not OK once the device has failed permanently (sticky error, lost); the text gives the reason. Its objects may
  /// still be destroyed as usual: nothing waits for the device, and memory that it may still write is never freed.
  virtual Status failed() const = 0;
  /// True once the device has failed and can no longer access any memory, so that no memory must be kept for it. Only
  /// for a device in another process whose end can be observed.
  virtual bool is_gone() const { return false; }
  /// Gives up an unresponsive device: it has failed from now on. An earlier reason is kept.
  virtual void abandon(Status const& reason) = 0;
};

/// Identity of a device on this machine, independent of the preference that selected it: "cuda:0 NVIDIA H100". A GPU of
/// two backends has two identities.
std::string identity(DeviceInfo const& info);

/// The devices that one backend found on this machine, or the reason for finding no device and the remedy.
struct Probe {
  std::string_view backend;
  std::vector<DeviceInfo> devices;
  Status status;  ///< OK when devices is not empty
};

/// A device API.
struct Backend {
  std::string_view name;  ///< as written in chain files, options and libnca
  /// Searches for devices without keeping any open.
  Probe (*probe)();
  /// Opens device number `ordinal`. Unavailable: the text names the missing part and how to get it.
  Result<std::unique_ptr<Device>> (*open)(int ordinal);
  /// The needs of a process in a sandbox for opening one.
  ProcessNeeds (*needs)();
};
/// The backends of this build, in the order in which `auto` tries them; static storage.
std::span<const Backend> backends();
/// Their names, in this order.
std::vector<std::string_view> backend_names();
/// The probes of all backends. Never fails: failures are in the probes.
std::vector<Probe> probe();

/// The device requested by a chain file, an option or an application.
struct DevicePreference {
  enum class Kind { kAuto, kOne, kNone };
  Kind kind = Kind::kAuto;
  std::string backend = {};  ///< kOne: name of a Backend
  int ordinal = 0;           ///< kOne: number among its devices

  static DevicePreference none() { return {Kind::kNone}; }
  static DevicePreference of(std::string_view backend, int ordinal = 0) {
    return {Kind::kOne, std::string(backend), ordinal};
  }
  friend bool operator==(DevicePreference const&, DevicePreference const&) = default;
};
/// Parses "auto", "none", "cuda", "opencl:1". InvalidArgument lists the valid forms.
Result<DevicePreference> parse_preference(std::string_view text);
std::string to_string(DevicePreference const& preference);
/// Parses one such text, or several that each name another device. InvalidArgument as above, and if a list has "auto"
/// or "none", or one device twice. Precondition: at least one text.
Result<std::vector<DevicePreference>> parse_preferences(std::span<const std::string> texts);
/// All texts accepted by parse_preference(), without numbers.
std::vector<std::string> preference_names();

/// Opens the requested device. kAuto opens the first device other than this machine's own cores. Returns null without
/// an error only for kNone, or for kAuto if no such device exists. For kAuto, `why` receives one line for each backend
/// tried before without success, so that no fallback is silent; it is empty if the first one succeeded. kOne: as
/// Backend::open(); InvalidArgument if the backend does not exist.
Result<std::unique_ptr<Device>> open(DevicePreference const& preference, std::string* why = nullptr);

/// Compiles for CUDA without a GPU, with NVRTC only. `architecture`: "sm_90". Unavailable if NVRTC is not found
/// (searched in CATENA_CUDA_HOME, the build's .deps/cuda, the usual toolkit folders and the loader's path).
Result<Binary> compile_cuda(ProgramSource const& source, std::string_view architecture);

}  // namespace catena::device
