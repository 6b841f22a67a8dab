// SPDX-License-Identifier: Apache-2.0
#include "stack/segment/attachment.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/ipc/frames.hpp"
#include "base/ipc/unix_address.hpp"
#include "stack/segment/attach.hpp"
#include "stack/segment/fifo.hpp"

namespace catena::stack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMaxFrame = 64;
constexpr std::chrono::seconds kAnswerLimit{1};
constexpr int kLowestNumber = 512;  ///< of the socket: programs give low numbers to files of their own by dup2(2)

template <typename Body>
bool read_body(ipc::Frame const& frame, Body& body) {
  if (frame.body.size() != sizeof body) {
    return false;
  }
  std::memcpy(&body, frame.body.data(), sizeof body);
  return true;
}

/// A socket that is connected to `path`; negative: an error.
int connect_to(const char* path, FileDescriptor& socket) {
  const Result<sockaddr_un> address = ipc::unix_address(path);
  if (!address.ok()) {
    return -ENOENT;
  }
  socket = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    return -ENOMEM;
  }
  if (FileDescriptor high(::fcntl(socket.get(), F_DUPFD_CLOEXEC, kLowestNumber)); high) {
    socket = std::move(high);  // else the limit of open files is below
  }
  return ::connect(socket.get(), ipc::raw(*address), sizeof *address) == 0 ? 0 : -errno;
}

}  // namespace

Result<ipc::Mapping> map_segment(FileDescriptor memory, SegmentShape const& shape) {
  return ipc::Mapping::map(std::move(memory), SharedSegment::bytes(shape), 0, ipc::Pages::kWhenWritten);
}

int Attachment::open(const char* path, std::unique_ptr<Attachment>& attachment) {
  FileDescriptor socket;
  if (const int error = connect_to(path, socket); error != 0) {
    return error;
  }
  return attach(std::move(socket), attachment);
}

int Attachment::attach(FileDescriptor socket, std::unique_ptr<Attachment>& attachment) {
  Result<ipc::Frame> frame = ipc::receive_frame(socket.get(), kMaxFrame);
  RefusedBody refused{};
  if (frame.ok() && frame->call == kRefused && read_body(*frame, refused)) {
    return refused.error > 0 ? -refused.error : -EPROTO;
  }
  if (absl::IsUnavailable(frame.status())) {
    return -ECONNREFUSED;  // the stack's process has ended; its socket stays
  }
  AttachedBody attached;
  if (!frame.ok() || frame->call != kAttached || !read_body(*frame, attached) || !frame->fd ||
      !is_possible(attached.shape)) {
    return -EPROTO;
  }
  Result<ipc::Mapping> memory = map_segment(std::move(frame->fd), attached.shape);
  if (!memory.ok()) {
    return absl::IsResourceExhausted(memory.status()) ? -ENOMEM : -EPROTO;
  }
  memory->take_fd();  // one descriptor less that a program may close, and its next file get the number of
  attachment = std::make_unique<Attachment>(*std::move(memory), attached.shape, std::move(socket));
  return 0;
}

Attachment::Attachment(ipc::Mapping memory, SegmentShape const& shape, FileDescriptor socket)
    : socket_(std::move(socket)),
      memory_(std::move(memory)),
      segment_(memory_.bytes(), shape),
      events_(segment_.events_head(), segment_.events(), socket_.get()),
      commands_(segment_.commands_head(), segment_.commands(), socket_.get()),
      sessions_(shape.sessions) {
  for (std::uint32_t slot = 0; slot < shape.sessions; ++slot) {
    sessions_[slot].slot = slot;
  }
}

bool Attachment::is_stack_gone() {
  has_lost_stack_ = has_lost_stack_ || ipc::is_other_end_closed(socket_.get());
  return has_lost_stack_;
}

