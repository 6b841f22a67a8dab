// SPDX-License-Identifier: Apache-2.0
// What one client has at a device server, and the calls by which it gets it. The commands of its streams are in
// session_streams.cpp.
#include "gpu/device/remote/client_session.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"
#include "gpu/device/source.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

namespace catena::device::remote {
namespace {

constexpr std::chrono::seconds kClearLimit{10};
/// A client that does not greet, or does not read its answers, is given up.
constexpr timeval kGreetingLimit{5, 0};
constexpr std::chrono::milliseconds kAnswerLimit{500};
/// Launches of one recording.
constexpr std::size_t kMaxLaunches = 1024;

Status malformed(std::string_view what) {
  return absl::InvalidArgumentError(concat("the client sent ", what, ", which no client does"));
}

}  // namespace

Status ClientSession::unknown(std::string_view kind, std::uint32_t number) {
  return absl::InvalidArgumentError(concat("the client has no ", kind, " number ", number));
}

template <typename T>
Status ClientSession::check_room(Table<T> const& table, std::string_view what, std::size_t max) {
  return table.size() < max
             ? absl::OkStatus()
             : absl::ResourceExhaustedError(concat("a client of a device server has at most ", max, " ", what));
}

ClientSession::ClientSession(Device& device, FileDescriptor socket, ServerLimits const& limits, BlackBox::Client& box,
                             Compilations* compilations, StreamSerializer* serializer)
    : device_(&device),
      socket_(std::move(socket)),
      limits_(limits),
      box_(&box),
      compilations_(compilations),
      serializer_(serializer) {}

ClientSession::~ClientSession() = default;

Status ClientSession::greet() {
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kGreetingLimit, sizeof kGreetingLimit);
  CATENA_ASSIGN_OR_RETURN(ipc::Frame hello, ipc::receive_frame(socket_.get(), kMaxFrameBytes));
  ipc::Reader body(hello.body);
  const auto version = body.take<std::uint32_t>();
  if (hello.call != static_cast<std::uint32_t>(Call::kHello) || !body.ok() || !hello.fd) {
    return malformed("no greeting");
  }
  if (version != kVersion) {
    Status status = absl::UnavailableError(
        concat("the device server speaks version ", kVersion, " and the client version ", version));
    static_cast<void>(
        ipc::send_frame(socket_.get(), hello.call, ipc::Writer().put_status(status).bytes(), -1, kAnswerLimit));
    return status;
  }
  CATENA_ASSIGN_OR_RETURN(page_, ipc::Mapping::map(std::move(hello.fd), sizeof(ClientPage)));
  CATENA_ASSIGN_OR_RETURN(ipc::Frame notifier, ipc::receive_frame(socket_.get(), kMaxFrameBytes));
  if (!notifier.fd) {
    return malformed("no eventfd");
  }
  notifier_ = std::move(notifier.fd);
  notifier_edges_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  epoll_event edge{};
  edge.events = EPOLLIN | EPOLLET;
  if (!notifier_edges_ || epoll_ctl(notifier_edges_.get(), EPOLL_CTL_ADD, notifier_.get(), &edge) != 0) {
    return malformed("an unusable eventfd");
  }
  CATENA_ASSIGN_OR_RETURN(own_stream_, device_->create_stream({}));
  CATENA_ASSIGN_OR_RETURN(reference_, own_stream_->record_timestamp());
  CATENA_ASSIGN_OR_RETURN(const auto done, own_stream_->record());
  CATENA_RETURN_IF_ERROR(done->wait(kClearLimit, "greeting a client"));
  DeviceInfo const& info = device_->info();
  ipc::Writer answer;
  answer.put_status(absl::OkStatus()).put_text(info.backend).put_text(info.name).put_text(info.driver);
  answer.put_text(info.target).put(info.compute_units).put(info.memory_bytes).put(info.local_memory_bytes);
  answer.put(info.max_group_size).put(static_cast<std::uint32_t>(info.is_cpu)).put(info.ordinal);
  answer.put(static_cast<std::uint32_t>(serializer_ != nullptr));
  const FileDescriptor self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  return ipc::send_frame(socket_.get(), hello.call, answer.bytes(), self.get(), kAnswerLimit);
}

