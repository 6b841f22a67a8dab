// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/transfer.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "stack/sockets/attachment.hpp"
#include "stack/sockets/real_calls.hpp"

namespace catena::sockets {
namespace {

std::size_t total_bytes(iovec const* buffers, std::size_t count) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += buffers[i].iov_len;
  }
  return bytes;
}

/// A place in a list of buffers.
class BufferCursor {
 public:
  BufferCursor(iovec const* buffers, std::size_t count) : buffers_(buffers), end_(buffers + count) {}
  /// Calls copy(pointer, bytes) for the next `bytes` of the buffers, piece by piece. Returns how many they had.
  template <class Copy>
  std::size_t advance(std::size_t bytes, Copy copy) {
    std::size_t done = 0;
    while (done < bytes && buffers_ != end_) {
      const std::size_t part = std::min(bytes - done, buffers_->iov_len - used_);
      if (part > 0) {
        copy(static_cast<char*>(buffers_->iov_base) + used_, part, done);
      }
      done += part;
      used_ += part;
      if (used_ == buffers_->iov_len) {
        ++buffers_;
        used_ = 0;
      }
    }
    return done;
  }

 private:
  iovec const* buffers_;
  iovec const* end_;
  std::size_t used_ = 0;
};

/// An error of the sessions API as one of this connection.
ssize_t translate(Session& session, std::int64_t result) {
  if (result == -ESTALE) {
    Attachment::get().lose();
  }
  if (result == -ESTALE || result == -EBADF) {
    session.life = Life::kLost;
    return -ECONNRESET;
  }
  return result;
}

std::int64_t peek(Session& session, void const** bytes) {
  if (!session.lookahead.empty()) {
    *bytes = session.lookahead.data();
    return static_cast<std::int64_t>(session.lookahead.size());
  }
  return session.life == Life::kOpen
             ? translate(session, ::catena_session_peek(Attachment::get().stack(), session.id, bytes))
             : -ECONNRESET;
}

void consume(Session& session, std::size_t bytes) {
  if (!session.lookahead.empty()) {
    session.lookahead.erase(0, bytes);
  } else {
    translate(session, ::catena_session_consume(Attachment::get().stack(), session.id, bytes));
  }
}

/// Makes up to `wanted` received bytes one piece. The stack's buffer wraps: a program that peeks at a header would wait
/// for ever for the part after the end.
void gather(Session& session, std::size_t wanted) {
  std::string gathered = std::move(session.lookahead);
  session.lookahead.clear();
  void const* bytes = nullptr;
  while (gathered.size() < wanted) {
    const std::int64_t piece = peek(session, &bytes);
    if (piece <= 0) {
      break;
    }
    const std::size_t part = std::min(static_cast<std::size_t>(piece), wanted - gathered.size());
    gathered.append(static_cast<char const*>(bytes), part);
    consume(session, part);
  }
  session.lookahead = std::move(gathered);
}

std::int64_t reserve(Session& session, void** bytes) {
  if (session.sends_ended) {
    return -EPIPE;
  }
  return session.life == Life::kOpen
             ? translate(session, ::catena_session_reserve(Attachment::get().stack(), session.id, bytes))
             : -ECONNRESET;
}

/// What a call that receives reports of a reset: the error once, then the end.
ssize_t report_reset(Session& session) {
  if (session.has_told_reset) {
    return 0;
  }
  session.has_told_reset = true;
  return -ECONNRESET;
}

/// What a call that sends reports of a reset or of its own end: EPIPE comes with a signal.
ssize_t report_broken(Session& session, ssize_t error, int flags) {
  if (error == -ECONNRESET && !session.has_told_reset) {
    session.has_told_reset = true;
    return -ECONNRESET;
  }
  if ((flags & MSG_NOSIGNAL) == 0) {
    ::raise(SIGPIPE);
  }
  return -EPIPE;
}

void send_held_of(Session& session) {
  if (session.held > 0) {
    Attachment::get().send_held();
  }
}

/// Waits for the stack's events. -EAGAIN: the socket does not block, or its time is over.
int wait_or_again(bool is_nonblocking, Deadline const& deadline) {
  if (is_nonblocking) {
    return -EAGAIN;
  }
  const int result = Attachment::get().wait(deadline);
  return result == -ETIMEDOUT ? -EAGAIN : result;
}

