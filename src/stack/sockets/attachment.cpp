// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/attachment.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <new>

#include "stack/sockets/epoll.hpp"
#include "stack/sockets/listeners.hpp"
#include "stack/sockets/notice.hpp"
#include "stack/sockets/real_calls.hpp"
#include "stack/sockets/settings.hpp"

namespace catena::sockets {
namespace {

/// In memory that the kernel clears in a child of fork(2), clone(2) too: the check costs one load, getpid(2) is a
/// system call.
struct ForkMark {
  std::atomic<bool> is_same_process;
};
ForkMark* fork_mark = nullptr;

ForkMark* make_fork_mark() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || ::madvise(page, 4096, MADV_WIPEONFORK) != 0) {
    return nullptr;
  }
  return new (page) ForkMark{true};
}

// the address of a thread's own variable is its number, without a system call
[[gnu::tls_model("initial-exec")]] thread_local char own_byte;
std::atomic<char*> owner{nullptr};

bool is_owner() {
  char* expected = nullptr;
  return owner.compare_exchange_strong(expected, &own_byte) || expected == &own_byte;
}

/// Sessions that other threads have closed, the last one first.
std::atomic<Session*> left{nullptr};

/// The descriptor of the attachment to the stack, which no call of the program opened; -1: not attached.
std::atomic<int> own_descriptor{-1};

/// After fork(2), in the child. A copy of the parent's descriptor would keep the parent attached after its end. Its
/// number stays in use until forget_parent() closes it.
void let_go_of_parent() {
  const int number = own_descriptor;
  if (number < 0) {
    return;
  }
  const int other = ::eventfd(0, EFD_CLOEXEC);
  real().dup3(other, number, O_CLOEXEC);
  real().close(other);
}

/// A number as the detail of a notice.
struct Decimal {
  explicit Decimal(int number) { *std::to_chars(text, text + sizeof text - 1, number).ptr = '\0'; }
  char text[12];
};

}  // namespace

[[gnu::destructor]] void close_at_exit() {
  if (fork_mark != nullptr && fork_mark->is_same_process && is_owner()) {
    Attachment::get().close_all();
  }
}

Attachment& Attachment::get() {
  // never freed: a program may call until its end
  static Attachment& attachment = *new Attachment;
  return attachment;
}

int Attachment::check(Descriptor const& descriptor, char const* call) {
  if (fork_mark != nullptr && !fork_mark->is_same_process.load(std::memory_order_relaxed)) {
    forget_parent();
  }
  if (descriptor.kind == Kind::kSession && static_cast<Session const&>(descriptor).life == Life::kParents) {
    tell(Notice::kFork, call);
    return -EBADF;
  }
  if (descriptor.kind == Kind::kSession && static_cast<Session const&>(descriptor).is_left) {
    return -EBADF;
  }
  if (is_wanted_ && !is_owner()) {
    tell(Notice::kThread, call);
    return -EOPNOTSUPP;
  }
  return 0;
}

int Attachment::descriptor() { return own_descriptor; }

void Attachment::detach() {
  if (stack_ == nullptr) {
    return;
  }
  own_descriptor = -1;
  ::catena_stack_detach(stack_);
  stack_ = nullptr;
}

void Attachment::forget_parent() {
  detach();
  sessions_.clear();
  held_.clear();
  ended_.clear();
  left = nullptr;
  owner = nullptr;
  is_wanted_ = false;
  next_attempt_ms_ = 0;
  for (Descriptor* one = next_from(0); one != nullptr; one = next_from(one->number + 1)) {
    if (one->kind == Kind::kSession) {
      static_cast<Session*>(one)->life = Life::kParents;
      static_cast<Session*>(one)->is_left = false;
      drop_watches(*one);
    } else if (one->kind == Kind::kListener) {
      static_cast<Listener*>(one)->is_wanted = false;
      static_cast<Listener*>(one)->waiting.clear();
    }
  }
  fork_mark->is_same_process = true;
}

void Attachment::want(Listener& listener) {
  if (listener.is_wanted || !listener.is_listening || !is_owner()) {
    return;
  }
  if (fork_mark == nullptr) {
    fork_mark = make_fork_mark();
    if (fork_mark == nullptr || ::pthread_atfork(nullptr, nullptr, &let_go_of_parent) != 0) {
      return tell(Notice::kAttachRefused, settings().path, errno);
    }
  }
  is_wanted_ = true;
  const bool is_first = !has_wanted(listener.port);
  listener.is_wanted = true;
  if (stack_ == nullptr) {
    attach_if_due();
  } else if (is_first) {
    listen(listener);
  }
}

