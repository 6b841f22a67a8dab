// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/process.hpp"

#include "base/core/log_context.hpp"
#include "base/core/own_program.hpp"
#include "base/core/process_work.hpp"
#include "base/ipc/frames.hpp"
#include "base/ipc/shared_memory.hpp"
#include "base/ipc/socket_pair.hpp"
#include "base/sandbox/control_group.hpp"
#include "base/sandbox/limits.hpp"
#include "base/sandbox/sandbox.hpp"
#include "gpu/device/remote/device.hpp"
#include "io/eal/eal.hpp"
#include "pipeline/isolation/file_broker.hpp"

#include <catena/core/text.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

namespace catena::nf_process {
namespace {

using Clock = std::chrono::steady_clock;
using ipc::Frame;
using ipc::FrameReader;
using std::chrono::milliseconds;

/// How long a process may take to say what its NF is, and to make it: rules are compiled then.
constexpr std::chrono::seconds kDescribeLimit{30};
constexpr std::chrono::seconds kStartLimit{120};
/// And how long to take over what another one left: packets wait.
constexpr std::chrono::seconds kTakeOverLimit{10};
/// How long it may take to exit once it has said that it ends.
constexpr std::chrono::seconds kExitLimit{5};
/// How long packets wait for a process that is started again.
constexpr std::chrono::seconds kPatience{1};
constexpr milliseconds kFirstPause{1000};
constexpr milliseconds kLongestPause{30'000};
/// After running for this time, a process that fails is restarted without delay.
constexpr std::chrono::seconds kLongRun{60};
/// Maximum messages per second from a process, for each of its NFs; more is an attack.
constexpr std::size_t kMaxFramesPerSecond = 200;
/// Of those about outputs, each of which is answered before the next one: one in so long, and all that were not asked
/// for in the last minute. Who has more to write waits.
constexpr std::chrono::microseconds kWriteEvery{200};
constexpr std::chrono::minutes kWritesKept{1};
constexpr std::uint32_t kMaxThreads = 32;
/// Connections to a device that one process gets.
constexpr std::size_t kMaxDevices = 4;
constexpr uid_t kNobody = 65534;

Result<FileDescriptor> make_event() {
  FileDescriptor notifier(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return notifier ? Result<FileDescriptor>(std::move(notifier))
                  : absl::ResourceExhaustedError(concat("eventfd: ", std::strerror(errno)));
}

int until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

/// So many of the CPUs that this thread may use, others for each process in turn; none: all.
std::vector<int> some_cpus(std::uint32_t count) {
  static std::atomic<std::size_t> next{0};
  cpu_set_t usable;
  std::vector<int> all;
  if (count == 0 || ::sched_getaffinity(0, sizeof usable, &usable) != 0) {
    return all;
  }
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &usable)) {
      all.push_back(cpu);
    }
  }
  if (count < all.size()) {
    const auto first = static_cast<std::ptrdiff_t>(next.fetch_add(count) % all.size());
    std::rotate(all.begin(), all.begin() + first, all.end());
    all.resize(count);
  }
  return all;
}

/// Of a file or memory; 0 where the system does not say.
std::uint64_t bytes_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

/// The file of the dynamic loader that started this process, in the folder of the libraries that go with it.
Result<std::filesystem::path> own_loader() {
  Dl_info info{};
  std::error_code error;
  if (::dladdr(reinterpret_cast<void*>(::getauxval(AT_BASE)), &info) == 0 || info.dli_fname == nullptr) {
    return absl::UnavailableError(
        "a container needs a program with a dynamic loader, and this one is linked statically");
  }
  std::filesystem::path loader = std::filesystem::canonical(info.dli_fname, error);
  return error ? Result<std::filesystem::path>(absl::UnavailableError(concat(info.dli_fname, ": ", error.message())))
               : loader;
}

/// What a process writes goes to the log, and no more of it than somebody could read.
class Lines {
 public:
  explicit Lines(std::string name) : name_(std::move(name)) {}
  void take(std::string_view line) {
    if (line.starts_with("EAL: Error creating")) {
      return;  // DPDK makes no file there, and needs none
    }
    if (const Clock::time_point now = Clock::now(); now - second_ > std::chrono::seconds(1)) {
      if (left_out_ > 0) {
        spdlog::warn("{}: {} more lines are left out", name_, left_out_);
      }
      second_ = now;
      lines_ = 0;
      left_out_ = 0;
    }
    if (++lines_ <= kMaxLines) {
      spdlog::info("{}: {}", name_, line);
    } else {
      ++left_out_;
    }
  }