/// Sends `wanted` bytes. fill(space, most, error) writes up to `most` bytes to `space` and returns how many it wrote;
/// 0: no more, with `error` set if that is one.
template <class Fill>
ssize_t send_filled(Session& session, std::size_t wanted, int flags, Fill fill) {
  const bool is_nonblocking = session.is_nonblocking || (flags & MSG_DONTWAIT) != 0;
  const bool is_held_back = session.options.is_corked || (flags & MSG_MORE) != 0;
  const Deadline deadline(session.options.send_ms);
  std::size_t done = 0;
  while (done < wanted) {
    void* space = nullptr;
    const std::int64_t bytes = reserve(session, &space);
    if (bytes == -EAGAIN) {
      if (const int result = wait_or_again(is_nonblocking, deadline); result < 0) {
        return done > 0 ? static_cast<ssize_t>(done) : result;
      }
      continue;
    }
    if (bytes < 0) {
      return done > 0 ? static_cast<ssize_t>(done) : report_broken(session, bytes, flags);
    }
    const std::size_t most = std::min(static_cast<std::size_t>(bytes) - session.held, wanted - done);
    int error = 0;
    const std::size_t filled = most == 0 ? 0 : fill(static_cast<char*>(space) + session.held, most, error);
    const bool is_end = most > 0 && filled == 0;
    if (filled > 0 && session.held == 0 && is_held_back) {
      Attachment::get().hold(session);
    }
    if (session.held > 0 || is_held_back) {
      session.held += filled;
      if (!is_held_back || session.held == static_cast<std::size_t>(bytes)) {
        Attachment::get().send_held();
      }
    } else if (filled > 0) {
      translate(session, ::catena_session_commit(Attachment::get().stack(), session.id, filled));
    }
    done += filled;
    if (is_end) {
      return done > 0 ? static_cast<ssize_t>(done) : error;
    }
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

ssize_t receive(Session& session, iovec const* buffers, std::size_t count, int flags) {
  constexpr int kKnown =
      MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL | MSG_TRUNC | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC | MSG_ERRQUEUE;
  if ((flags & ~kKnown) != 0) {
    return -EINVAL;
  }
  if ((flags & MSG_ERRQUEUE) != 0) {
    return -EAGAIN;  // no time stamps, no zero-copy sends
  }
  const std::size_t wanted = total_bytes(buffers, count);
  const bool is_nonblocking = session.is_nonblocking || (flags & MSG_DONTWAIT) != 0;
  const Deadline deadline(session.options.receive_ms);
  BufferCursor cursor(buffers, count);
  std::size_t done = 0;
  while (done < wanted && !session.reads_ended) {
    void const* bytes = nullptr;
    std::int64_t waiting = peek(session, &bytes);
    const bool is_peek = (flags & MSG_PEEK) != 0;
    if (is_peek && waiting > 0 && static_cast<std::size_t>(waiting) < wanted && readable_bytes(session) > waiting) {
      gather(session, wanted);
      waiting = peek(session, &bytes);
    }
    if (waiting > 0) {
      const std::size_t part = std::min(static_cast<std::size_t>(waiting), wanted - done);
      cursor.advance(part, [&](char* to, std::size_t size, std::size_t at) {
        if ((flags & MSG_TRUNC) == 0) {
          std::memcpy(to, static_cast<char const*>(bytes) + at, size);
        }
      });
      done += part;
      if (is_peek) {
        break;
      }
      consume(session, part);
    } else if (waiting == -EAGAIN) {
      if (done > 0 && (flags & MSG_WAITALL) == 0) {
        break;
      }
      if (const int result = wait_or_again(is_nonblocking, deadline); result < 0) {
        return done > 0 ? static_cast<ssize_t>(done) : result;
      }
    } else {
      return done > 0 || waiting == 0 ? static_cast<ssize_t>(done) : report_reset(session);
    }
  }
  return static_cast<ssize_t>(done);
}

ssize_t transmit(Session& session, iovec const* buffers, std::size_t count, int flags) {
  constexpr int kKnown = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR;
  if ((flags & ~kKnown) != 0) {
    return -EOPNOTSUPP;
  }
  BufferCursor cursor(buffers, count);
  return send_filled(session, total_bytes(buffers, count), flags, [&](char* space, std::size_t most, int&) {
    return cursor.advance(most,
                          [&](char* from, std::size_t size, std::size_t at) { std::memcpy(space + at, from, size); });
  });
}

ssize_t transmit_file(Session& session, int file, off_t* offset, std::size_t bytes) {
  off_t at = offset == nullptr ? 0 : *offset;
  const ssize_t result = send_filled(session, bytes, 0, [&](char* space, std::size_t most, int& error) -> std::size_t {
    const ssize_t got = offset == nullptr ? real().read(file, space, most) : ::pread(file, space, most, at);
    if (got < 0) {
      error = -errno;
      return 0;
    }
    at += got;
    return static_cast<std::size_t>(got);
  });
  if (offset != nullptr) {
    *offset = at;
  }
  return result;
}

int shut_down(Session& session, int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) {
    return -EINVAL;
  }
  if (session.life != Life::kOpen) {
    return -ENOTCONN;
  }
  if (how != SHUT_RD && !session.sends_ended) {
    send_held_of(session);
    const ssize_t result = translate(session, ::catena_session_shutdown(Attachment::get().stack(), session.id));
    if (result < 0) {
      return -ENOTCONN;
    }
    session.sends_ended = true;
  }
  session.reads_ended = session.reads_ended || how != SHUT_WR;
  return 0;
}

void close_session(Session& session) {
  Attachment& attachment = Attachment::get();
  attachment.forget(session);
  if (session.life == Life::kOpen) {
    if (session.options.closes_with_reset) {
      ::catena_session_abort(attachment.stack(), session.id);
    } else {
      ::catena_session_close(attachment.stack(), session.id);
    }
  }
  remove(&session);
}

std::uint32_t poll_state(Session& session, std::uint32_t asked) {
  std::uint32_t state = session.life == Life::kOpen ? ::catena_session_state(Attachment::get().stack(), session.id)
                                                    : static_cast<std::uint32_t>(CATENA_RESET);
  constexpr std::uint32_t kReadable = POLLIN | POLLRDNORM;
  constexpr std::uint32_t kWritable = POLLOUT | POLLWRNORM;
  if ((state & CATENA_RESET) != 0) {
    return kReadable | kWritable | POLLHUP | POLLRDHUP | (session.has_told_reset ? 0U : POLLERR);
  }
  if ((asked & kWritable) != 0 && (state & CATENA_WRITABLE) == 0 && !session.sends_ended) {
    void* space = nullptr;  // the stack reports space only to a session that found none
    if (reserve(session, &space) > 0) {
      state |= CATENA_WRITABLE;
    }
  }
  const bool has_peer_ended = (state & CATENA_PEER_CLOSED) != 0;
  std::uint32_t bits = 0;
  bits |= (state & CATENA_READABLE) != 0 || !session.lookahead.empty() || session.reads_ended ? kReadable : 0U;
  bits |= (state & CATENA_WRITABLE) != 0 || session.sends_ended ? kWritable : 0U;
  bits |= has_peer_ended || session.reads_ended ? kReadable | POLLRDHUP : 0U;
  bits |= (has_peer_ended || session.reads_ended) && session.sends_ended ? static_cast<std::uint32_t>(POLLHUP) : 0U;
  return bits;
}

int take_error(Session& session) {
  if ((poll_state(session, 0) & POLLERR) == 0) {
    return 0;
  }
  session.has_told_reset = true;
  return ECONNRESET;
}

std::int64_t readable_bytes(Session& session) {
  const std::int64_t waiting =
      session.life == Life::kOpen ? translate(session, ::catena_session_readable(Attachment::get().stack(), session.id))
                                  : 0;
  return std::max<std::int64_t>(waiting, 0) + static_cast<std::int64_t>(session.lookahead.size());
}

std::int64_t unsent_bytes(Session& session) {
  return session.life == Life::kOpen
             ? translate(session, ::catena_session_unsent(Attachment::get().stack(), session.id)) +
                   static_cast<std::int64_t>(session.held)
             : 0;
}

}  // namespace catena::sockets
