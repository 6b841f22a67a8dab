// SPDX-License-Identifier: Apache-2.0
// Any calls over the socket of a device server, and any bytes in the rings of its streams, as a hostile client sends
// them: they end the client's session at most. The device is memory of this process, which looks at no range itself
// that a Device need not look at, so that what the session lets through is found.
#include "gpu/device/backend.hpp"
#include "gpu/device/remote/client_session.hpp"
#include "gpu/device/remote/protocol.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <future>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace catena::device {
namespace {

using ipc::Frame;
using ipc::Mapping;
using remote::StreamPage;

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t bytes) : own_(bytes), bytes_(own_) {}
  explicit HostBuffer(std::span<std::byte> memory) : bytes_(memory) {}
  std::size_t size() const override { return bytes_.size(); }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> own_;
  std::span<std::byte> bytes_;
};

class DoneEvent final : public Event {
 public:
  Result<bool> ready() override { return true; }
  Result<std::chrono::nanoseconds> since(Event& /*earlier*/) override { return std::chrono::nanoseconds(1); }
};

class HostKernel final : public Kernel {};

std::atomic<std::byte> read_last{};  ///< so that what kernels read is read

/// Reads and writes the first and the last byte of every buffer that it gets.
Status touch(std::span<const KernelArgument> arguments) {
  for (KernelArgument const& argument : arguments) {
    if (auto const* const buffer = std::get_if<Buffer*>(&argument); buffer != nullptr && *buffer != nullptr) {
      const std::span<std::byte> bytes = static_cast<HostBuffer&>(**buffer).bytes();
      if (!bytes.empty()) {
        bytes.front() = bytes.back();
      }
    } else if (auto const* const value = std::get_if<std::span<const std::byte>>(&argument); value != nullptr) {
      std::byte sum{};
      for (const std::byte each : *value) {
        sum ^= each;
      }
      read_last = sum;
    }
  }
  return absl::OkStatus();
}

class HostCommands final : public CommandBuffer {
 public:
  Status launch(Kernel& /*kernel*/, LaunchShape const& /*shape*/, std::span<const KernelArgument> arguments) override {
    std::vector<KernelArgument>& kept = launches_.emplace_back(arguments.begin(), arguments.end());
    for (KernelArgument& argument : kept) {
      if (auto* const value = std::get_if<std::span<const std::byte>>(&argument); value != nullptr) {
        values_.emplace_back(value->begin(), value->end());
        argument = std::span<const std::byte>(values_.back());
      }
    }
    return absl::OkStatus();
  }
  Result<Event*> record_timestamp() override { return &event_; }
  Status run() const {
    for (std::vector<KernelArgument> const& arguments : launches_) {
      CATENA_RETURN_IF_ERROR(touch(arguments));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::vector<KernelArgument>> launches_;
  std::list<std::vector<std::byte>> values_;
  DoneEvent event_;
};

class HostStream final : public Stream {
 public:
  Status copy_to_device(Buffer& target, std::size_t at, std::span<const std::byte> source) override {
    CATENA_RETURN_IF_ERROR(check_range("copy", at, source.size(), target.size()));
    std::copy(source.begin(), source.end(), begin(target, at));
    return absl::OkStatus();
  }
  Status copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t at) override {
    CATENA_RETURN_IF_ERROR(check_range("copy", at, target.size(), source.size()));
    std::copy_n(begin(source, at), target.size(), target.begin());
    return absl::OkStatus();
  }
  Status copy_rows_to_device(Buffer& target, std::size_t at, std::span<const std::byte> source,
                             RowShape const& shape) override {
    CATENA_RETURN_IF_ERROR(check_rows("rows", shape, source.size(), at, target.size()));
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(row * shape.stride), shape.row_bytes,
                  begin(target, at + row * shape.stride));
    }
    return absl::OkStatus();
  }
  Status copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t at,
                           RowShape const& shape) override {
    CATENA_RETURN_IF_ERROR(check_rows("rows", shape, target.size(), at, source.size()));
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      std::copy_n(begin(source, at + row * shape.stride), shape.row_bytes,
                  target.begin() + static_cast<std::ptrdiff_t>(row * shape.stride));
    }
    return absl::OkStatus();
  }
  Status fill(Buffer& target, std::size_t at, std::size_t bytes, std::uint8_t value) override {
    CATENA_RETURN_IF_ERROR(check_range("fill", at, bytes, target.size()));
    std::fill_n(begin(target, at), bytes, std::byte{value});
    return absl::OkStatus();
  }
  Status launch(Kernel& /*kernel*/, LaunchShape const& /*shape*/, std::span<const KernelArgument> arguments) override {
    return touch(arguments);
  }
  Status enqueue(CommandBuffer& commands) override { return static_cast<HostCommands&>(commands).run(); }
  Status finalize(CommandBuffer& /*commands*/) override { return absl::OkStatus(); }
  Result<std::unique_ptr<Event>> record() override { return std::make_unique<DoneEvent>(); }
  Result<std::unique_ptr<Event>> record_timestamp() override { return std::make_unique<DoneEvent>(); }
  Status flush() override { return absl::OkStatus(); }

 private:
  static std::byte* begin(Buffer& buffer, std::size_t at) {
    return static_cast<HostBuffer&>(buffer).bytes().data() + at;
  }
};