 private:
  static constexpr int kMaxLines = 100;  // a second
  std::string name_;
  Clock::time_point second_;
  int lines_ = 0;
  std::uint64_t left_out_ = 0;
};

/// Removes the group with the rights of this process: the calling thread may have fewer.
struct RemoveGroup {
  void operator()(sandbox::ControlGroup* group) const {
    do_process_work([group] {
      const std::unique_ptr<sandbox::ControlGroup> own(group);
      return true;
    });
  }
};
using OwnGroup = std::unique_ptr<sandbox::ControlGroup, RemoveGroup>;

/// One process, from its start to its end.
struct Incarnation {
  OwnGroup group;  ///< null: its resource limits are all; outlives the process
  std::unique_ptr<sandbox::SandboxedProcess> process;
  FileDescriptor control;
  FrameReader reader;
  std::vector<FileDescriptor> devices;  ///< its sockets to device servers; hung up once the server has ended
  std::shared_ptr<Connection> connection;
  FileBroker outputs;
  bool has_device_memory = false;  ///< the group was made larger for it

  /// The next frame, waited for until `deadline` or until the process has ended. Where `stop` is readable `stopped`
  /// says whether to go on.
  Result<Frame> receive(Clock::time_point deadline, int stop, std::function<Status()> const& stopped) {
    for (;;) {
      // before the messages, which may come without end
      pollfd asked{stop, POLLIN, 0};
      if (::poll(&asked, 1, 0) > 0) {
        CATENA_RETURN_IF_ERROR(stopped());
      }
      if (Clock::now() >= deadline) {
        return absl::DeadlineExceededError("its process does not answer");
      }
      Result<std::optional<Frame>> frame = reader.poll(control.get(), kMaxFrameBytes);
      if (!frame.ok()) {
        return absl::IsUnavailable(frame.status()) ? how_it_ended() : frame.status();
      }
      if (*frame) {
        return **std::move(frame);
      }
      std::array<pollfd, 3> polls{{{control.get(), POLLIN, 0}, {process->pidfd(), POLLIN, 0}, {stop, POLLIN, 0}}};
      if (::poll(polls.data(), polls.size(), until(deadline)) > 0 && polls[1].revents != 0 &&
          (polls[0].revents & POLLIN) == 0) {
        return how_it_ended();
      }
    }
  }

  Status how_it_ended() const {
    constexpr int kSignal = 128;
    const Result<int> status = process->wait(kExitLimit);
    if (group != nullptr && group->has_killed()) {
      return absl::UnavailableError(concat("its process used more memory than its control group may have, ",
                                           group->memory_bytes() >> 20U, " MiB, and was ended"));
    }
    return absl::UnavailableError(!status.ok()        ? "its process no longer responds"
                                  : *status > kSignal ? concat("its process was ended by signal ", *status - kSignal)
                                                      : concat("its process ended with status ", *status));
  }
};

/// What all NFs of a process touch, as they have one frame between them.
FieldUse all_of(std::vector<Started> const& nfs) {
  FieldUse all{packet::kNoFields, packet::kNoFields};
  for (Started const& nf : nfs) {
    all.reads |= nf.field_use.reads;
    all.writes |= nf.field_use.writes;
  }
  return all;
}

}  // namespace

struct NfProcess::Impl {
  ProcessOptions options;
  OutputRights rights;
  std::vector<StartRequest> wanted;
  std::vector<NfInfo> described;                      ///< of each NF
  std::vector<std::vector<nf::NamedOutput>> outputs;  ///< of each, together those of the rights
  FileDescriptor notifier;  ///< this side's end; each incarnation replaces the socket under this number
  FileDescriptor stop;      ///< an eventfd: the supervisor is to end, or to end this incarnation
  Setup setup;
  std::optional<Incarnation> now;  ///< the supervisor's, once there is one
  std::thread supervisor;
  std::optional<std::stop_callback<std::function<void()>>> on_give_up;  ///< until it has started

  mutable std::mutex mutex;
  std::shared_ptr<Connection> new_connection;
  std::string failure;                            ///< why an incarnation must end
  Connection const* failed_connection = nullptr;  ///< which one
  bool is_stopping = false;
  bool pauses = false;                       ///< between incarnations
  std::optional<Clock::time_point> died_at;  ///< nullopt: it is running
  std::uint64_t restarts = 0;
  pid_t pid = 0;
  std::vector<Started> started;          ///< of each NF
  std::vector<NfStatistics> statistics;  ///< of each
  /// Of each, fixed by the first incarnation: each name is a series of metrics.
  std::vector<std::set<std::string>> statistic_names;
  Status ended = absl::UnavailableError("its process ended before it had finished");

