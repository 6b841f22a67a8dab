// SPDX-License-Identifier: Apache-2.0
// A device server among clients that are strangers to one another, some of them hostile; and its death.
#include "gpu/device/remote/server.hpp"

#include <catena/core/text.hpp>

#include "base/ipc/message.hpp"
#include "gpu/device/backend.hpp"
#include "gpu/device/remote/device.hpp"
#include "gpu/device/remote/protocol.hpp"
#include "gpu/device/remote/server_pool.hpp"
#include "gpu/device/remote/supervisor.hpp"
#include "gpu/device/testing/remote_device.hpp"
#include "sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace catena::device::remote {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kLimit{30};

/// For CUDA and OpenCL.
constexpr const char* kKernels = R"(
#if defined(__CUDACC_RTC__)
#define KERNEL extern "C" __global__
#define GLOBAL
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#else
#define KERNEL __kernel
#define GLOBAL __global
#define INDEX ((unsigned)get_global_id(0))
#endif
KERNEL void fill(GLOBAL unsigned* data, unsigned count, unsigned value) {
  if (INDEX < count) {
    data[INDEX] = value;
  }
}
KERNEL void endless(GLOBAL volatile unsigned* data) {
  while (data[0] != 77u) {
  }
}
KERNEL void wait_for(GLOBAL volatile unsigned* data, unsigned step) {
  while (data[0] < step) {
  }
}
KERNEL void trap(GLOBAL volatile unsigned* data) {
  GLOBAL volatile unsigned* nowhere = 0;
  *nowhere = data[0];
}
)";

std::span<const std::byte> bytes_of(auto const& value) { return std::as_bytes(std::span(&value, 1)); }

constexpr std::chrono::milliseconds kLaunchLimit{catena::testing::kIsSanitized ? 3000 : 1000};

/// The drivers of CPUs compile a kernel when it is first launched, and keep it: not while a watchdog looks.
void warm_up(std::string_view backend) {
  static std::set<std::string> warm;
  if (!warm.emplace(backend).second) {
    return;
  }
  const auto device = open(parse_preference(backend).value());
  if (!device.ok() || *device == nullptr) {
    return;
  }
  const auto program = (*device)->load((*device)->compile({{{"test.kernel.cpp", kKernels}}, {}}).value()).value();
  const auto buffer = (*device)->allocate(4096).value();
  const auto stream = (*device)->create_stream().value();
  const std::uint32_t count = 1024;
  const std::array<KernelArgument, 3> arguments{buffer.get(), bytes_of(count), bytes_of(count)};
  ASSERT_EQ(stream->launch(*program->kernel("fill").value(), {16, 64, 0}, arguments), absl::OkStatus());
  const std::uint32_t nothing = 0;
  const std::array<KernelArgument, 2> no_wait{buffer.get(), bytes_of(nothing)};
  ASSERT_EQ(stream->launch(*program->kernel("wait_for").value(), {1, 1, 0}, no_wait), absl::OkStatus());
  ASSERT_EQ(stream->record().value()->wait(std::chrono::minutes(2), "warm-up"), absl::OkStatus());
}

/// The deaths that a supervisor tells of.
class Deaths {
 public:
  std::function<void(Supervisor::Death const&)> listener() {
    return [this](Supervisor::Death const& death) {
      const std::scoped_lock lock(mutex_);
      deaths_.push_back(death);
      changed_.notify_all();
    };
  }
  /// The next one; fails the test where there is none within kLimit.
  Supervisor::Death next() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLimit, [this] { return deaths_.size() > seen_; }));
    return deaths_.size() > seen_ ? deaths_[seen_++] : Supervisor::Death{};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Supervisor::Death> deaths_;
  std::size_t seen_ = 0;
};

class DeviceServer : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    Supervisor::Options options = testing::server_options(std::string(GetParam()));
    warm_up(GetParam());
    options.limits.launch = kLaunchLimit;
    options_ = options;
    options.limits.device_bytes = std::uint64_t{64} << 20;
    options.limits.host_bytes = std::uint64_t{64} << 20;
    supervisor_ = Supervisor::start(options, deaths_.listener()).value();
    const Result<std::unique_ptr<Device>> here = open(parse_preference(GetParam()).value());
    if (!here.ok()) {
      GTEST_SKIP() << here.status().message();
    }
    ASSERT_EQ(client("probe").status(), absl::OkStatus());
  }

  /// Another server in place of this one.
  void serve(ServerLimits const& limits) {
    options_.limits = limits;
    supervisor_ = Supervisor::start(options_, deaths_.listener()).value();
    wait_until([this] { return client("probe").ok(); }, kLimit);
  }
  /// As serve(), and one launch of all clients at a time.
  void serve_one_at_a_time() {
    ServerLimits limits;
    limits.launch = kLaunchLimit;
    limits.one_at_a_time = true;
    serve(limits);
  }
  Supervisor& supervisor() { return *supervisor_; }
  Deaths& deaths() { return deaths_; }

  Result<std::unique_ptr<Device>> client(std::string_view name) {
    CATENA_ASSIGN_OR_RETURN(FileDescriptor socket, supervisor_->connect({std::string(name)}));
    return connect(std::move(socket));
  }
  /// Once the server was started again.
  std::unique_ptr<Device> client_again(std::string_view name) {
    Result<std::unique_ptr<Device>> device = absl::UnavailableError("not asked");
    wait_until(
        [&] {
          device = client(name);
          return device.ok();
        },
        kLimit);
    return std::move(device).value();
  }

 private:
  Deaths deaths_;
  Supervisor::Options options_;
  std::unique_ptr<Supervisor> supervisor_;
};

/// A client with one buffer of kWords words and the kernels.
class Worker {
 public:
  static constexpr std::uint32_t kWords = 1024;

  explicit Worker(std::unique_ptr<Device> device) : device_(std::move(device)) {
    program_ = device_->load(device_->compile({{{"test.kernel.cpp", kKernels}}, {}}).value()).value();
    buffer_ = device_->allocate(kWords * sizeof(std::uint32_t)).value();
    stream_ = device_->create_stream().value();
  }
  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }
  Buffer& buffer() { return *buffer_; }
  Kernel& kernel(std::string_view name) { return *program_->kernel(name).value(); }

  Status fill(std::uint32_t value) {
    const std::uint32_t count = kWords;
    const std::array<KernelArgument, 3> arguments{buffer_.get(), bytes_of(count), bytes_of(value)};
    return stream_->launch(kernel("fill"), {kWords / 64, 64, 0}, arguments);
  }
  Status start(std::string_view name) {
    const std::array<KernelArgument, 1> arguments{buffer_.get()};
    return stream_->launch(kernel(name), {1, 1, 0}, arguments);
  }
  Result<std::vector<std::uint32_t>> content() {
    std::vector<std::uint32_t> words(kWords);
    CATENA_RETURN_IF_ERROR(stream_->copy_to_host(std::as_writable_bytes(std::span(words)), *buffer_, 0));
    CATENA_RETURN_IF_ERROR(finish());
    return words;
  }
  Status finish() {
    CATENA_ASSIGN_OR_RETURN(const auto event, stream_->record());
    return event->wait(kLimit, "test");
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<Stream> stream_;
};