Status ClientSession::take_frame() {
  CATENA_ASSIGN_OR_RETURN(std::optional<ipc::Frame> frame, reader_.poll(socket_.get(), kMaxFrameBytes));
  if (!frame) {
    return absl::OkStatus();
  }
  ipc::Reader body(frame->body);
  const auto call = static_cast<Call>(frame->call);
  if (call == Call::kFree) {
    return free(body);
  }
  if (call == Call::kCompile) {
    return start_compiling(*std::move(frame));
  }
  if (call == Call::kLoad) {
    return start_loading(*std::move(frame));
  }
  FileDescriptor answer_fd;
  const Result<ipc::Writer> result = answer(call, body, std::move(frame->fd), answer_fd);
  return send_answer(frame->call, result, answer_fd.get());
}

Status ClientSession::send_answer(std::uint32_t call, Result<ipc::Writer> const& answer, int fd) {
  ipc::Writer whole;
  whole.put_status(answer.status());
  if (answer.ok()) {
    whole.add(*answer);
  }
  return ipc::send_frame(socket_.get(), call, whole.bytes(), answer.ok() ? fd : -1, kAnswerLimit);
}

Result<ipc::Writer> ClientSession::answer(Call call, ipc::Reader& body, FileDescriptor fd, FileDescriptor& answer_fd) {
  switch (call) {
    case Call::kAllocate:
      return allocate(body);
    case Call::kAllocatePinned:
      return allocate_pinned(body, answer_fd);
    case Call::kMapHost:
      return map_host(body, std::move(fd));
    case Call::kCreateStream:
      return create_stream(body, answer_fd);
    case Call::kCreateCommandBuffer:
      return create_command_buffer(body);
    case Call::kRecordLaunch:
      return record_launch(body);
    case Call::kRecordTimestamp:
      return record_timestamp(body);
    case Call::kDivide:
      return divide(body);
    case Call::kKernel:
      return find_kernel(body);
    case Call::kHello:
    case Call::kFree:
    case Call::kCompile:
    case Call::kLoad:
      break;
  }
  return malformed(concat("call ", static_cast<std::uint32_t>(call)));
}

/// Nothing of its last owner is left in it.
Status ClientSession::clear(Buffer& buffer) {
  CATENA_RETURN_IF_ERROR(own_stream_->fill(buffer, 0, buffer.size(), 0));
  CATENA_ASSIGN_OR_RETURN(const auto done, own_stream_->record());
  Status status;
  const auto is_done = [&] {
    const Result<bool> is_ready = done->ready();
    status = is_ready.ok() && !*is_ready ? check_streams().status() : is_ready.status();
    return !status.ok() || *is_ready;
  };
  return wait_until(is_done, kClearLimit) ? status
                                          : absl::DeadlineExceededError("the device does not clear its memory");
}

Result<ipc::Writer> ClientSession::allocate(ipc::Reader& body) {
  const auto bytes = body.take<std::uint64_t>();
  if (!body.ok()) {
    return malformed("an allocation without its size");
  }
  CATENA_RETURN_IF_ERROR(check_room(buffers_, "buffers"));
  if (bytes > limits_.device_bytes - device_bytes_) {
    return absl::ResourceExhaustedError(concat(bytes, " bytes of device memory: a client has at most ",
                                               limits_.device_bytes, ", and this one has ", device_bytes_));
  }
  auto memory = std::make_shared<Memory>();
  CATENA_ASSIGN_OR_RETURN(memory->buffer, device_->allocate(bytes));
  CATENA_RETURN_IF_ERROR(clear(*memory->buffer));
  memory->counted = Counted(device_bytes_, bytes);
  const std::uint32_t number = next_number();
  buffers_.emplace(number, std::move(memory));
  return ipc::Writer().put(number);
}