void Attachment::unwant(Listener& listener) {
  if (!listener.is_wanted) {
    return;
  }
  listener.is_wanted = false;
  if (stack_ == nullptr) {
    return;
  }
  for (const catena_session session : listener.waiting) {
    ::catena_session_abort(stack_, session);
  }
  listener.waiting.clear();
  if (!has_wanted(listener.port)) {
    ::catena_stack_unlisten(stack_, listener.port);
  }
}

void Attachment::listen(Listener& listener) {
  const int result = ::catena_stack_listen(stack_, listener.port, listener.backlog);
  if (result == -ESTALE) {
    lose();
  } else if (result < 0) {
    tell(Notice::kListenRefused, Decimal(listener.port).text, -result);
  }
}

void Attachment::attach_if_due() {
  if (stack_ != nullptr || !is_wanted_ || Deadline::now_ms() < next_attempt_ms_) {
    return;
  }
  const int result = ::catena_stack_attach(settings().path, &stack_);
  if (result < 0) {
    stack_ = nullptr;
    next_attempt_ms_ = Deadline::now_ms() + kRetryMs;
    switch (-result) {
      case ENOENT:
      case ECONNREFUSED:
        return tell(Notice::kNoStack, settings().path);
      case EUSERS:
        return tell(Notice::kStackFull, settings().path);
      default:
        return tell(Notice::kAttachRefused, settings().path, -result);
    }
  }
  own_descriptor = ::catena_stack_descriptor(stack_);
  ++number_;
  for_each_wanted_port([this](Listener& listener) {
    if (stack_ != nullptr) {
      listen(listener);
    }
  });
}

int Attachment::pump() {
  end_left();
  attach_if_due();
  if (stack_ == nullptr) {
    return 0;
  }
  constexpr int kMost = 64;
  catena_event events[kMost];
  const int count = ::catena_stack_events(stack_, events, kMost);
  if (count < 0) {
    lose();
    return 1;  // all sessions changed
  }
  for (int i = 0; i < count; ++i) {
    if (events[i].session == 0) {
      mark_ready_at_port(events[i].port);
    } else if (const auto found = sessions_.find(events[i].session); found != sessions_.end()) {
      mark_ready(*found->second);
    }
  }
  return count;
}

int Attachment::wait(Deadline const& deadline) {
  send_held();
  if (pump() > 0) {
    return 0;
  }
  if (deadline.is_over()) {
    return -ETIMEDOUT;
  }
  const int timeout_ms = deadline.remaining_ms(sleep_limit_ms());
  if (stack_ == nullptr) {
    return real().poll(nullptr, 0, timeout_ms) < 0 ? -errno : 0;
  }
  const int result = ::catena_stack_wait(stack_, timeout_ms);
  if (result == -EINTR) {
    return result;
  }
  if (result < 0) {
    lose();
  }
  return 0;
}

void Attachment::send_held() {
  for (Session* session : held_) {
    ::catena_session_commit(stack_, session->id, session->held);
    session->held = 0;
  }
  held_.clear();
}

void Attachment::hold(Session& session) { held_.push_back(&session); }

int Attachment::leave(Session& session) {
  if (session.is_left.exchange(true)) {
    return -EBADF;
  }
  session.next_left = left.load();
  while (!left.compare_exchange_weak(session.next_left, &session)) {
  }
  return 0;
}

/// A call of the owner's may be waiting for such a session: it finds a lost one.
void Attachment::end_left() {
  if (left.load(std::memory_order_relaxed) == nullptr) {
    return;
  }
  for (Session* session = left.exchange(nullptr); session != nullptr; session = session->next_left) {
    forget(*session);
    if (session->life == Life::kOpen) {
      ::catena_session_close(stack_, session->id);
      session->life = Life::kLost;
    }
    drop_watches(*session);
    ended_.push_back(session);
  }
}

void Attachment::reap() {
  if (owner != &own_byte) {
    return;
  }
  end_left();
  for (Session* const session : ended_) {
    real().close(session->number);
    remove(session);
  }
  ended_.clear();
}

void Attachment::open(Session& session) { sessions_.emplace(session.id, &session); }

void Attachment::forget(Session& session) {
  if (session.held > 0) {
    send_held();
  }
  // the number of a lost session may be another one's at the next stack
  if (const auto found = sessions_.find(session.id); found != sessions_.end() && found->second == &session) {
    sessions_.erase(found);
  }
}

void Attachment::close_all() {
  if (stack_ == nullptr) {
    return;
  }
  send_held();
  for (const auto& [id, session] : sessions_) {
    ::catena_session_close(stack_, id);
  }
}

void Attachment::lose() {
  if (stack_ == nullptr) {
    return;
  }
  detach();
  next_attempt_ms_ = 0;
  held_.clear();
  for_each_listener([](Listener& listener) { listener.waiting.clear(); });
  for (const auto& [id, session] : sessions_) {
    session->life = Life::kLost;
    session->held = 0;
    mark_ready(*session);
  }
  sessions_.clear();
}

}  // namespace catena::sockets
