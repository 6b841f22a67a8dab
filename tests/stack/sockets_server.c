/* SPDX-License-Identifier: Apache-2.0 */
/* A server that uses the calls of sockets in many ways, for programs_test.py, which compares its results over the
 * kernel's TCP with those over the stack. One connection after the other; its first byte says what is done with it. Each
 * prints a line. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LARGE = 3000000 };
static char bytes[LARGE];

static void fill(void) {
  for (size_t i = 0; i < LARGE; ++i) {
    bytes[i] = (char)(i * 2654435761U >> 24);
  }
}

static unsigned sum(char const *data, size_t size) {
  unsigned value = 2166136261U;
  for (size_t i = 0; i < size; ++i) {
    value = (value ^ (unsigned char)data[i]) * 16777619U;
  }
  return value;
}

/* Until the peer sends no more. */
static size_t read_all(int fd, char *to, size_t most) {
  size_t done = 0;
  for (ssize_t got = 0; done < most && (got = read(fd, to + done, most - done)) > 0;) {
    done += (size_t)got;
  }
  return done;
}

static void echo_after_half_close(int fd) {
  static char received[LARGE];
  const size_t size = read_all(fd, received, sizeof received);
  const ssize_t sent = write(fd, received, size);
  printf("echo %zu %zd\n", size, sent);
}

static void peek(int fd) {
  char header[9] = {0};
  struct pollfd readable = {fd, POLLIN, 0};
  while (recv(fd, header, 8, MSG_PEEK) < 8) {
    poll(&readable, 1, 10);
  }
  int waiting = 0;
  ioctl(fd, FIONREAD, &waiting);
  printf("peek %s %d ", header, waiting);
  char body[17] = {0};
  const ssize_t got = recv(fd, body, 16, MSG_WAITALL);
  printf("%zd %s\n", got, body);
}

static void wait_by_select(int fd) {
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(fd, &readable);
  struct timeval limit = {0, 20000};
  const int none = select(fd + 1, &readable, NULL, NULL, &limit);
  const int was_set = FD_ISSET(fd, &readable) != 0;
  send(fd, "go", 2, 0);
  FD_ZERO(&readable);
  FD_SET(fd, &readable);
  struct timespec long_limit = {20, 0};
  const int ready = pselect(fd + 1, &readable, NULL, NULL, &long_limit, NULL);
  char word[8] = {0};
  printf("select %d %d %d %d %zd\n", none, was_set, ready, FD_ISSET(fd, &readable) != 0, recv(fd, word, 4, MSG_WAITALL));
}

static void wait_by_epoll(int fd) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  int steps = 0;
  unsigned all = 0;
  char word[8];
  for (int is_open = 1; is_open && steps < 20; ++steps) {
    struct epoll_event got = {0};
    if (epoll_wait(epoll, &got, 1, 20000) == 1) {
      all |= got.events;
    }
    for (ssize_t size = 0; (size = recv(fd, word, sizeof word, MSG_DONTWAIT)) >= 0;) {
      if (size == 0) {
        is_open = 0;
        break;
      }
    }
  }
  printf("epoll %x %s\n", all, steps < 20 ? "ended" : "open");
  close(epoll);
}

static void reset_by_linger(int fd) {
  const struct linger now = {1, 0};
  printf("linger %d\n", setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
}

static void send_and_shut_down(int fd) {
  const ssize_t sent = send(fd, bytes, LARGE, 0);
  const int shut = shutdown(fd, SHUT_WR);
  const ssize_t refused = send(fd, bytes, 1, MSG_NOSIGNAL);
  const int error = errno;
  char rest[64];
  printf("shutdown %zd %d %zd %s %zu\n", sent, shut, refused, strerrorname_np(error), read_all(fd, rest, sizeof rest));
}

static void send_without_blocking(int fd) {
  int on = 1;
  ioctl(fd, FIONBIO, &on);
  size_t done = 0;
  while (done < LARGE) {
    const struct iovec parts[2] = {{bytes + done, (LARGE - done) / 2}, {bytes + done + (LARGE - done) / 2, LARGE - done - (LARGE - done) / 2}};
    const ssize_t sent = writev(fd, parts, 2);
    if (sent < 0) {
      struct pollfd writable = {fd, POLLOUT, 0};
      if (errno != EAGAIN || poll(&writable, 1, 20000) != 1) {
        break;
      }
    } else {
      done += (size_t)sent;
    }
  }
  printf("nonblocking %zu\n", done);
}

static void see_a_reset(int fd) {
  struct pollfd ended = {fd, POLLIN | POLLRDHUP, 0};
  send(fd, "go", 2, 0);
  poll(&ended, 1, 20000);
  while ((ended.revents & POLLERR) == 0 && poll(&ended, 1, 20000) == 1) {
  }
  char byte = 0;
  const ssize_t first = read(fd, &byte, 1);
  const int error = errno;
  const ssize_t second = read(fd, &byte, 1);
  const ssize_t sent = write(fd, &byte, 1);
  printf("reset %x %zd %s %zd %zd %s\n", ended.revents, first, strerrorname_np(error), second, sent, strerrorname_np(errno));
}

static void time_out(int fd) {
  const struct timeval limit = {0, 20000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char byte = 0;
  const ssize_t got = recv(fd, &byte, 1, 0);
  printf("timeout %zd %s\n", got, strerrorname_np(errno));
}

static void cork(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
  const ssize_t head = write(fd, "head", 4);
  const ssize_t body = write(fd, "body", 4);
  on = 0;
  const int done = setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
  printf("cork %zd %zd %d %zd\n", head, body, done, send(fd, "tail", 4, MSG_MORE));
}

static void names(int fd, struct sockaddr_storage const *accepted) {
  struct sockaddr_storage own;
  struct sockaddr_storage peer;
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  getsockname(fd, (struct sockaddr *)&own, &own_size);
  getpeername(fd, (struct sockaddr *)&peer, &peer_size);
  struct sockaddr_in6 const *v6 = (struct sockaddr_in6 const *)&own;
  int type = 0;
  socklen_t size = sizeof type;
  getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
  printf("names %d %u %d %d %d\n", own.ss_family, own_size, IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr),
         memcmp(&peer, accepted, sizeof(struct sockaddr_in6)) == 0, type);
}

int main(int count, char **arguments) {
  if (count != 2) {
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  setvbuf(stdout, NULL, _IOLBF, 0);
  fill();
  const int listener = socket(AF_INET6, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)atoi(arguments[1]))};
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0) {
    perror("listen");
    return 1;
  }
  printf("ready %x\n", sum(bytes, LARGE));
  for (;;) {
    struct sockaddr_storage peer;
    memset(&peer, 0, sizeof peer);
    socklen_t size = sizeof peer;
    const int fd = accept(listener, (struct sockaddr *)&peer, &size);
    char what = 0;
    if (fd < 0 || read(fd, &what, 1) != 1) {
      return 1;
    }
    switch (what) {
      case 'e': echo_after_half_close(fd); break;
      case 'p': peek(fd); break;
      case 's': wait_by_select(fd); break;
      case 'v': wait_by_epoll(fd); break;
      case 'l': reset_by_linger(fd); break;
      case 'w': send_and_shut_down(fd); break;
      case 'n': send_without_blocking(fd); break;
      case 'r': see_a_reset(fd); break;
      case 't': time_out(fd); break;
      case 'c': cork(fd); break;
      case 'a': names(fd, &peer); break;
      default: return write(fd, bytes, 200000) == 200000 ? 0 : 1; /* the end of the program closes the connection */
    }
    close(fd);
  }
}
