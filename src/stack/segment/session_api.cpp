// SPDX-License-Identifier: Apache-2.0
// The functions of catena/session.h. No exception leaves them.
#include <catena/session.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "stack/segment/attachment.hpp"

using catena::stack::Attachment;
using catena::stack::SharedEndpoint;

struct catena_stack {
  std::unique_ptr<Attachment> attachment;
};

namespace {

/// The answer of `work`; -ENOMEM where it runs out of memory.
template <typename Work>
int guarded(Work const& work) noexcept {
  try {
    return work();
  } catch (std::bad_alloc const&) {
    return -ENOMEM;
  }
}

sockaddr_storage address_of(SharedEndpoint const& endpoint) {
  constexpr std::size_t kMappedBytes = 12;  // ::ffff:0:0/96 (RFC 4291, 2.5.5.2)
  constexpr unsigned char kMapped[kMappedBytes] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  sockaddr_storage result{};
  if (std::memcmp(endpoint.address.data(), kMapped, kMappedBytes) == 0) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(result);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    std::memcpy(&v4.sin_addr, &endpoint.address[kMappedBytes], sizeof v4.sin_addr);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(result);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    std::memcpy(&v6.sin6_addr, endpoint.address.data(), sizeof v6.sin6_addr);
  }
  return result;
}

/// Why bytes cannot be sent now; 0: they can.
int why_not_send(Attachment const& attachment, Attachment::Session const& session) {
  if ((attachment.state(session) & CATENA_RESET) != 0) {
    return -ECONNRESET;
  }
  return session.ends_sending ? -EPIPE : 0;
}

/// Why no received bytes wait: 0: the peer sends no more.
int why_not_readable(Attachment const& attachment, Attachment::Session const& session) {
  const std::uint32_t state = attachment.state(session);
  if ((state & CATENA_RESET) != 0) {
    return -ECONNRESET;
  }
  return (state & CATENA_PEER_CLOSED) != 0 ? 0 : -EAGAIN;
}

}  // namespace

extern "C" {

int catena_stack_attach(const char* path, catena_stack** stack) {
  if (path == nullptr || stack == nullptr) {
    return -EINVAL;
  }
  return guarded([&] {
    auto made = std::make_unique<catena_stack>();
    const int error = Attachment::open(path, made->attachment);
    if (error == 0) {
      *stack = made.release();
    }
    return error;
  });
}

void catena_stack_detach(catena_stack* stack) { delete stack; }

int catena_stack_descriptor(catena_stack const* stack) { return stack->attachment->descriptor(); }

int catena_stack_events(catena_stack* stack, catena_event* events, int most) {
  if (events == nullptr || most < 1) {
    return -EINVAL;
  }
  return guarded([&] { return stack->attachment->events({events, static_cast<std::size_t>(most)}); });
}

int catena_stack_wait(catena_stack* stack, int timeout_ms) { return stack->attachment->wait(timeout_ms); }

int catena_stack_listen(catena_stack* stack, uint16_t port, int backlog) {
  return guarded([&] { return stack->attachment->listen(port, backlog); });
}

int catena_stack_unlisten(catena_stack* stack, uint16_t port) {
  return guarded([&] { return stack->attachment->unlisten(port); });
}

int catena_stack_accept(catena_stack* stack, uint16_t port, catena_session* session) {
  return session == nullptr ? -EINVAL : stack->attachment->accept(port, *session);
}

uint32_t catena_session_state(catena_stack* stack, catena_session session) {
  Attachment::Session const* const found = stack->attachment->find(session);
  return found == nullptr ? static_cast<uint32_t>(CATENA_RESET) : stack->attachment->state(*found);
}

int catena_session_endpoints(catena_stack* stack, catena_session session, sockaddr_storage* local,
                             sockaddr_storage* peer) {
  Attachment::Session const* const found = stack->attachment->find(session);
  if (found == nullptr) {
    return -EBADF;
  }
  auto const& line = stack->attachment->segment().stack_line(found->slot);
  if (local != nullptr) {
    *local = address_of(line.local);
  }
  if (peer != nullptr) {
    *peer = address_of(line.peer);
  }
  return 0;
}

int64_t catena_session_peek(catena_stack* stack, catena_session session, void const** bytes) {
  Attachment::Session const* const found = stack->attachment->find(session);
  if (found == nullptr || bytes == nullptr) {
    return found == nullptr ? -EBADF : -EINVAL;
  }
  const std::span<const std::byte> piece = stack->attachment->peek(*found);
  *bytes = piece.data();
  return piece.empty() ? why_not_readable(*stack->attachment, *found) : static_cast<int64_t>(piece.size());
}

int64_t catena_session_readable(catena_stack* stack, catena_session session) {
  Attachment::Session const* const found = stack->attachment->find(session);
  if (found == nullptr) {
    return -EBADF;
  }
  const std::uint32_t count = stack->attachment->readable(*found);
  return count == 0 ? why_not_readable(*stack->attachment, *found) : static_cast<int64_t>(count);
}

int catena_session_consume(catena_stack* stack, catena_session session, size_t count) {
  Attachment::Session* const found = stack->attachment->find(session);
  if (found == nullptr) {
    return -EBADF;
  }
  if (count > stack->attachment->readable(*found)) {
    return -EINVAL;
  }
  stack->attachment->consume(*found, static_cast<std::uint32_t>(count));
  return 0;
}

int64_t catena_session_reserve(catena_stack* stack, catena_session session, void** bytes) {
  Attachment::Session* const found = stack->attachment->find(session);
  if (found == nullptr || bytes == nullptr) {
    return found == nullptr ? -EBADF : -EINVAL;
  }
  if (const int error = why_not_send(*stack->attachment, *found); error != 0) {
    return error;
  }
  const std::span<std::byte> piece = stack->attachment->reserve(*found);
  *bytes = piece.data();
  return piece.empty() ? -EAGAIN : static_cast<int64_t>(piece.size());
}

int catena_session_commit(catena_stack* stack, catena_session session, size_t count) {
  Attachment::Session* const found = stack->attachment->find(session);
  if (found == nullptr) {
    return -EBADF;
  }
  if (const int error = why_not_send(*stack->attachment, *found); error != 0) {
    return error;
  }
  if (count > stack->attachment->segment().shape().tx_bytes - stack->attachment->unsent(*found)) {
    return -EINVAL;
  }
  stack->attachment->commit(*found, static_cast<std::uint32_t>(count));
  return 0;
}

int64_t catena_session_unsent(catena_stack* stack, catena_session session) {
  Attachment::Session const* const found = stack->attachment->find(session);
  return found == nullptr ? -EBADF : static_cast<int64_t>(stack->attachment->unsent(*found));
}

int catena_session_shutdown(catena_stack* stack, catena_session session) {
  Attachment::Session* const found = stack->attachment->find(session);
  if (found == nullptr) {
    return -EBADF;
  }
  if ((stack->attachment->state(*found) & CATENA_RESET) != 0) {
    return -ECONNRESET;
  }
  stack->attachment->shutdown(*found);
  return 0;
}

int catena_session_close(catena_stack* stack, catena_session session) {
  Attachment::Session* const found = stack->attachment->find(session);
  if (found == nullptr) {
    return -EBADF;
  }
  stack->attachment->end(*found, catena::stack::AppLine::kClose);
  return 0;
}

int catena_session_abort(catena_stack* stack, catena_session session) {
  Attachment::Session* const found = stack->attachment->find(session);
  if (found == nullptr) {
    return -EBADF;
  }
  stack->attachment->end(*found, catena::stack::AppLine::kAbort);
  return 0;
}

}  // extern "C"
