// SPDX-License-Identifier: Apache-2.0
#include "stack/process/stack_loop.hpp"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <poll.h>
#include <sched.h>

#include "stack/segment/attach.hpp"

namespace catena::stack {
namespace {

constexpr int kFramesPerRound = 64;
constexpr int kIdleRounds = 20;    ///< before a sleep: a wake-up costs more than they do
constexpr int kControlEvery = 64;  ///< rounds, beside the first idle one and those after a sleep: a system call
constexpr std::chrono::milliseconds kReportEvery{200};
constexpr hostcopy::Engine::Limits kEngineLimits{.jobs = 1024, .moves = 1};

/// Whether a small frame can be sent without a wait: the supervisor may be stopped.
bool has_room(int socket) {
  pollfd room{.fd = socket, .events = POLLOUT, .revents = 0};
  return ::poll(&room, 1, 0) == 1;
}

template <typename Body>
std::span<const std::byte> bytes_of(Body const& body) {
  return std::as_bytes(std::span(&body, 1));
}

}  // namespace

Result<std::unique_ptr<StackLoop>> StackLoop::create(StackSettings const& settings, std::unique_ptr<Port> port,
                                                     std::vector<std::unique_ptr<hostcopy::Engine>> engines,
                                                     FileDescriptor control, std::chrono::nanoseconds patience,
                                                     int node) {
  CATENA_ASSIGN_OR_RETURN(TxBuffers buffers, TxBuffers::create(settings.tx_buffer_bytes));
  std::vector<hostcopy::AcceleratorPool::Member> members;
  for (std::unique_ptr<hostcopy::Engine>& engine : engines) {
    CATENA_RETURN_IF_ERROR(engine->register_memory(buffers.memory()));
    const int at = engine->capabilities().node;
    members.push_back({.engine = std::move(engine), .node = at});
  }
  std::unique_ptr<StackLoop> loop(new StackLoop(settings, std::move(port), std::move(control), std::move(buffers),
                                                std::move(members), patience, node));
  CATENA_ASSIGN_OR_RETURN(loop->tcp_, Tcp::create(settings.tcp, *loop->port_, loop->server_));
  loop->stage_ = std::make_unique<TxStage>(settings.tx, *loop->tcp_, loop->accelerator_, loop->buffers_, loop->clock_);
  loop->server_.start(*loop->tcp_, *loop->stage_);
  return loop;
}

StackLoop::StackLoop(StackSettings const& settings, std::unique_ptr<Port> port, FileDescriptor control,
                     TxBuffers buffers, std::vector<hostcopy::AcceleratorPool::Member> engines,
                     std::chrono::nanoseconds patience, int node)
    : settings_(settings),
      port_(std::move(port)),
      control_(std::move(control)),
      buffers_(std::move(buffers)),
      pool_(std::move(engines), kEngineLimits),
      accelerator_(pool_, {.node = node, .patience = patience}) {}

StackLoop::~StackLoop() {
  if (tcp_ != nullptr && stage_ != nullptr) {
    server_.stop();
  }
  stage_.reset();
  tcp_.reset();
}

StackReport StackLoop::report() const {
  return {.sessions = server_.counters(),
          .tx = stage_->counters(),
          .copies = accelerator_.counters(),
          .cycles = clock_.cycles(),
          .elapsed = clock_.elapsed(),
          .connections = tcp_->connections(),
          .applications = server_.applications(),
          .buffers_in_use = buffers_.in_use()};
}

bool StackLoop::receive() {
  for (int i = 0; i < kFramesPerRound; ++i) {
    clock_.enter(Part::kPort);
    const std::optional<std::span<const std::byte>> frame = port_->receive();
    if (!frame) {
      return i > 0;
    }
    clock_.enter(Part::kTcp);
    tcp_->input(*frame);
  }
  return true;
}

/// Why a process may not attach once more; 0: it may.
int StackLoop::why_not_admit(pid_t process) const {
  if (server_.applications() >= settings_.max_applications) {
    return EUSERS;
  }
  return process != 0 && server_.applications_of(process) >= settings_.max_of_process ? EMFILE : 0;
}

void StackLoop::admit(FileDescriptor memory) {
  const ipc::Frame frame = *std::exchange(connection_, std::nullopt);
  FileDescriptor const& connection = frame.fd;
  pid_t process = 0;
  std::memcpy(&process, frame.body.data(), sizeof process);
  const int refused = why_not_admit(process);
  FileDescriptor again(::dup(memory.get()));
  Result<ipc::Mapping> mapping = map_segment(std::move(memory), settings_.shape);
  if (refused != 0 || !again || !mapping.ok()) {
    const RefusedBody body{.error = refused != 0 ? refused : ENOMEM};
    static_cast<void>(ipc::send_frame(connection.get(), kRefused, bytes_of(body)));
    return;
  }
  const AttachedBody body{.shape = settings_.shape};
  if (ipc::send_frame(connection.get(), kAttached, bytes_of(body), again.get()).ok()) {
    const auto segment = std::make_shared<ipc::Mapping>(*std::move(mapping));
    const Result<hostcopy::AcceleratorPool::Reach> reach = pool_.register_memory(segment->bytes(), segment);
    if (!reach.ok()) {
      spdlog::warn("the CPU makes the copies of an application: {}", std::string(reach.status().message()));
    }
    server_.attach({.memory = segment,
                    .shape = settings_.shape,
                    .socket = FileDescriptor(::dup(connection.get())),
                    .reach = reach.value_or(nullptr),
                    .process = process});
  }
}

/// Whether there was anything to do.
bool StackLoop::serve_control(Clock::time_point now) {
  if (now >= next_report_ && has_room(control_.get())) {
    next_report_ = now + kReportEvery;
    const StackReport body = report();
    is_over_ |= !ipc::send_frame(control_.get(), static_cast<std::uint32_t>(StackCall::kReport), bytes_of(body)).ok();
  }
  Result<std::optional<ipc::Frame>> frame = frames_.poll(control_.get(), kMaxStackFrame);
  if (!frame.ok()) {
    is_over_ = true;
    return false;
  }
  if (!*frame) {
    return false;
  }
  const auto call = static_cast<StackCall>((*frame)->call);
  if (call == StackCall::kConnection && (*frame)->fd && (*frame)->body.size() == sizeof(pid_t)) {
    connection_ = std::move(**frame);
  } else if (call == StackCall::kMemory && (*frame)->fd && connection_) {
    admit(std::move((*frame)->fd));
  } else {
    spdlog::error("the supervisor sends a frame that does not belong here");
    is_over_ = true;
  }
  return true;
}

/// Waits for a frame, a command, the supervisor or the next timer. Copies in flight are not waited for: an engine wakes
/// nobody.
void StackLoop::sleep() {
  std::vector<pollfd> sockets{{.fd = port_->descriptor(), .events = POLLIN, .revents = 0},
                              {.fd = control_.get(), .events = POLLIN, .revents = 0}};
  server_.arm(sockets);
  clock_.enter(Part::kSession);
  if (server_.poll(Clock::now())) {
    return;
  }
  clock_.enter(Part::kIdle);
  ::poll(sockets.data(), sockets.size(), static_cast<int>(Tcp::kTick.count()));
}

void StackLoop::run() {
  int idle_rounds = 0;
  for (unsigned round = 0; !is_over_; ++round) {
    clock_.begin_round();
    bool has_worked = receive();
    clock_.enter(Part::kSession);
    const Clock::time_point now = Clock::now();
    has_worked |= server_.poll(now);
    clock_.enter(Part::kTcp);
    tcp_->tick(now);
    clock_.enter(Part::kIdle);
    if (idle_rounds == 1 || idle_rounds >= kIdleRounds || round % kControlEvery == 0) {
      has_worked |= serve_control(now);
    }
    if (!has_worked) {
      clock_.forget_round();
    }
    if (has_worked) {
      idle_rounds = 0;
    } else if (stage_->is_copying() || port_->descriptor() < 0 || ++idle_rounds < kIdleRounds) {
      ::sched_yield();
    } else {
      sleep();
    }
  }
}

}  // namespace catena::stack