Result<ipc::Writer> ClientSession::allocate_pinned(ipc::Reader& body, FileDescriptor& answer_fd) {
  const auto bytes = body.take<std::uint64_t>();
  if (!body.ok() || bytes == 0) {
    return malformed("an allocation without its size");
  }
  CATENA_RETURN_IF_ERROR(check_room(memory_ranges_, "memory ranges"));
  CATENA_RETURN_IF_ERROR(check_room(buffers_, "buffers"));
  if (bytes > limits_.host_bytes - host_bytes_) {
    return absl::ResourceExhaustedError(concat(bytes, " bytes of pinned memory: a client has at most ",
                                               limits_.host_bytes, ", and this one has ", host_bytes_));
  }
  auto memory_range = std::make_shared<MemoryRange>();
  CATENA_ASSIGN_OR_RETURN(memory_range->mapping, ipc::Mapping::create("catena_device", bytes));
  Result<std::unique_ptr<Buffer>> window =
      device_->map_host({memory_range->mapping.bytes(), memory_range->mapping.fd()});
  if (!window.ok() && !absl::IsUnimplemented(window.status())) {
    return window.status();
  }
  memory_range->counted = Counted(host_bytes_, bytes);
  answer_fd = memory_range->mapping.take_fd();
  const std::uint32_t number = next_number();
  memory_ranges_.emplace(number, std::move(memory_range));
  std::uint32_t window_number = 0;
  if (window.ok()) {
    window_number = next_number();
    buffers_.emplace(window_number, std::make_shared<Memory>(Memory{memory_ranges_[number], *std::move(window), {}}));
  }
  return ipc::Writer().put(number).put(window_number);
}

Result<ipc::Writer> ClientSession::map_host(ipc::Reader& body, FileDescriptor fd) {
  const auto bytes = body.take<std::uint64_t>();
  const auto offset = body.take<std::uint64_t>();
  if (!body.ok() || !fd) {
    return malformed("a mapping without memory");
  }
  CATENA_RETURN_IF_ERROR(check_room(memory_ranges_, "memory ranges"));
  CATENA_RETURN_IF_ERROR(check_room(buffers_, "buffers"));
  if (bytes > limits_.host_bytes - host_bytes_) {
    return absl::ResourceExhaustedError(concat("mapping ", bytes, " bytes: a client has at most ", limits_.host_bytes,
                                               ", and this one has ", host_bytes_));
  }
  auto memory_range = std::make_shared<MemoryRange>();
  CATENA_ASSIGN_OR_RETURN(memory_range->mapping, ipc::Mapping::map(std::move(fd), bytes, offset));
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> window,
                          device_->map_host({memory_range->mapping.bytes(), memory_range->mapping.fd(), offset}));
  memory_range->mapping.take_fd();  // mapped it stays; descriptors are few
  memory_range->counted = Counted(host_bytes_, bytes);
  const std::uint32_t number = next_number();
  const std::uint32_t window_number = next_number();
  buffers_.emplace(window_number, std::make_shared<Memory>(Memory{memory_range, std::move(window), {}}));
  memory_ranges_.emplace(number, std::move(memory_range));
  return ipc::Writer().put(number).put(window_number);
}

Result<ipc::Writer> ClientSession::create_stream(ipc::Reader& body, FileDescriptor& answer_fd) {
  const bool is_urgent = body.take<std::uint32_t>() != 0;
  CATENA_RETURN_IF_ERROR(check_room(streams_, "streams", kMaxStreams));
  ServedStream stream;
  CATENA_ASSIGN_OR_RETURN(stream.stream, device_->create_stream({.is_urgent = is_urgent}));
  CATENA_ASSIGN_OR_RETURN(stream.memory, ipc::Mapping::create("catena_device", sizeof(StreamPage)));
  stream.page = &stream.memory.as<StreamPage>();
  answer_fd = stream.memory.take_fd();
  const std::uint32_t number = next_number();
  streams_.emplace(number, std::move(stream));
  return ipc::Writer().put(number);
}

Result<ipc::Writer> ClientSession::create_command_buffer(ipc::Reader& body) {
  const auto part = body.take<std::uint32_t>();
  CATENA_RETURN_IF_ERROR(check_room(recordings_, "command buffers"));
  auto recording = std::make_shared<Recording>();
  Partition* partition = nullptr;
  if (part != 0) {
    auto* const found = find(partitions_, part);
    if (found == nullptr) {
      return unknown("partition", part);
    }
    partition = found->get();
    recording->uses.push_back(*found);
  }
  CATENA_ASSIGN_OR_RETURN(recording->commands, device_->create_command_buffer(partition));
  const std::uint32_t number = next_number();
  recordings_.emplace(number, std::move(recording));
  return ipc::Writer().put(number);
}

