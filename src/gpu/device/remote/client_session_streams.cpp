// SPDX-License-Identifier: Apache-2.0
// The commands of a client's streams, and what it is told of them.
#include "gpu/device/remote/client_session.hpp"

#include "gpu/device/backend.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <thread>

#include <poll.h>
#include <sys/epoll.h>

namespace catena::device::remote {
namespace {

using Clock = std::chrono::steady_clock;

/// Commands of one stream before the others get their turn.
constexpr int kTurn = 64;
/// How long the session asks again at once before it starts to sleep.
constexpr std::chrono::microseconds kSpin{50};
/// The same while the device works: a launch of a few hundred packets takes about so long, and who sleeps meanwhile is
/// late.
constexpr std::chrono::microseconds kSpinWhileBusy{500};
/// Rounds between two looks at the socket while there are commands.
constexpr int kRoundsPerLook = 32;

std::int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

/// Launches of a client that wait for those of others, or are the ones that run: enough for the device to have the next
/// one when one ends, and few, because all others wait for them.
constexpr std::size_t kMaxTurns = 4;

Status malformed() { return absl::InvalidArgumentError("an invalid command"); }

}  // namespace

Status ClientSession::run() {
  Status why = serve();
  finish_work();
  return why;
}

Status ClientSession::serve() {
  CATENA_RETURN_IF_ERROR(greet());
  Clock::time_point last_work = Clock::now();
  for (int round = 0;; ++round) {
    bool has_done_work = false;
    for (auto& [number, stream] : streams_) {
      CATENA_ASSIGN_OR_RETURN(const bool took, take_commands(stream));
      has_done_work = has_done_work || took;
    }
    CATENA_ASSIGN_OR_RETURN(const bool reached, check_streams());
    has_done_work = has_done_work || reached;
    CATENA_RETURN_IF_ERROR(sweep());
    CATENA_RETURN_IF_ERROR(device_->failed());
    const Clock::time_point now = Clock::now();
    if (has_done_work) {
      last_work = now;
    }
    const bool is_idle = now - last_work > (is_busy() ? kSpinWhileBusy : kSpin);
    if (is_idle || round % kRoundsPerLook == 0) {
      for (auto& [number, stream] : streams_) {
        // also hands the device what waits for a flush() that need not come: nothing is to look endless that never
        // began
        CATENA_RETURN_IF_ERROR(is_idle && (stream.has_work || stream.needs_flush) ? mark_end(stream)
                                                                                  : absl::OkStatus());
      }
      CATENA_RETURN_IF_ERROR(pause(is_idle));
    } else if (!has_done_work) {
      std::this_thread::yield();
    }
  }
}

/// Of a client that is gone: its streams end with what they have to do, which may take long and is not endless for
/// that.
void ClientSession::finish_work() {
  constexpr std::chrono::milliseconds kPeriod{1};
  for (auto& [number, stream] : streams_) {
    static_cast<void>(end_stream(stream));  // of a device that failed: see below
  }
  while (check_streams().ok() && device_->failed().ok() && !streams_.empty()) {
    std::this_thread::sleep_for(kPeriod);
  }
}

/// What the device has come to an end with, of one stream. True if there was something.
Result<bool> ClientSession::check(ServedStream& stream) {
  const std::size_t serializer = stream.serializer.size();
  CATENA_ASSIGN_OR_RETURN(const bool reached, poll_events(stream));
  CATENA_ASSIGN_OR_RETURN(const bool waits, poll_turns(stream));
  const bool has_news = reached || stream.serializer.size() != serializer;
  if (!stream.is_busy() || waits) {
    stream.working_since = 0;
  } else if (has_news || stream.working_since == 0) {
    stream.working_since = now_ns();
  }
  return has_news;
}

/// What it has come to an end with, of all of them; also beside something that takes time, so that nothing looks
/// endless because nobody looked. True if there was something.
Result<bool> ClientSession::check_streams() {
  bool has_news = false;
  for (auto& [number, stream] : streams_) {
    CATENA_ASSIGN_OR_RETURN(const bool of_this, check(stream));
    has_news = has_news || of_this;
  }
  std::erase_if(streams_, [](auto const& entry) { return entry.second.is_ending && !entry.second.is_busy(); });
  note_work();
  return has_news;
}

bool ClientSession::is_busy() const {
  return !graves_.empty() || std::ranges::any_of(streams_, [](auto const& entry) { return entry.second.is_busy(); });
}

bool ClientSession::has_commands() const {
  return std::ranges::any_of(streams_, [](auto const& entry) {
    ServedStream const& stream = entry.second;
    return stream.takes_commands() && !stream.is_held &&
           stream.page->tail.load(std::memory_order_acquire) != stream.head;
  });
}

/// Serves the socket; where `may_sleep`, waits for it or a command, as long as the device has nothing to do.
Status ClientSession::pause(bool may_sleep) {
  // the answer to a slow call comes before the next call
  std::array<pollfd, 2> fds{{{slow_call_ ? -1 : socket_.get(), POLLIN, 0}, {notifier_edges_.get(), POLLIN, 0}}};
  auto& sleeps = page_.as<ClientPage>().server_sleeps;
  if (may_sleep) {
    sleeps.store(1, std::memory_order_relaxed);
    // either the client sees that the server sleeps, or the server sees its command
    std::atomic_thread_fence(std::memory_order_seq_cst);
    may_sleep = !has_commands();
  }
  constexpr timespec kBrief{0, 20'000};
  constexpr timespec kSlow{0, 1'000'000};
  constexpr timespec kNot{0, 0};
  const timespec* const limit = !may_sleep ? &kNot : is_busy() ? &kBrief : slow_call_ ? &kSlow : nullptr;
  static_cast<void>(ppoll(fds.data(), fds.size(), limit, nullptr));
  sleeps.store(0, std::memory_order_relaxed);
  if ((fds[1].revents & POLLIN) != 0) {
    epoll_event edge{};
    static_cast<void>(epoll_wait(notifier_edges_.get(), &edge, 1, 0));
  }
  if (slow_call_) {
    return finish_slow_call();
  }
  return fds[0].revents != 0 ? take_frame() : absl::OkStatus();
}

Result<bool> ClientSession::take_commands(ServedStream& stream) {
  std::array<std::byte, kMaxCommandBytes> bytes;
  const std::uint64_t tail = stream.page->tail.load(std::memory_order_acquire);
  stream.is_held = false;
  if (tail == stream.head || !stream.takes_commands()) {
    return false;
  }
  const std::uint64_t before = stream.head;
  if (tail - stream.head > kRingBytes) {
    return malformed();
  }
  for (int turn = 0; turn < kTurn && stream.head != tail; ++turn) {
    // copied before anything of it is read: the client may change it at any time
    const auto read = [&stream](std::span<std::byte> into) {
      const std::size_t begin = stream.head % kRingBytes;
      const std::size_t first = std::min<std::size_t>(into.size(), kRingBytes - begin);
      std::copy_n(stream.page->ring.begin() + static_cast<std::ptrdiff_t>(begin), first, into.begin());
      std::copy_n(stream.page->ring.begin(), into.size() - first, into.begin() + static_cast<std::ptrdiff_t>(first));
      stream.head += into.size();
    };
    CommandHeader header{};
    if (tail - stream.head < sizeof header) {
      return malformed();
    }
    const std::uint64_t begin = stream.head;
    read(std::as_writable_bytes(std::span(&header, 1)));
    if (header.bytes < sizeof header || header.bytes > kMaxCommandBytes || header.bytes % 8 != 0 ||
        header.bytes - sizeof header > tail - stream.head) {
      return malformed();
    }
    if (header.command == Command::kLaunch || header.command == Command::kEnqueue) {
      stream.is_held = serializer_ != nullptr && has_enough_turns();
    }
    if (stream.is_held) {
      stream.head = begin;
      break;
    }
    const auto body_bytes = std::span(bytes).first(header.bytes - sizeof header);
    read(body_bytes);
    stream.page->head.store(stream.head, std::memory_order_release);
    ipc::Reader body(body_bytes);
    finish(stream, do_command(stream, header.command, body), header.reply);
    if (stream.is_broken) {
      break;
    }
  }
  return stream.head != before;
}

/// Says what became of a command to a client that waits for it; else an error breaks the stream.
void ClientSession::finish(ServedStream& stream, Status const& status, std::uint32_t reply_number) {
  if (reply_number == 0 && status.ok()) {
    return;
  }
  StreamPage& page = *stream.page;
  page.reply_code = static_cast<std::uint32_t>(status.code());
  const std::size_t length = std::min(status.message().size(), page.reply_text.size() - 1);
  std::copy_n(status.message().begin(), length, page.reply_text.begin());
  page.reply_text[length] = '\0';
  // a device that failed for good takes the server with it, which the client learns as from any other stream
  if (reply_number != 0 && device_->failed().ok()) {
    page.replied.store(reply_number, std::memory_order_release);
  } else {
    stream.is_broken = true;
    page.is_broken.store(1, std::memory_order_release);
  }
}

Status ClientSession::do_command(ServedStream& stream, Command command, ipc::Reader& body) {
  switch (command) {
    case Command::kCopy: {
      const auto copy_command = body.take<CopyCommand>();
      return body.ok() ? copy(stream, copy_command) : malformed();
    }
    case Command::kFill: {
      const auto fill = body.take<FillCommand>();
      auto* const memory = find(buffers_, fill.buffer);
      if (!body.ok() || memory == nullptr || (*memory)->memory_range != nullptr) {
        return unknown("buffer", fill.buffer);
      }
      stream.has_work = true;
      return stream.stream->fill(*(*memory)->buffer, fill.offset, fill.bytes, static_cast<std::uint8_t>(fill.value));
    }
    case Command::kLaunch: {
      CATENA_ASSIGN_OR_RETURN(const ReadyLaunch launch, read_launch(body));
      stream.note(launch.kernel->name);
      note_start(stream);
      stream.has_work = true;
      return in_turn(stream, [&stream, &launch] {
        return stream.stream->launch(*launch.kernel->kernel, launch.shape, launch.arguments);
      });
    }
    case Command::kEnqueue:
    case Command::kFinalize: {
      const auto enqueue_command = body.take<EnqueueCommand>();
      return body.ok() ? enqueue(stream, enqueue_command, command == Command::kEnqueue) : malformed();
    }
    case Command::kRecord: {
      const auto record_command = body.take<RecordCommand>();
      return body.ok() ? record(stream, record_command) : malformed();
    }
    case Command::kFlush:
      return stream.stream->flush();
  }
  return malformed();
}

Status ClientSession::copy(ServedStream& stream, CopyCommand const& command) {
  auto* const memory = find(buffers_, command.buffer);
  // a window is the host's memory: devices copy from and to their own
  if (memory == nullptr || (*memory)->memory_range != nullptr) {
    return unknown("buffer", command.buffer);
  }
  auto* const memory_range = find(memory_ranges_, command.memory_range);
  if (memory_range == nullptr || command.memory_range_offset > (*memory_range)->mapping.bytes().size()) {
    return unknown("memory range", command.memory_range);
  }
  Buffer& buffer = *(*memory)->buffer;
  const std::span<std::byte> host = (*memory_range)->mapping.bytes().subspan(command.memory_range_offset);
  stream.has_work = true;
  if (command.rows == 0) {
    if (command.row_bytes > host.size()) {
      return unknown("memory range of this size", command.memory_range);
    }
    const std::span<std::byte> bytes = host.first(command.row_bytes);
    return command.to_device != 0 ? stream.stream->copy_to_device(buffer, command.buffer_offset, bytes)
                                  : stream.stream->copy_to_host(bytes, buffer, command.buffer_offset);
  }
  const RowShape shape{command.row_bytes, command.stride, command.rows};  // the stream checks it against both
  return command.to_device != 0 ? stream.stream->copy_rows_to_device(buffer, command.buffer_offset, host, shape)
                                : stream.stream->copy_rows_to_host(host, buffer, command.buffer_offset, shape);
}

Result<ClientSession::ReadyLaunch> ClientSession::read_launch(ipc::Reader& body) {
  ReadyLaunch launch;
  const auto number = body.take<std::uint32_t>();
  launch.shape.groups = body.take<std::uint32_t>();
  launch.shape.group_size = body.take<std::uint32_t>();
  launch.shape.local_bytes = body.take<std::uint32_t>();
  launch.kernel = find(kernels_, number);
  if (launch.kernel == nullptr) {
    return unknown("kernel", number);
  }
  auto const& loaded = programs_.at(launch.kernel->program);
  launch.uses.push_back(loaded);
  for (auto count = body.take<std::uint32_t>(); count > 0 && body.ok(); --count) {
    const auto kind = body.take<ArgumentKind>();
    if (kind == ArgumentKind::kSizes) {
      launch.arguments.emplace_back(BufferSizes{});
      continue;
    }
    if (kind != ArgumentKind::kBuffer) {
      launch.arguments.emplace_back(body.take_bytes());
      continue;
    }
    const auto buffer = body.take<std::uint32_t>();
    if (buffer == 0) {
      launch.arguments.emplace_back(static_cast<Buffer*>(nullptr));
      continue;
    }
    auto* const memory = find(buffers_, buffer);
    if (memory == nullptr) {
      return unknown("buffer", buffer);
    }
    launch.arguments.emplace_back((*memory)->buffer.get());
    launch.uses.push_back(*memory);
  }
  if (!body.ok()) {
    return malformed();
  }
  if (loaded->form) {
    CATENA_RETURN_IF_ERROR(check_form(*loaded->form, launch.arguments));
  }
  return launch;
}

Status ClientSession::enqueue(ServedStream& stream, EnqueueCommand const& command, bool is_run) {
  auto* const recording = find(recordings_, command.command_buffer);
  if (recording == nullptr) {
    return unknown("command buffer", command.command_buffer);
  }
  if (!is_run) {
    return stream.stream->finalize(*(*recording)->commands);
  }
  stream.note((*recording)->kernels);
  note_start(stream);
  stream.has_work = true;
  CATENA_RETURN_IF_ERROR(
      in_turn(stream, [&stream, recording] { return stream.stream->enqueue(*(*recording)->commands); }));
  if (!(*recording)->times.empty() && stream.ran.size() < kMaxObjects) {
    stream.ran.push_back(command.command_buffer);
  }
  return absl::OkStatus();
}

Status ClientSession::in_turn(ServedStream& stream, std::function<Status()> const& launch) {
  if (serializer_ == nullptr) {
    return launch();
  }
  Turn turn;
  const auto begin_and_launch = [&stream, &launch, &turn]() -> Status {
    CATENA_ASSIGN_OR_RETURN(turn.begin, stream.stream->record());
    return launch();
  };
  CATENA_RETURN_IF_ERROR(serializer_->take(*stream.stream, begin_and_launch));
  CATENA_ASSIGN_OR_RETURN(turn.end, stream.stream->record());
  stream.serializer.push_back(std::move(turn));
  return absl::OkStatus();
}

bool ClientSession::has_enough_turns() const {
  std::size_t serializer = 0;
  for (auto const& [number, stream] : streams_) {
    serializer += stream.serializer.size();
  }
  return serializer >= kMaxTurns;
}

Status ClientSession::record(ServedStream& stream, RecordCommand const& command) {
  const bool has_time = command.time_slot != kNoTime;
  if (command.sequence != stream.last_sequence + 1 || (has_time && command.time_slot >= kTimeSlots)) {
    return malformed();
  }
  if (stream.pending.size() >= kMaxObjects) {
    return absl::ResourceExhaustedError(concat("more than ", kMaxObjects, " unfinished events"));
  }
  stream.last_sequence = command.sequence;
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<Event> event,
                          has_time ? stream.stream->record_timestamp() : stream.stream->record());
  stream.pending.push_back({command.sequence, std::move(event), command.time_slot, std::exchange(stream.ran, {})});
  stream.has_work = false;
  stream.needs_flush = has_time;
  stream.kernels_are_complete = true;
  return absl::OkStatus();
}

void ClientSession::ServedStream::note(std::string_view launched) {
  constexpr std::size_t kEnough = 256;
  if (std::exchange(kernels_are_complete, false)) {
    kernels.clear();
  }
  has_news = true;
  if (kernels.size() < kEnough) {
    kernels += concat(kernels.empty() ? "" : ", ", launched);
  }
}

Result<bool> ClientSession::poll_events(ServedStream& stream) {
  bool has_reached = false;
  while (!stream.pending.empty()) {
    Pending& first = stream.pending.front();
    CATENA_ASSIGN_OR_RETURN(const bool is_ready, first.event->ready());
    if (!is_ready) {
      break;
    }
    write_times(first);
    if (first.sequence != 0) {
      stream.page->reached.store(first.sequence, std::memory_order_release);
    }
    stream.pending.pop_front();
    has_reached = true;
  }
  return has_reached;
}

/// Whether the oldest launch of the stream waits for its turn: then others have to come to an end, and not its client.
Result<bool> ClientSession::poll_turns(ServedStream& stream) {
  while (!stream.serializer.empty()) {
    CATENA_ASSIGN_OR_RETURN(const bool has_ended, stream.serializer.front().end->ready());
    if (!has_ended) {
      CATENA_ASSIGN_OR_RETURN(const bool has_begun, stream.serializer.front().begin->ready());
      return !has_begun;
    }
    stream.serializer.pop_front();
  }
  return false;
}

void ClientSession::write_times(Pending const& pending) {
  for (const std::uint32_t number : pending.recordings) {
    if (auto* const recording = find(recordings_, number); recording != nullptr) {
      for (auto const& [event, slot] : (*recording)->times) {
        write_time(*event, slot);
      }
    }
  }
  if (pending.time_slot == kNoTime) {
    return;
  }
  const std::int64_t time = write_time(*pending.event, pending.time_slot);
  // a device tells times that are near one another most exactly
  constexpr std::int64_t kNear = 100'000'000;
  if (time - reference_time_ > kNear) {
    reference_time_ = time;
    reference_ = pending.event;
  }
}

std::int64_t ClientSession::write_time(Event& event, std::uint32_t slot) {
  const Result<std::chrono::nanoseconds> since = event.since(*reference_);
  if (!since.ok()) {
    return reference_time_;
  }
  const std::int64_t time = reference_time_ + since->count();
  page_.as<ClientPage>().times[slot].store(time, std::memory_order_release);
  return time;
}

/// Of work that the client asks for no event of, the session wants to know the end, too.
Status ClientSession::mark_end(ServedStream& stream) {
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<Event> event, stream.stream->record());
  stream.pending.push_back({0, std::move(event), kNoTime, std::exchange(stream.ran, {})});
  stream.has_work = false;
  stream.needs_flush = false;
  return absl::OkStatus();
}