  // state transferred from a process to its replacement
  struct State {
    StateOf of;
    FileDescriptor memory;
  };
  bool continues = false;  ///< its first incarnation replaces another process
  bool is_transferring_state = false;
  std::vector<State> left;                         ///< state left by its NFs
  std::vector<State> to_take;                      ///< state for its NFs
  Connection const* waiting_connection = nullptr;  ///< the incarnation waiting for to_take
  bool is_to_begin = false;                        ///< to_take is complete
  bool was_told_to_begin = false;
  std::optional<std::vector<Status>> begun;  ///< the result for each NF
  std::vector<bool> has_left;                ///< of each NF: whether it had state
  Clock::time_point begins_until;

  ~Impl() {
    on_give_up.reset();
    stop_all();
    if (supervisor.joinable()) {
      supervisor.join();
    }
  }

  /// Ends this incarnation and starts no other.
  void stop_all() {
    {
      const std::scoped_lock lock(mutex);
      is_stopping = true;
    }
    ring_stop();
  }

  void ring_stop() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(stop.get(), &one, sizeof one));
  }

  // --- start of an incarnation

  Result<Incarnation> launch() {
    CATENA_ASSIGN_OR_RETURN(auto ends, ipc::make_socket_pair());
    Incarnation incarnation{.group = nullptr,
                            .process = nullptr,
                            .control = std::move(ends.first),
                            .reader = {},
                            .devices = {},
                            .connection = nullptr,
                            .outputs = FileBroker(rights)};
    CATENA_ASSIGN_OR_RETURN(const auto notifiers, ipc::make_socket_pair());
    if (::dup3(notifiers.first.get(), notifier.get(), O_CLOEXEC) < 0) {
      return absl::ResourceExhaustedError(concat("dup3: ", std::strerror(errno)));
    }
    sandbox::SandboxOptions sandbox;
    sandbox.fds = {ends.second.get(), notifiers.second.get()};
    CATENA_RETURN_IF_ERROR(options.container.empty() ? run_here(sandbox) : run_in_container(sandbox));
    // its memory is a part of that of all NFs, options.memory_bytes, and it starts without a place to write
    for (ProcessNeeds::File const& file : eal::needs().files) {
      sandbox.readable.push_back({file.source, file.target});
    }
    for (ShownFile const& file : options.files) {
      sandbox.readable.push_back({file.path, {}, file.fd.get()});
    }
    if (!options.container.empty()) {  // here: the thread that starts the process may read more
      CATENA_ASSIGN_OR_RETURN(sandbox.root, sandbox::read_image(options.container, sandbox.readable));
    }
    sandbox.uid = options.uid ? options.uid : ::geteuid() == 0 ? std::optional(kNobody) : std::nullopt;
    sandbox.gid = options.gid ? options.gid : ::geteuid() == 0 ? std::optional<gid_t>(kNobody) : std::nullopt;
    sandbox.memory_bytes = options.memory_bytes;
    sandbox.cpus = some_cpus(options.cpus);
    sandbox.max_threads = kMaxThreads;
    sandbox.on_line = [lines = std::make_shared<Lines>(options.name)](std::string_view line) { lines->take(line); };
    CATENA_RETURN_IF_ERROR(start_sandbox(incarnation, std::move(sandbox)));
    return incarnation;
  }

  Status start_sandbox(Incarnation& incarnation, sandbox::SandboxOptions sandbox) const {
    const auto start = [&sandbox] {
      return do_process_work([&sandbox] { return sandbox::SandboxedProcess::start(sandbox); });
    };
    incarnation.group = make_group(sandbox);
    if (incarnation.group != nullptr) {
      sandbox.cgroups = incarnation.group->folders();
    }
    Result<std::unique_ptr<sandbox::SandboxedProcess>> process = start();
    if (incarnation.group != nullptr && absl::IsUnavailable(process.status())) {
      // perhaps because it cannot be put into the group, without which it can be
      incarnation.group.reset();
      sandbox.cgroups.clear();
      const Status without = std::exchange(process, start()).status();
      if (process.ok()) {
        warn_of_no_group(without);
      }
    }
    CATENA_ASSIGN_OR_RETURN(incarnation.process, std::move(process));
    return absl::OkStatus();
  }

  /// Null where it has its resource limits alone, which is said: once where it is so for all.
  OwnGroup make_group(sandbox::SandboxOptions const& sandbox) const {
    auto group = do_process_work([&] { return sandbox::ControlGroup::create(sandbox::group_limits(sandbox)); });
    if (group.ok()) {
      return OwnGroup(group->release());
    }
    if (absl::IsUnavailable(group.status())) {
      static std::once_flag said;
      std::call_once(said, [&group] {
        spdlog::info("processes of NFs have resource limits and no control groups: {}",
                     std::string(group.status().message()));
      });
    } else {
      warn_of_no_group(group.status());
    }
    return nullptr;
  }

  void warn_of_no_group(Status const& why) const {
    spdlog::warn("{}: its process has resource limits and no control group: {}", options.name,
                 std::string(why.message()));
  }

  /// The process may touch so much more, which others share with it.
  void allow(Incarnation const& incarnation, std::uint64_t bytes) const {
    const Status status = incarnation.group != nullptr ? incarnation.group->allow_more(bytes) : absl::OkStatus();
    if (!status.ok()) {
      spdlog::warn("{}: {}", options.name, std::string(status.message()));
    }
  }

  Status run_here(sandbox::SandboxOptions& sandbox) const {
    sandbox.program = options.program;
    sandbox.readable.push_back({options.program, {}});
    return absl::OkStatus();
  }

  /// The image need not have what this version is linked with: that and its loader come along, beside the image.
  Status run_in_container(sandbox::SandboxOptions& sandbox) const {
    CATENA_ASSIGN_OR_RETURN(const std::filesystem::path loader, own_loader());
    sandbox.program = "/.catena/catena-nf";  // it is what the process is called
    sandbox.arguments = {"--library-path", "/.catena/lib", "/.catena/program"};
    sandbox.readable.push_back({loader, sandbox.program});
    sandbox.readable.push_back({loader.parent_path(), "/.catena/lib"});
    sandbox.readable.push_back({options.program, "/.catena/program"});
    return absl::OkStatus();
  }

  Result<Frame> receive(Incarnation& incarnation, Clock::time_point deadline) {
    return incarnation.receive(deadline, stop.get(), [this, &incarnation] { return why_stopped(incarnation); });
  }

  Result<NfInfo> ask(Incarnation& incarnation, StartRequest const& about) {
    CATENA_RETURN_IF_ERROR(send(incarnation.control.get(), Call::kDescribe, to_json(about)));
    CATENA_ASSIGN_OR_RETURN(const Frame frame, receive(incarnation, Clock::now() + kDescribeLimit));
    if (frame.call == static_cast<std::uint32_t>(Call::kRefused)) {
      return read_error(text_of(frame.body));
    }
    if (frame.call != static_cast<std::uint32_t>(Call::kNfInfo)) {
      return absl::DataLossError("its process does not report its NFs");
    }
    return read_nf_info(text_of(frame.body));
  }

  /// `is_refused`: where given, tells that the error is the NF's own.
  Status start_nfs(Incarnation& incarnation, Setup const& with, bool* is_refused = nullptr) {
    CATENA_ASSIGN_OR_RETURN(Channel channel,
                            Channel::create(ChannelShape::of(with.unit_packets, with.records || with.alerts)));
    CATENA_ASSIGN_OR_RETURN(auto frames,
                            ipc::Mapping::create("catena_nf", std::size_t{with.slots} * packet::kSlotBytes));
    incarnation.connection = std::make_shared<Connection>(std::move(channel), std::move(frames));
    const int socket = incarnation.control.get();
    allow(incarnation, bytes_of(incarnation.connection->frames.fd()) + bytes_of(incarnation.connection->channel.fd()));
    CATENA_RETURN_IF_ERROR(send(socket, Call::kFrames, "", incarnation.connection->frames.fd()));
    CATENA_RETURN_IF_ERROR(send(socket, Call::kChannel, "", incarnation.connection->channel.fd()));
    CATENA_RETURN_IF_ERROR(send(socket, Call::kStart, to_json(with)));
    const Clock::time_point deadline = Clock::now() + kStartLimit;
    std::size_t asked = 0;
    for (;;) {
      CATENA_ASSIGN_OR_RETURN(const Frame frame, receive(incarnation, deadline));
      if (FileBroker::is_asked_by(frame)) {
        CATENA_RETURN_IF_ERROR(incarnation.outputs.serve(socket, frame));
        continue;
      }
      if (frame.call == static_cast<std::uint32_t>(Call::kWantDevice)) {
        if (++asked > kMaxDevices) {
          return absl::DataLossError("it requests devices without end");
        }
        CATENA_RETURN_IF_ERROR(give_device(incarnation));
        continue;
      }
      if (frame.call == static_cast<std::uint32_t>(Call::kRefused)) {
        if (is_refused != nullptr) {
          *is_refused = true;
        }
        return read_error(text_of(frame.body));
      }
      if (frame.call != static_cast<std::uint32_t>(Call::kStarted)) {
        return absl::DataLossError("its process does not report whether it has started");
      }
      CATENA_ASSIGN_OR_RETURN(std::vector<Started> said, read_started(text_of(frame.body), wanted.size()));
      incarnation.connection->field_mask = FieldMask(all_of(said));
      const std::scoped_lock lock(mutex);
      started = std::move(said);
      fix_statistic_names();
      waiting_connection = with.waits_for_state ? incarnation.connection.get() : nullptr;
      pid = incarnation.process->pid();
      new_connection = incarnation.connection;
      pauses = false;
      died_at.reset();
      return absl::OkStatus();
    }
  }

  /// With the mutex.
  void fix_statistic_names() {
    if (statistic_names.empty()) {
      for (Started const& nf : started) {
        statistic_names.emplace_back(nf.statistics.begin(), nf.statistics.end());
      }
    }
  }

  /// That of the chain file; again, where it was lost.
  Status give_device(Incarnation& incarnation) const {
    std::string why = "NFs in processes of their own have a device through its server alone";
    std::erase_if(incarnation.devices, [](FileDescriptor const& socket) {
      pollfd poll{socket.get(), 0, 0};
      return ::poll(&poll, 1, 0) > 0 && (poll.revents & POLLHUP) != 0;
    });
    if (incarnation.devices.size() == kMaxDevices) {
      return absl::DataLossError("it claims more devices than exist");
    }
    const bool on_gpu = std::ranges::any_of(setup.nfs, &NfSetup::on_gpu);
    Result<FileDescriptor> device =
        on_gpu && options.connect_device ? options.connect_device(setup.device, &why) : FileDescriptor();
    if (!device.ok()) {
      why = std::string(device.status().message());
    }
    if (!device.ok() || !*device) {
      return send(incarnation.control.get(), Call::kDevice, why);
    }
    if (!std::exchange(incarnation.has_device_memory, true)) {
      allow(incarnation, sandbox::kReservedBytes);  // its addresses are all that bounds what the server shares with it
    }
    incarnation.devices.emplace_back(::fcntl(device->get(), F_DUPFD_CLOEXEC, 0));
    CATENA_ASSIGN_OR_RETURN(const ipc::Mapping page, device::remote::make_client_page());
    CATENA_RETURN_IF_ERROR(send(incarnation.control.get(), Call::kDevicePage, "", page.fd()));
    CATENA_RETURN_IF_ERROR(send(incarnation.control.get(), Call::kDevice, "", device->get()));
    return absl::OkStatus();
  }

  // --- while it runs

  /// Until it ends; returns why. OK: it has finished.
  Status watch(Incarnation& incarnation) {
    Clock::time_point second = Clock::now();
    std::size_t frames = 0;
    Clock::time_point write_due = second - kWritesKept;
    for (;;) {
      Result<Frame> frame = receive(incarnation, Clock::now() + std::chrono::seconds(1));
      if (absl::IsDeadlineExceeded(frame.status())) {
        continue;
      }
      CATENA_RETURN_IF_ERROR(frame.status());
      if (Clock::now() - second > std::chrono::seconds(1)) {
        second = Clock::now();
        frames = 0;
      }
      if (FileBroker::is_asked_by(*frame)) {
        CATENA_RETURN_IF_ERROR(incarnation.outputs.serve(incarnation.control.get(), *frame));
        const Clock::time_point written = Clock::now();
        incarnation.connection->wrote_at = written;
        write_due = std::max(write_due, written - kWritesKept) + kWriteEvery;
        if (write_due > written) {
          pollfd asked{stop.get(), POLLIN, 0};
          ::poll(&asked, 1, until(write_due));
        }
        continue;
      }
      if (++frames > kMaxFramesPerSecond * wanted.size()) {
        return absl::DataLossError("it sends messages without end");
      }
      CATENA_ASSIGN_OR_RETURN(const bool has_finished, take(incarnation, *frame));
      if (has_finished) {
        incarnation.process->wait(kExitLimit).IgnoreError();
        return absl::OkStatus();
      }
    }
  }

  /// OK: no reason, or it concerned an earlier incarnation.
  Status why_stopped(Incarnation const& incarnation) {
    std::uint64_t rings = 0;
    std::unique_lock lock(mutex);
    if (is_stopping) {
      return absl::CancelledError("the wait for its process was aborted");
    }
    static_cast<void>(::read(stop.get(), &rings, sizeof rings));
    if (is_to_begin && waiting_connection != nullptr && waiting_connection == incarnation.connection.get()) {
      is_to_begin = false;
      was_told_to_begin = true;
      const std::vector<State> states = std::exchange(to_take, {});
      lock.unlock();
      CATENA_RETURN_IF_ERROR(let_begin(incarnation, states));
      lock.lock();
    }
    const bool is_meant = failed_connection != nullptr && failed_connection == incarnation.connection.get();
    failed_connection = nullptr;
    return is_meant ? absl::AbortedError(std::exchange(failure, {})) : absl::OkStatus();
  }

  /// Gives the process memory for a state that it transfers.
  Status make_room(Incarnation& incarnation, StateOf const& said) {
    CATENA_ASSIGN_OR_RETURN(FileDescriptor memory, ipc::make_peer_memory("catena_state", memory_bytes(said)));
    const int fd = memory.get();
    {
      const std::scoped_lock lock(mutex);
      std::uint64_t all = said.bytes;
      bool is_known = false;
      for (State const& state : left) {
        all += state.of.bytes;
        is_known = is_known || state.of.nf == said.nf;
      }
      if (!is_transferring_state || !incarnation.connection->is_closed || is_known || all > kMaxStateBytes) {
        return absl::DataLossError("NF process sent unrequested state");
      }
      left.push_back({said, std::move(memory)});
    }
    allow(incarnation, memory_bytes(said));
    return send(incarnation.control.get(), Call::kStateMemory, "", fd);
  }

  Status let_begin(Incarnation const& incarnation, std::vector<State> const& states) const {
    const int socket = incarnation.control.get();
    for (State const& state : states) {
      allow(incarnation, memory_bytes(state.of));
      CATENA_RETURN_IF_ERROR(send(socket, Call::kTakeState, to_json(state.of), state.memory.get()));
    }
    return send(socket, Call::kBegin, "");
  }

  /// Withdraws a request to end an incarnation that has already ended.
  void forget_failure() {
    std::uint64_t rings = 0;
    const std::scoped_lock lock(mutex);
    failed_connection = nullptr;
    if (!is_stopping) {
      static_cast<void>(::read(stop.get(), &rings, sizeof rings));
    }
  }

  /// True: this was its last message.
  Result<bool> take(Incarnation& incarnation, Frame const& frame) {
    const std::string_view text = text_of(frame.body);
    switch (static_cast<Call>(frame.call)) {
      case Call::kStatistics: {
        CATENA_ASSIGN_OR_RETURN(NfStatistics said, read_statistics(text, wanted.size()));
        const std::size_t nf = said.nf;
        const std::scoped_lock lock(mutex);
        std::erase_if(said.statistics, [this, nf](nf::Statistic const& statistic) {
          return !statistic_names[nf].contains(statistic.name);
        });
        statistics[nf] = std::move(said);
        return false;
      }
      case Call::kWantDevice:
        CATENA_RETURN_IF_ERROR(give_device(incarnation));
        return false;
      case Call::kState: {
        CATENA_ASSIGN_OR_RETURN(const StateOf said, read_state_of(text, wanted.size()));
        CATENA_RETURN_IF_ERROR(make_room(incarnation, said));
        return false;
      }
      case Call::kBegun: {
        CATENA_ASSIGN_OR_RETURN(std::vector<Status> said, read_begun(text, wanted.size()));
        const std::scoped_lock lock(mutex);
        if (waiting_connection != incarnation.connection.get() || !was_told_to_begin) {
          return absl::DataLossError("it starts without a request");
        }
        waiting_connection = nullptr;
        begun = std::move(said);
        return false;
      }
      case Call::kEnded: {
        CATENA_ASSIGN_OR_RETURN(Ended said, read_ended(text));
        if (!incarnation.connection->is_closed) {
          return absl::DataLossError(said.status.ok()
                                         ? "its process ended, and packets were still to come"
                                         : concat("its process ended: ", std::string(said.status.message())));
        }
        const std::scoped_lock lock(mutex);
        ended = std::move(said.status);
        return true;
      }
      default:
        return absl::DataLossError("NF process sent an unexpected message");
    }
  }

  // --- its end

  static void end(Incarnation& incarnation) {
    incarnation.process.reset();  // returns when it is gone
    incarnation.group.reset();
    incarnation.outputs.close_all();  // before a replacement opens them
    if (incarnation.connection != nullptr) {
      incarnation.connection->is_gone = true;
    }
  }

  bool is_to_stop() const {
    const std::scoped_lock lock(mutex);
    return is_stopping;
  }

  /// True: it is to stop.
  bool pause(milliseconds time) {
    const Clock::time_point deadline = Clock::now() + time;
    for (;;) {
      if (is_to_stop()) {
        return true;
      }
      if (Clock::now() >= deadline) {
        return false;
      }
      pollfd poll{stop.get(), POLLIN, 0};
      if (::poll(&poll, 1, until(deadline)) > 0) {
        forget_failure();
      }
    }
  }

  /// No thread, or no memory, is no reason for this process to end.
  Result<Incarnation> try_again() {
    try {
      return begin_again();
    } catch (std::exception const& error) {
      return absl::ResourceExhaustedError(error.what());
    }
  }

  Result<Incarnation> begin_again() {
    CATENA_ASSIGN_OR_RETURN(Incarnation next, launch());
    for (std::size_t nf = 0; nf < wanted.size(); ++nf) {
      CATENA_ASSIGN_OR_RETURN(const NfInfo said, ask(next, wanted[nf]));
      if (said.type != described[nf].type || said.drop_reasons != described[nf].drop_reasons ||
          said.packet_outputs != described[nf].packet_outputs) {
        return absl::DataLossError("it reports a different NF than before");
      }
    }
    Setup with = setup;
    // continues from the saved state, whatever the first incarnation had: its keys were used before
    with.context = {.live_tx = true};
    with.waits_for_state = false;
    rights.keeps_files = setup.context.live_tx;
    if (Status status = start_nfs(next, with); !status.ok()) {
      end(next);
      return status;
    }
    return next;
  }

  /// In its own thread.
  void keep() {
    milliseconds next_pause{0};
    for (;;) {
      const Clock::time_point born = Clock::now();
      Status status = watch(*now);
      {
        const std::scoped_lock lock(mutex);
        died_at = Clock::now();
        waiting_connection = nullptr;
        if (!status.ok()) {
          left.clear();  // what it had not filled yet
        }
      }
      end(*now);
      now.reset();
      if (status.ok() || absl::IsCancelled(status)) {
        return;
      }
      if (Clock::now() - born > kLongRun) {
        next_pause = milliseconds(0);
      }
      for (;;) {
        if (is_to_stop()) {
          return;
        }
        spdlog::error("{}: {}; it is started again{}", options.name, std::string(status.message()),
                      next_pause.count() == 0 ? "" : concat(" in ", next_pause.count(), " ms"));
        {
          const std::scoped_lock lock(mutex);
          pauses = next_pause.count() != 0;
        }
        if (pause(next_pause)) {
          return;
        }
        next_pause = std::clamp(next_pause * 2, kFirstPause, kLongestPause);
        forget_failure();
        Result<Incarnation> next = try_again();
        if (next.ok()) {
          now = *std::move(next);
          const std::scoped_lock lock(mutex);
          ++restarts;
          break;
        }
        status = next.status();
      }
    }
  }
};