class HostPartition final : public Partition {
 public:
  std::uint32_t compute_units() const override { return 2; }
};

class HostProgram final : public Program {
 public:
  Result<Kernel*> kernel(std::string_view name) override {
    return name.empty() ? Result<Kernel*>(absl::NotFoundError("no such kernel")) : Result<Kernel*>(&kernel_);
  }

 private:
  HostKernel kernel_;
};

class HostDevice final : public Device {
 public:
  DeviceInfo const& info() const override { return info_; }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override { return std::make_unique<HostBuffer>(bytes); }
  Result<std::unique_ptr<PinnedBuffer>> allocate_pinned(std::size_t /*bytes*/) override {
    return absl::UnimplementedError("a server maps memory");
  }
  Result<std::unique_ptr<Buffer>> map_host(HostMemory const& memory) override {
    return std::make_unique<HostBuffer>(memory.bytes);
  }
  Result<std::unique_ptr<Stream>> create_stream(StreamOptions const& /*options*/) override {
    return std::make_unique<HostStream>();
  }
  Result<std::unique_ptr<CommandBuffer>> create_command_buffer(Partition* /*partition*/) override {
    return std::make_unique<HostCommands>();
  }
  Result<std::vector<std::unique_ptr<Partition>>> divide(std::span<const std::uint32_t> units) override {
    constexpr std::size_t kGroups = 8;
    if (units.empty() || units.size() > kGroups) {
      return absl::InvalidArgumentError("not so many parts");
    }
    std::vector<std::unique_ptr<Partition>> parts;
    for (std::size_t i = 0; i < units.size(); ++i) {
      parts.push_back(std::make_unique<HostPartition>());
    }
    return parts;
  }
  Result<Binary> compile(ProgramSource const& source) override { return Binary(source.files.size() + 1); }
  Result<std::unique_ptr<Program>> load(std::span<const std::byte> /*binary*/) override {
    return std::make_unique<HostProgram>();
  }
  Status failed() const override { return absl::OkStatus(); }
  void abandon(Status const& /*reason*/) override {}

 private:
  DeviceInfo info_{"host", "memory", "none", "none", 16, 1U << 20, 1U << 10, 256, false};
};