TEST_P(DeviceServer, clients_get_memory_without_a_byte_of_its_last_owner) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  for (int round = 0; round < 8; ++round) {
    const auto device = client("one").value();
    const auto buffer = device->allocate(kBytes).value();
    const auto pinned = device->allocate_pinned(kBytes).value();
    EXPECT_THAT(pinned->bytes(), ::testing::Each(std::byte{0}));
    const auto stream = device->create_stream().value();
    ASSERT_EQ(stream->copy_to_host(pinned->bytes(), *buffer, 0), absl::OkStatus());
    ASSERT_EQ(stream->record().value()->wait(kLimit, "test"), absl::OkStatus());
    ASSERT_TRUE(std::ranges::all_of(pinned->bytes(), [](std::byte byte) { return byte == std::byte{0}; })) << round;
    ASSERT_EQ(stream->fill(*buffer, 0, kBytes, 0x5C), absl::OkStatus());
    ASSERT_EQ(stream->record().value()->wait(kLimit, "test"), absl::OkStatus());
    std::ranges::fill(pinned->bytes(), std::byte{0x5C});
  }
}

TEST_P(DeviceServer, a_client_has_no_more_than_its_share) {
  const auto device = client("greedy").value();
  const auto most = device->allocate(std::size_t{64} << 20);
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_THAT(device->allocate(1).status().ToString(),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("a client has at most 67108864")));
  EXPECT_THAT(device->allocate_pinned((std::size_t{64} << 20) + 1).status().ToString(),
              HasSubstr("RESOURCE_EXHAUSTED"));
  std::vector<std::unique_ptr<Stream>> streams;
  Status status;
  while (status.ok() && streams.size() <= kMaxStreams) {
    auto stream = device->create_stream({});
    status = stream.status();
    if (stream.ok()) {
      streams.push_back(*std::move(stream));
    }
  }
  EXPECT_EQ(streams.size(), kMaxStreams);
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("1024 streams")));
  const auto other = client("modest").value();
  EXPECT_TRUE(other->allocate(std::size_t{1} << 20).ok()) << "what one has is nothing to the other";
}

TEST_P(DeviceServer, what_a_client_leaves_behind_is_there_for_the_next) {
  const auto descriptors = [this] {
    const std::filesystem::directory_iterator all(concat("/proc/", supervisor().pid(), "/fd"));
    return std::distance(begin(all), end(all));
  };
  const auto stays = client("stays").value();
  const auto before = descriptors();
  for (int round = 0; round < 4; ++round) {
    const auto device = client("short-lived").value();
    const auto buffer = device->allocate(std::size_t{60} << 20);
    ASSERT_TRUE(buffer.ok()) << round << ": " << buffer.status();
    const auto pinned = device->allocate_pinned(1000);
    ASSERT_TRUE(pinned.ok()) << pinned.status();
  }
  wait_until([&] { return descriptors() <= before; }, kLimit);
  EXPECT_LE(descriptors(), before) << "descriptors of clients that are gone";
}

TEST_P(DeviceServer, a_dead_server_is_a_lost_device_and_the_next_one_serves) {
  Worker worker(client("worker").value());
  ASSERT_EQ(worker.fill(5), absl::OkStatus());
  ASSERT_EQ(worker.finish(), absl::OkStatus());
  const int dead = supervisor().pid();
  ASSERT_EQ(kill(dead, SIGKILL), 0);
  const Supervisor::Death death = deaths().next();
  EXPECT_FALSE(death.is_fault);
  EXPECT_THAT(death.reason, HasSubstr("signal 9"));
  EXPECT_THAT(death.suspects, IsEmpty());

  const Status status = worker.finish();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsUnavailable(worker.device().failed()));
  EXPECT_TRUE(absl::IsUnavailable(worker.device().allocate(8).status()));
  EXPECT_TRUE(absl::IsUnavailable(worker.fill(6)));

  Worker again(client_again("worker"));
  EXPECT_NE(supervisor().pid(), dead);
  ASSERT_EQ(again.fill(7), absl::OkStatus());
  EXPECT_THAT(again.content().value(), ::testing::Each(7U));
}

TEST_P(DeviceServer, an_endless_kernel_ends_the_server_alone_and_is_named) {
  Worker honest(client("honest").value());
  Worker hostile(client("hostile").value());
  ASSERT_EQ(honest.fill(1), absl::OkStatus());
  ASSERT_EQ(honest.finish(), absl::OkStatus());
  ASSERT_EQ(hostile.start("endless"), absl::OkStatus());
  ASSERT_EQ(hostile.stream().flush(), absl::OkStatus());
  const Supervisor::Death death = deaths().next();
  EXPECT_TRUE(death.is_fault);
  EXPECT_THAT(death.reason, HasSubstr(concat("has not ended within ", kLaunchLimit.count(), " ms")));
  ASSERT_EQ(death.suspects.size(), 1U);
  EXPECT_EQ(death.suspects[0].client.name, "hostile");
  EXPECT_EQ(death.suspects[0].kernels, "endless");
  Worker again(client_again("honest"));
  EXPECT_EQ(again.fill(2), absl::OkStatus());
  EXPECT_EQ(again.finish(), absl::OkStatus());
}

TEST_P(DeviceServer, a_kernel_that_traps_ends_the_server_alone_and_is_named) {
  Worker hostile(client("hostile").value());
  ASSERT_EQ(hostile.fill(1), absl::OkStatus());
  ASSERT_EQ(hostile.finish(), absl::OkStatus());
  static_cast<void>(hostile.start("trap"));
  static_cast<void>(hostile.stream().flush());
  const Supervisor::Death death = deaths().next();
  EXPECT_TRUE(death.is_fault) << death.reason;
  ASSERT_EQ(death.suspects.size(), 1U);
  EXPECT_EQ(death.suspects[0].client.name, "hostile");
  EXPECT_EQ(death.suspects[0].kernels, "trap");
}

TEST_P(DeviceServer, work_that_nobody_waits_for_is_not_taken_for_endless) {
  Worker worker(client("worker").value());
  ASSERT_EQ(worker.fill(3), absl::OkStatus());
  const int pid = supervisor().pid();
  std::this_thread::sleep_for(2 * kLaunchLimit);
  EXPECT_EQ(supervisor().pid(), pid);
  EXPECT_THAT(worker.content().value(), ::testing::Each(3U));
}

