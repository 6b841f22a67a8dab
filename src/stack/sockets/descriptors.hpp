// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/session.h>
#include <sys/epoll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

/// The program's descriptors of the stack. Each is a real one of the kernel: the listening socket itself,
/// and for a connection an unconnected socket, which keeps number, flags and options.
namespace catena::sockets {

struct EpollSet;
struct Descriptor;

/// A descriptor in an epoll set.
struct Watch {
  EpollSet* set;
  Descriptor* target;
  Watch* next_of_target;
  std::uint32_t events;  ///< of EPOLL_CTL_ADD or MOD
  epoll_data_t data;
  bool is_disarmed;  ///< EPOLLONESHOT has reported
  bool is_ready;     ///< in the set's ready list
  Watch* previous_ready;
  Watch* next_ready;
};

enum class Kind : std::uint8_t { kListener, kSession, kEpoll };

struct Descriptor {
  Kind kind;
  bool is_nonblocking;
  int number;
  Watch* watches;
};

/// Options with an effect; the kernel's socket keeps all values for getsockopt(2).
struct Options {
  std::int64_t receive_ms = -1;  ///< SO_RCVTIMEO; -1: without end
  std::int64_t send_ms = -1;
  bool closes_with_reset = false;  ///< SO_LINGER with 0 seconds
  bool is_corked = false;          ///< TCP_CORK
  bool operator==(Options const&) const = default;
};

/// A socket bound to a port of the stack.
struct Listener : Descriptor {
  sockaddr_storage address;  ///< of bind(2)
  std::uint16_t port;        ///< host order
  bool is_listening;
  bool is_v6_only;
  bool is_wanted;  ///< this process accepts here
  int backlog;
  Options options;
  std::deque<catena_session> waiting;  ///< accepted from the stack for this socket, not yet by the program
};

/// kLost: its stack is gone. kParents: only the parent process may use it.
enum class Life : std::uint8_t { kOpen, kLost, kParents };

/// A connection.
struct Session : Descriptor {
  catena_session id;
  Life life;
  bool has_told_reset;  ///< a call has returned the error of the reset
  bool reads_ended;
  bool sends_ended;
  std::atomic<bool> is_left;  ///< a second thread has closed it: Attachment::leave()
  Session* next_left;
  std::size_t held;  ///< bytes reserved and written, not committed: TCP_CORK, MSG_MORE
  Options options;
  std::string lookahead;   ///< received bytes taken out of the stack's buffer, to be peeked in one piece
  sockaddr_storage local;  ///< in the family of the listening socket
  sockaddr_storage peer;
};

/// An epoll instance with descriptors of the stack in it.
struct EpollSet : Descriptor {
  Watch* first_ready;
  Watch* last_ready;
  std::uint32_t waits;
  std::uint32_t attachment;  ///< number of the attachment whose descriptor the kernel's instance has; 0: no descriptor
};

/// The most descriptors; higher numbers are the kernel's.
constexpr int kMaxDescriptors = 1 << 20;

/// The descriptor with this number; null: it is the kernel's. Any thread.
Descriptor* find(int number);
Session* find_session(int number);
Listener* find_listener(int number);
EpollSet* find_epoll(int number);

/// False: the number is too high. The table owns `descriptor` then. Any thread, for its own numbers.
bool add(Descriptor* descriptor);
/// Takes it out of the table, and frees it with its watches.
void remove(Descriptor* descriptor);
/// The first descriptor with a number of at least `from`; null: no more.
Descriptor* next_from(int from);

}  // namespace catena::sockets
