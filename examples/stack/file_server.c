/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the files of a folder by HTTP/1.1 GET, straight from the file into the memory that is sent: the C API of
 * sessions (catena/session.h). file_server PORT FOLDER */
#include <catena/session.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve.h"

enum { MOST_SESSIONS = 65536, MOST_HEAD = 4096, MOST_ANSWER = 256 };

/* A session: what it asks, and what it is sent. */
struct answer {
  char request[MOST_HEAD];
  size_t request_bytes;
  char head[MOST_ANSWER];
  size_t head_left;
  int file; /* -1: none */
  off_t at;
  off_t left;
  int closes; /* after this answer */
};

/* By the slot of a session, its lower 32 bits: a slot is used again once its session is closed. */
static struct answer* answers[MOST_SESSIONS];
static int folder = -1;

static void say(struct answer* answer, const char* status, long long bytes) {
  answer->head_left = (size_t)snprintf(answer->head, sizeof answer->head,
                                       "HTTP/1.1 %s\r\nContent-Length: %lld\r\nConnection: %s\r\n\r\n", status, bytes,
                                       answer->closes ? "close" : "keep-alive");
  answer->at = 0;
  answer->left = bytes;
}

/* Begins the answer to a request, whose head ends with an empty line. */
static void begin(struct answer* answer, const char* head) {
  char name[MOST_HEAD];
  struct stat status;
  answer->closes = strstr(head, "\r\nConnection: close") != NULL;
  if (sscanf(head, "GET /%4095[^ ?] HTTP/1.", name) != 1 || strstr(name, "..") != NULL || name[0] == '/') {
    answer->closes = 1;
    say(answer, "400 Bad Request", 0);
    return;
  }
  answer->file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (answer->file < 0 || fstat(answer->file, &status) != 0 || !S_ISREG(status.st_mode)) {
    if (answer->file >= 0) {
      close(answer->file);
    }
    answer->file = -1;
    say(answer, "404 Not Found", 0);
    return;
  }
  say(answer, "200 OK", (long long)status.st_size);
}

/* Sends what there is space for. 1: the answer is complete; 0: later; -1: the session is over. */
static int go_on(catena_stack* stack, catena_session session, struct answer* answer) {
  while (answer->head_left > 0 || answer->left > 0) {
    void* space;
    ssize_t put;
    const int64_t room = catena_session_reserve(stack, session, &space);
    if (room < 0) {
      return room == -EAGAIN ? 0 : -1;
    }
    if (answer->head_left > 0) {
      put = (ssize_t)answer->head_left < room ? (ssize_t)answer->head_left : (ssize_t)room;
      memcpy(space, answer->head + strlen(answer->head) - answer->head_left, (size_t)put);
      answer->head_left -= (size_t)put;
    } else {
      put = pread(answer->file, space, (size_t)(answer->left < room ? answer->left : room), answer->at);
      if (put <= 0) {
        return -1; /* the file has become shorter: what was promised cannot be sent */
      }
      answer->at += put;
      answer->left -= put;
    }
    catena_session_commit(stack, session, (size_t)put);
  }
  if (answer->file >= 0) {
    close(answer->file);
    answer->file = -1;
  }
  return answer->closes ? -1 : 1;
}

/* Takes the next request, if it is complete. 1: taken; 0: not yet; -1: the session is over. */
static int take_request(catena_stack* stack, catena_session session, struct answer* answer) {
  for (;;) {
    char* const end = strstr(answer->request, "\r\n\r\n");
    if (end != NULL) {
      end[2] = '\0';
      begin(answer, answer->request);
      answer->request_bytes -= (size_t)(end + 4 - answer->request);
      memmove(answer->request, end + 4, answer->request_bytes + 1); /* the next one may be there */
      return 1;
    }
    void const* bytes;
    const int64_t waiting = catena_session_peek(stack, session, &bytes);
    if (waiting <= 0) {
      return waiting == -EAGAIN ? 0 : -1;
    }
    const size_t room = sizeof answer->request - 1 - answer->request_bytes;
    const size_t count = (size_t)waiting < room ? (size_t)waiting : room;
    if (count == 0) {
      return -1; /* too long a head */
    }
    memcpy(answer->request + answer->request_bytes, bytes, count);
    answer->request_bytes += count;
    answer->request[answer->request_bytes] = '\0';
    catena_session_consume(stack, session, count);
  }
}

static void answer_requests(catena_stack* stack, catena_session session) {
  const uint32_t slot = (uint32_t)session;
  if (slot >= MOST_SESSIONS) {
    catena_session_abort(stack, session);
    return;
  }
  if (answers[slot] == NULL) {
    answers[slot] = calloc(1, sizeof *answers[slot]);
    if (answers[slot] == NULL) {
      catena_session_abort(stack, session);
      return;
    }
    answers[slot]->file = -1;
  }
  int state = 1;
  while (state == 1) {
    state = go_on(stack, session, answers[slot]);
    state = state == 1 ? take_request(stack, session, answers[slot]) : state;
  }
  if (state < 0) {
    if (answers[slot]->file >= 0) {
      close(answers[slot]->file);
    }
    free(answers[slot]);
    answers[slot] = NULL;
    catena_session_close(stack, session);
  }
}

int main(int count, char** words) {
  const char* const path = getenv("CATENA_STACK");
  catena_stack* stack;
  if (path == NULL || count != 3) {
    fputs("run it by `catena stack run -- file_server PORT FOLDER`\n", stderr);
    return 2;
  }
  const uint16_t port = (uint16_t)atoi(words[1]);
  folder = open(words[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = folder < 0 ? -errno : catena_stack_attach(path, &stack);
  error = error != 0 ? error : serve(stack, port, &answer_requests);
  fprintf(stderr, "file_server: %s\n", strerror(-error));
  return 1;
}
