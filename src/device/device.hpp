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

/// One interface to CUDA GPUs and OpenCL devices. Backends live in src/device/<backend> under the same file names.
/// Order of use: probe()/open() -> compile() -> load() -> allocate -> create_stream() -> copies and launches -> Event.
///
/// Thread rule: a Device may be used from any thread. A Stream, and what is enqueued on it, belongs to one thread at a
/// time. Nothing here waits for the device but Event::wait and the destructor of a Stream. There is no default stream.
///
/// Errors, all with the native code and its name in the text:
///   Unavailable        driver or device missing, or the device is lost (see Device::failed())
///   ResourceExhausted  out of device or pinned memory
///   InvalidArgument    a range outside a buffer, an unknown kernel, a launch that the device cannot do
///   Unimplemented      the device cannot do it at all; only where a function says so
///   DeadlineExceeded   Event::wait ran into its limit; the text names what was waited for
///   Internal           any other native error
namespace catena::device {

struct DeviceInfo {
  std::string backend;  ///< name of the Backend, e.g. "cuda"
  std::string name;     ///< e.g. "NVIDIA H200", "pthread-..."
  std::string driver;   ///< driver or platform with its version
  std::string target;   ///< what programs are compiled for: "sm_90", "spir64 bitcode, LLVM 15"
  std::uint32_t compute_units = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t local_memory_bytes = 0;  ///< per work-group
  std::uint32_t max_group_size = 0;
  bool is_cpu = false;  ///< cores of this machine that pose as an OpenCL device: for tests, never faster than the CPU
  std::uint32_t ordinal = 0;  ///< number among the devices of its backend, from 0
  /// Whoever launches on it, one launch ends before the next one begins: a device server that was told so.
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

/// Memory that kernels work on: allocate() makes device memory, freed with the object, and map_host() a window on
/// memory of the host, closed with the object. Must not outlive its Device.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::size_t size() const = 0;
};

/// Host memory that the device copies from and to at full speed. Owns it.
class PinnedBuffer {
 public:
  virtual ~PinnedBuffer() = default;
  virtual std::span<std::byte> bytes() = 0;
  /// The same memory for kernels, with the rules of Device::map_host(); null where kernels of the device cannot work on
  /// the host's memory. Lives as long as the PinnedBuffer.
  virtual Buffer* window() = 0;
};

/// Marks a point on a stream.
class Event {
 public:
  virtual ~Event() = default;
  /// True when everything enqueued before it is done. Never waits. An error of that work is returned here.
  virtual Result<bool> ready() = 0;
  /// How much later than `earlier` the device reached this event, by the device's clock; negative if it was before.
  /// Both are timestamps (see Stream::record_timestamp()) of streams of one device. Good to about a microsecond.
  ///   InvalidArgument     this or `earlier` is no timestamp: events of Stream::record() keep no time
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
  /// The kernel named `name`. NotFound if the program has none of that name. Owned by the program.
  virtual Result<Kernel*> kernel(std::string_view name) = 0;
};

/// In place of an argument: the bytes of each buffer among the arguments, in their order, 0 for null, then those of
/// local memory, as u64 by value. The device layer knows them, so a kernel can keep to its buffers whoever chose the
/// other arguments.
struct BufferSizes {};

/// One kernel argument: a buffer (null: a null pointer), bytes passed by value, or the sizes of the buffers.
using KernelArgument = std::variant<Buffer*, std::span<const std::byte>, BufferSizes>;

/// The arguments that a kernel takes: so many buffers, then a struct of so many bytes by value unless that is 0, then
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

/// Rows of one length at equal distances, the same on the host and on the device: row i begins `i * stride` bytes after
/// the first one. For instance the fronts of consecutive slots.
struct RowShape {
  std::size_t row_bytes = 0;  ///< at least 1
  std::size_t stride = 0;     ///< bytes; at least row_bytes
  std::uint32_t rows = 0;
};

/// Takes launches: a Stream runs them, a CommandBuffer records them.
class CommandRecorder {
 public:
  virtual ~CommandRecorder() = default;
  /// Bytes by value are copied; buffers and the kernel must live until the launch is done, in a command buffer as long
  /// as that.
  ///   InvalidArgument     the kernel does not take these arguments, or the device not this shape
  ///   FailedPrecondition  a command buffer that was finalized or enqueued
  virtual Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) = 0;
};

