/* SPDX-License-Identifier: Apache-2.0 */
/* Sends back what it receives: the C API of sessions (catena/session.h) in one page. echo PORT */
#include <catena/session.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve.h"

/* Moves what there is and what there is space for. 0: the session goes on. */
static int echo(catena_stack* stack, catena_session session) {
  for (;;) {
    void const* received;
    void* space;
    const int64_t waiting = catena_session_peek(stack, session, &received);
    if (waiting <= 0) {
      return waiting == -EAGAIN ? 0 : 1;
    }
    const int64_t room = catena_session_reserve(stack, session, &space);
    if (room < 0) {
      return room == -EAGAIN ? 0 : 1;
    }
    const size_t count = (size_t)(waiting < room ? waiting : room);
    memcpy(space, received, count);
    catena_session_commit(stack, session, count);
    catena_session_consume(stack, session, count);
  }
}

static void go_on(catena_stack* stack, catena_session session) {
  if (echo(stack, session) != 0) {
    catena_session_close(stack, session);
  }
}

int main(int count, char** words) {
  const char* const path = getenv("CATENA_STACK");
  const uint16_t port = (uint16_t)(count == 2 ? atoi(words[1]) : 7);
  catena_stack* stack;
  if (path == NULL) {
    fputs("run it by `catena stack run -- echo PORT`\n", stderr);
    return 2;
  }
  int error = catena_stack_attach(path, &stack);
  error = error != 0 ? error : serve(stack, port, &go_on);
  fprintf(stderr, "echo: %s\n", strerror(-error));
  return 1;
}