/// What event `number` means; false: nothing for the caller.
bool Attachment::note(std::uint32_t number, catena_event& event) {
  if (number >= segment_.shape().sessions) {
    return false;  // an answer to ask()
  }
  StackLine& line = segment_.stack_line(number);
  line.notified.exchange(0);  // before the rest is read: what changes later comes with another event
  const std::uint32_t generation = line.generation.load(std::memory_order_acquire);
  Session& session = sessions_[number];
  const std::uint16_t port = line.local.port;
  if (session.state == Session::State::kOpen && session.generation == generation) {
    event = {.session = std::uint64_t{generation} << 32U | number, .events = state(session), .port = port};
    return true;
  }
  if (session.generation == generation) {
    return false;  // closed, or not accepted yet
  }
  session = {.state = Session::State::kWaiting, .slot = number, .generation = generation};
  Listener* const listener = listener_of(port);
  if (listener == nullptr) {
    end(session, AppLine::kReturn);
    return false;
  }
  listener->waiting.push_back(number);
  event = {.session = 0, .events = CATENA_ACCEPTABLE, .port = port};
  return true;
}

int Attachment::events(std::span<catena_event> events) {
  std::size_t count = 0;
  // without an event, a look at the empty ring arms it; what came meanwhile is taken at once
  for (bool is_armed = false; count == 0 && (!is_armed || events_.has_messages());) {
    while (count < events.size() && events_.has_messages()) {
      const auto message = events_.poll();
      if (!message.ok() || !message->has_value() || (*message)->size() != 1) {
        has_lost_stack_ = true;
        return -ESTALE;
      }
      const std::uint32_t number = (**message)[0];
      events_.take();
      count += note(number, events[count]) ? 1 : 0;
    }
    if (count == 0) {
      if (is_stack_gone()) {
        return -ESTALE;
      }
      static_cast<void>(events_.poll());
      is_armed = true;
    }
  }
  return static_cast<int>(count);
}

int Attachment::wait(int timeout_ms) {
  if (events_.has_messages()) {
    return 1;
  }
  const auto armed = events_.poll();
  if (!armed.ok() || is_stack_gone()) {
    has_lost_stack_ = true;
    return -ESTALE;
  }
  // once more: arming the ring may have cleared the wake-up of an event that came meanwhile
  if (armed->has_value() || events_.has_messages()) {
    return 1;
  }
  pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  const int ready = ::poll(&readable, 1, timeout_ms);
  return ready < 0 ? -errno : ready;
}

void Attachment::command(std::uint32_t number, std::atomic<std::uint32_t>& commanded) {
  if (commanded.exchange(1) == 0) {
    commands_.next()[0] = number;
    commands_.push(1);
    commands_.wake();
  }
}

void Attachment::command(Session const& session) { command(session.slot, segment_.app_line(session.slot).commanded); }

/// Asks the stack to listen, or to end that (`backlog` 0).
int Attachment::ask(std::uint32_t number, std::uint16_t port, std::uint32_t backlog) {
  ListenerLine& line = segment_.listener(number);
  const std::uint32_t request = line.request.load(std::memory_order_relaxed) + 1;
  line.port.store(port, std::memory_order_relaxed);
  line.backlog.store(backlog, std::memory_order_relaxed);
  line.request.store(request, std::memory_order_release);
  command(segment_.shape().sessions + number, line.commanded);
  for (const auto end = Clock::now() + kAnswerLimit; Clock::now() < end;) {
    if (line.answered.load(std::memory_order_acquire) == request) {
      return -static_cast<int>(line.error.load(std::memory_order_relaxed));
    }
    if (is_stack_gone()) {
      return -ESTALE;
    }
    ::poll(nullptr, 0, 1);
  }
  return -ETIMEDOUT;
}

Attachment::Listener* Attachment::listener_of(std::uint16_t port) {
  const auto found = std::ranges::find(listeners_, port, &Listener::port);
  return found == listeners_.end() ? nullptr : &*found;
}

int Attachment::listen(std::uint16_t port, int backlog) {
  if (port == 0 || backlog < 1 || backlog > CATENA_MAX_BACKLOG) {
    return -EINVAL;
  }
  if (listener_of(port) != nullptr) {
    return -EADDRINUSE;
  }
  std::uint32_t number = 0;
  while (std::ranges::find(listeners_, number, &Listener::number) != listeners_.end()) {
    ++number;
  }
  if (number == SharedSegment::kListeners) {
    return -ENOSPC;
  }
  listeners_.push_back({.number = number, .port = port, .waiting = {}});
  const int answer = ask(number, port, static_cast<std::uint32_t>(backlog));
  if (answer != 0) {
    std::erase_if(listeners_, [port](Listener const& listener) { return listener.port == port; });
  }
  return answer;
}