Result<ipc::Writer> ClientSession::record_launch(ipc::Reader& body) {
  const auto number = body.take<std::uint32_t>();
  ipc::Reader launch_body(body.take_bytes());
  auto* const recording = find(recordings_, number);
  if (recording == nullptr) {
    return unknown("command buffer", number);
  }
  if (++(*recording)->launches > kMaxLaunches) {
    return absl::ResourceExhaustedError(
        concat("a recording of a device server has at most ", kMaxLaunches, " launches"));
  }
  CATENA_ASSIGN_OR_RETURN(const ReadyLaunch launch, read_launch(launch_body));
  CATENA_RETURN_IF_ERROR((*recording)->commands->launch(*launch.kernel->kernel, launch.shape, launch.arguments));
  (*recording)->uses.insert((*recording)->uses.end(), launch.uses.begin(), launch.uses.end());
  std::string& kernels = (*recording)->kernels;
  kernels += concat(kernels.empty() ? "" : ", ", launch.kernel->name);
  return ipc::Writer();
}

Result<ipc::Writer> ClientSession::record_timestamp(ipc::Reader& body) {
  const auto number = body.take<std::uint32_t>();
  const auto slot = body.take<std::uint32_t>();
  auto* const recording = find(recordings_, number);
  if (recording == nullptr || slot >= kTimeSlots || (*recording)->times.size() >= kMaxLaunches) {
    return unknown("command buffer", number);
  }
  CATENA_ASSIGN_OR_RETURN(Event* const event, (*recording)->commands->record_timestamp());
  (*recording)->times.emplace_back(event, slot);
  return ipc::Writer();
}

Result<ipc::Writer> ClientSession::divide(ipc::Reader& body) {
  const auto count = body.take<std::uint32_t>();
  if (count > body.left() / sizeof(std::uint32_t)) {
    return malformed("fewer numbers than it announced");
  }
  std::vector<std::uint32_t> units(count);
  for (std::uint32_t& number : units) {
    number = body.take<std::uint32_t>();
  }
  CATENA_RETURN_IF_ERROR(check_room(partitions_, "partitions", kMaxStreams));
  CATENA_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Partition>> made, device_->divide(units));
  ipc::Writer answer;
  for (std::unique_ptr<Partition>& partition : made) {
    const std::uint32_t number = next_number();
    answer.put(number).put(partition->compute_units());
    partitions_.emplace(number, std::move(partition));
  }
  return answer;
}

/// Of the client's thread the slow part alone is in another one: tables are this one's.
Status ClientSession::start_compiling(ipc::Frame frame) {
  ProgramSource source;
  ipc::Reader body(frame.body);
  for (auto count = body.take<std::uint32_t>(); count > 0 && body.ok(); --count) {
    std::string name = body.take_text();
    source.files.push_back({std::move(name), body.take_text()});
  }
  for (auto count = body.take<std::uint32_t>(); count > 0 && body.ok(); --count) {
    source.defines.push_back(body.take_text());
  }
  if (!body.ok()) {
    return malformed("half a program");
  }
  if (const Status status = check_self_contained(source); !status.ok()) {
    return send_answer(frame.call, status, -1);
  }
  auto work = [this, device = device_, compilations = compilations_,
               source = std::move(source)]() -> std::function<Result<ipc::Writer>()> {
    if (compilations == nullptr) {
      auto binary = std::make_shared<Result<Binary>>(device->compile(source));
      return [binary]() -> Result<ipc::Writer> {
        CATENA_RETURN_IF_ERROR(binary->status());
        return ipc::Writer().put_bytes(**binary);
      };
    }
    auto compiled = std::make_shared<Result<Compiled>>(compilations->compile(source));
    return [this, compiled]() -> Result<ipc::Writer> {
      CATENA_RETURN_IF_ERROR(compiled->status());
      return remember(**compiled);
    };
  };
  slow_call_ = SlowCall{frame.call, std::async(std::launch::async, std::move(work))};
  return absl::OkStatus();
}

/// Answers with what was compiled for a stranger, who may load it from now on.
ipc::Writer ClientSession::remember(Compiled compiled) {
  ipc::Writer answer;
  answer.put_bytes(*compiled.binary);
  compiled_.push_back(std::move(compiled));
  if (constexpr std::size_t kMost = 64; compiled_.size() > kMost) {
    compiled_.pop_front();
  }
  return answer;
}