TEST_P(DeviceServer, that_is_told_so_runs_one_launch_at_a_time_whoevers_it_is) {
  for (const bool by_turns : {false, true}) {
    ServerLimits limits;
    limits.one_at_a_time = by_turns;
    serve(limits);
    Worker first(client("first").value());
    Worker second(client("second").value());
    EXPECT_EQ(second.device().info().has_turns, by_turns);
    if (first.device().info().compute_units < 2) {
      GTEST_SKIP() << "launches never run side by side there";
    }
    const auto pinned = first.device().allocate_pinned(4096).value();
    if (pinned->window() == nullptr) {
      GTEST_SKIP() << "kernels cannot be told to end";
    }
    ASSERT_EQ(second.fill(1), absl::OkStatus());
    ASSERT_EQ(second.finish(), absl::OkStatus());
    const std::array<KernelArgument, 1> arguments{pinned->window()};
    ASSERT_EQ(first.stream().launch(first.kernel("endless"), {1, 1, 0}, arguments), absl::OkStatus());
    const auto first_ends = first.stream().record().value();
    ASSERT_EQ(second.fill(9), absl::OkStatus());
    const auto second_ends = second.stream().record().value();
    if (by_turns) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_FALSE(second_ends->ready().value()) << "it went before the launch whose turn it was";
    } else {
      EXPECT_EQ(second_ends->wait(kLimit, "beside an endless launch"), absl::OkStatus());
    }
    EXPECT_FALSE(first_ends->ready().value());
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(pinned->bytes().data())).store(77);
    EXPECT_EQ(first_ends->wait(kLimit, "the first"), absl::OkStatus());
    EXPECT_THAT(second.content().value(), ::testing::Each(9U));
  }
}

/// Steps, each well within the limit of a launch, that kernels `wait_for`.
class Steps {
 public:
  explicit Steps(std::span<std::byte> word) : word_(reinterpret_cast<std::uint32_t*>(word.data())) {}
  void next() {
    std::this_thread::sleep_for(kLaunchLimit / 3);
    set(++step_);
  }
  void set(std::uint32_t step) { std::atomic_ref(*word_).store(step); }

 private:
  std::uint32_t* word_;
  std::uint32_t step_ = 0;
};

TEST_P(DeviceServer, who_waits_for_others_has_his_turn_soon_and_is_not_taken_for_endless) {
  serve_one_at_a_time();
  Worker greedy(client("greedy").value());
  Worker modest(client("modest").value());
  const auto pinned = greedy.device().allocate_pinned(4096).value();
  if (pinned->window() == nullptr) {
    GTEST_SKIP() << "kernels cannot be told to end";
  }
  ASSERT_EQ(modest.fill(1), absl::OkStatus());
  ASSERT_EQ(modest.finish(), absl::OkStatus());
  const int pid = supervisor().pid();
  constexpr std::uint32_t kLaunches = 24;
  std::unique_ptr<Event> greedy_ends;
  for (std::uint32_t step = 1; step <= kLaunches; ++step) {
    const std::array<KernelArgument, 2> arguments{pinned->window(), bytes_of(step)};
    ASSERT_EQ(greedy.stream().launch(greedy.kernel("wait_for"), {1, 1, 0}, arguments), absl::OkStatus());
    greedy_ends = greedy.stream().record().value();
  }
  std::this_thread::sleep_for(kLaunchLimit / 3);  // the server has them, or as many as it takes
  ASSERT_EQ(modest.fill(9), absl::OkStatus());
  const auto modest_ends = modest.stream().record().value();
  Steps steps(pinned->bytes());
  std::uint32_t waited = 0;
  for (Result<bool> is_ready = false; is_ready.ok() && !*is_ready && waited < kLaunches; ++waited) {
    steps.next();
    is_ready = modest_ends->ready();
  }
  EXPECT_EQ(modest_ends->wait(kLimit, "the modest one"), absl::OkStatus());
  EXPECT_LT(waited, kLaunches / 2);
  steps.set(kLaunches);
  EXPECT_EQ(greedy_ends->wait(kLimit, "the greedy one"), absl::OkStatus());
  EXPECT_EQ(supervisor().pid(), pid);
  EXPECT_THAT(modest.content().value(), ::testing::Each(9U));
}

TEST_P(DeviceServer, an_endless_kernel_is_not_blamed_on_who_waits_for_the_end_of_its_turn) {
  serve_one_at_a_time();
  Worker honest(client("honest").value());
  Worker hostile(client("hostile").value());
  ASSERT_EQ(honest.fill(1), absl::OkStatus());
  ASSERT_EQ(honest.finish(), absl::OkStatus());
  ASSERT_EQ(hostile.start("endless"), absl::OkStatus());
  ASSERT_EQ(hostile.stream().flush(), absl::OkStatus());
  ASSERT_EQ(honest.fill(2), absl::OkStatus());
  ASSERT_EQ(honest.stream().flush(), absl::OkStatus());
  const Supervisor::Death death = deaths().next();
  EXPECT_THAT(death.reason, HasSubstr(concat("has not ended within ", kLaunchLimit.count(), " ms")));
  ASSERT_EQ(death.suspects.size(), 1U);
  EXPECT_EQ(death.suspects[0].client.name, "hostile");
}

