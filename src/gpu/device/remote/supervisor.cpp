// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/supervisor.hpp"

#include <catena/core/text.hpp>

#include "base/core/own_program.hpp"
#include "base/ipc/frames.hpp"
#include "base/ipc/mapping.hpp"
#include "base/ipc/message.hpp"
#include "base/ipc/socket_pair.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <future>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace catena::device::remote {
namespace {

using Clock = std::chrono::steady_clock;

/// A server that dies again soon is started again after a delay that doubles.
constexpr std::chrono::milliseconds kFirstDelay{100};
constexpr std::chrono::milliseconds kMaxDelay{10'000};
constexpr std::chrono::seconds kWell{10};

// where the child finds what it inherits
constexpr int kControlFd = 3;
constexpr int kBoxFd = 4;

std::string describe(int status) {
  if (WIFSIGNALED(status)) {
    return concat("the device server was ended by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  }
  return concat("the device server ended with status ", WEXITSTATUS(status));
}

/// Whether a kernel did it, and not somebody who ended the process. Where the device is this machine's CPU, a kernel
/// that traps raises a signal.
bool is_fault(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGABRT;
  }
  // whatever else it ended with, it was not asked to
  return WEXITSTATUS(status) != kExitSupervisorGone && WEXITSTATUS(status) != kExitNoDevice;
}

/// A server that cannot be reached, for any reason, is unavailable.
Result<std::pair<FileDescriptor, FileDescriptor>> make_connection() {
  Result<std::pair<FileDescriptor, FileDescriptor>> ends = ipc::make_socket_pair();
  return ends.ok() ? std::move(ends) : absl::UnavailableError(std::string(ends.status().message()));
}

struct Spawned {
  pid_t pid = -1;
  FileDescriptor control;
};

Result<Spawned> spawn(Supervisor::Options const& options, int box) {
  CATENA_ASSIGN_OR_RETURN(auto ends, make_connection());
  Spawned spawned{-1, std::move(ends.first)};
  // copies above those that the child is to have, so that no dup2() overwrites the source of the next one
  constexpr int kAbove = 16;
  const FileDescriptor theirs(fcntl(ends.second.get(), F_DUPFD_CLOEXEC, kAbove));
  const FileDescriptor box_copy(fcntl(box, F_DUPFD_CLOEXEC, kAbove));
  if (!theirs || !box_copy) {
    return absl::UnavailableError(concat("starting a device server: ", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), kControlFd);
  posix_spawn_file_actions_adddup2(&actions, box_copy.get(), kBoxFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kBoxFd + 1);
  std::vector<std::string> words{options.program,
                                 options.device,
                                 concat(kControlFd),
                                 concat(kBoxFd),
                                 concat(options.limits.launch.count()),
                                 concat(options.limits.device_bytes),
                                 concat(options.limits.host_bytes),
                                 options.limits.one_at_a_time ? "1" : "0"};
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const int error = posix_spawn(&spawned.pid, options.program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::UnavailableError(concat("starting ", options.program, ": ", std::strerror(error)));
  }
  return spawned;
}

}  // namespace

struct Supervisor::Impl {
  Options options;
  std::function<void(Death const&)> on_death;
  ipc::Mapping box;
  mutable std::mutex mutex;
  std::condition_variable is_leaving_changed;
  bool is_leaving = false;
  Spawned server;
  std::string last_reason;
  std::string no_device_reason;
  bool has_served = false;
  std::uint32_t last_client = 0;
  std::map<std::uint32_t, Client> clients;
  std::thread watcher;

  Status start_server() {
    std::memset(box.bytes().data(), 0, box.bytes().size());
    CATENA_ASSIGN_OR_RETURN(server, spawn(options, box.fd()));
    return absl::OkStatus();
  }

  /// With the lock held.
  Death account(int status) {
    auto& black_box = box.as<BlackBox>();
    Death death;
    death.reason = black_box.has_reason.load() != 0 ? std::string(black_box.reason.get()) : describe(status);
    death.is_fault = is_fault(status);
    const bool has_no_device = WIFEXITED(status) && WEXITSTATUS(status) == kExitNoDevice;
    no_device_reason = has_no_device ? death.reason : "";
    has_served = has_served || black_box.has_device.load() != 0;
    std::vector<std::pair<std::int64_t, Suspect>> busy;
    for (BlackBox::Client& client : black_box.clients) {
      if (client.number.load() != 0 && client.working_since.load() != 0) {
        busy.push_back(
            {client.working_since.load(), {clients[client.number.load()], std::string(client.kernels.get())}});
      }
    }
    std::ranges::sort(busy, {}, [](auto const& entry) { return entry.first; });
    for (auto& [since, suspect] : busy) {
      death.suspects.push_back(std::move(suspect));
    }
    clients.clear();
    last_reason = death.reason;
    server = {};
    return death;
  }

  /// Starts servers, and waits for the end of each. One thread for all: a server ends with the thread that started it
  /// (PR_SET_PDEATHSIG).
  void work(std::promise<Status>& started) {
    {
      const std::scoped_lock lock(mutex);
      if (Status status = start_server(); !status.ok()) {
        started.set_value(std::move(status));
        return;
      }
    }
    started.set_value(absl::OkStatus());
    watch();
  }

  void watch() {
    std::chrono::milliseconds delay(0);
    for (;;) {
      const Clock::time_point begin = Clock::now();
      int status = 0;
      while (waitpid(server.pid, &status, 0) < 0 && errno == EINTR) {
      }
      Death death;
      {
        const std::scoped_lock lock(mutex);
        if (is_leaving) {
          return;
        }
        death = account(status);
      }
      if (on_death) {
        on_death(death);
      }
      std::unique_lock lock(mutex);
      // at once the first time, and ever later where it keeps dying
      if (Clock::now() - begin > kWell) {
        delay = std::chrono::milliseconds(0);
      }
      is_leaving_changed.wait_for(lock, delay, [this] { return is_leaving; });
      delay = std::clamp(delay * 2, kFirstDelay, kMaxDelay);
      if (is_leaving) {
        return;
      }
      Status started = start_server();
      while (!started.ok()) {
        last_reason = std::string(started.message());
        delay = std::clamp(delay * 2, kFirstDelay, kMaxDelay);
        if (is_leaving_changed.wait_for(lock, delay, [this] { return is_leaving; })) {
          return;
        }
        started = start_server();
      }
    }
  }
};

Supervisor::Supervisor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Supervisor>> Supervisor::start(Options options, std::function<void(Death const&)> on_death) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->on_death = std::move(on_death);
  CATENA_ASSIGN_OR_RETURN(impl->box, ipc::Mapping::create("catena_device", sizeof(BlackBox)));
  std::promise<Status> started;
  std::future<Status> is_started = started.get_future();
  impl->watcher = std::thread([raw = impl.get(), &started] { raw->work(started); });
  Status status = is_started.get();
  std::unique_ptr<Supervisor> supervisor(new Supervisor(std::move(impl)));
  CATENA_RETURN_IF_ERROR(status);
  return supervisor;
}

Supervisor::~Supervisor() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->is_leaving = true;
    if (impl_->server.pid > 0) {
      kill(impl_->server.pid, SIGKILL);
    }
  }
  impl_->is_leaving_changed.notify_all();
  impl_->watcher.join();
}

Result<FileDescriptor> Supervisor::connect(Client const& client, Trust trust) {
  const std::scoped_lock lock(impl_->mutex);
  if (impl_->server.pid < 0) {
    return absl::UnavailableError(concat("no device server runs: ", impl_->last_reason));
  }
  CATENA_ASSIGN_OR_RETURN(auto ends, make_connection());
  const std::uint32_t number = ++impl_->last_client;
  CATENA_RETURN_IF_ERROR(ipc::send_frame(impl_->server.control.get(), kAddClient,
                                         ipc::Writer().put(number).put(trust).bytes(), ends.second.get()));
  impl_->clients[number] = client;
  return std::move(ends.first);
}

int Supervisor::pid() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->server.pid;
}

std::string Supervisor::no_device_reason() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->no_device_reason;
}

bool Supervisor::has_served() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->has_served || impl_->box.as<BlackBox>().has_device.load() != 0;
}

Result<std::string> find_server_program() { return find_own_program("catena-device-server"); }

}  // namespace catena::device::remote