NfProcess::NfProcess(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

NfProcess::~NfProcess() = default;

Result<std::unique_ptr<NfProcess>> NfProcess::create(ProcessOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->rights.nf = impl->options.name;
  impl->rights.is_trial = impl->options.is_trial;
  CATENA_ASSIGN_OR_RETURN(impl->notifier, make_event());
  CATENA_ASSIGN_OR_RETURN(impl->stop, make_event());
  impl->on_give_up.emplace(impl->options.give_up, [impl = impl.get()] { impl->stop_all(); });
  CATENA_ASSIGN_OR_RETURN(impl->now, impl->launch());
  return std::unique_ptr<NfProcess>(new NfProcess(std::move(impl)));
}

Result<NfInfo> NfProcess::add(StartRequest wanted, std::vector<nf::NamedOutput> outputs) {
  CATENA_ASSIGN_OR_RETURN(NfInfo described, impl_->ask(*impl_->now, wanted));
  impl_->wanted.push_back(std::move(wanted));
  impl_->described.push_back(described);
  impl_->rights.outputs.insert(impl_->rights.outputs.end(), outputs.begin(), outputs.end());
  impl_->outputs.push_back(std::move(outputs));
  impl_->started.emplace_back();
  impl_->statistics.emplace_back();
  return described;
}

Status NfProcess::start(Setup const& setup) {
  impl_->setup = setup;
  for (std::size_t nf = 0; nf < setup.nfs.size(); ++nf) {
    impl_->setup.nfs[nf].outputs = impl_->outputs[nf];
  }
  impl_->setup.waits_for_state = impl_->continues;
  bool is_refused = false;
  Status status = impl_->start_nfs(*impl_->now, impl_->setup, &is_refused);
  impl_->on_give_up.reset();
  status.Update(impl_->is_to_stop() ? absl::CancelledError("its start was aborted") : absl::OkStatus());
  if (!status.ok()) {
    const std::string who =
        impl_->options.group.empty() ? concat("NF '", impl_->options.name, "'") : impl_->options.name;
    return is_refused
               ? status
               : Status(status.code(), concat(impl_->options.position, ": ", who, ": ", std::string(status.message())));
  }
  try {
    impl_->supervisor = std::thread([impl = impl_.get(), chain = LogContext::chain()] {
      const LogContext context(chain, impl->options.name);
      impl->keep();
    });
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread to watch a process: ", error.what()));
  }
  return absl::OkStatus();
}

void NfProcess::start_replacement() { impl_->continues = true; }

bool NfProcess::can_transfer_state(std::vector<bool> const& has_state) const {
  const std::scoped_lock lock(impl_->mutex);
  if (has_state.size() != impl_->started.size()) {
    return false;
  }
  for (std::size_t nf = 0; nf < has_state.size(); ++nf) {
    if (has_state[nf] && !impl_->started[nf].is_portable) {
      return false;
    }
  }
  return true;
}

void NfProcess::transfer_state() {
  const std::scoped_lock lock(impl_->mutex);
  impl_->is_transferring_state = true;
}

bool NfProcess::is_transferring_state() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->is_transferring_state;
}

