/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a server on Catena's TCP stack, for the examples of this folder. */
#ifndef SERVE_H
#define SERVE_H

#include <catena/session.h>

#include <errno.h>
#include <stdint.h>

enum { MOST_EVENTS = 64 };

/*
 * Listens at `port` and calls `work` for each new and each changed session; `work` closes a session at its end. Returns
 * an error of catena/session.h.
 */
static inline int serve(catena_stack* stack, uint16_t port, void (*work)(catena_stack*, catena_session)) {
  int error = catena_stack_listen(stack, port, CATENA_MAX_BACKLOG);
  while (error == 0) {
    catena_event events[MOST_EVENTS];
    catena_session session;
    const int changed = catena_stack_events(stack, events, MOST_EVENTS);
    for (int i = 0; i < changed; ++i) {
      while ((events[i].events & CATENA_ACCEPTABLE) != 0 && catena_stack_accept(stack, port, &session) == 0) {
        work(stack, session);
      }
      if (events[i].session != 0) {
        work(stack, events[i].session);
      }
    }
    if (changed <= 0) {
      error = changed < 0 ? changed : catena_stack_wait(stack, -1);
      error = error > 0 || error == -EINTR ? 0 : error;
    }
  }
  return error;
}

#endif