/// A part of a device's compute units. Recordings that keep to parts without a common unit run side by side whatever
/// the others do. Must outlive the command buffers that were made for it, and not outlive its Device.
class Partition {
 public:
  virtual ~Partition() = default;
  virtual std::uint32_t compute_units() const = 0;
};

/// Recorded launches and timestamps that a stream runs in order, again and again with the same arguments. Where the
/// device can record them (a CUDA graph) enqueueing them all costs the CPU less than a single launch. Must outlive its
/// runs; belongs to one thread at a time.
class CommandBuffer : public CommandRecorder {
 public:
  /// Records a timestamp at this place: an event that each run reaches anew, for Event::since(). It tells of the last
  /// run once an event of the stream after that run is ready; FailedPrecondition before the first. Owned by the command
  /// buffer. FailedPrecondition: the command buffer was finalized or enqueued.
  virtual Result<Event*> record_timestamp() = 0;
};

/// Orders work on the device: what is enqueued runs in order.
class Stream : public CommandRecorder {
 public:
  /// Waits for what was enqueued, so that its buffers may be freed next; a device that takes longer than ten seconds
  /// has failed, and keeps the memory that it may still write.
  ~Stream() override = default;
  /// `source` must stay unchanged until the copy is done.
  virtual Status copy_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source) = 0;
  virtual Status copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset) = 0;
  /// One copy of many rows; the bytes between them stay what they are. `source` begins at the first row and reaches to
  /// the end of the last one at least; like the rows in it, it must stay unchanged until the copy is done.
  /// `target_offset` is that of the first row. No rows: nothing happens, whatever the other values are.
  /// InvalidArgument: row_bytes is 0 or more than stride, rows reach beyond the span or the buffer, or the stride is
  /// more than the device can do (CUDA: 2 GiB).
  virtual Status copy_rows_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source,
                                     RowShape const& shape) = 0;
  /// The other way round, with the same rules.
  virtual Status copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset,
                                   RowShape const& shape) = 0;
  virtual Status fill(Buffer& target, std::size_t offset, std::size_t bytes, std::uint8_t value) = 0;
  /// Enqueues what a command buffer of the same device has recorded.
  virtual Status enqueue(CommandBuffer& commands) = 0;
  /// Does now what the first enqueue() would do besides, which takes long. No launches can be added after it.
  virtual Status finalize(CommandBuffer& commands) = 0;
  /// An event after everything enqueued so far. Hands that to the device too, so the event becomes ready by itself.
  virtual Result<std::unique_ptr<Event>> record() = 0;
  /// As record(), and the event keeps when the device reached it: for Event::since(). Dearer than record(), and not
  /// handed to the device: a record() or flush() after it does that.
  virtual Result<std::unique_ptr<Event>> record_timestamp() = 0;
  /// What is enqueued from here on waits, on the device, for `event` of another stream of it, which had been recorded
  /// before; the event may end then. Unimplemented: a device of another process.
  virtual Status wait_for(Event& event);
  /// Hands everything enqueued so far to the device without waiting.
  virtual Status flush() = 0;
};

/// Memory of the caller. Where it maps an object (memfd_create()), `fd` and `offset` let another process map the same.
struct HostMemory {
  std::span<std::byte> bytes;
  int fd = -1;               ///< of the object, which the caller keeps open; -1: no other process can reach the memory
  std::uint64_t offset = 0;  ///< of `bytes` in the object

  HostMemory(std::span<std::byte> memory, int object = -1, std::uint64_t object_offset = 0)  // NOLINT: as a span is
      : bytes(memory), fd(object), offset(object_offset) {}
};