void NfProcess::start_after(NfProcess& before) {
  {
    const std::scoped_lock both(impl_->mutex, before.impl_->mutex);
    impl_->to_take = std::exchange(before.impl_->left, {});
    impl_->has_left.assign(impl_->wanted.size(), false);
    for (Impl::State const& state : impl_->to_take) {
      impl_->has_left[state.of.nf] = true;
    }
    impl_->is_to_begin = true;
    impl_->begins_until = Clock::now() + kTakeOverLimit;
  }
  impl_->ring_stop();
}

bool NfProcess::has_started() {
  {
    const std::scoped_lock lock(impl_->mutex);
    if (impl_->begun || impl_->waiting_connection == nullptr) {
      impl_->to_take.clear();
      impl_->is_to_begin = false;
      return true;
    }
    if (Clock::now() < impl_->begins_until) {
      return false;
    }
    impl_->failed_connection = impl_->waiting_connection;
    impl_->failure = "it takes too long to replace its predecessor";
    impl_->waiting_connection = nullptr;
  }
  impl_->ring_stop();
  return true;
}

std::vector<Status> NfProcess::start_status() const {
  const std::scoped_lock lock(impl_->mutex);
  std::vector<Status> said = impl_->begun.value_or(std::vector<Status>(
      impl_->wanted.size(), absl::UnavailableError("its process ended before it had started, or took too long")));
  for (std::size_t nf = 0; nf < said.size(); ++nf) {
    if (said[nf].ok() && !impl_->has_left[nf] && impl_->started[nf].is_portable) {
      said[nf] = absl::DataLossError("the previous process left no state");
    }
  }
  return said;
}

