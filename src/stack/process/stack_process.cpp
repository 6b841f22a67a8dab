// SPDX-License-Identifier: Apache-2.0
#include "stack/process/stack_process.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/own_program.hpp"
#include "base/ipc/frames.hpp"
#include "base/ipc/socket_pair.hpp"

namespace catena::stack {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStartLimit{60};  // an engine may compile a kernel meanwhile

/// The next frame before `deadline`.
Result<ipc::Frame> receive(int control, int pidfd, Clock::time_point deadline) {
  ipc::FrameReader reader;
  while (Clock::now() < deadline) {
    CATENA_ASSIGN_OR_RETURN(std::optional<ipc::Frame> frame, reader.poll(control, kMaxStackFrame));
    if (frame) {
      return *std::move(frame);
    }
    std::array<pollfd, 2> polls{{{control, POLLIN, 0}, {pidfd, POLLIN, 0}}};
    constexpr int kStepMs = 100;
    ::poll(polls.data(), polls.size(), kStepMs);
    if (polls[1].revents != 0 && (polls[0].revents & POLLIN) == 0) {
      return absl::UnavailableError("catena-stack has ended");
    }
  }
  return absl::UnavailableError("catena-stack does not answer");
}

}  // namespace

Result<std::unique_ptr<StackProcess>> StackProcess::start(StackProcessOptions const& options, int port) {
  std::string program = options.program;
  if (program.empty()) {
    CATENA_ASSIGN_OR_RETURN(program, find_own_program("catena-stack"));
  }
  CATENA_ASSIGN_OR_RETURN(auto ends, ipc::make_socket_pair());
  sandbox::SandboxOptions sandbox;
  sandbox.program = program;
  sandbox.readable = {{program, {}}, {"/sys/devices/system/cpu", {}}};
  sandbox.fds = {ends.second.get(), port};
  static_assert(kStackControlFd == 3 && kStackPortFd == 4);
  sandbox::ProcessUser user;
  if (::geteuid() == 0) {
    user = sandbox::take_process_user();
    sandbox.uid = sandbox.gid = user.id;
  }
  sandbox.cpus = options.cpus;
  // of addresses: it maps the segments of all applications, also of those that have ended; few of their pages have
  // memory
  const std::uint64_t segments = options.settings.max_applications + SessionServer::kMostEnding;
  sandbox.memory_bytes = (std::uint64_t{2} << 30U) + segments * SharedSegment::bytes(options.settings.shape);
  for (ProcessNeeds const& needs : options.needs) {
    sandbox::grant(needs, sandbox);
  }
  sandbox.on_line = [](std::string_view line) { spdlog::info("stack: {}", line); };
  CATENA_ASSIGN_OR_RETURN(auto process, sandbox::SandboxedProcess::start(sandbox));
  ipc::Writer settings;
  put(settings, options.settings);
  CATENA_RETURN_IF_ERROR(
      ipc::send_frame(ends.first.get(), static_cast<std::uint32_t>(StackCall::kStart), settings.bytes()));
  CATENA_ASSIGN_OR_RETURN(const ipc::Frame answer,
                          receive(ends.first.get(), process->pidfd(), Clock::now() + kStartLimit));
  if (answer.call != static_cast<std::uint32_t>(StackCall::kReady)) {
    ipc::Reader reader(answer.body);
    const Status why = reader.take_status();
    return reader.ok() && !why.ok() ? why : absl::UnavailableError("catena-stack is of another version");
  }
  return std::unique_ptr<StackProcess>(
      new StackProcess(std::move(user), std::move(process), std::move(ends.first), options.settings.shape));
}

StackProcess::StackProcess(sandbox::ProcessUser user, std::unique_ptr<sandbox::SandboxedProcess> process,
                           FileDescriptor control, SegmentShape const& shape)
    : user_(std::move(user)),
      process_(std::move(process)),
      control_(std::move(control)),
      shape_(shape),
      reader_([this] { read_reports(); }) {}

StackProcess::~StackProcess() {
  ::shutdown(control_.get(), SHUT_RDWR);
  reader_.join();
}

void StackProcess::read_reports() {
  for (;;) {
    const Result<ipc::Frame> frame = ipc::receive_frame(control_.get(), kMaxStackFrame);
    if (!frame.ok()) {
      return;
    }
    if (frame->body.size() == sizeof(StackReport)) {
      const std::lock_guard lock(reading_);
      std::memcpy(&report_, frame->body.data(), sizeof report_);
    }
  }
}

StackReport StackProcess::report() const {
  const std::lock_guard lock(reading_);
  return report_;
}

Status StackProcess::admit(int connection, pid_t process) {
  const std::lock_guard lock(sending_);
  return send_application(control_.get(), shape_, connection, process);
}

}  // namespace catena::stack