/// What is left of the input.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    const std::uint8_t value = bytes_.empty() ? 0 : bytes_.front();
    bytes_ = bytes_.subspan(std::min<std::size_t>(1, bytes_.size()));
    return value;
  }
  std::span<const std::byte> some() {
    const std::size_t count = std::min<std::size_t>(byte(), bytes_.size());
    const auto taken = std::as_bytes(bytes_.first(count));
    bytes_ = bytes_.subspan(count);
    return taken;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

class Client {
 public:
  explicit Client(FileDescriptor socket)
      : socket_(std::move(socket)),
        page_(*Mapping::create("catena_device", sizeof(remote::ClientPage))),
        notifier_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    constexpr timeval kPatience{0, 300'000};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  }
  void greet() {
    send(remote::Call::kHello, ipc::Writer().put(remote::kVersion).bytes(), page_.fd());
    send(remote::Call::kHello, {}, notifier_.get());
    static_cast<void>(ipc::receive_frame(socket_.get(), remote::kMaxFrameBytes));
  }
  /// False once the session is over.
  bool call(Input& input) {
    const auto call = static_cast<remote::Call>(input.byte() % 16);
    const bool with_memory = input.byte() % 4 == 0;
    const Result<Mapping> memory = Mapping::create("catena_device", 4096);
    const std::span<const std::byte> body = input.some();
    send(call, body, with_memory && memory.ok() ? memory->fd() : -1);
    if (call == remote::Call::kFree) {
      return true;
    }
    Result<Frame> answer = ipc::receive_frame(socket_.get(), remote::kMaxFrameBytes);
    if (!answer.ok()) {
      return false;
    }
    if (call == remote::Call::kCreateStream && answer->fd) {
      if (Result<Mapping> page = Mapping::map(std::move(answer->fd), sizeof(StreamPage)); page.ok()) {
        streams_.push_back(*std::move(page));
      }
    }
    return true;
  }
  /// Bytes into a ring, with a header of a command in front of them or without.
  void command(Input& input) {
    if (streams_.empty()) {
      return;
    }
    auto& page = streams_[input.byte() % streams_.size()].as<StreamPage>();
    const std::uint8_t how = input.byte();
    const std::span<const std::byte> body = input.some();
    std::vector<std::byte> raw;
    if (how % 8 != 0) {
      const std::size_t padded = (body.size() + 7) / 8 * 8;
      const remote::CommandHeader header{static_cast<remote::Command>(how % 8),
                                         static_cast<std::uint32_t>(sizeof(remote::CommandHeader) + padded),
                                         how >= 128 ? 1U : 0U, 0};
      const auto head = std::as_bytes(std::span(&header, 1));
      raw.assign(head.begin(), head.end());
      raw.insert(raw.end(), body.begin(), body.end());
      raw.resize(sizeof header + padded);
    } else {
      raw.assign(body.begin(), body.end());
    }
    const std::uint64_t tail = page.tail.load();
    for (std::size_t i = 0; i < raw.size(); ++i) {
      page.ring[(tail + i) % remote::kRingBytes] = raw[i];
    }
    page.tail.store(tail + raw.size() + (how == 0 ? input.byte() : 0));
    const std::uint64_t one = 1;
    static_cast<void>(::write(notifier_.get(), &one, sizeof one));
  }

 private:
  void send(remote::Call call, std::span<const std::byte> body, int fd) {
    static_cast<void>(ipc::send_frame(socket_.get(), static_cast<std::uint32_t>(call), body, fd));
  }

  FileDescriptor socket_;
  Mapping page_;
  FileDescriptor notifier_;
  std::vector<Mapping> streams_;
};

void run(Input input) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    std::abort();
  }
  HostDevice device;
  remote::BlackBox::Client box{};
  remote::ServerLimits limits;
  limits.device_bytes = limits.host_bytes = 1U << 20;
  remote::Compilations compilations(device, nullptr, nullptr);
  StreamSerializer serializer;
  const std::uint8_t kind = input.byte();
  remote::Compilations* const judged = kind % 2 == 0 ? nullptr : &compilations;
  StreamSerializer* const taken = kind / 2 % 2 == 0 ? nullptr : &serializer;
  auto session = std::async(std::launch::async, [&device, &limits, &box, judged, taken, end = ends[1]] {
    remote::ClientSession served(device, FileDescriptor(end), limits, box, judged, taken);
    return served.run();
  });
  {
    Client client{FileDescriptor(ends[0])};
    if (input.byte() % 16 != 0) {
      client.greet();
    }
    bool goes_on = true;
    while (goes_on && !input.empty()) {
      if (input.byte() % 2 == 0) {
        goes_on = client.call(input);
      } else {
        client.command(input);
      }
    }
  }
  if (session.get().ok()) {
    __builtin_trap();  // it ends for a reason, always
  }
}

}  // namespace
}  // namespace catena::device

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  catena::device::run(catena::device::Input({data, size}));
  return 0;
}
