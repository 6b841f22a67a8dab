// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/sandbox.hpp"

#include <catena/core/text.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/sandbox/sandbox_supervisor.hpp"

namespace catena::sandbox {
namespace {

Status check_user(SandboxOptions const& options) {
  if (options.uid == 0U || options.gid == 0U) {
    return absl::InvalidArgumentError("a sandboxed process cannot be root, nor in root's group");
  }
  if (::geteuid() == 0) {
    return options.uid && options.gid
               ? absl::OkStatus()
               : absl::InvalidArgumentError("root has to say which uid and gid a sandboxed process has");
  }
  if (options.uid.value_or(::geteuid()) != ::geteuid() || options.gid.value_or(::getegid()) != ::getegid()) {
    return absl::PermissionDeniedError(concat("user ", ::geteuid(), " cannot run a process as another one"));
  }
  return absl::OkStatus();
}

Status check_paths(SandboxOptions const& options) {
  std::vector<std::filesystem::path> paths = {options.program, options.bwrap};
  paths.insert(paths.end(), options.cgroups.begin(), options.cgroups.end());
  paths.insert(paths.end(), options.devices.begin(), options.devices.end());
  for (ReadOnlyBind const& bind : options.readable) {
    paths.push_back(bind.source);
    paths.push_back(bind.shown_at());
  }
  for (std::filesystem::path const& path : paths) {
    if (!path.is_absolute() || path.string().find('\0') != std::string::npos) {
      return absl::InvalidArgumentError(concat("'", path.string(), "' is not an absolute path"));
    }
  }
  return absl::OkStatus();
}

/// A zero byte ends an argument: what follows would be another one, for bubblewrap.
Status check_texts(SandboxOptions const& options) {
  std::vector<std::string> texts = options.arguments;
  for (auto const& [name, value] : options.environment) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return absl::InvalidArgumentError(concat("'", name, "' cannot be the name of a variable"));
    }
    texts.push_back(name);
    texts.push_back(value);
  }
  for (std::string const& text : texts) {
    if (text.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError("an argument or variable has a zero byte");
    }
  }
  return absl::OkStatus();
}

Status check_limits(SandboxOptions const& options) {
  constexpr int kMaxNice = 19;
  constexpr std::size_t kMaxFds = 200;
  if (options.max_threads == 0 || options.memory_bytes == 0 || options.fds.size() > kMaxFds) {
    return absl::InvalidArgumentError(
        concat("a sandboxed process needs memory and a thread, and has at most ", kMaxFds, " descriptors"));
  }
  if (options.nice < 0 || options.nice > kMaxNice) {
    return absl::InvalidArgumentError(concat("nice value ", options.nice, " is not one of 0 to ", kMaxNice));
  }
  const auto is_cpu = [](int cpu) { return cpu >= 0 && cpu < CPU_SETSIZE; };
  return std::all_of(options.cpus.begin(), options.cpus.end(), is_cpu)
             ? absl::OkStatus()
             : absl::InvalidArgumentError("a CPU's number is out of range");
}

}  // namespace

void grant(ProcessNeeds const& needs, SandboxOptions& options) {
  const auto append = [](auto const& from, auto& to) { to.insert(to.end(), from.begin(), from.end()); };
  append(needs.devices, options.devices);
  append(needs.requests, options.requests);
  append(needs.environment, options.environment);
  for (ProcessNeeds::File const& file : needs.files) {
    options.readable.push_back({file.source, file.target});
  }
  options.scratch_bytes += needs.scratch_bytes;
  options.memory_bytes += needs.memory_bytes;
  options.max_threads += needs.threads;
  options.starts_programs |= needs.starts_programs;
  options.listens |= needs.listens;
  options.limits_addresses &= !needs.reserves_addresses;
}

SandboxedProcess::SandboxedProcess(std::unique_ptr<SandboxSupervisor> supervisor)
    : supervisor_(std::move(supervisor)) {}
SandboxedProcess::~SandboxedProcess() = default;

Result<std::unique_ptr<SandboxedProcess>> SandboxedProcess::start(SandboxOptions options) {
  CATENA_RETURN_IF_ERROR(check_user(options));
  CATENA_RETURN_IF_ERROR(check_paths(options));
  CATENA_RETURN_IF_ERROR(check_texts(options));
  CATENA_RETURN_IF_ERROR(check_limits(options));
  auto supervisor = std::make_unique<SandboxSupervisor>(std::move(options));
  CATENA_RETURN_IF_ERROR(supervisor->start());
  return std::unique_ptr<SandboxedProcess>(new SandboxedProcess(std::move(supervisor)));
}

pid_t SandboxedProcess::pid() const { return supervisor_->pid(); }
int SandboxedProcess::pidfd() const { return supervisor_->pidfd(); }
Status SandboxedProcess::kill() { return supervisor_->kill(); }
Result<int> SandboxedProcess::wait(std::chrono::milliseconds limit) { return supervisor_->wait(limit); }

}  // namespace catena::sandbox
