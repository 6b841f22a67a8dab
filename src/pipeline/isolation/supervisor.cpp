// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/supervisor.hpp"

#include "base/core/log_context.hpp"
#include "base/ipc/shared_memory.hpp"

#include <catena/core/text.hpp>

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace catena::nf_process {
namespace {

using Clock = std::chrono::steady_clock;
using ipc::Frame;
using std::chrono::milliseconds;

/// In which a process has to create its NFs: rules are compiled then.
constexpr std::chrono::seconds kStartLimit{120};
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
/// Requests for a device that a process may make while it starts.
constexpr std::size_t kMaxDeviceRequests = 4;

/// What all NFs of a process touch, as they have one frame between them.
FieldUse all_of(std::vector<Started> const& nfs) {
  FieldUse all{packet::kNoFields, packet::kNoFields};
  for (Started const& nf : nfs) {
    all.reads |= nf.field_use.reads;
    all.writes |= nf.field_use.writes;
  }
  return all;
}

bool is_same(NfInfo const& one, NfInfo const& other) {
  return one.type == other.type && one.drop_reasons == other.drop_reasons && one.packet_outputs == other.packet_outputs;
}

/// Limits the writes of one incarnation.
class WritePace {
 public:
  /// Waits until the next write may be executed, or until `stop` is readable. Called at `written`, after a write.
  void wait(Clock::time_point written, int stop) {
    due_ = std::max(due_, written - kWritesKept) + kWriteEvery;
    if (due_ > written) {
      pollfd asked{stop, POLLIN, 0};
      ::poll(&asked, 1, poll_time(due_));
    }
  }

 private:
  Clock::time_point due_ = Clock::now() - kWritesKept;
};

/// Limits the messages of one incarnation.
class FramePace {
 public:
  explicit FramePace(std::size_t nfs) : limit_(kMaxFramesPerSecond * nfs) {}
  Status count() {
    if (Clock::now() - second_ > std::chrono::seconds(1)) {
      second_ = Clock::now();
      frames_ = 0;
    }
    return ++frames_ > limit_ ? absl::DataLossError("it sends messages without end") : absl::OkStatus();
  }

 private:
  std::size_t limit_;
  Clock::time_point second_ = Clock::now();
  std::size_t frames_ = 0;
};

}  // namespace

Supervisor::Supervisor(ProcessOptions own_options) : options(std::move(own_options)) {
  rights.nf = options.name;
  rights.is_trial = options.is_trial;
}

Supervisor::~Supervisor() {
  on_give_up_.reset();
  signal.stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Status Supervisor::launch() {
  CATENA_ASSIGN_OR_RETURN(notifier, make_event());
  CATENA_RETURN_IF_ERROR(signal.open());
  on_give_up_.emplace(options.give_up, [this] { signal.stop(); });
  CATENA_ASSIGN_OR_RETURN(now_, Incarnation::start(options, rights, notifier.get()));
  return absl::OkStatus();
}

Result<NfInfo> Supervisor::add(StartRequest request, std::vector<nf::NamedOutput> outputs) {
  CATENA_ASSIGN_OR_RETURN(NfInfo info, describe(*now_, request));
  rights.outputs.insert(rights.outputs.end(), outputs.begin(), outputs.end());
  nfs.push_back({std::move(request), info, std::move(outputs)});
  reports.add_nf();
  return info;
}

Status Supervisor::start(Setup const& wanted) {
  setup = wanted;
  for (std::size_t nf = 0; nf < setup.nfs.size(); ++nf) {
    setup.nfs[nf].outputs = nfs[nf].outputs;
  }
  setup.waits_for_state = transfer.expects();
  bool is_refused = false;
  Status status = start_nfs(*now_, setup, &is_refused);
  on_give_up_.reset();
  status.Update(signal.is_stopping() ? absl::CancelledError("its start was aborted") : absl::OkStatus());
  if (!status.ok()) {
    const std::string who = options.group.empty() ? concat("NF '", options.name, "'") : options.name;
    return is_refused ? status
                      : Status(status.code(), concat(options.position, ": ", who, ": ", std::string(status.message())));
  }
  try {
    thread_ = std::thread([this, chain = LogContext::chain()] {
      const LogContext context(chain, options.name);
      keep();
    });
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread to watch a process: ", error.what()));
  }
  return absl::OkStatus();
}

Result<Frame> Supervisor::receive(Incarnation& incarnation, Clock::time_point deadline) {
  return incarnation.receive(deadline, signal.fd(), [this, &incarnation] { return why_stopped(incarnation); });
}

Result<NfInfo> Supervisor::describe(Incarnation& incarnation, StartRequest const& nf) {
  return incarnation.describe(nf, signal.fd(), [this, &incarnation] { return why_stopped(incarnation); });
}

Status Supervisor::start_nfs(Incarnation& incarnation, Setup const& with, bool* is_refused) {
  CATENA_RETURN_IF_ERROR(incarnation.connect(with));
  CATENA_RETURN_IF_ERROR(incarnation.send(Call::kStart, to_json(with)));
  const Clock::time_point deadline = Clock::now() + kStartLimit;
  for (std::size_t asked = 0;;) {
    CATENA_ASSIGN_OR_RETURN(const Frame frame, receive(incarnation, deadline));
    if (FileBroker::is_asked_by(frame)) {
      CATENA_RETURN_IF_ERROR(incarnation.serve_output(frame));
      continue;
    }
    switch (static_cast<Call>(frame.call)) {
      case Call::kWantDevice:
        if (++asked > kMaxDeviceRequests) {
          return absl::DataLossError("it requests devices without end");
        }
        CATENA_RETURN_IF_ERROR(incarnation.give_device(setup));
        break;
      case Call::kRefused:
        if (is_refused != nullptr) {
          *is_refused = true;
        }
        return read_error(text_of(frame.body));
      case Call::kStarted: {
        CATENA_ASSIGN_OR_RETURN(std::vector<Started> started, read_started(text_of(frame.body), nfs.size()));
        incarnation.connection()->field_mask = FieldMask(all_of(started));
        transfer.set_waiting(with.waits_for_state ? incarnation.connection().get() : nullptr);
        reports.set_started(std::move(started), incarnation.pid(), incarnation.connection());
        return absl::OkStatus();
      }
      default:
        return absl::DataLossError("its process does not report whether it has started");
    }
  }
}

Status Supervisor::watch(Incarnation& incarnation) {
  FramePace frames(nfs.size());
  WritePace writes;
  for (;;) {
    Result<Frame> frame = receive(incarnation, Clock::now() + std::chrono::seconds(1));
    if (absl::IsDeadlineExceeded(frame.status())) {
      continue;
    }
    CATENA_RETURN_IF_ERROR(frame.status());
    if (FileBroker::is_asked_by(*frame)) {
      CATENA_RETURN_IF_ERROR(incarnation.serve_output(*frame));
      const Clock::time_point written = Clock::now();
      incarnation.connection()->wrote_at = written;
      writes.wait(written, signal.fd());
      continue;
    }
    CATENA_RETURN_IF_ERROR(frames.count());
    CATENA_ASSIGN_OR_RETURN(const bool has_finished, take(incarnation, *frame));
    if (has_finished) {
      incarnation.wait_for_exit();
      return absl::OkStatus();
    }
  }
}

Status Supervisor::why_stopped(Incarnation const& incarnation) {
  CATENA_RETURN_IF_ERROR(signal.acknowledge());
  Connection const* const connection = incarnation.connection().get();
  if (const auto states = transfer.states_for(connection)) {
    CATENA_RETURN_IF_ERROR(let_begin(incarnation, *states));
  }
  return signal.failure_of(connection);
}

Status Supervisor::make_room(Incarnation const& incarnation, StateOf const& said) {
  CATENA_ASSIGN_OR_RETURN(FileDescriptor memory, ipc::make_peer_memory("catena_state", memory_bytes(said)));
  CATENA_ASSIGN_OR_RETURN(const int fd, transfer.leave(said, std::move(memory), incarnation.connection()->is_closed));
  incarnation.allow(memory_bytes(said));
  return incarnation.send(Call::kStateMemory, "", fd);
}

Status Supervisor::let_begin(Incarnation const& incarnation, std::vector<StateTransfer::State> const& states) {
  for (StateTransfer::State const& state : states) {
    incarnation.allow(memory_bytes(state.of));
    CATENA_RETURN_IF_ERROR(incarnation.send(Call::kTakeState, to_json(state.of), state.memory.get()));
  }
  return incarnation.send(Call::kBegin, "");
}

Result<bool> Supervisor::take(Incarnation& incarnation, Frame const& frame) {
  const std::string_view text = text_of(frame.body);
  switch (static_cast<Call>(frame.call)) {
    case Call::kStatistics: {
      CATENA_ASSIGN_OR_RETURN(NfStatistics said, read_statistics(text, nfs.size()));
      reports.set_statistics(std::move(said));
      return false;
    }
    case Call::kWantDevice:
      CATENA_RETURN_IF_ERROR(incarnation.give_device(setup));
      return false;
    case Call::kState: {
      CATENA_ASSIGN_OR_RETURN(const StateOf said, read_state_of(text, nfs.size()));
      CATENA_RETURN_IF_ERROR(make_room(incarnation, said));
      return false;
    }
    case Call::kBegun: {
      CATENA_ASSIGN_OR_RETURN(std::vector<Status> said, read_begun(text, nfs.size()));
      CATENA_RETURN_IF_ERROR(transfer.set_begun(incarnation.connection().get(), std::move(said)));
      return false;
    }
    case Call::kEnded: {
      CATENA_ASSIGN_OR_RETURN(Ended said, read_ended(text));
      if (!incarnation.connection()->is_closed) {
        return absl::DataLossError(said.status.ok()
                                       ? "its process ended, and packets were still to come"
                                       : concat("its process ended: ", std::string(said.status.message())));
      }
      reports.set_ended(std::move(said.status));
      return true;
    }
    default:
      return absl::DataLossError("NF process sent an unexpected message");
  }
}

Status Supervisor::try_again() {
  try {
    return begin_again();
  } catch (std::exception const& error) {
    return absl::ResourceExhaustedError(error.what());
  }
}

Status Supervisor::begin_again() {
  CATENA_ASSIGN_OR_RETURN(auto next, Incarnation::start(options, rights, notifier.get()));
  for (AddedNf const& nf : nfs) {
    CATENA_ASSIGN_OR_RETURN(const NfInfo said, describe(*next, nf.request));
    if (!is_same(said, nf.info)) {
      return absl::DataLossError("it reports a different NF than before");
    }
  }
  Setup with = setup;
  // continues from the saved state, whatever the first incarnation had: its keys were used before
  with.context = {.live_tx = true};
  with.waits_for_state = false;
  rights.keeps_files = setup.context.live_tx;
  CATENA_RETURN_IF_ERROR(start_nfs(*next, with));
  now_ = std::move(next);
  return absl::OkStatus();
}

bool Supervisor::start_again(Status why, milliseconds& next_pause) {
  while (!signal.is_stopping()) {
    spdlog::error("{}: {}; it is started again{}", options.name, std::string(why.message()),
                  next_pause.count() == 0 ? "" : concat(" in ", next_pause.count(), " ms"));
    reports.set_delayed(next_pause.count() != 0);
    if (!signal.wait(next_pause)) {
      return false;
    }
    next_pause = std::clamp(next_pause * 2, kFirstPause, kLongestPause);
    signal.forget();
    why = try_again();
    if (why.ok()) {
      reports.count_restart();
      return true;
    }
  }
  return false;
}

void Supervisor::keep() {
  milliseconds next_pause{0};
  for (;;) {
    const Clock::time_point born = Clock::now();
    Status status = watch(*now_);
    reports.set_dead();
    transfer.set_waiting(nullptr);
    if (!status.ok()) {
      transfer.forget_left();  // what it had not filled yet
    }
    now_.reset();
    if (status.ok() || absl::IsCancelled(status)) {
      return;
    }
    if (Clock::now() - born > kLongRun) {
      next_pause = milliseconds(0);
    }
    if (!start_again(std::move(status), next_pause)) {
      return;
    }
  }
}

}  // namespace catena::nf_process
