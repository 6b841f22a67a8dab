// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/incarnation.hpp"

#include "base/core/process_work.hpp"
#include "base/ipc/shared_memory.hpp"
#include "base/ipc/socket_pair.hpp"
#include "base/sandbox/limits.hpp"
#include "gpu/device/remote/device.hpp"
#include "io/eal/eal.hpp"
#include "pipeline/isolation/supervisor_signal.hpp"

#include <catena/core/text.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

namespace catena::nf_process {
namespace {

using Clock = Incarnation::Clock;
using ipc::Frame;

/// In which a process has to describe an NF.
constexpr std::chrono::seconds kDescribeLimit{30};
/// In which it has to exit once it has said that it ends.
constexpr std::chrono::seconds kExitLimit{5};
constexpr std::uint32_t kMaxThreads = 32;
/// Connections to a device that one process gets.
constexpr std::size_t kMaxDevices = 4;

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

Status run_here(ProcessOptions const& options, sandbox::SandboxOptions& sandbox) {
  sandbox.program = options.program;
  sandbox.readable.push_back({options.program, {}});
  return absl::OkStatus();
}

/// The image may lack the libraries of this program: they and its loader are shown beside the image.
Status run_in_container(ProcessOptions const& options, sandbox::SandboxOptions& sandbox) {
  CATENA_ASSIGN_OR_RETURN(const std::filesystem::path loader, own_loader());
  sandbox.program = "/.catena/catena-nf";  // it is what the process is called
  sandbox.arguments = {"--library-path", "/.catena/lib", "/.catena/program"};
  sandbox.readable.push_back({loader, sandbox.program});
  sandbox.readable.push_back({loader.parent_path(), "/.catena/lib"});
  sandbox.readable.push_back({options.program, "/.catena/program"});
  return absl::OkStatus();
}

/// All but its descriptors.
Result<sandbox::SandboxOptions> sandbox_for(ProcessOptions const& options) {
  sandbox::SandboxOptions sandbox;
  CATENA_RETURN_IF_ERROR(options.container.empty() ? run_here(options, sandbox) : run_in_container(options, sandbox));
  sandbox.arguments.insert(sandbox.arguments.end(), options.label.begin(), options.label.end());
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
  sandbox.uid = options.uid;
  sandbox.gid = options.gid;
  sandbox.memory_bytes = options.memory_bytes;
  sandbox.cpus = some_cpus(options.cpus);
  sandbox.max_threads = kMaxThreads;
  sandbox.on_line = [lines = std::make_shared<Lines>(options.name)](std::string_view line) { lines->take(line); };
  return sandbox;
}

bool is_hung_up(FileDescriptor const& socket) {
  pollfd poll{socket.get(), 0, 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & POLLHUP) != 0;
}

}  // namespace

void Incarnation::RemoveGroup::operator()(sandbox::ControlGroup* group) const {
  do_process_work([group] {
    const std::unique_ptr<sandbox::ControlGroup> own(group);
    return true;
  });
}

Result<std::unique_ptr<Incarnation>> Incarnation::start(ProcessOptions const& options, OutputRights& rights,
                                                        int notifier) {
  CATENA_ASSIGN_OR_RETURN(auto ends, ipc::make_socket_pair());
  CATENA_ASSIGN_OR_RETURN(const auto notifiers, ipc::make_socket_pair());
  if (::dup3(notifiers.first.get(), notifier, O_CLOEXEC) < 0) {
    return absl::ResourceExhaustedError(concat("dup3: ", std::strerror(errno)));
  }
  CATENA_ASSIGN_OR_RETURN(sandbox::SandboxOptions sandbox, sandbox_for(options));
  sandbox.fds = {ends.second.get(), notifiers.second.get()};
  auto incarnation = std::unique_ptr<Incarnation>(new Incarnation(options, rights, std::move(ends.first)));
  if (!sandbox.uid && ::geteuid() == 0) {
    incarnation->user_ = sandbox::take_process_user();
    sandbox.uid = sandbox.gid = incarnation->user_.id;
  }
  CATENA_RETURN_IF_ERROR(incarnation->start_in(std::move(sandbox)));
  return incarnation;
}

Incarnation::~Incarnation() {
  process_.reset();  // returns when it is gone
  group_.reset();
  outputs_.close_all();
  if (connection_ != nullptr) {
    connection_->is_gone = true;
  }
}

Status Incarnation::start_in(sandbox::SandboxOptions sandbox) {
  const auto start = [&sandbox] {
    return do_process_work([&sandbox] { return sandbox::SandboxedProcess::start(sandbox); });
  };
  make_group(sandbox);
  if (group_ != nullptr) {
    sandbox.cgroups = group_->folders();
  }
  Result<std::unique_ptr<sandbox::SandboxedProcess>> process = start();
  if (group_ != nullptr && absl::IsUnavailable(process.status())) {
    // perhaps because it cannot be put into the group, without which it can be
    group_.reset();
    sandbox.cgroups.clear();
    const Status without = std::exchange(process, start()).status();
    if (process.ok()) {
      warn_of_no_group(without);
    }
  }
  CATENA_ASSIGN_OR_RETURN(process_, std::move(process));
  return absl::OkStatus();
}

/// Without a group it has its resource limits alone, which is said: once where it is so for all processes.
void Incarnation::make_group(sandbox::SandboxOptions const& sandbox) {
  auto group = do_process_work([&] { return sandbox::ControlGroup::create(sandbox::group_limits(sandbox)); });
  if (group.ok()) {
    group_.reset(group->release());
  } else if (absl::IsUnavailable(group.status())) {
    static std::once_flag said;
    std::call_once(said, [&group] {
      spdlog::info("processes of NFs have resource limits and no control groups: {}",
                   std::string(group.status().message()));
    });
  } else {
    warn_of_no_group(group.status());
  }
}

void Incarnation::warn_of_no_group(Status const& why) const {
  spdlog::warn("{}: its process has resource limits and no control group: {}", options_->name,
               std::string(why.message()));
}

void Incarnation::allow(std::uint64_t bytes) const {
  const Status status = group_ != nullptr ? group_->allow_more(bytes) : absl::OkStatus();
  if (!status.ok()) {
    spdlog::warn("{}: {}", options_->name, std::string(status.message()));
  }
}

Status Incarnation::send(Call call, std::string_view text, int fd) const {
  return nf_process::send(control_.get(), call, text, fd);
}

Result<Frame> Incarnation::receive(Clock::time_point deadline, int stop, std::function<Status()> const& stopped) {
  for (;;) {
    // before the messages, which may come without end
    pollfd asked{stop, POLLIN, 0};
    if (::poll(&asked, 1, 0) > 0) {
      CATENA_RETURN_IF_ERROR(stopped());
    }
    if (Clock::now() >= deadline) {
      return absl::DeadlineExceededError("its process does not answer");
    }
    Result<std::optional<Frame>> frame = reader_.poll(control_.get(), kMaxFrameBytes);
    if (!frame.ok()) {
      return absl::IsUnavailable(frame.status()) ? how_it_ended() : frame.status();
    }
    if (*frame) {
      return **std::move(frame);
    }
    std::array<pollfd, 3> polls{{{control_.get(), POLLIN, 0}, {process_->pidfd(), POLLIN, 0}, {stop, POLLIN, 0}}};
    if (::poll(polls.data(), polls.size(), poll_time(deadline)) > 0 && polls[1].revents != 0 &&
        (polls[0].revents & POLLIN) == 0) {
      return how_it_ended();
    }
  }
}

Status Incarnation::how_it_ended() const {
  constexpr int kSignal = 128;
  const Result<int> status = process_->wait(kExitLimit);
  if (group_ != nullptr && group_->has_killed()) {
    return absl::UnavailableError(concat("its process used more memory than its control group may have, ",
                                         group_->memory_bytes() >> 20U, " MiB, and was ended"));
  }
  return absl::UnavailableError(!status.ok()        ? "its process no longer responds"
                                : *status > kSignal ? concat("its process was ended by signal ", *status - kSignal)
                                                    : concat("its process ended with status ", *status));
}

Result<NfInfo> Incarnation::describe(StartRequest const& nf, int stop, std::function<Status()> const& stopped) {
  CATENA_RETURN_IF_ERROR(send(Call::kDescribe, to_json(nf)));
  CATENA_ASSIGN_OR_RETURN(const Frame frame, receive(Clock::now() + kDescribeLimit, stop, stopped));
  if (frame.call == static_cast<std::uint32_t>(Call::kRefused)) {
    return read_error(text_of(frame.body));
  }
  if (frame.call != static_cast<std::uint32_t>(Call::kNfInfo)) {
    return absl::DataLossError("its process does not report its NFs");
  }
  return read_nf_info(text_of(frame.body));
}

Status Incarnation::connect(Setup const& setup) {
  CATENA_ASSIGN_OR_RETURN(Channel channel,
                          Channel::create(ChannelShape::of(setup.unit_packets, setup.records || setup.alerts)));
  CATENA_ASSIGN_OR_RETURN(auto frames,
                          ipc::Mapping::create("catena_nf", std::size_t{setup.slots} * packet::kSlotBytes));
  connection_ = std::make_shared<Connection>(std::move(channel), std::move(frames));
  allow(bytes_of(connection_->frames.fd()) + bytes_of(connection_->channel.fd()));
  CATENA_RETURN_IF_ERROR(send(Call::kFrames, "", connection_->frames.fd()));
  return send(Call::kChannel, "", connection_->channel.fd());
}

Status Incarnation::give_device(Setup const& setup) {
  std::string why = "NFs in processes of their own have a device through its server alone";
  std::erase_if(devices_, is_hung_up);
  if (devices_.size() == kMaxDevices) {
    return absl::DataLossError("it claims more devices than exist");
  }
  const bool on_gpu = std::ranges::any_of(setup.nfs, &NfSetup::on_gpu);
  Result<FileDescriptor> device =
      on_gpu && options_->connect_device ? options_->connect_device(setup.device, &why) : FileDescriptor();
  if (!device.ok()) {
    why = std::string(device.status().message());
  }
  if (!device.ok() || !*device) {
    return send(Call::kDevice, why);
  }
  if (!std::exchange(has_device_memory_, true)) {
    allow(sandbox::kReservedBytes);  // its addresses are all that bounds what the server shares with it
  }
  devices_.emplace_back(::fcntl(device->get(), F_DUPFD_CLOEXEC, 0));
  CATENA_ASSIGN_OR_RETURN(const ipc::Mapping page, device::remote::make_client_page());
  CATENA_RETURN_IF_ERROR(send(Call::kDevicePage, "", page.fd()));
  return send(Call::kDevice, "", device->get());
}

void Incarnation::wait_for_exit() const { process_->wait(kExitLimit).IgnoreError(); }

}  // namespace catena::nf_process
