/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CATENA_SESSION_H
#define CATENA_SESSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * TCP connections of Catena's stack in an application, by shared memory: the application reads received bytes and
 * writes bytes to send in place, without system calls.
 *
 *     catena_stack_attach(path, &stack);
 *     catena_stack_listen(stack, 80, CATENA_MAX_BACKLOG);
 *     loop:  catena_stack_wait(stack, -1);
 *            catena_stack_events(stack, events, most)          which sessions changed
 *            catena_stack_accept(stack, 80, &session)          a new connection
 *            catena_session_peek(...); catena_session_consume(...);     its received bytes
 *            catena_session_reserve(...); catena_session_commit(...);   bytes to send
 *            catena_session_close(stack, session);
 *     catena_stack_detach(stack);
 *
 * Each attachment has memory of its own: a segment with a receive and a send buffer for each session, and two rings. If
 * several processes listen at a port, they get its connections in turn.
 *
 * Thread rule: an attachment belongs to one thread at a time. It does not survive fork(2): only the process that
 * attached may use it; a child attaches itself.
 *
 * Errors are negative numbers of errno.h. A function does nothing if it returns an error. -ESTALE: the stack's process
 * is gone, and so are all connections; detach, and attach again.
 */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct catena_stack catena_stack; /* an attachment to a stack's process */
typedef uint64_t catena_session;          /* a connection; numbers are not used twice within an attachment */

/* States and events of a session, as bits. */
enum {
  CATENA_READABLE = 1,    /* received bytes wait, or the peer sends no more */
  CATENA_WRITABLE = 2,    /* there is space to send. As an event: only after catena_session_reserve() failed */
  CATENA_PEER_CLOSED = 4, /* the peer sends no more; bytes may still wait */
  CATENA_RESET = 8,       /* the connection is lost: by the peer, a time-out, or a fault of the application */
  CATENA_ACCEPTABLE = 16  /* event of a port: connections wait for catena_stack_accept() */
};

enum { CATENA_MAX_BACKLOG = 4096 };

typedef struct catena_event {
  catena_session session; /* 0 for CATENA_ACCEPTABLE */
  uint32_t events;        /* the bits that are set now */
  uint16_t port;          /* local port, host order */
} catena_event;

/*
 * Attaches to the stack that serves the Unix domain socket `path`. The caller owns the attachment.
 *   -ENOENT, -ECONNREFUSED  no stack serves this path
 *   -EACCES                 the user may not use it
 *   -EUSERS                 the stack has no space for another application
 *   -EMFILE                 this process has as many attachments to it as one process may have
 *   -EPROTO                 no stack, or one of another version
 *   -ENOMEM                 no memory
 */
int catena_stack_attach(const char* path, catena_stack** stack);

/* Resets all its sessions and frees it. After fork(2), a child may call it; the parent's attachment stays. */
void catena_stack_detach(catena_stack* stack);

/*
 * Readable when events may wait; for poll(2) and epoll(7). Valid until the detachment. Before each sleep call
 * catena_stack_events() until it returns 0: this makes the stack wake the sleeper.
 */
int catena_stack_descriptor(catena_stack const* stack);

/*
 * Writes up to `most` (at least 1) changes since the last call to `events` and returns their number. A session that
 * changed several times is written once. Never waits. -ESTALE.
 */
int catena_stack_events(catena_stack* stack, catena_event* events, int most);

/* Waits until events may wait, at most `timeout_ms` (-1: without end). 1: look; 0: the time is over. -EINTR, -ESTALE.
 */
int catena_stack_wait(catena_stack* stack, int timeout_ms);

/*
 * Accepts connections at `port` (host order) of all addresses of the stack. `backlog` (1 to CATENA_MAX_BACKLOG): the
 * most half-open connections, if this is the first listener of the port. Waits for the stack's answer, up to a second.
 *   -EADDRINUSE  this attachment listens there already
 *   -EACCES      the user may not listen there
 *   -ENOSPC      it listens at 16 ports already
 *   -ETIMEDOUT   the stack does not answer
 *   -EINVAL, -ESTALE
 */
int catena_stack_listen(catena_stack* stack, uint16_t port, int backlog);

/*
 * Ends the listening. Connections that wait for catena_stack_accept() go to other processes that listen at the port, or
 * are reset if no other does. -EINVAL: it does not listen there.
 */
int catena_stack_unlisten(catena_stack* stack, uint16_t port);

/* The oldest connection that waits at `port`. -EAGAIN: no connection waits. -EINVAL: it does not listen there. */
int catena_stack_accept(catena_stack* stack, uint16_t port, catena_session* session);

/* The bits of the state now; of a session that is no more: CATENA_RESET. */
uint32_t catena_session_state(catena_stack* stack, catena_session session);

/* Both ends as sockaddr_in or sockaddr_in6; null pointers are left out. -EBADF: no such session. */
int catena_session_endpoints(catena_stack* stack, catena_session session, struct sockaddr_storage* local,
                             struct sockaddr_storage* peer);

/*
 * The received bytes in one piece: *bytes stays valid until they are consumed. More may wait behind them.
 * Returns their number; 0: the peer sends no more. -EAGAIN: no bytes yet. -ECONNRESET. -EBADF: no such session.
 */
int64_t catena_session_peek(catena_stack* stack, catena_session session, void const** bytes);

/* The bytes of all pieces together. Errors as catena_session_peek(). */
int64_t catena_session_readable(catena_stack* stack, catena_session session);

/* Frees the first `count` received bytes. -EINVAL: more than were received. -EBADF. */
int catena_session_consume(catena_stack* stack, catena_session session, size_t count);

/*
 * Space for bytes to send in one piece: *bytes stays valid until the next commit. Returns its size, at least 1.
 * -EAGAIN: no space; CATENA_WRITABLE comes when half of the buffer is free. -EPIPE: after catena_session_shutdown().
 * -ECONNRESET, -EBADF.
 */
int64_t catena_session_reserve(catena_stack* stack, catena_session session, void** bytes);

/* Sends the first `count` reserved bytes. -EINVAL: more than there is space. Errors as catena_session_reserve(). */
int catena_session_commit(catena_stack* stack, catena_session session, size_t count);

/* The bytes that were committed and have not left the buffer yet. -EBADF. */
int64_t catena_session_unsent(catena_stack* stack, catena_session session);

/* Ends the sending: the peer gets all committed bytes, then the FIN. -ECONNRESET, -EBADF. */
int catena_session_shutdown(catena_stack* stack, catena_session session);

/*
 * Ends the session: the peer gets all committed bytes, then the FIN. Later bytes of the peer are dropped. Each
 * accepted session is closed or aborted once, a reset one, too: its buffers are free only then. -EBADF.
 */
int catena_session_close(catena_stack* stack, catena_session session);

/* Ends the session with a reset. -EBADF. */
int catena_session_abort(catena_stack* stack, catena_session session);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