/// A client that may send anything.
class Forger {
 public:
  explicit Forger(FileDescriptor socket)
      : socket_(std::move(socket)),
        page_(ipc::Mapping::create("catena_device", sizeof(ClientPage)).value()),
        notifier_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    send(Call::kHello, ipc::Writer().put(kVersion), page_.fd());
    send(Call::kHello, {}, notifier_.get());
    EXPECT_TRUE(receive().ok());
  }
  void send(Call call, ipc::Writer const& body, int fd = -1) {
    static_cast<void>(ipc::send_frame(socket_.get(), static_cast<std::uint32_t>(call), body.bytes(), fd));
  }
  Status receive(ipc::Frame* frame = nullptr) {
    Result<ipc::Frame> got = ipc::receive_frame(socket_.get(), kMaxFrameBytes);
    CATENA_RETURN_IF_ERROR(got.status());
    const Status status = ipc::Reader(got->body).take_status();
    if (frame != nullptr) {
      *frame = *std::move(got);
    }
    return status;
  }
  Status call(Call call, ipc::Writer const& body, int fd = -1, ipc::Frame* frame = nullptr) {
    send(call, body, fd);
    return receive(frame);
  }
  /// The number that an answer begins with.
  static std::uint32_t number_in(ipc::Frame const& frame) {
    ipc::Reader body(frame.body);
    static_cast<void>(body.take_status());
    return body.take<std::uint32_t>();
  }
  std::uint32_t make(Call call, ipc::Writer const& body) {
    ipc::Frame frame;
    EXPECT_EQ(this->call(call, body, -1, &frame), absl::OkStatus());
    return number_in(frame);
  }
  /// A stream; its page is in `page`.
  std::uint32_t make_stream(ipc::Mapping& page) {
    ipc::Frame frame;
    EXPECT_EQ(call(Call::kCreateStream, ipc::Writer().put(0U), -1, &frame), absl::OkStatus());
    page = ipc::Mapping::map(std::move(frame.fd), sizeof(StreamPage)).value();
    return number_in(frame);
  }
  /// Puts raw bytes into a ring and says that `bytes` more are there.
  void put(ipc::Mapping const& memory, std::span<const std::byte> raw, std::uint64_t bytes) {
    auto& page = memory.as<StreamPage>();
    const std::uint64_t tail = page.tail.load();
    for (std::size_t i = 0; i < raw.size(); ++i) {
      page.ring[(tail + i) % kRingBytes] = raw[i];
    }
    page.tail.store(tail + bytes);
    const std::uint64_t one = 1;
    static_cast<void>(write(notifier_.get(), &one, sizeof one));
  }
  template <typename Body>
  void put_command(ipc::Mapping const& memory, Command command, Body const& body) {
    const CommandHeader header{command, static_cast<std::uint32_t>(sizeof(CommandHeader) + sizeof body), 0, 0};
    const ipc::Writer whole = ipc::Writer().put(header).put(body);
    put(memory, whole.bytes(), whole.bytes().size());
  }
  /// Half of a frame's header, and a whole one with more descriptors than a frame has.
  void send_half_a_frame() {
    const std::uint32_t half = 1;
    EXPECT_EQ(::send(socket_.get(), &half, sizeof half, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof half));
  }
  void send_two_descriptors(Call call, int fd) {
    const ipc::FrameHeader header{static_cast<std::uint32_t>(call), 0};
    iovec part{const_cast<ipc::FrameHeader*>(&header), sizeof header};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
    const std::array<int, 2> fds{fd, fd};
    std::memcpy(CMSG_DATA(rights), fds.data(), sizeof fds);
    EXPECT_EQ(sendmsg(socket_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof header));
  }
  /// A kernel of kKernels.
  std::uint32_t make_kernel(std::string_view name) {
    ipc::Frame frame;
    const ipc::Writer compile = ipc::Writer().put(1U).put_text("test.kernel.cpp").put_text(kKernels).put(0U);
    EXPECT_EQ(call(Call::kCompile, compile, -1, &frame), absl::OkStatus());
    ipc::Reader answer(frame.body);
    static_cast<void>(answer.take_status());
    const std::uint32_t program = make(Call::kLoad, ipc::Writer().put_bytes(answer.take_bytes()));
    return make(Call::kKernel, ipc::Writer().put(program).put_text(name));
  }
  /// True once the server hung up.
  bool is_cut_off() {
    std::array<pollfd, 1> fds{{{socket_.get(), POLLIN, 0}}};
    poll(fds.data(), fds.size(), 10'000);
    return (fds[0].revents & POLLHUP) != 0 || !receive().ok();
  }

 private:
  FileDescriptor socket_;
  ipc::Mapping page_;
  FileDescriptor notifier_;
};

/// The error that a stream breaks with.
std::string broken(ipc::Mapping const& memory) {
  auto& page = memory.as<StreamPage>();
  wait_until([&] { return page.is_broken.load() != 0; }, kLimit);
  return page.is_broken.load() == 0 ? "" : page.reply_text.data();
}

TEST_P(DeviceServer, numbers_of_other_clients_mean_nothing) {
  Worker victim(client("victim").value());
  ASSERT_EQ(victim.fill(0x600D), absl::OkStatus());
  ASSERT_EQ(victim.finish(), absl::OkStatus());
  Forger forger(supervisor().connect({"forger"}).value());
  const std::uint32_t memory_range = forger.make(Call::kAllocatePinned, ipc::Writer().put(std::uint64_t{4096}));
  const std::uint32_t own = forger.make(Call::kAllocate, ipc::Writer().put(std::uint64_t{4096}));
  // every number that the victim can have, and many that nobody has, but the forger's own
  for (std::uint32_t number = 0; number < 64; ++number) {
    ipc::Mapping page;
    const std::uint32_t stream = forger.make_stream(page);
    if (number != own) {
      forger.put_command(page, Command::kCopy, CopyCommand{0, 0, 64, 64, 0, number, memory_range, 1});
      EXPECT_THAT(broken(page), HasSubstr("has no")) << number;
    }
    forger.send(Call::kFree, ipc::Writer().put(Kind::kStream).put(stream));
  }
  EXPECT_THAT(victim.content().value(), ::testing::Each(0x600DU));
}

TEST_P(DeviceServer, offsets_and_sizes_out_of_bounds_break_the_stream_and_nothing_else) {
  Forger forger(supervisor().connect({"forger"}).value());
  const std::uint32_t memory_range = forger.make(Call::kAllocatePinned, ipc::Writer().put(std::uint64_t{4096}));
  const std::uint32_t buffer = forger.make(Call::kAllocate, ipc::Writer().put(std::uint64_t{4096}));
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const CopyCommand wrong[] = {
      {0, 0, 4097, 4097, 0, buffer, memory_range, 1},
      {0, 1, 4096, 4096, 0, buffer, memory_range, 1},
      {1, 0, 4096, 4096, 0, buffer, memory_range, 1},
      {kHuge, 0, 1, 1, 0, buffer, memory_range, 1},
      {0, kHuge, 1, 1, 0, buffer, memory_range, 1},
      {0, 0, kHuge, kHuge, 0, buffer, memory_range, 0},
      {0, 4096, 1, 1, 0, buffer, memory_range, 0},
      {0, 0, 64, 64, 65, buffer, memory_range, 1},
      {0, 0, 64, 0, 2, buffer, memory_range, 1},
      {0, 0, 1, kHuge / 2 + 1, 3, buffer, memory_range, 0},
      {0, 0, 64, 64, 0xFFFFFFFF, buffer, memory_range, 0},
      {0, 0, 1, 1, 0, buffer, memory_range + 1, 1},  // the window, a buffer
      {0, 0, 1, 1, 0, memory_range + 1, memory_range, 1},
      {0, 4064, 33, 64, 1, buffer, memory_range, 1},
  };
  for (CopyCommand const& command : wrong) {
    ipc::Mapping page;
    forger.make_stream(page);
    forger.put_command(page, Command::kCopy, command);
    EXPECT_NE(broken(page), "") << command.buffer_offset << " " << command.memory_range_offset << " "
                                << command.row_bytes;
  }
  for (FillCommand const& command :
       {FillCommand{0, 4097, buffer, 0}, FillCommand{4096, 1, buffer, 0}, FillCommand{kHuge, 2, buffer, 0},
        FillCommand{0, 1, memory_range + 1, 0}, FillCommand{0, 1, 0, 0}}) {
    ipc::Mapping page;
    forger.make_stream(page);
    forger.put_command(page, Command::kFill, command);
    EXPECT_NE(broken(page), "") << command.offset;
  }
  for (RecordCommand const& command : {RecordCommand{0, kNoTime, 0}, RecordCommand{2, kNoTime, 0},
                                       RecordCommand{kHuge, kNoTime, 0}, RecordCommand{1, kTimeSlots, 0}}) {
    ipc::Mapping page;
    forger.make_stream(page);
    forger.put_command(page, Command::kRecord, command);
    EXPECT_NE(broken(page), "") << command.sequence;
  }
  Worker other(client("other").value());
  ASSERT_EQ(other.fill(1), absl::OkStatus());
  EXPECT_EQ(other.finish(), absl::OkStatus());
}