int Attachment::unlisten(std::uint16_t port) {
  Listener* const listener = listener_of(port);
  if (listener == nullptr) {
    return -EINVAL;
  }
  const int answer = ask(listener->number, port, 0);
  for (const std::uint32_t slot : listener->waiting) {
    end(sessions_[slot], AppLine::kReturn);
  }
  std::erase_if(listeners_, [port](Listener const& each) { return each.port == port; });
  return answer;
}

int Attachment::accept(std::uint16_t port, catena_session& session) {
  Listener* const listener = listener_of(port);
  if (listener == nullptr) {
    return -EINVAL;
  }
  if (listener->waiting.empty()) {
    return is_stack_gone() ? -ESTALE : -EAGAIN;
  }
  Session& accepted = sessions_[listener->waiting.front()];
  listener->waiting.pop_front();
  accepted.state = Session::State::kOpen;
  segment_.app_line(accepted.slot).wishes.fetch_or(AppLine::kAccepted, std::memory_order_release);
  session = std::uint64_t{accepted.generation} << 32U | accepted.slot;
  return 0;
}

Attachment::Session* Attachment::find(catena_session session) {
  const auto slot = static_cast<std::uint32_t>(session);
  if (slot >= sessions_.size() || sessions_[slot].state != Session::State::kOpen ||
      sessions_[slot].generation != session >> 32U) {
    return nullptr;
  }
  return &sessions_[slot];
}

std::uint32_t Attachment::state(Session const& session) const {
  const std::uint32_t said = segment_.stack_line(session.slot).state.load(std::memory_order_acquire);
  const bool is_closed = (said & StackLine::kPeerClosed) != 0;
  const bool is_reset = has_lost_stack_ || (said & StackLine::kReset) != 0;
  const bool has_space = !session.ends_sending && !is_reset && unsent(session) < segment_.shape().tx_bytes;
  std::uint32_t bits = 0;
  const auto set = [&bits](bool is_set, std::uint32_t bit) { bits |= is_set ? bit : 0; };
  set(readable(session) > 0 || is_closed, CATENA_READABLE);
  set(has_space, CATENA_WRITABLE);
  set(is_closed, CATENA_PEER_CLOSED);
  set(is_reset, CATENA_RESET);
  return bits;
}

std::uint32_t Attachment::readable(Session const& session) const {
  const std::uint32_t received = segment_.stack_line(session.slot).received.load(std::memory_order_acquire);
  return std::min(received - session.consumed, segment_.shape().rx_bytes);
}

std::span<const std::byte> Attachment::peek(Session const& session) const {
  return piece_of(segment_.rx(session.slot), session.consumed, readable(session));
}

void Attachment::consume(Session& session, std::uint32_t count) {
  session.consumed += count;
  segment_.app_line(session.slot).consumed.store(session.consumed, std::memory_order_release);
  // the window is opened in large steps, so that not every read wakes the stack
  if (session.consumed - session.reported >= segment_.shape().rx_bytes / 4) {
    session.reported = session.consumed;
    command(session);
  }
}

std::uint32_t Attachment::unsent(Session const& session) const {
  const std::uint32_t freed = segment_.stack_line(session.slot).freed.load(std::memory_order_acquire);
  return std::min(session.committed - freed, segment_.shape().tx_bytes);
}

std::span<std::byte> Attachment::reserve(Session& session) {
  const std::uint32_t size = segment_.shape().tx_bytes;
  if (unsent(session) == size) {
    segment_.app_line(session.slot).wants_space.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // the stack looks at it after it has freed bytes
  }
  return piece_of(segment_.tx(session.slot), session.committed, size - unsent(session));
}

void Attachment::commit(Session& session, std::uint32_t count) {
  session.committed += count;
  segment_.app_line(session.slot).committed.store(session.committed, std::memory_order_release);
  command(session);
}

void Attachment::shutdown(Session& session) {
  session.ends_sending = true;
  segment_.app_line(session.slot).wishes.fetch_or(AppLine::kShutdown, std::memory_order_release);
  command(session);
}

void Attachment::end(Session& session, AppLine::Wish how) {
  session.state = Session::State::kFree;
  segment_.app_line(session.slot).wishes.fetch_or(how, std::memory_order_release);
  command(session);
}

}  // namespace catena::stack
