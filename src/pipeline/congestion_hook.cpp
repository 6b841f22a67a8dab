// SPDX-License-Identifier: Apache-2.0
#include "pipeline/congestion_hook.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

constexpr int kLooks = 100;  // in a period
constexpr std::chrono::milliseconds kEndTime{1000};
constexpr std::chrono::milliseconds kEndLook{5};

/// What the process has, and two variables more.
std::vector<std::string> environment_with(std::string_view chain, std::string_view state) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view own(*each);
    if (!own.starts_with("CATENA_STATE=") && !own.starts_with("CATENA_CHAIN=")) {
      all.emplace_back(own);
    }
  }
  all.push_back(concat("CATENA_STATE=", state));
  all.push_back(concat("CATENA_CHAIN=", chain));
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  std::ranges::transform(texts, std::back_inserter(pointers), [](std::string& text) { return text.data(); });
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

CongestionHook::CongestionHook(chain::FlowHookConfig config, std::string chain,
                               std::shared_ptr<SourcePauses const> pauses)
    : config_(std::move(config)), chain_(std::move(chain)), pauses_(std::move(pauses)), thread_([this] { watch(); }) {}

void CongestionHook::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  if (has_ended(false)) {
    return;
  }
  ::kill(-command_, SIGTERM);
  for (auto waited = std::chrono::milliseconds(0); !has_ended(false) && waited < kEndTime; waited += kEndLook) {
    std::this_thread::sleep_for(kEndLook);
  }
  if (command_ >= 0) {
    ::kill(-command_, SIGKILL);
    has_ended(true);
  }
}

/// False: it is ending.
bool CongestionHook::sleep(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  return !ended_.wait_for(lock, time, [this] { return is_ending_; });
}

void CongestionHook::watch() {
  const std::chrono::nanoseconds step = std::chrono::milliseconds(config_.period_ms) / kLooks;
  bool is_congested = false;
  for (;;) {
    int paused = 0;
    for (int look = 0; look < kLooks; ++look) {
      if (!sleep(step)) {
        return;
      }
      paused += pauses_->any() ? 1 : 0;
    }
    const double part = static_cast<double>(paused) / kLooks;
    // half of it, so that what is just as much as that does not start two commands a second
    const bool is_now = part > 0 && part >= (is_congested ? config_.paused / 2 : config_.paused);
    if (has_ended(false) && is_now != is_congested) {
      is_congested = is_now;
      start(is_congested);
    }
  }
}

void CongestionHook::start(bool is_congested) {
  const std::string_view state = is_congested ? "congested" : "free";
  std::vector<std::string> words = config_.command;
  std::vector<std::string> variables = environment_with(chain_, state);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // packets may go there
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);     // drivers leave theirs open
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawn(&command_, words.front().c_str(), &actions, &attributes, pointers_to(words).data(),
                                  pointers_to(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    command_ = -1;
    ++failures_;
    spdlog::error("{}: is {}, and the hook {} cannot be started: {}", chain_, state, words.front(),
                  std::strerror(error));
    return;
  }
  ++runs_;
  spdlog::info("{}: is {}: {}", chain_, state, fmt::join(words, " "));
}

/// Whether no command runs. `waits`: until that is so.
bool CongestionHook::has_ended(bool waits) {
  int status = 0;
  if (command_ < 0) {
    return true;
  }
  if (const pid_t ended = ::waitpid(command_, &status, waits ? 0 : WNOHANG); ended == 0) {
    return false;
  }
  command_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    ++failures_;
    spdlog::warn("{}: the hook {} ended with {}", chain_, config_.command.front(),
                 WIFEXITED(status) ? concat("exit code ", WEXITSTATUS(status)) : concat("signal ", WTERMSIG(status)));
  }
  return true;
}

}  // namespace catena::runtime
