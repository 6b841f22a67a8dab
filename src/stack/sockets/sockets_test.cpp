// SPDX-License-Identifier: Apache-2.0
// Programs' calls on connections of a stack, in one process with fake sessions over the kernel's loopback: the peer is
// the kernel's TCP, by libc's own calls. The calls of the tests are the library's.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "stack/sockets/attachment.hpp"
#include "stack/sockets/real_calls.hpp"
#include "stack/sockets/settings.hpp"
#include "stack/sockets/testing/fake_sessions.hpp"

namespace catena::sockets {
namespace {

using ::testing::HasSubstr;

// before the library reads them
[[gnu::constructor(101)]] void set_environment() {
  ::setenv("CATENA_STACK", "a stack", 1);
  ::setenv("CATENA_STACK_PORTS", "all", 1);
}

/// A port that is free now.
std::uint16_t free_port() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t bytes = sizeof address;
  EXPECT_EQ(real().bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(real().getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  real().close(fd);
  return ntohs(address.sin6_port);
}

sockaddr_storage address_of(std::string const& text, std::uint16_t port) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
  }
  return address;
}

socklen_t size_of(sockaddr_storage const& address) {
  return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::string text_of(sockaddr_storage const& address) {
  char text[INET6_ADDRSTRLEN] = {};
  void const* bytes = address.ss_family == AF_INET
                          ? static_cast<void const*>(&reinterpret_cast<sockaddr_in const&>(address).sin_addr)
                          : &reinterpret_cast<sockaddr_in6 const&>(address).sin6_addr;
  ::inet_ntop(address.ss_family, bytes, text, sizeof text);
  return text;
}

std::string random_bytes(std::size_t size) {
  std::mt19937 random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

class Sockets : public ::testing::Test {
 protected:
  void SetUp() override { start_fake_stack(); }
  void TearDown() override {
    for (const int fd : {server_, listener_, other_listener_}) {
      if (fd >= 0) {
        ::close(fd);
      }
    }
    if (peer_ >= 0) {
      real().close(peer_);
    }
  }
  int listen_at(std::string const& address, int type = 0, bool is_v6_only = false) {
    const sockaddr_storage own = address_of(address, port_);
    const int fd = ::socket(own.ss_family, SOCK_STREAM | type, 0);
    const int only = is_v6_only ? 1 : 0;
    if (own.ss_family == AF_INET6) {
      ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    }
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr const*>(&own), size_of(own)), 0) << std::strerror(errno);
    EXPECT_EQ(::listen(fd, 16), 0);
    return fd;
  }
  int connect_to(std::string const& address) {
    const sockaddr_storage other = address_of(address, port_);
    const int fd = ::socket(other.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{20, 0};
    real().setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (real().connect(fd, reinterpret_cast<sockaddr const*>(&other), size_of(other)) != 0) {
      real().close(fd);
      return -1;
    }
    return fd;
  }
  /// A connection from peer_ to server_. `type`: flags of accept4(2).
  void connect(int type = 0) {
    listener_ = listen_at("127.0.0.1", SOCK_NONBLOCK);
    EXPECT_EQ(::accept(listener_, nullptr, nullptr), -1);  // the first call attaches
    EXPECT_EQ(errno, EAGAIN);
    peer_ = connect_to("127.0.0.1");
    ASSERT_GE(peer_, 0);
    ASSERT_GE(server_ = ::accept4(listener_, nullptr, nullptr, type), 0) << std::strerror(errno);
  }
  void peer_sends(std::string const& bytes) {
    ASSERT_EQ(real().send(peer_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  std::string peer_receives(std::size_t size) {
    std::string bytes(size, '\0');
    const ssize_t got = real().recv(peer_, bytes.data(), size, MSG_WAITALL);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  int poll_server(short events, int timeout_ms = 0) {
    pollfd one{server_, events, 0};
    EXPECT_GE(::poll(&one, 1, timeout_ms), 0);
    return one.revents;
  }
  void reset_by_peer() {
    const linger now{1, 0};
    real().setsockopt(peer_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    real().close(peer_);
    peer_ = -1;
  }
  /// What `call` writes to standard error in a child process, which exits with its result.
  template <class Call>
  std::string in_child(Call call, int expected_exit = 0) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      std::_Exit(call());
    }
    ::close(ends[1]);
    std::string text;
    char part[512];
    for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0;) {
      text.append(part, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == expected_exit) << status << "\n" << text;
    return text;
  }

  std::uint16_t port_ = free_port();
  int listener_ = -1;
  int other_listener_ = -1;
  int peer_ = -1;
  int server_ = -1;
};

TEST(PortListTest, reads_lists_and_all) {
  PortList ports;
  EXPECT_TRUE(ports.parse("80,443"));
  EXPECT_TRUE(ports.contains(80));
  EXPECT_TRUE(ports.contains(443));
  EXPECT_FALSE(ports.contains(81));
  EXPECT_TRUE(ports.parse("all"));
  EXPECT_TRUE(ports.contains(65535));
  EXPECT_FALSE(ports.contains(0));
  for (char const* wrong : {"80,", "0", "65536", "-1", "80;443", " 80", "ALL", "080", "80,0443"}) {
    const bool is_list = ports.parse(wrong);
    EXPECT_EQ(is_list, std::string(wrong) == "80,") << wrong;
    EXPECT_FALSE(ports.contains(443)) << wrong;
  }
  EXPECT_TRUE(ports.parse(nullptr));
  EXPECT_FALSE(ports.contains(80));
}

TEST_F(Sockets, blocking_calls_wait_for_their_bytes) {
  listener_ = listen_at("127.0.0.1");
  std::thread peer([this] {
    for (int attempt = 0; attempt < 2000 && (peer_ = connect_to("127.0.0.1")) < 0; ++attempt) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until accept() listens
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    peer_sends("hel");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    peer_sends("lo");
  });
  server_ = ::accept(listener_, nullptr, nullptr);
  ASSERT_GE(server_, 0);
  char bytes[8] = {};
  EXPECT_EQ(::read(server_, bytes, 3), 3);
  EXPECT_EQ(::recv(server_, bytes + 3, 2, MSG_WAITALL), 2);
  EXPECT_STREQ(bytes, "hello");
  peer.join();
  EXPECT_EQ(::write(server_, "ok", 2), 2);
  EXPECT_EQ(peer_receives(2), "ok");
}

TEST_F(Sockets, the_first_wait_for_a_listener_attaches_and_wakes) {
  listener_ = listen_at("127.0.0.1");
  std::thread peer([this] {
    for (int attempt = 0; attempt < 2000 && (peer_ = connect_to("127.0.0.1")) < 0; ++attempt) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(listener_, &readable);
  timeval limit{20, 0};
  EXPECT_EQ(::select(listener_ + 1, &readable, nullptr, nullptr, &limit), 1);
  peer.join();
  server_ = ::accept(listener_, nullptr, nullptr);
  EXPECT_GE(server_, 0);
}

TEST_F(Sockets, each_family_has_its_listener) {
  listener_ = listen_at("0.0.0.0", SOCK_NONBLOCK);
  other_listener_ = listen_at("::", SOCK_NONBLOCK, true);
  EXPECT_EQ(::accept(listener_, nullptr, nullptr), -1);
  EXPECT_EQ(::accept(other_listener_, nullptr, nullptr), -1);
  struct Case {
    char const* peer;
    int listener;
    int without;
  };
  for (Case const& one : {Case{"127.0.0.1", listener_, other_listener_}, Case{"::1", other_listener_, listener_}}) {
    const int peer = connect_to(one.peer);
    EXPECT_EQ(::accept(one.without, nullptr, nullptr), -1) << one.peer;
    sockaddr_storage address{};
    socklen_t bytes = sizeof address;
    const int fd = ::accept(one.listener, reinterpret_cast<sockaddr*>(&address), &bytes);
    ASSERT_GE(fd, 0) << one.peer;
    EXPECT_EQ(bytes, size_of(address));
    EXPECT_EQ(text_of(address), one.peer);
    bytes = sizeof address;
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    EXPECT_EQ(text_of(address), one.peer);
    ::close(fd);
    real().close(peer);
  }
}

TEST_F(Sockets, an_ipv6_listener_shows_ipv4_as_mapped_addresses) {
  listener_ = listen_at("::", SOCK_NONBLOCK);
  EXPECT_EQ(::accept(listener_, nullptr, nullptr), -1);
  peer_ = connect_to("127.0.0.1");
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  server_ = ::accept(listener_, reinterpret_cast<sockaddr*>(&address), &bytes);
  ASSERT_GE(server_, 0);
  EXPECT_EQ(text_of(address), "::ffff:127.0.0.1");
}

TEST_F(Sockets, no_listener_of_the_family_resets) {
  listener_ = listen_at("127.0.0.1", SOCK_NONBLOCK);
  EXPECT_EQ(::accept(listener_, nullptr, nullptr), -1);
  peer_ = connect_to("::1");
  EXPECT_EQ(::accept(listener_, nullptr, nullptr), -1);
  char byte = 0;
  EXPECT_EQ(real().recv(peer_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(Sockets, bytes_pass_small_buffers_in_order) {
  connect(SOCK_NONBLOCK);
  const std::string sent = random_bytes(1'000'000);
  std::string received;
  std::thread peer([&] {
    peer_sends(sent);
    received = peer_receives(sent.size());
  });
  std::string got;
  char part[5000];
  while (got.size() < sent.size()) {
    const ssize_t bytes = ::recv(server_, part, sizeof part, 0);
    if (bytes < 0) {
      ASSERT_EQ(errno, EAGAIN);
      EXPECT_EQ(poll_server(POLLIN, 20'000), POLLIN);
      continue;
    }
    got.append(part, static_cast<std::size_t>(bytes));
  }
  EXPECT_TRUE(got == sent);
  for (std::size_t done = 0; done < sent.size();) {
    const iovec pieces[2] = {
        {got.data() + done, std::min<std::size_t>(7, sent.size() - done)},
        {got.data() + std::min(done + 7, sent.size()), sent.size() - std::min(done + 7, sent.size())}};
    const ssize_t bytes = ::writev(server_, pieces, 2);
    if (bytes < 0) {
      ASSERT_EQ(errno, EAGAIN);
      EXPECT_EQ(poll_server(POLLOUT, 20'000), POLLOUT);
      continue;
    }
    done += static_cast<std::size_t>(bytes);
  }
  peer.join();
  EXPECT_TRUE(received == sent);
}

TEST_F(Sockets, a_blocking_write_sends_all) {
  connect();
  const std::string sent = random_bytes(3'000'000);
  std::string received;
  std::thread peer([&] { received = peer_receives(sent.size()); });
  EXPECT_EQ(::send(server_, sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
  peer.join();
  EXPECT_TRUE(received == sent);
}

TEST_F(Sockets, peeked_bytes_stay) {
  connect();
  int waiting = 0;
  // so that the next bytes lie around the end of the buffer
  peer_sends(std::string(kFakeBufferBytes - 3, 'x'));
  std::string filler(kFakeBufferBytes - 3, '\0');
  ASSERT_EQ(::recv(server_, filler.data(), filler.size(), MSG_WAITALL), kFakeBufferBytes - 3);
  peer_sends("abcdefgh");
  EXPECT_EQ(poll_server(POLLIN, 20'000), POLLIN);
  for (int time = 0; time < 2; ++time) {
    char bytes[9] = {};
    EXPECT_EQ(::recv(server_, bytes, 8, MSG_PEEK), 8);
    EXPECT_STREQ(bytes, "abcdefgh");
    EXPECT_EQ(::ioctl(server_, FIONREAD, &waiting), 0);
    EXPECT_EQ(waiting, 8);
  }
  char bytes[9] = {};
  EXPECT_EQ(::recv(server_, nullptr, 2, MSG_TRUNC), 2);
  EXPECT_EQ(::read(server_, bytes, 8), 6);
  EXPECT_STREQ(bytes, "cdefgh");
  EXPECT_EQ(::recv(server_, bytes, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Sockets, half_closed_connections_send_and_receive) {
  connect();
  peer_sends("request");
  real().shutdown(peer_, SHUT_WR);
  char bytes[16] = {};
  EXPECT_EQ(::recv(server_, bytes, 7, MSG_WAITALL), 7);
  EXPECT_EQ(::recv(server_, bytes, 7, 0), 0);
  EXPECT_EQ(poll_server(POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
  EXPECT_EQ(::send(server_, "reply", 5, 0), 5);
  EXPECT_EQ(::shutdown(server_, SHUT_WR), 0);
  EXPECT_EQ(poll_server(POLLIN | POLLRDHUP) & POLLHUP, POLLHUP);
  EXPECT_EQ(::send(server_, "more", 4, MSG_NOSIGNAL), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(peer_receives(6), "reply");
}

TEST_F(Sockets, linger_of_zero_seconds_resets) {
  connect();
  const linger now{1, 0};
  EXPECT_EQ(::setsockopt(server_, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
  ::close(server_);
  server_ = -1;
  char byte = 0;
  EXPECT_EQ(real().recv(peer_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(Sockets, a_reset_is_reported_once) {
  connect(SOCK_NONBLOCK);
  reset_by_peer();
  EXPECT_EQ(poll_server(POLLIN, 20'000) & (POLLIN | POLLERR | POLLHUP), POLLIN | POLLERR | POLLHUP);
  char byte = 0;
  EXPECT_EQ(::recv(server_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(::recv(server_, &byte, 1, 0), 0);
  EXPECT_EQ(::send(server_, &byte, 1, MSG_NOSIGNAL), -1);
  EXPECT_EQ(errno, EPIPE);
  static int signals = 0;
  const auto before = ::signal(SIGPIPE, [](int) { ++signals; });
  EXPECT_EQ(::write(server_, &byte, 1), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(signals, 1);
  ::signal(SIGPIPE, before);
}

TEST_F(Sockets, so_error_takes_the_reset) {
  connect(SOCK_NONBLOCK);
  reset_by_peer();
  EXPECT_NE(poll_server(POLLIN, 20'000) & POLLERR, 0);
  int error = 0;
  socklen_t bytes = sizeof error;
  EXPECT_EQ(::getsockopt(server_, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_EQ(::getsockopt(server_, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
  EXPECT_EQ(error, 0);
}

TEST_F(Sockets, options_act_or_are_refused) {
  connect();
  const timeval limit{0, 10'000};
  EXPECT_EQ(::setsockopt(server_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  char byte = 0;
  EXPECT_EQ(::recv(server_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  const int yes = 1;
  int value = 0;
  socklen_t bytes = sizeof value;
  EXPECT_EQ(::setsockopt(server_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), 0);
  EXPECT_EQ(::getsockopt(server_, IPPROTO_TCP, TCP_NODELAY, &value, &bytes), 0);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(::getsockopt(server_, SOL_SOCKET, SO_TYPE, &value, &bytes), 0);
  EXPECT_EQ(value, SOCK_STREAM);
  EXPECT_EQ(::getsockopt(listener_, SOL_SOCKET, SO_ACCEPTCONN, &value, &bytes), 0);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(::setsockopt(server_, IPPROTO_TCP, TCP_ULP, "tls", 4), -1);
  EXPECT_EQ(errno, ENOPROTOOPT);
}

TEST_F(Sockets, descriptor_flags_decide_blocking) {
  connect();
  EXPECT_EQ(::fcntl(server_, F_GETFL) & O_NONBLOCK, 0);
  int on = 1;
  EXPECT_EQ(::ioctl(server_, FIONBIO, &on), 0);
  EXPECT_NE(::fcntl(server_, F_GETFL) & O_NONBLOCK, 0);
  char byte = 0;
  EXPECT_EQ(::recv(server_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(::fcntl(server_, F_SETFL, 0), 0);
  EXPECT_EQ(::fcntl(server_, F_SETFD, FD_CLOEXEC), 0);
  EXPECT_EQ(::fcntl(server_, F_GETFD), FD_CLOEXEC);
  const timeval limit{0, 10'000};
  EXPECT_EQ(::setsockopt(server_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  EXPECT_EQ(::recv(server_, &byte, 1, 0), -1);  // returns by its limit: it waited
}

TEST_F(Sockets, corked_bytes_leave_together) {
  connect();
  const int on = 1;
  const int off = 0;
  EXPECT_EQ(::setsockopt(server_, IPPROTO_TCP, TCP_CORK, &on, sizeof on), 0);
  int value = 0;
  socklen_t bytes_of_value = sizeof value;
  EXPECT_EQ(::getsockopt(server_, IPPROTO_TCP, TCP_CORK, &value, &bytes_of_value), 0);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(::send(server_, "head", 4, 0), 4);
  EXPECT_EQ(::send(server_, "body", 4, 0), 4);
  char bytes[9] = {};
  EXPECT_EQ(real().recv(peer_, bytes, 8, MSG_DONTWAIT), -1);
  EXPECT_EQ(::setsockopt(server_, IPPROTO_TCP, TCP_CORK, &off, sizeof off), 0);
  EXPECT_EQ(real().recv(peer_, bytes, 8, 0), 8);
  EXPECT_STREQ(bytes, "headbody");
  // and before the program waits, because the peer may
  EXPECT_EQ(::send(server_, "more", 4, MSG_MORE), 4);
  EXPECT_EQ(real().recv(peer_, bytes, 8, MSG_DONTWAIT), -1);
  EXPECT_EQ(poll_server(POLLIN, 1), 0);
  EXPECT_EQ(real().recv(peer_, bytes, 8, 0), 4);
}

TEST_F(Sockets, sendfile_reads_into_the_buffer) {
  connect(SOCK_NONBLOCK);
  const std::string content = random_bytes(200'000);
  FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(real().write(::fileno(file), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  std::string received;
  std::thread peer([&] { received = peer_receives(content.size() - 1000); });
  off_t offset = 1000;
  while (offset < static_cast<off_t>(content.size())) {
    const ssize_t sent = ::sendfile(server_, ::fileno(file), &offset, content.size());
    if (sent < 0) {
      ASSERT_EQ(errno, EAGAIN);
      poll_server(POLLOUT, 20'000);
    }
  }
  EXPECT_EQ(::sendfile(server_, ::fileno(file), &offset, 1), 0);
  peer.join();
  EXPECT_TRUE(received == content.substr(1000));
  std::fclose(file);
}

TEST_F(Sockets, select_mixes_descriptors) {
  connect();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int count = std::max(server_, ends[0]) + 1;
  fd_set readable;
  fd_set writable;
  const auto run = [&] {
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_SET(server_, &readable);
    FD_SET(ends[0], &readable);
    FD_SET(server_, &writable);
    timeval limit{20, 0};
    return ::select(count, &readable, &writable, nullptr, &limit);
  };
  EXPECT_EQ(run(), 1);
  EXPECT_TRUE(FD_ISSET(server_, &writable));
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(run(), 2);
  EXPECT_TRUE(FD_ISSET(ends[0], &readable));
  EXPECT_FALSE(FD_ISSET(server_, &readable));
  peer_sends("y");
  EXPECT_EQ(run(), 3);
  EXPECT_TRUE(FD_ISSET(server_, &readable));
  FD_ZERO(&readable);
  FD_SET(listener_, &readable);
  timespec limit{0, 1'000'000};
  EXPECT_EQ(::pselect(listener_ + 1, &readable, nullptr, nullptr, &limit, nullptr), 0);
  EXPECT_FALSE(FD_ISSET(listener_, &readable));
  ::close(ends[0]);
  ::close(ends[1]);
}

class Epoll : public Sockets {
 protected:
  void SetUp() override {
    Sockets::SetUp();
    connect(SOCK_NONBLOCK);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  }
  void TearDown() override {
    ::close(epoll_);
    Sockets::TearDown();
  }
  int control(int operation, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    return ::epoll_ctl(epoll_, operation, fd, &event);
  }
  /// The events of `fd`; 0: no event.
  std::uint32_t wait(int fd, int timeout_ms = 0) {
    epoll_event events[8] = {};
    const int count = ::epoll_wait(epoll_, events, 8, timeout_ms);
    EXPECT_GE(count, 0) << std::strerror(errno);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == fd) {
        return events[i].events;
      }
    }
    return 0;
  }
  std::string drain() {
    char bytes[64];
    std::string all;
    for (ssize_t got = 0; (got = ::recv(server_, bytes, sizeof bytes, 0)) > 0;) {
      all.append(bytes, static_cast<std::size_t>(got));
    }
    return all;
  }
  int epoll_ = -1;
};

TEST_F(Epoll, level_triggered_reports_until_drained) {
  EXPECT_EQ(control(EPOLL_CTL_ADD, server_, EPOLLIN), 0);
  EXPECT_EQ(wait(server_), 0U);
  peer_sends("abc");
  EXPECT_EQ(wait(server_, 20'000), EPOLLIN);
  EXPECT_EQ(wait(server_), EPOLLIN);
  EXPECT_EQ(drain(), "abc");
  EXPECT_EQ(wait(server_), 0U);
  EXPECT_EQ(control(EPOLL_CTL_ADD, server_, EPOLLIN), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(control(EPOLL_CTL_DEL, server_, 0), 0);
  EXPECT_EQ(control(EPOLL_CTL_DEL, server_, 0), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(control(EPOLL_CTL_MOD, server_, EPOLLIN), -1);
  EXPECT_EQ(errno, ENOENT);
  peer_sends("abc");
  EXPECT_EQ(wait(server_, 10), 0U);
}

TEST_F(Epoll, edge_triggered_reports_changes) {
  EXPECT_EQ(control(EPOLL_CTL_ADD, server_, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET), 0);
  EXPECT_EQ(wait(server_), EPOLLOUT);
  EXPECT_EQ(wait(server_, 10), 0U);
  peer_sends("abc");
  EXPECT_EQ(wait(server_, 20'000), EPOLLIN | EPOLLOUT);
  EXPECT_EQ(wait(server_, 10), 0U);
  peer_sends("def");
  EXPECT_EQ(wait(server_, 20'000) & EPOLLIN, EPOLLIN);
  EXPECT_EQ(drain(), "abcdef");
  EXPECT_EQ(control(EPOLL_CTL_MOD, server_, EPOLLOUT | EPOLLET), 0);
  EXPECT_EQ(wait(server_), EPOLLOUT);
  EXPECT_EQ(wait(server_, 10), 0U);
  EXPECT_EQ(control(EPOLL_CTL_MOD, server_, EPOLLIN | EPOLLRDHUP | EPOLLET), 0);
  real().shutdown(peer_, SHUT_WR);
  EXPECT_EQ(wait(server_, 20'000), EPOLLIN | EPOLLRDHUP);
}

TEST_F(Epoll, one_shot_reports_once) {
  EXPECT_EQ(control(EPOLL_CTL_ADD, server_, EPOLLIN | EPOLLONESHOT), 0);
  peer_sends("abc");
  EXPECT_EQ(wait(server_, 20'000), EPOLLIN);
  peer_sends("def");
  EXPECT_EQ(wait(server_, 10), 0U);
  EXPECT_EQ(control(EPOLL_CTL_MOD, server_, EPOLLIN | EPOLLONESHOT), 0);
  EXPECT_EQ(wait(server_, 20'000), EPOLLIN);
}

TEST_F(Epoll, space_is_reported_after_a_full_buffer) {
  for (const std::uint32_t trigger : {std::uint32_t{0}, static_cast<std::uint32_t>(EPOLLET)}) {
    const std::string bytes(64 * 1024, 'x');
    std::size_t sent = 0;
    for (ssize_t part = 0; (part = ::send(server_, bytes.data(), bytes.size(), 0)) > 0;) {
      sent += static_cast<std::size_t>(part);
    }
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(control(EPOLL_CTL_ADD, server_, EPOLLOUT | trigger), 0);
    EXPECT_EQ(wait(server_), 0U);
    std::thread peer([&] { peer_receives(sent); });
    EXPECT_EQ(wait(server_, 20'000), EPOLLOUT);
    peer.join();
    EXPECT_EQ(control(EPOLL_CTL_DEL, server_, 0), 0);
  }
}

TEST_F(Epoll, descriptors_of_the_kernel_have_their_turn) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(control(EPOLL_CTL_ADD, ends[0], EPOLLIN), 0);
  EXPECT_EQ(control(EPOLL_CTL_ADD, server_, EPOLLOUT), 0);  // always true
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  bool was_reported = false;
  for (int i = 0; i < 16; ++i) {
    was_reported = was_reported || wait(ends[0]) == EPOLLIN;
  }
  EXPECT_TRUE(was_reported);
  // and wake a program that waits for the stack
  EXPECT_EQ(control(EPOLL_CTL_MOD, server_, EPOLLIN), 0);
  EXPECT_EQ(wait(ends[0], 20'000), EPOLLIN);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Epoll, a_listener_reports_each_connection) {
  EXPECT_EQ(control(EPOLL_CTL_ADD, listener_, EPOLLIN | EPOLLEXCLUSIVE), 0);
  EXPECT_EQ(wait(listener_), 0U);
  const int one = connect_to("127.0.0.1");
  const int two = connect_to("127.0.0.1");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(wait(listener_, 20'000), EPOLLIN);
    const int fd = ::accept(listener_, nullptr, nullptr);
    EXPECT_GE(fd, 0);
    ::close(fd);
  }
  EXPECT_EQ(wait(listener_), 0U);
  real().close(one);
  real().close(two);
}

TEST_F(Epoll, a_closed_descriptor_leaves_its_sets) {
  EXPECT_EQ(control(EPOLL_CTL_ADD, server_, EPOLLIN), 0);
  peer_sends("abc");
  EXPECT_EQ(wait(server_, 20'000), EPOLLIN);
  ::close(server_);
  EXPECT_EQ(wait(server_), 0U);
  server_ = -1;
}

TEST_F(Epoll, the_death_of_the_stack_resets_and_the_next_stack_serves) {
  EXPECT_EQ(control(EPOLL_CTL_ADD, listener_, EPOLLIN), 0);
  EXPECT_EQ(control(EPOLL_CTL_ADD, server_, EPOLLIN | EPOLLET), 0);
  kill_fake_stack();
  EXPECT_EQ(wait(server_), EPOLLIN | EPOLLERR | EPOLLHUP);
  char byte = 0;
  EXPECT_EQ(::recv(server_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(wait(server_, 150), 0U);  // over more than one attempt
  start_fake_stack();
  std::thread peer([this] {
    for (int attempt = 0; attempt < 400; ++attempt) {
      const int fd = connect_to("127.0.0.1");
      if (fd >= 0) {
        real().close(fd);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  EXPECT_EQ(wait(listener_, 20'000), EPOLLIN);
  peer.join();
  const int fd = ::accept(listener_, nullptr, nullptr);
  EXPECT_GE(fd, 0);
  ::close(fd);
}

TEST_F(Sockets, a_child_does_not_use_connections_of_its_parent) {
  connect();
  const std::string text = in_child([this] {
    char byte = 0;
    const bool is_refused = ::send(server_, &byte, 1, 0) == -1 && errno == EBADF && ::recv(server_, &byte, 1, 0) == -1;
    return is_refused && ::close(server_) == 0 ? 0 : 1;
  });
  EXPECT_THAT(text, HasSubstr("catena-sockets: send in a child process"));
  EXPECT_EQ(text.find('\n'), text.size() - 1);  // once
  EXPECT_EQ(::send(server_, "a", 1, 0), 1);     // the child's close() is its own
  EXPECT_EQ(peer_receives(1), "a");
}

TEST_F(Sockets, a_child_accepts_at_its_parents_listener) {
  listener_ = listen_at("127.0.0.1");
  const int ready = ::eventfd(0, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    pollfd none{listener_, POLLIN, 0};
    ::poll(&none, 1, 0);
    ::eventfd_write(ready, 1);
    const int fd = ::accept(listener_, nullptr, nullptr);
    std::_Exit(fd >= 0 && ::send(fd, "child", 5, 0) == 5 && ::close(fd) == 0 ? 0 : 1);
  }
  eventfd_t count = 0;
  ASSERT_EQ(::eventfd_read(ready, &count), 0);
  peer_ = connect_to("127.0.0.1");
  EXPECT_EQ(peer_receives(5), "child");
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ::close(ready);
}

TEST_F(Sockets, a_second_thread_is_refused) {
  const std::string text = in_child([this] {
    connect();
    int error = 0;
    std::thread second([&] {
      char byte = 0;
      error = ::recv(server_, &byte, 1, MSG_DONTWAIT) == -1 ? errno : 0;
    });
    second.join();
    return error == EOPNOTSUPP ? 0 : 1;
  });
  EXPECT_THAT(text, HasSubstr("recv in a second thread"));
}

/// Programs hand connections to threads, and close them there after the error: a peer must not wait for ever.
TEST_F(Sockets, a_second_thread_closes_a_connection_whose_thread_ends_it) {
  const std::string text = in_child([this] {
    connect();
    pollfd watched{server_, POLLIN, 0};
    int first = -1;
    int again = 0;
    std::thread second([&] {
      first = ::close(server_);
      again = ::close(server_) == -1 ? errno : 0;
    });
    const bool is_woken = ::poll(&watched, 1, 20'000) == 1;
    second.join();
    char byte = 0;
    const bool has_ended = real().recv(peer_, &byte, 1, 0) == 0;
    EXPECT_EQ(::accept(listener_, nullptr, nullptr), -1);
    const bool is_free = ::fcntl(server_, F_GETFD) == -1 && ::close(server_) == -1 && errno == EBADF;
    return first == 0 && again == EBADF && is_woken && has_ended && is_free ? 0 : 1;
  });
  EXPECT_THAT(text, HasSubstr("close in a second thread"));
}

TEST_F(Sockets, duplicates_are_refused) {
  const std::string text = in_child([this] {
    connect();
    int ends[2];
    ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    char byte = 0;
    iovec buffer{&byte, 1};
    msghdr message{};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &server_, sizeof server_);
    const bool is_refused = ::dup(server_) == -1 && errno == EOPNOTSUPP && ::dup2(server_, 100) == -1 &&
                            ::fcntl(server_, F_DUPFD, 0) == -1 && ::sendmsg(ends[0], &message, 0) == -1 &&
                            errno == EOPNOTSUPP;
    std::memcpy(CMSG_DATA(part), &ends[1], sizeof ends[1]);
    return is_refused && ::sendmsg(ends[0], &message, 0) == 1 ? 0 : 1;
  });
  EXPECT_THAT(text, HasSubstr("dup of a connection"));
  EXPECT_THAT(text, HasSubstr("sendmsg passes a connection"));
}

TEST_F(Sockets, exec_with_connections_is_refused) {
  const std::string text = in_child([this] {
    listener_ = listen_at("127.0.0.1");
    char program[] = "/bin/true";
    char variable[] = "NGINX=3;";
    char* arguments[] = {program, nullptr};
    char* environment[] = {variable, nullptr};
    const bool is_refused = ::execve(program, arguments, environment) == -1 && errno == EOPNOTSUPP;
    environment[0] = nullptr;
    if (is_refused) {
      ::execve(program, arguments, environment);
    }
    return 1;
  });
  EXPECT_THAT(text, HasSubstr("execve with sockets of the stack open"));
}

TEST_F(Sockets, dup2_onto_a_connection_ends_it) {
  connect();
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::dup2(null, server_), server_);
  char byte = 0;
  EXPECT_EQ(::read(server_, &byte, 1), 0);  // of the file
  EXPECT_EQ(real().recv(peer_, &byte, 1, 0), 0);
  ::close(null);
}

bool is_open(int fd) { return real().fcntl(fd, F_GETFD) >= 0; }

/// Daemons close all descriptors that they do not know.
TEST_F(Sockets, a_program_does_not_close_the_librarys_own_descriptor) {
  const std::string text = in_child([this] {
    connect();
    const int own = ::catena_stack_descriptor(Attachment::get().stack());
    const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const auto has_neighbours = [&](bool expected) {
      return is_open(own - 1) == expected && is_open(own + 1) == expected;
    };
    const auto add_neighbours = [&] { return ::dup2(file, own - 1) == own - 1 && ::dup2(file, own + 1) == own + 1; };
    errno = 0;
    bool is_right = ::close(own) == -1 && errno == EBADF && ::dup2(file, own) == -1 && errno == EBUSY;
    is_right = is_right && ::dup3(file, own, O_CLOEXEC) == -1 && errno == EBUSY;
    const auto at = static_cast<unsigned>(own);
    for (const auto& [first, last] : {std::pair{at - 1, at + 1}, std::pair{at - 1, ~0U}}) {
      is_right = is_right && add_neighbours() && ::close_range(first, last, 0) == 0 && has_neighbours(false);
    }
    is_right = is_right && ::close_range(at, at, 0) == 0 && ::close_range(at + 1, at, 0) == -1 && errno == EINVAL;
    is_right = is_right && add_neighbours();
    ::closefrom(own - 1);
    is_right = is_right && has_neighbours(false) && add_neighbours();
    ::closefrom(own);
    is_right = is_right && is_open(own - 1) && !is_open(own + 1) && is_open(own);
    peer_sends("a");
    return is_right && poll_server(POLLIN, 20'000) == POLLIN ? 0 : 1;
  });
  EXPECT_THAT(text, HasSubstr("dup2 to the number of the library"));
}

TEST_F(Sockets, a_full_stack_says_so) {
  fill_fake_stack();
  const std::string text = in_child([this] {
    const int listener = listen_at("127.0.0.1", SOCK_NONBLOCK);
    return ::accept(listener, nullptr, nullptr) == -1 && errno == EAGAIN ? 0 : 1;
  });
  EXPECT_THAT(text, HasSubstr("has no space for another process"));
}

TEST_F(Sockets, an_epoll_instance_with_connections_has_one_descriptor) {
  const std::string text = in_child([this] {
    connect();
    const int set = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    ::epoll_ctl(set, EPOLL_CTL_ADD, server_, &event);
    const bool is_refused = ::dup(set) == -1 && errno == EOPNOTSUPP && ::dup2(set, 100) == -1 && errno == EOPNOTSUPP &&
                            ::dup3(set, 100, 0) == -1 && errno == EOPNOTSUPP && ::fcntl(set, F_DUPFD, 0) == -1 &&
                            errno == EOPNOTSUPP && ::fcntl(set, F_DUPFD_CLOEXEC, 0) == -1 && errno == EOPNOTSUPP;
    return is_refused && ::fcntl(set, F_GETFD) == FD_CLOEXEC && ::dup2(set, set) == set ? 0 : 1;
  });
  EXPECT_THAT(text, HasSubstr("dup of an epoll instance with connections"));
}

TEST_F(Sockets, a_port_taken_in_this_process_is_refused) {
  listener_ = listen_at("127.0.0.1");
  const sockaddr_storage own = address_of("0.0.0.0", port_);
  other_listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::bind(other_listener_, reinterpret_cast<sockaddr const*>(&own), size_of(own)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
}

TEST_F(Sockets, a_bound_socket_may_connect_by_the_kernel) {
  const int kernel = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_storage there = address_of("127.0.0.1", 0);
  socklen_t bytes = sizeof there;
  ASSERT_EQ(real().bind(kernel, reinterpret_cast<sockaddr*>(&there), size_of(there)), 0);
  ASSERT_EQ(real().listen(kernel, 1), 0);
  real().getsockname(kernel, reinterpret_cast<sockaddr*>(&there), &bytes);
  const sockaddr_storage own = address_of("127.0.0.1", port_);
  server_ = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::bind(server_, reinterpret_cast<sockaddr const*>(&own), size_of(own)), 0);
  EXPECT_EQ(::connect(server_, reinterpret_cast<sockaddr const*>(&there), size_of(there)), 0);
  real().close(kernel);
}

TEST_F(Sockets, errno_stays_where_calls_succeed) {
  connect();
  errno = EDOM;
  EXPECT_EQ(::send(server_, "a", 1, 0), 1);
  EXPECT_EQ(poll_server(POLLOUT), POLLOUT);
  EXPECT_EQ(errno, EDOM);
}

}  // namespace
}  // namespace catena::sockets
