// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/session.h>
#include <sys/single_threaded.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "stack/sockets/deadline.hpp"
#include "stack/sockets/descriptors.hpp"

namespace catena::sockets {

/// This process's attachment to the stack: made when the process first accepts or polls, made again after the death of
/// the stack, and forgotten in a child process.
///
/// Thread rule: the thread of the first want(). check() refuses others.
class Attachment {
 public:
  /// The process's one.
  static Attachment& get();

  /// 0, or the negative error of a call on `descriptor` here: -EBADF on a connection of the parent process, -EOPNOTSUPP
  /// in a second thread; `call` is named in the notice. Call it before all else on a descriptor.
  int check(Descriptor const& descriptor, char const* call);

  /// The library's own descriptor, which the program has not opened and shall not close; -1: it is not attached. Any
  /// thread.
  static int descriptor();

  /// This process accepts connections at `listener`: attaches, and listens.
  void want(Listener& listener);
  /// Ends want(): waiting connections are reset.
  void unwant(Listener& listener);

  /// Takes the stack's events and marks watches as ready; attaches if due. Returns the number of events. Call
  /// it until it returns 0 before a sleep.
  int pump();
  /// Sends held bytes, pumps, and without an event waits for one of the stack. 0: the caller checks its condition
  /// again. -ETIMEDOUT, -EINTR.
  int wait(Deadline const& deadline);
  /// Sends bytes held back by TCP_CORK and MSG_MORE. Call it before a sleep: the program may wait for the answer.
  void send_held();

  /// A session is the program's: events reach `session`.
  void open(Session& session);
  /// Before the end of a session, which keeps its state until then.
  void forget(Session& session);
  void hold(Session& session);
  /// A thread that may not use `session` closes it: pump() ends the connection, reap() frees it. 0; -EBADF: it has been
  /// closed. Any thread.
  static int leave(Session& session);
  /// Frees the sessions that other threads have closed, and their descriptors. Not while a call uses a session.
  void reap();

  catena_stack* stack() const { return stack_; }  ///< null: no stack serves
  /// Changes with each attachment; 0: not attached.
  std::uint32_t number() const { return stack_ == nullptr ? 0 : number_; }
  /// The longest sleep in ms; -1: any. Without a stack nothing wakes it, nor does a second thread that closes.
  int sleep_limit_ms() const { return stack_ == nullptr || __libc_single_threaded == 0 ? kRetryMs : -1; }
  /// After an error -ESTALE of the sessions API: all sessions are reset.
  void lose();
  /// At the end of the program: closes its connections as the kernel does: peers get all bytes.
  void close_all();

 private:
  static constexpr int kRetryMs = 100;
  void attach_if_due();
  void listen(Listener& listener);
  void detach();
  void forget_parent();
  void end_left();

  catena_stack* stack_ = nullptr;
  std::uint32_t number_ = 0;
  bool is_wanted_ = false;
  std::int64_t next_attempt_ms_ = 0;
  std::unordered_map<catena_session, Session*> sessions_;
  std::vector<Session*> held_;
  std::vector<Session*> ended_;  ///< by end_left(), to be freed
};

}  // namespace catena::sockets
