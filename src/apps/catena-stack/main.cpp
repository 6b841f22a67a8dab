// SPDX-License-Identifier: Apache-2.0
// The program of a stack's process: TCP and the sessions of applications on one core. StackProcess starts it in a
// sandbox; people do not.
#include "stack/process/stack_loop.hpp"

#include <catena/core/text.hpp>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <sched.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/log_line.hpp"
#include "base/hostcopy/node_table.hpp"
#include "base/ipc/frames.hpp"
#include "stack/copy/engine_table.hpp"
#include "stack/port/tap_port.hpp"
#include "stack/process/settings.hpp"

namespace {

using namespace catena;
using namespace catena::stack;

/// For engines for tests: threads, which wait for a core as long as other programs have it.
constexpr std::chrono::seconds kPatienceWithThreads{10};

/// The supervisor has found the devices of the engine's kind before.
Result<std::unique_ptr<hostcopy::Engine>> open_engine(hostcopy::EngineKind const& kind) {
  Result<std::unique_ptr<hostcopy::Engine>> engine = kind.open();
  return engine.ok()
             ? std::move(engine)
             : Status(engine.status().code(),
                      concat("copy engine '", kind.name, "' works on this machine, but not in the stack's sandbox: ",
                             std::string(engine.status().message())));
}

Result<std::unique_ptr<StackLoop>> start(FileDescriptor& control) {
  CATENA_ASSIGN_OR_RETURN(const ipc::Frame frame, ipc::receive_frame(control.get(), kMaxStackFrame));
  CATENA_ASSIGN_OR_RETURN(const StackSettings settings, take_settings(frame.body));
  std::vector<std::unique_ptr<hostcopy::Engine>> engines;
  std::chrono::nanoseconds patience = StackLoop::kPatience;
  for (std::string const& name : uses_engine(settings.tx.mode) ? settings.engines : std::vector<std::string>()) {
    CATENA_ASSIGN_OR_RETURN(const hostcopy::EngineKind kind, hostcopy::find_kind(name, engine_table()));
    CATENA_ASSIGN_OR_RETURN(engines.emplace_back(), open_engine(kind));
    patience = kind.is_for_tests ? kPatienceWithThreads : patience;
  }
  return StackLoop::create(settings, TapPort::adopt(FileDescriptor(kStackPortFd)), std::move(engines),
                           FileDescriptor(::dup(control.get())), patience,
                           hostcopy::NodeTable::read().node_of(::sched_getcpu()));
}

}  // namespace

int main(int count, char** /*arguments*/) {
  if (count != 1) {
    static_cast<void>(std::fputs("a part of Catena, which starts it by itself: see `catena stack --help`\n", stderr));
    return 2;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("catena-stack"));
  set_log_pattern("%v");
  ::prctl(PR_SET_TIMERSLACK, 1);
  FileDescriptor control(kStackControlFd);
  Result<std::unique_ptr<StackLoop>> loop = start(control);
  ipc::Writer answer;
  if (!loop.ok()) {
    answer.put_status(loop.status());
  }
  const StackCall call = loop.ok() ? StackCall::kReady : StackCall::kFailed;
  if (!ipc::send_frame(control.get(), static_cast<std::uint32_t>(call), answer.bytes()).ok() || !loop.ok()) {
    return 1;
  }
  (*loop)->run();
  return 0;
}