std::shared_ptr<Connection> NfProcess::take_connection() {
  const std::scoped_lock lock(impl_->mutex);
  return std::exchange(impl_->new_connection, nullptr);
}

bool NfProcess::is_down() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->pauses || (impl_->died_at && Clock::now() - *impl_->died_at > kPatience);
}

void NfProcess::fail(Connection const& connection, std::string_view why) {
  {
    const std::scoped_lock lock(impl_->mutex);
    if (impl_->failed_connection == &connection) {
      return;
    }
    impl_->failed_connection = &connection;
    impl_->failure = why;
  }
  impl_->ring_stop();
}

int NfProcess::notifier() const { return impl_->notifier.get(); }

std::uint64_t NfProcess::refusals() const { return impl_->rights.refusals; }

std::uint64_t NfProcess::restarts() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->restarts;
}

pid_t NfProcess::pid() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->pid;
}

std::string const& NfProcess::group() const { return impl_->options.group; }

Setup const& NfProcess::setup() const { return impl_->setup; }

std::vector<std::string> NfProcess::start_lines(std::size_t nf) const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->started[nf].lines;
}

std::vector<std::pair<std::string, std::uint64_t>> NfProcess::refused_rules(std::size_t nf) const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->started[nf].refused_rules;
}

std::vector<nf::Statistic> NfProcess::statistics(std::size_t nf) const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->statistics[nf].statistics;
}

std::vector<std::string> NfProcess::end_lines(std::size_t nf) const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->statistics[nf].lines;
}

Status NfProcess::ended(std::size_t nf) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto is_about = [this](NfSetup const& of) {
    return std::string(impl_->ended.message()).starts_with(concat("NF '", of.name, "': "));
  };
  std::vector<NfSetup> const& nfs = impl_->setup.nfs;
  const auto found = std::ranges::find_if(nfs, is_about);
  const std::size_t whose = found == nfs.end() ? 0 : static_cast<std::size_t>(found - nfs.begin());
  return whose == nf ? impl_->ended : absl::OkStatus();
}

Result<std::string> find_nf_program() { return find_own_program("catena-nf"); }

}  // namespace catena::nf_process