/// Takes no more commands, and ends the stream with its work: to wait for that here would keep the others from being
/// looked at.
Status ClientSession::end_stream(ServedStream& stream) {
  stream.is_ending = true;
  return stream.has_work || stream.needs_flush ? mark_end(stream) : absl::OkStatus();
}

/// Keeps the black box true: which work is the oldest that has not ended.
void ClientSession::note_work() {
  ServedStream* oldest = nullptr;
  for (auto& [number, stream] : streams_) {
    if (stream.working_since != 0 && (oldest == nullptr || stream.working_since < oldest->working_since)) {
      oldest = &stream;
    }
  }
  if (oldest != nullptr && (oldest->has_news || noted_ != oldest)) {
    box_->kernels.set(oldest->kernels);
    oldest->has_news = false;
  }
  noted_ = oldest;
  box_->working_since.store(oldest == nullptr ? 0 : oldest->working_since, std::memory_order_release);
}

/// Before work goes to the device: one that ends the process, or the client's session, is to be known.
void ClientSession::note_start(ServedStream& stream) {
  if (stream.working_since == 0) {
    stream.working_since = now_ns();
  }
  if (box_->working_since.load(std::memory_order_relaxed) == 0) {
    box_->kernels.set(stream.kernels);
    box_->working_since.store(stream.working_since, std::memory_order_release);
  }
}

/// Keeps what is freed until nothing works on it any more.
Status ClientSession::bury(std::shared_ptr<void> content) {
  Grave grave{std::move(content), {}};
  for (auto& [number, stream] : streams_) {
    if (stream.is_busy()) {
      CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Event> end, stream.stream->record());
      grave.until.push_back(std::move(end));
    }
  }
  if (graves_.size() >= kMaxObjects) {
    return absl::ResourceExhaustedError("the client frees objects faster than the device finishes with them");
  }
  if (!grave.until.empty()) {
    graves_.push_back(std::move(grave));
  }
  return absl::OkStatus();
}

Status ClientSession::sweep() {
  for (auto grave = graves_.begin(); grave != graves_.end();) {
    while (!grave->until.empty()) {
      CATENA_ASSIGN_OR_RETURN(const bool is_ready, grave->until.back()->ready());
      if (!is_ready) {
        break;
      }
      grave->until.pop_back();
    }
    grave = grave->until.empty() ? graves_.erase(grave) : std::next(grave);
  }
  return absl::OkStatus();
}

}  // namespace catena::device::remote