TEST_P(DeviceServer, work_that_a_client_left_behind_is_not_taken_for_endless) {
  for (const bool leaves : {false, true}) {
    auto forger = std::make_unique<Forger>(supervisor().connect({"leaver"}).value());
    ipc::Frame frame;
    ASSERT_EQ(forger->call(Call::kAllocatePinned, ipc::Writer().put(std::uint64_t{4096}), -1, &frame),
              absl::OkStatus());
    const ipc::Mapping memory = ipc::Mapping::map(std::move(frame.fd), 4096).value();
    ipc::Reader numbers(frame.body);
    static_cast<void>(numbers.take_status());
    static_cast<void>(numbers.take<std::uint32_t>());
    const auto window = numbers.take<std::uint32_t>();
    if (window == 0) {
      GTEST_SKIP() << "kernels cannot be told to end";
    }
    const std::uint32_t kernel = forger->make_kernel("wait_for");
    ipc::Mapping page;
    const std::uint32_t stream = forger->make_stream(page);
    constexpr std::uint32_t kLaunches = 6;
    for (std::uint32_t step = 1; step <= kLaunches; ++step) {
      ipc::Writer launch;
      launch.put(kernel).put(1U).put(1U).put(0U).put(2U).put(0U).put(window).put(1U).put_bytes(bytes_of(step));
      const CommandHeader header{Command::kLaunch,
                                 static_cast<std::uint32_t>(sizeof(CommandHeader) + launch.bytes().size()), 0, 0};
      ASSERT_EQ(header.bytes % 8, 0U);
      const ipc::Writer whole = ipc::Writer().put(header).add(launch);
      forger->put(page, whole.bytes(), whole.bytes().size());
      forger->put_command(page, Command::kRecord, RecordCommand{step, kNoTime, 0});
    }
    auto& shared = page.as<StreamPage>();
    wait_until([&shared] { return shared.head.load() == shared.tail.load(); }, kLimit);
    if (leaves) {
      forger.reset();
    } else {
      forger->send(Call::kFree, ipc::Writer().put(Kind::kStream).put(stream));
    }
    const int pid = supervisor().pid();
    Steps steps(memory.bytes());
    for (std::uint32_t step = 0; step < kLaunches; ++step) {
      steps.next();
    }
    Worker other(client_again("other"));
    ASSERT_EQ(other.fill(1), absl::OkStatus());
    EXPECT_EQ(other.finish(), absl::OkStatus());
    EXPECT_EQ(supervisor().pid(), pid) << (leaves ? "of one that is gone" : "of a stream that was freed");
  }
}

TEST_P(DeviceServer, rings_that_lie_about_themselves_cut_the_client_off) {
  struct Lie {
    CommandHeader header;
    std::uint64_t bytes;
  };
  const Lie lies[] = {
      {{Command::kFlush, 0, 0, 0}, 16},
      {{Command::kFlush, 8, 0, 0}, 16},
      {{Command::kFlush, 17, 0, 0}, 24},
      {{Command::kFlush, 24, 0, 0}, 16},
      {{Command::kFlush, 0xFFFFFFF8, 0, 0}, 16},
      {{Command::kFlush, kMaxCommandBytes + 8, 0, 0}, kRingBytes},
      {{Command::kFlush, 16, 0, 0}, 8},
      {{Command::kFlush, 16, 0, 0}, kRingBytes + 8},
      {{Command::kFlush, 16, 0, 0}, ~std::uint64_t{0}},
  };
  for (Lie const& lie : lies) {
    Forger forger(supervisor().connect({"liar"}).value());
    ipc::Mapping page;
    forger.make_stream(page);
    forger.put(page, std::as_bytes(std::span(&lie.header, 1)), lie.bytes);
    EXPECT_TRUE(forger.is_cut_off()) << lie.header.bytes << " " << lie.bytes;
  }
  EXPECT_TRUE(client("next").ok());
}