/// How the client launches its kernels, if it may load it; none: as it likes.
Result<std::optional<LaunchForm>> ClientSession::form_of(std::span<const std::byte> binary) const {
  if (compilations_ == nullptr) {
    return std::optional<LaunchForm>();
  }
  const auto found = std::ranges::find_if(
      compiled_, [binary](Compiled const& compiled) { return std::ranges::equal(*compiled.binary, binary); });
  if (found == compiled_.end()) {
    return absl::PermissionDeniedError("a program not compiled by this server");
  }
  return found->form;
}

Status ClientSession::start_loading(ipc::Frame frame) {
  if (const Status status = check_room(programs_, "programs"); !status.ok()) {
    return send_answer(frame.call, status, -1);
  }
  ipc::Reader whole(frame.body);
  const Result<std::optional<LaunchForm>> form = form_of(whole.take_bytes());
  if (!form.ok()) {
    return send_answer(frame.call, form.status(), -1);
  }
  const std::uint32_t call = frame.call;
  auto shared = std::make_shared<ipc::Frame>(std::move(frame));
  auto work = [this, device = device_, form = *form, shared]() -> std::function<Result<ipc::Writer>()> {
    ipc::Reader body(shared->body);
    auto program = std::make_shared<Result<std::unique_ptr<Program>>>(device->load(body.take_bytes()));
    return [this, form, program]() -> Result<ipc::Writer> {
      CATENA_RETURN_IF_ERROR(program->status());
      auto loaded = std::make_shared<Loaded>();
      loaded->form = form;
      loaded->program = *std::move(*program);
      const std::uint32_t number = next_number();
      programs_.emplace(number, std::move(loaded));
      return ipc::Writer().put(number);
    };
  };
  slow_call_ = SlowCall{call, std::async(std::launch::async, std::move(work))};
  return absl::OkStatus();
}

/// Answers a slow call that is done.
Status ClientSession::finish_slow_call() {
  if (slow_call_->work.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return absl::OkStatus();
  }
  SlowCall done = *std::exchange(slow_call_, std::nullopt);
  return send_answer(done.call, done.work.get()(), -1);
}

Result<ipc::Writer> ClientSession::find_kernel(ipc::Reader& body) {
  const auto program = body.take<std::uint32_t>();
  const std::string name = body.take_text();
  auto* const loaded = find(programs_, program);
  if (loaded == nullptr) {
    return unknown("program", program);
  }
  if (const auto known = (*loaded)->kernels.find(name); known != (*loaded)->kernels.end()) {
    return ipc::Writer().put(known->second);
  }
  CATENA_RETURN_IF_ERROR(check_room(kernels_, "kernels"));
  CATENA_ASSIGN_OR_RETURN(Kernel* const kernel, (*loaded)->program->kernel(name));
  const std::uint32_t number = next_number();
  kernels_.emplace(number, KnownKernel{kernel, program, name});
  (*loaded)->kernels.emplace(name, number);
  return ipc::Writer().put(number);
}

Status ClientSession::free(ipc::Reader& body) {
  const auto kind = body.take<Kind>();
  const auto number = body.take<std::uint32_t>();
  const auto remove = [&](auto& table) -> Status {
    const auto found = table.find(number);
    if (found == table.end()) {
      return unknown("object to free, of kind", static_cast<std::uint32_t>(kind));
    }
    auto content = std::move(found->second);
    table.erase(found);
    return bury(std::move(content));
  };
  switch (kind) {
    case Kind::kBuffer:
      return remove(buffers_);
    case Kind::kMemoryRange:
      return remove(memory_ranges_);
    case Kind::kCommandBuffer:
      return remove(recordings_);
    case Kind::kPartition:
      return remove(partitions_);
    case Kind::kProgram:
      std::erase_if(kernels_, [number](auto const& entry) { return entry.second.program == number; });
      return remove(programs_);
    case Kind::kStream: {
      auto* const stream = find(streams_, number);
      return stream != nullptr && !stream->is_ending ? end_stream(*stream) : unknown("stream", number);
    }
  }
  return malformed("an unknown kind of object");
}

}  // namespace catena::device::remote
