// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "base/hostcopy/accelerator.hpp"
#include "base/ipc/frames.hpp"
#include "stack/port/port.hpp"
#include "stack/process/settings.hpp"
#include "stack/process/stack_report.hpp"
#include "stack/session/session_server.hpp"
#include "stack/tx/part_clock.hpp"
#include "stack/tx/tx_buffers.hpp"

namespace catena::stack {

/// The stack on one core: frames, TCP, sessions and copies, in turn. Belongs to one thread.
class StackLoop {
 public:
  static constexpr std::chrono::nanoseconds kPatience = hostcopy::AcceleratorOptions().patience;

  /// `control`: the supervisor's socket, whose frames StackCall lists. `engines`: the first one makes the copies of the
  /// modes that need one, within `patience`; if it is lost, the next one does, and after the last one the CPU. Engines
  /// at `node`, the NUMA node of the loop's thread, come before others. Errors: of Tcp::create(), TxBuffers::create(),
  /// Engine::register_memory().
  static Result<std::unique_ptr<StackLoop>> create(StackSettings const& settings, std::unique_ptr<Port> port,
                                                   std::vector<std::unique_ptr<hostcopy::Engine>> engines,
                                                   FileDescriptor control,
                                                   std::chrono::nanoseconds patience = kPatience, int node = -1);
  ~StackLoop();

  /// Serves until the supervisor closes `control`.
  void run();
  StackReport report() const;

 private:
  using Clock = std::chrono::steady_clock;

  StackLoop(StackSettings const& settings, std::unique_ptr<Port> port, FileDescriptor control, TxBuffers buffers,
            std::vector<hostcopy::AcceleratorPool::Member> engines, std::chrono::nanoseconds patience, int node);
  bool receive();
  bool serve_control(Clock::time_point now);
  void admit(FileDescriptor memory);
  int why_not_admit(pid_t process) const;
  void sleep();

  StackSettings settings_;
  std::unique_ptr<Port> port_;
  FileDescriptor control_;
  ipc::FrameReader frames_;
  std::optional<ipc::Frame> connection_;  ///< of an application whose memory comes next
  PartClock clock_;
  TxBuffers buffers_;
  hostcopy::AcceleratorPool pool_;
  hostcopy::Accelerator accelerator_;
  SessionServer server_;
  std::unique_ptr<Tcp> tcp_;
  std::unique_ptr<TxStage> stage_;
  Clock::time_point next_report_;
  bool is_over_ = false;
};

}  // namespace catena::stack