TEST_P(DeviceServer, memory_that_could_shrink_under_the_server_is_refused) {
  Forger forger(supervisor().connect({"shrinker"}).value());
  const FileDescriptor loose(memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(loose.get(), 8192), 0);
  const ipc::Writer body = ipc::Writer().put(std::uint64_t{8192}).put(std::uint64_t{0});
  EXPECT_THAT(forger.call(Call::kMapHost, body, loose.get()).ToString(), HasSubstr("F_SEAL_SHRINK"));
  const FileDescriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(forger.call(Call::kMapHost, body, file.get()).ToString(), HasSubstr("F_SEAL_SHRINK"));
  ASSERT_EQ(fcntl(loose.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  for (const auto& [bytes, offset] : {std::pair<std::uint64_t, std::uint64_t>{8193, 0},
                                      {8192, 4096},
                                      {4096, 1},
                                      {4096, ~std::uint64_t{0} & ~std::uint64_t{4095}},
                                      {0, 0}}) {
    EXPECT_FALSE(forger.call(Call::kMapHost, ipc::Writer().put(bytes).put(offset), loose.get()).ok())
        << bytes << " " << offset;
  }
  EXPECT_EQ(forger.call(Call::kMapHost, body, loose.get()), absl::OkStatus());
}

TEST_P(DeviceServer, a_recording_outlives_what_it_works_on_where_its_owner_frees_that) {
  Forger forger(supervisor().connect({"careless"}).value());
  const ProgramSource source{{{"test.kernel.cpp", kKernels}}, {}};
  ipc::Frame frame;
  const ipc::Writer compile =
      ipc::Writer().put(1U).put_text(source.files[0].name).put_text(source.files[0].text).put(0U);
  ASSERT_EQ(forger.call(Call::kCompile, compile, -1, &frame), absl::OkStatus());
  ipc::Reader answer(frame.body);
  static_cast<void>(answer.take_status());
  const std::uint32_t program = forger.make(Call::kLoad, ipc::Writer().put_bytes(answer.take_bytes()));
  const std::uint32_t kernel = forger.make(Call::kKernel, ipc::Writer().put(program).put_text("fill"));
  const std::uint32_t buffer = forger.make(Call::kAllocate, ipc::Writer().put(std::uint64_t{4096}));
  const std::uint32_t recording = forger.make(Call::kCreateCommandBuffer, ipc::Writer().put(0U));
  ipc::Writer launch;
  launch.put(kernel).put(16U).put(64U).put(0U).put(3U).put(0U).put(buffer);
  for (const std::uint32_t value : {1024U, 9U}) {
    launch.put(1U).put_bytes(bytes_of(value));
  }
  ASSERT_EQ(forger.call(Call::kRecordLaunch, ipc::Writer().put(recording).put_bytes(launch.bytes())), absl::OkStatus());
  ipc::Mapping page;
  forger.make_stream(page);
  forger.send(Call::kFree, ipc::Writer().put(Kind::kBuffer).put(buffer));
  forger.send(Call::kFree, ipc::Writer().put(Kind::kProgram).put(program));
  const std::uint64_t before = page.as<StreamPage>().reached.load();
  for (std::uint64_t run = 1; run <= 20; ++run) {
    forger.put_command(page, Command::kEnqueue, EnqueueCommand{recording, 0});
    forger.put_command(page, Command::kRecord, RecordCommand{run, kNoTime, 0});
  }
  wait_until([&] { return page.as<StreamPage>().reached.load() >= before + 20; }, kLimit);
  EXPECT_EQ(page.as<StreamPage>().reached.load(), 20U);
  EXPECT_EQ(page.as<StreamPage>().is_broken.load(), 0U);
  EXPECT_FALSE(forger.call(Call::kKernel, ipc::Writer().put(program).put_text("fill")).ok());
}

TEST_P(DeviceServer, frames_of_random_bytes_harm_nobody_else) {
  Worker victim(client("victim").value());
  ASSERT_EQ(victim.fill(42), absl::OkStatus());
  ASSERT_EQ(victim.finish(), absl::OkStatus());
  const int pid = supervisor().pid();
  std::mt19937 random(7);
  for (int client = 0; client < 60; ++client) {
    Forger forger(supervisor().connect({"noise"}).value());
    ipc::Mapping page;
    forger.make_stream(page);
    for (int frame = 0; frame < 20; ++frame) {
      ipc::Writer body;
      for (auto word = random() % 12; word > 0; --word) {
        body.put(random() % 4 == 0 ? static_cast<std::uint32_t>(random()) : static_cast<std::uint32_t>(random() % 8));
      }
      forger.send(static_cast<Call>(random() % 16), body);
      std::vector<std::byte> noise(8 * (2 + random() % 16));
      for (std::byte& byte : noise) {
        byte = static_cast<std::byte>(random() % 3 == 0 ? random() : random() % 8);
      }
      const CommandHeader header{static_cast<Command>(random() % 9), static_cast<std::uint32_t>(noise.size()),
                                 static_cast<std::uint32_t>(random() % 2), 0};
      std::ranges::copy(std::as_bytes(std::span(&header, 1)), noise.begin());
      forger.put(page, noise, noise.size());
    }
  }
  EXPECT_THAT(victim.content().value(), ::testing::Each(42U));
  EXPECT_EQ(supervisor().pid(), pid);
}

TEST_P(DeviceServer, who_starts_an_endless_kernel_and_breaks_the_ring_behind_it_is_still_named) {
  Worker honest(client("honest").value());
  Forger forger(supervisor().connect({"hostile"}).value());
  const std::uint32_t kernel = forger.make_kernel("endless");
  const std::uint32_t buffer = forger.make(Call::kAllocate, ipc::Writer().put(std::uint64_t{4096}));
  ipc::Mapping page;
  forger.make_stream(page);
  ipc::Writer launch;
  launch.put(kernel).put(1U).put(1U).put(0U).put(1U).put(0U).put(buffer);
  const auto bytes = static_cast<std::uint32_t>((sizeof(CommandHeader) + launch.bytes().size() + 7) / 8 * 8);
  ipc::Writer both = ipc::Writer().put(CommandHeader{Command::kLaunch, bytes, 0, 0});
  both.add(launch);
  while (both.bytes().size() < bytes) {
    both.put(std::uint8_t{0});
  }
  both.put(CommandHeader{Command::kFlush, 0, 0, 0});
  forger.put(page, both.bytes(), both.bytes().size());
  const Supervisor::Death death = deaths().next();
  ASSERT_EQ(death.suspects.size(), 1U) << death.reason;
  EXPECT_EQ(death.suspects[0].client.name, "hostile");
  EXPECT_EQ(death.suspects[0].kernels, "endless");
}

TEST_P(DeviceServer, half_a_frame_keeps_nobody_waiting) {
  Worker honest(client("honest").value());
  Forger forger(supervisor().connect({"half"}).value());
  const std::uint32_t buffer = forger.make(Call::kAllocate, ipc::Writer().put(std::uint64_t{4096}));
  ipc::Mapping page;
  forger.make_stream(page);
  forger.put_command(page, Command::kFill, FillCommand{0, 4096, buffer, 1});
  forger.send_half_a_frame();
  const int pid = supervisor().pid();
  std::this_thread::sleep_for(2 * kLaunchLimit);
  EXPECT_EQ(supervisor().pid(), pid) << "work that came to its end was taken for endless";
  ASSERT_EQ(honest.fill(4), absl::OkStatus());
  EXPECT_EQ(honest.finish(), absl::OkStatus());
}

TEST_P(DeviceServer, descriptors_that_nobody_asked_for_are_closed) {
  Forger forger(supervisor().connect({"generous"}).value());
  const ipc::Mapping memory = ipc::Mapping::create("catena_device", 4096).value();
  const auto descriptors = [this] {
    const std::filesystem::directory_iterator all(concat("/proc/", supervisor().pid(), "/fd"));
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  for (int round = 0; round < 50; ++round) {
    forger.send_two_descriptors(Call::kAllocate, memory.fd());
    EXPECT_FALSE(forger.receive().ok());
  }
  EXPECT_LE(descriptors(), before);
}

TEST_P(DeviceServer, memory_counts_until_nothing_has_it_any_more) {
  Forger forger(supervisor().connect({"hoarder"}).value());
  const ipc::Writer forty = ipc::Writer().put(std::uint64_t{40} << 20);
  ipc::Frame frame;
  ASSERT_EQ(forger.call(Call::kAllocatePinned, forty, -1, &frame), absl::OkStatus());
  ipc::Reader answer(frame.body);
  static_cast<void>(answer.take_status());
  const auto memory_range = answer.take<std::uint32_t>();
  const auto window = answer.take<std::uint32_t>();
  forger.send(Call::kFree, ipc::Writer().put(Kind::kMemoryRange).put(memory_range));
  EXPECT_TRUE(absl::IsResourceExhausted(forger.call(Call::kAllocatePinned, forty))) << "its window still has it";
  forger.send(Call::kFree, ipc::Writer().put(Kind::kBuffer).put(window));
  EXPECT_EQ(forger.call(Call::kAllocatePinned, forty), absl::OkStatus());
}

TEST_P(DeviceServer, its_compiler_reads_what_it_is_given_and_no_other_file) {
  const auto device = client("reader").value();
  for (const char* line : {"#include \"/etc/passwd\"", "#include </etc/passwd>", "  # include \"/etc/passwd\"",
                           "#\\\ninclude \"/etc/passwd\"", "%:include \"/etc/passwd\"", "/**/ #include \"/etc/passwd\"",
                           "#define F \"/etc/passwd\"\n#include F", "#include_next \"passwd\"",
                           "#import \"/etc/passwd\"", "#include \"../passwd\""}) {
    const Status status = device->compile({{{"test.kernel.cpp", concat(line, "\n", kKernels)}}, {}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("nothing else")) << line;
  }
  const ProgramSource own{
      {{"test.kernel.cpp", concat("#include \"own.hpp\"\n", kKernels)}, {"own.hpp", "#pragma once\n"}}, {}};
  EXPECT_EQ(device->compile(own).status(), absl::OkStatus());
}

TEST(DeviceServerStart, a_program_that_is_away_for_a_moment_ends_nothing) {
  const std::filesystem::path link = std::filesystem::temp_directory_path() / concat("catena-server-", getpid());
  std::filesystem::create_symlink(testing::server_options().program, link);
  Supervisor::Options options = testing::server_options();
  options.program = link;
  const auto supervisor = Supervisor::start(options).value();
  const int first = supervisor->pid();
  std::filesystem::remove(link);
  ASSERT_EQ(kill(first, SIGKILL), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(supervisor->connect({"early"}).ok());
  std::filesystem::create_symlink(testing::server_options().program, link);
  EXPECT_TRUE(wait_until([&] { return supervisor->connect({"late"}).ok(); }, kLimit));
  std::filesystem::remove(link);
}

TEST_P(DeviceServer, another_version_is_told_so) {
  const FileDescriptor socket = supervisor().connect({"old"}).value();
  const ipc::Mapping page = ipc::Mapping::create("catena_device", sizeof(ClientPage)).value();
  ASSERT_EQ(ipc::send_frame(socket.get(), static_cast<std::uint32_t>(Call::kHello),
                            ipc::Writer().put(kVersion + 1).bytes(), page.fd()),
            absl::OkStatus());
  const ipc::Frame frame = ipc::receive_frame(socket.get(), kMaxFrameBytes).value();
  EXPECT_THAT(ipc::Reader(frame.body).take_status().ToString(), HasSubstr(concat("version ", kVersion + 1)));
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceServer, ::testing::ValuesIn(backend_names()),
                         [](auto const& param_info) { return std::string(param_info.param); });

TEST(DeviceServerStart, a_device_that_is_not_there_shows_with_its_reason) {
  Deaths deaths;
  const auto supervisor = Supervisor::start(testing::server_options("opencl:1000"), deaths.listener()).value();
  EXPECT_THAT(deaths.next().reason, HasSubstr("no OpenCL device number 1000"));
  const Result<FileDescriptor> socket = supervisor->connect({"early"});
  if (!socket.ok()) {
    EXPECT_THAT(socket.status().ToString(), HasSubstr("no OpenCL device number 1000"));
  }
}

TEST(DeviceServerStart, a_program_that_is_not_there_is_unavailable) {
  Supervisor::Options options = testing::server_options();
  options.program = "/nonexistent/catena-device-server";
  EXPECT_THAT(Supervisor::start(options).status().ToString(),
              AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("/nonexistent/catena-device-server")));
}

TEST(DeviceServerStart, the_server_ends_with_its_supervisor) {
  auto supervisor = Supervisor::start(testing::server_options()).value();
  const int pid = supervisor->pid();
  supervisor.reset();
  EXPECT_NE(kill(pid, 0), 0) << "and nothing is left of it";
}

class Pool : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kProbation{1000};
  void SetUp() override {
    ServerPool::Options options{testing::server_options().program, {}, kProbation};
    warm_up("opencl");
    options.limits.launch = kLaunchLimit;
    pool_ = std::make_unique<ServerPool>(options);
    if (const auto device = open("probe"); !device.ok()) {
      GTEST_SKIP() << device.status().message();
    }
  }
  ServerPool& pool() { return *pool_; }
  Result<std::unique_ptr<Device>> open(std::string_view client, std::string_view owner = "") {
    return pool_->open(DevicePreference::of("opencl"), {std::string(client), std::string(owner)}, nullptr);
  }
  /// Asks until the answer is not that it is to be asked again.
  Result<std::unique_ptr<Device>> open_patiently(std::string_view client) {
    Result<std::unique_ptr<Device>> device = absl::UnavailableError("not asked");
    wait_until(
        [&] {
          device = open(client);
          return !absl::IsUnavailable(device.status());
        },
        kLimit);
    return device;
  }
  static void wait_until_gone(Device const& device) {
    ASSERT_TRUE(wait_until([&] { return device.is_gone(); }, kLimit));
  }

 private:
  std::unique_ptr<ServerPool> pool_;
};

TEST_F(Pool, whose_kernel_alone_was_endless_is_in_quarantine_until_that_is_lifted) {
  Worker hostile(open("hostile").value());
  const Worker idle(open("idle").value());
  ASSERT_EQ(hostile.start("endless"), absl::OkStatus());
  ASSERT_EQ(hostile.stream().flush(), absl::OkStatus());
  wait_until_gone(hostile.device());
  EXPECT_TRUE(open_patiently("idle").ok());
  const Status refused = open_patiently("hostile").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("its work (endless)"), HasSubstr(concat(kLaunchLimit.count(), " ms"))));
  EXPECT_THAT(pool().quarantine_of("hostile"), HasSubstr("endless"));
  EXPECT_EQ(pool().quarantine_of("idle"), "");
  EXPECT_TRUE(absl::IsNotFound(pool().reset("idle")));
  EXPECT_EQ(pool().reset("hostile"), absl::OkStatus());
  EXPECT_TRUE(open_patiently("hostile").ok());
}

TEST_F(Pool, who_takes_devices_down_under_several_names_is_to_have_a_server_of_his_own) {
  const auto take_down = [this](std::string const& client, std::string_view owner) {
    Worker hostile(open(client, owner).value());
    ASSERT_EQ(hostile.start("endless"), absl::OkStatus());
    ASSERT_EQ(hostile.stream().flush(), absl::OkStatus());
    wait_until_gone(hostile.device());
    EXPECT_TRUE(wait_until([&] { return !pool().quarantine_of(client).empty(); }, kLimit));
    EXPECT_TRUE(open_patiently("idle").ok());  // the next server runs
  };
  take_down("a1", "user a");
  EXPECT_EQ(pool().separation_of("user a"), "");
  take_down("of nobody 1", "");
  take_down("of nobody 2", "");
  EXPECT_EQ(pool().separation_of(""), "");
  take_down("a2", "user a");
  EXPECT_THAT(pool().separation_of("user a"), HasSubstr("2 clients of user a"));
  EXPECT_EQ(pool().separation_of("user b"), "");
}

TEST_F(Pool, of_several_suspects_the_one_that_does_it_again_is_found_and_the_others_are_cleared) {
  // both have work unfinished when the server dies of one of them
  Worker honest(open("honest").value());
  Worker hostile(open("hostile").value());
  ASSERT_EQ(hostile.start("endless"), absl::OkStatus());
  ASSERT_EQ(hostile.stream().flush(), absl::OkStatus());
  ASSERT_EQ(honest.start("endless"), absl::OkStatus());  // stands for work that waits behind the other's
  ASSERT_EQ(honest.stream().flush(), absl::OkStatus());
  wait_until_gone(hostile.device());
  const auto begin = std::chrono::steady_clock::now();
  auto first = open_patiently("honest");
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string other = open("hostile").status().ToString();
  if (std::chrono::steady_clock::now() - begin < kProbation) {  // a busy machine may need longer to come here
    EXPECT_THAT(other, HasSubstr("honest is on probation"));
  }
  Worker again(open_patiently("hostile").value());  // after the probation of the other
  ASSERT_EQ(again.start("endless"), absl::OkStatus());
  ASSERT_EQ(again.stream().flush(), absl::OkStatus());
  wait_until_gone(again.device());
  EXPECT_TRUE(absl::IsFailedPrecondition(open_patiently("hostile").status()));
  EXPECT_TRUE(open_patiently("honest").ok());
}

TEST_F(Pool, a_server_that_is_killed_is_nobodys_fault) {
  Worker worker(open("worker").value());
  ASSERT_EQ(worker.start("endless"), absl::OkStatus());
  ASSERT_EQ(worker.stream().flush(), absl::OkStatus());
  ASSERT_EQ(kill(pool().pid_of(DevicePreference::of("opencl")), SIGKILL), 0);
  wait_until_gone(worker.device());
  EXPECT_TRUE(open_patiently("worker").ok());
}

TEST_F(Pool, a_group_has_a_server_of_its_own_that_ends_with_it) {
  const DevicePreference opencl = DevicePreference::of("opencl");
  auto group = pool().group("acme");
  const auto first = pool().open(opencl, {"a"}, nullptr, group.get());
  ASSERT_TRUE(first.ok()) << first.status();
  const int own = pool().pid_of(opencl, group.get());
  EXPECT_NE(own, pool().pid_of(opencl)) << "that of all";
  auto same = pool().group("acme");
  const auto second = pool().open(opencl, {"b"}, nullptr, same.get());
  EXPECT_EQ(pool().pid_of(opencl, same.get()), own);
  const auto other = pool().group("other");
  const auto third = pool().open(opencl, {"c"}, nullptr, other.get());
  const int another = pool().pid_of(opencl, other.get());
  EXPECT_NE(another, own);

  group.reset();
  EXPECT_EQ(kill(own, 0), 0) << "somebody has it still";
  same.reset();
  EXPECT_NE(kill(own, 0), 0);
  EXPECT_TRUE(wait_until([&] { return (*first)->is_gone(); }, kLimit));
  EXPECT_EQ(kill(another, 0), 0);
  const auto next = pool().group("acme");
  EXPECT_TRUE(pool().open(opencl, {"a"}, nullptr, next.get()).ok());
}

TEST_F(Pool, suspects_of_one_server_do_not_wait_for_those_of_another) {
  const DevicePreference opencl = DevicePreference::of("opencl");
  std::array<std::shared_ptr<ServerPool::Group>, 2> groups{pool().group("a"), pool().group("b")};
  const auto open_in = [&](std::size_t group, std::string const& client) {
    return pool().open(opencl, {client}, nullptr, groups[group].get());
  };
  for (std::size_t group = 0; group < groups.size(); ++group) {
    Worker one(open_in(group, concat("one", group)).value());
    Worker other(open_in(group, concat("other", group)).value());
    for (Worker* worker : {&one, &other}) {
      ASSERT_EQ(worker->start("endless"), absl::OkStatus());
      ASSERT_EQ(worker->stream().flush(), absl::OkStatus());
    }
    wait_until_gone(one.device());
  }
  std::vector<std::unique_ptr<Device>> on_probation;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    Status last;
    EXPECT_TRUE(wait_until(
        [&] {
          auto device = open_in(group, concat("one", group));
          last = device.status();
          if (device.ok()) {
            on_probation.push_back(*std::move(device));
          }
          return last.ok() || std::string(last.message()).find("on probation") != std::string::npos;
        },
        kLimit));
    EXPECT_EQ(last, absl::OkStatus()) << group;
  }
}