struct StreamOptions {
  /// Its work goes before that of other streams that wait for the device at the same time. Only
  /// CUDA GPUs have priorities; other devices take no notice.
  bool is_urgent = false;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo const& info() const = 0;
  virtual Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) = 0;
  virtual Result<std::unique_ptr<PinnedBuffer>> allocate_pinned(std::size_t bytes) = 0;
  /// Opens memory of the caller to the device: kernels that get the Buffer read and write the bytes themselves, copies
  /// from and to any part of it run as fast as those of a PinnedBuffer. The Buffer is good as a kernel argument only,
  /// not as source or target of a Stream's calls. What the host writes before a launch is enqueued, the kernel sees;
  /// what the kernel writes, the host sees once an event after it is ready.
  /// The bytes begin at a page (a multiple of 4096 bytes) and outlive the Buffer. Once the device is lost they must
  /// stay to the end of the process: what was enqueued may still write to it. Slow (maps every page).
  ///   InvalidArgument    there are no bytes, or they do not begin at a page
  ///   ResourceExhausted  the driver cannot register it: too much, not mapped, or registered already
  ///   Unavailable        the device is lost
  ///   Unimplemented      kernels of this device cannot work on the host's memory while the host does: OpenCL devices
  ///                      other than the CPU
  virtual Result<std::unique_ptr<Buffer>> map_host(HostMemory const& memory) = 0;
  virtual Result<std::unique_ptr<Stream>> create_stream(StreamOptions const& options = {}) = 0;
  /// Without launches. Those that are recorded keep to `partition`, in whichever stream they run; null: to none.
  virtual Result<std::unique_ptr<CommandBuffer>> create_command_buffer(Partition* partition = nullptr) = 0;
  /// Parts of this device that have no compute unit in common, of at least so many units each: a device divides its
  /// units in groups (an H200: of 2). Slow (about 1 ms for each part).
  ///   InvalidArgument  none are asked for, or more than there are; the text says how many there are
  ///   Unimplemented    the device cannot be divided: OpenCL devices, and CUDA before 12.4
  virtual Result<std::vector<std::unique_ptr<Partition>>> divide(std::span<const std::uint32_t> compute_units) = 0;
  /// Source to what this device loads. Slow (10 ms .. 1 s); kernel::build() keeps the results on disk.
  /// InvalidArgument with the compiler's log if the source is wrong; Unavailable if the compiler is missing;
  /// DeadlineExceeded if it does not come to an end within two minutes.
  virtual Result<Binary> compile(ProgramSource const& source) = 0;
  virtual Result<std::unique_ptr<Program>> load(std::span<const std::byte> binary) = 0;
  /// Not OK once the device has failed for good (sticky error, lost): its text says why. What it made may be destroyed
  /// then as always: nothing waits for the device, and what it may still write to is never freed.
  virtual Status failed() const = 0;
  /// True once it has failed and nothing of it is left that could read or write any memory: then nothing has to be kept
  /// for its sake. Only of a device whose process others can see end.
  virtual bool is_gone() const { return false; }
  /// Gives the device up, which does not answer: it has failed from now on. Its first reason stays.
  virtual void abandon(Status const& reason) = 0;
};

/// Which of this machine's devices it is, however it was asked for: "cuda:0 NVIDIA H100". A GPU of two backends is two.
std::string identity(DeviceInfo const& info);

/// What one backend found on this machine: its devices, or why there is none and what would help.
struct Probe {
  std::string_view backend;
  std::vector<DeviceInfo> devices;
  Status status;  ///< OK when devices is not empty
};

/// One way to reach devices.
struct Backend {
  std::string_view name;  ///< as chain files, options and libnca say it
  /// Looks for devices without keeping any open.
  Probe (*probe)();
  /// Opens device number `ordinal`. Unavailable: what is missing and how to get it.
  Result<std::unique_ptr<Device>> (*open)(int ordinal);
};
/// Those of this build, in the order in which `auto` tries them; static storage.
std::span<const Backend> backends();
/// What every backend found. Never fails: failures are in the entries.
std::vector<Probe> probe();

/// The device that a chain file, an option or an application asks for.
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
/// "auto", "none", "cuda", "opencl:1". InvalidArgument with what may be written.
Result<DevicePreference> parse_preference(std::string_view text);
std::string to_string(DevicePreference const& preference);
/// The same of one text, or of several that each name another device. InvalidArgument as above, and where a list has
/// "auto" or "none", or one device twice. Precondition: there is a text.
Result<std::vector<DevicePreference>> parse_preferences(std::span<const std::string> texts);
/// All that parse_preference() takes, without numbers.
std::vector<std::string> preference_names();

/// Opens the device that is meant. kAuto takes the first that is not this machine's own cores; null without error only
/// for kNone, or for kAuto where there is no such device. With kAuto `why` says what was tried before and failed, one
/// line for each backend, so that no fall-back is silent; it is empty if the first one served. kOne: as
/// Backend::open(); InvalidArgument if there is no such backend.
Result<std::unique_ptr<Device>> open(DevicePreference const& preference, std::string* why = nullptr);

/// Compiles for CUDA without a GPU: NVRTC only. `architecture`: "sm_90". Unavailable where NVRTC cannot be found
/// (it is searched for in CATENA_CUDA_HOME, the build's .deps/cuda, the usual toolkit folders and the loader's path).
Result<Binary> compile_cuda(ProgramSource const& source, std::string_view architecture);

}  // namespace catena::device