TEST_F(Pool, what_ends_the_server_of_a_group_costs_no_other_its_device) {
  const DevicePreference opencl = DevicePreference::of("opencl");
  const auto group = pool().group("hostile");
  const auto bystanders = pool().group("idle");
  Worker hostile(pool().open(opencl, {"hostile"}, nullptr, group.get()).value());
  const auto bystander = pool().open(opencl, {"idle"}, nullptr, bystanders.get()).value();
  const auto common = open("common").value();
  ASSERT_EQ(hostile.start("endless"), absl::OkStatus());
  ASSERT_EQ(hostile.stream().flush(), absl::OkStatus());
  wait_until_gone(hostile.device());
  EXPECT_TRUE(wait_until([&] { return !pool().quarantine_of("hostile").empty(); }, kLimit));
  EXPECT_EQ(bystander->failed(), absl::OkStatus());
  EXPECT_EQ(common->failed(), absl::OkStatus());
}

TEST(PoolStart, automatic_choice_without_a_device_is_no_error_and_says_why) {
  ServerPool pool({testing::server_options().program, {}, std::chrono::milliseconds(200)});
  std::string why;
  const Result<std::unique_ptr<Device>> here = device::open(DevicePreference());
  ASSERT_TRUE(here.ok());
  const Result<std::unique_ptr<Device>> there = pool.open(DevicePreference(), {"client"}, &why);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(*there == nullptr, *here == nullptr);
  if (*there == nullptr) {
    EXPECT_THAT(why, HasSubstr("cuda: "));
  }
  EXPECT_THAT(pool.open(DevicePreference::of("opencl", 1000), {"client"}, &why).status().ToString(),
              AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("number 1000")));
  EXPECT_EQ(*pool.open(DevicePreference::none(), {"client"}, &why), nullptr);
}

}  // namespace
}  // namespace catena::device::remote
