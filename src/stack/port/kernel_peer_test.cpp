// SPDX-License-Identifier: Apache-2.0
// The stack over ports of the kernel with the kernel's TCP as its peer, in a network namespace of the test's own. Needs
// root.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "stack/port/port_table.hpp"
#include "stack/tcp/echo_server.hpp"
#include "stack/tcp/frame.hpp"
#include "stack/tcp/tcp.hpp"

namespace catena::stack {
namespace {

constexpr std::uint16_t kPort = 7;

/// Loses, doubles, delays and reorders frames of both directions, by a seed.
class Relay final : public Port {
 public:
  Relay(std::unique_ptr<Port> port, unsigned seed) : port_(std::move(port)), random_(seed) {}
  bool send(OutgoingFrame const& frame) override {
    Held held{.outgoing = frame, .bytes = {}};
    for (const std::span<const std::byte> part : frame.parts) {
      held.bytes.insert(held.bytes.end(), part.begin(), part.end());
    }
    pass(to_kernel_, std::move(held));
    release();
    return true;
  }
  std::optional<std::span<const std::byte>> receive() override {
    release();
    while (const auto frame = port_->receive()) {
      pass(to_stack_, {.outgoing = {}, .bytes = {frame->begin(), frame->end()}});
    }
    if (to_stack_.empty() || to_stack_.begin()->first > Clock::now()) {
      return std::nullopt;
    }
    received_ = std::move(to_stack_.extract(to_stack_.begin()).mapped().bytes);
    return received_;
  }
  int descriptor() const override { return port_->descriptor(); }
  std::uint64_t lost = 0;
  std::uint64_t doubled = 0;
  std::uint64_t delayed = 0;

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    OutgoingFrame outgoing;
    std::vector<std::byte> bytes;
  };
  using Queue = std::multimap<Clock::time_point, Held>;  ///< by the time of their release

  void pass(Queue& queue, Held held) {
    const auto fate = random_() % 100;
    if (fate < 3) {
      ++lost;
      return;
    }
    if (fate < 6) {
      ++doubled;
      queue.emplace(Clock::now() + std::chrono::microseconds(random_() % 3000), held);
    }
    const bool is_delayed = fate >= 90;
    delayed += is_delayed ? 1 : 0;
    queue.emplace(Clock::now() + std::chrono::microseconds(is_delayed ? random_() % 3000 : 0), std::move(held));
  }
  void release() {
    while (!to_kernel_.empty() && to_kernel_.begin()->first <= Clock::now()) {
      Held& held = to_kernel_.begin()->second;
      const std::array<std::span<const std::byte>, 1> parts = {held.bytes};
      held.outgoing.parts = parts;
      port_->send(held.outgoing);
      to_kernel_.erase(to_kernel_.begin());
    }
  }

  std::unique_ptr<Port> port_;
  std::minstd_rand random_;
  Queue to_kernel_;
  Queue to_stack_;
  std::vector<std::byte> received_;
};

/// Carries frames between the kernel's TAP and the far end of a port that is no port of the kernel.
class Bridge {
 public:
  Bridge(std::unique_ptr<Port> kernel, std::unique_ptr<Port> far) : kernel_(std::move(kernel)), far_(std::move(far)) {
    thread_ = std::thread([this] {
      while (!stop_) {
        std::array<pollfd, 2> readable{{{kernel_->descriptor(), POLLIN, 0}, {far_->descriptor(), POLLIN, 0}}};
        ::poll(readable.data(), readable.size(), 1);
        carry(*kernel_, *far_);
        carry(*far_, *kernel_);
      }
    });
  }
  ~Bridge() {
    stop_ = true;
    thread_.join();
  }
  Bridge(Bridge const&) = delete;
  Bridge& operator=(Bridge const&) = delete;

 private:
  static void carry(Port& from, Port& to) {
    constexpr std::size_t kMtuFrame = 1514;
    while (const auto frame = from.receive()) {
      const std::array<std::span<const std::byte>, 1> parts = {*frame};
      OutgoingFrame outgoing{.parts = parts, .bytes = static_cast<std::uint32_t>(frame->size())};
      const std::optional<Segment> segment = find_segment(*frame, true);
      if (segment && (frame->size() > kMtuFrame || !has_right_checksum(*frame))) {
        const std::size_t header = segment->tcp + 4 * (std::to_integer<std::size_t>((*frame)[segment->tcp + 12]) >> 4U);
        outgoing.checksum_start = static_cast<std::uint16_t>(segment->tcp);
        outgoing.header_bytes = static_cast<std::uint16_t>(header);
        outgoing.segment_bytes = static_cast<std::uint16_t>(frame->size() > kMtuFrame ? kMtuFrame - header : 0);
      }
      to.send(outgoing);
    }
  }

  std::unique_ptr<Port> kernel_;
  std::unique_ptr<Port> far_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// A process with a Bridge: memif has its two ends in two processes.
class BridgeProcess {
 public:
  /// Opens `port` as "KIND TEXT", and the TAP `tap`.
  BridgeProcess(std::string const& port, const char* tap) {
    ::setenv("BRIDGED_PORT", port.c_str(), 1);
    ::setenv("BRIDGED_TAP", tap, 1);
    std::string name = "bridge";
    std::string filter = "--gtest_filter=BridgeProgram.*";
    std::string brief = "--gtest_brief=1";  // tools/summarize-tests counts the cases that begin and end: it is none
    const std::array<char*, 4> arguments = {name.data(), filter.data(), brief.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ), 0);
    ::unsetenv("BRIDGED_PORT");
    for (int tries = 0; tries < 1000 && ::if_nametoindex(tap) == 0; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~BridgeProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  BridgeProcess(BridgeProcess const&) = delete;
  BridgeProcess& operator=(BridgeProcess const&) = delete;

 private:
  pid_t pid_ = -1;
};
/// What BridgeProcess runs; no test by itself.
TEST(BridgeProgram, carries_frames_for_another_test) {
  const char* const port = std::getenv("BRIDGED_PORT");
  if (port == nullptr) {
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string text = port;
  const std::size_t space = text.find(' ');
  Result<std::unique_ptr<Port>> far = open_port(text.substr(0, space), text.substr(space + 1));
  Result<std::unique_ptr<Port>> tap = open_port("tap", std::getenv("BRIDGED_TAP"));
  ASSERT_TRUE(far.ok() && tap.ok()) << far.status() << tap.status();
  const Bridge bridge(*std::move(tap), *std::move(far));
  for (;;) {
    ::pause();
  }
}

/// Commands that make the port's link, and the name of the kernel's end.
struct Link {
  const char* kind;
  const char* text;
  const char* commands;
  const char* kernel_end;
  /// Of the far end, whose frames are carried to the TAP `kernel_end`; null: the kernel has the far end.
  const char* far_text = nullptr;
  bool is_process = false;  ///< the far end is in another process
};
constexpr Link kTap{"tap", "tap0", "true", "tap0"};
constexpr Link kVeth{"dev", "veth0",
                     "ip link add veth0 type veth peer name veth1 && ip link set veth0 addrgenmode none up", "veth1"};
constexpr Link kRing{"ring", "ring_of_kernel.", "true", "tap0", ""};
/// In a process of its own.
constexpr Link kMemif{"memif", "memif_of_kernel.", "true", "tap0", ",role=client", true};
std::ostream& operator<<(std::ostream& out, Link const& link) { return out << link.kind; }

class OverPort : public ::testing::Test {
 protected:
  /// `seed`: of a Relay; 0: none. `cuts_segments`: frames of up to 64 KiB, in both directions.
  void start(Link const& link, unsigned seed, bool cuts_segments) {
    if (::unshare(CLONE_NEWNET) != 0) {
      GTEST_SKIP() << "a network namespace needs root";
    }
    ASSERT_EQ(std::system(link.commands), 0);
    // sockets of tests that run at a time have different names
    const std::string text = link.text + (link.far_text != nullptr ? std::to_string(::getpid()) : "");
    Result<std::unique_ptr<Port>> port = open_port(link.kind, text);
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
    if (link.is_process) {
      process_.emplace(std::string(link.kind) + " " + text + link.far_text, link.kernel_end);
    } else if (link.far_text != nullptr) {
      Result<std::unique_ptr<Port>> far = open_port(link.kind, text + link.far_text);
      Result<std::unique_ptr<Port>> tap = open_port("tap", link.kernel_end);
      ASSERT_TRUE(far.ok() && tap.ok()) << far.status() << tap.status();
      bridge_.emplace(*std::move(tap), *std::move(far));
    }
    if (seed != 0) {
      auto relay = std::make_unique<Relay>(std::move(port_), seed);
      relay_ = relay.get();
      port_ = std::move(relay);
    }
    const std::string end = link.kernel_end;
    ASSERT_EQ(std::system(("ip link set lo up && ip link set " + end + " up && ip address add 10.9.0.1/24 dev " + end +
                           " && ip -6 address add fd00:9::1/64 nodad dev " + end)
                              .c_str()),
              0);
    if (!cuts_segments) {
      ASSERT_EQ(std::system(("ethtool -K " + end + " tso off gso off").c_str()), 0);
    }
    TcpOptions options;
    options.mac = {2, 0, 0, 0, 9, 2};
    options.ipv4 = {packet::Address::of_v4(0x0A090002), 24, std::nullopt};
    options.ipv6 = {*packet::Address::parse("fd00:9::2"), 64, std::nullopt};
    options.cuts_segments = cuts_segments;
    Result<std::unique_ptr<Tcp>> tcp = Tcp::create(options, *port_, server_);
    ASSERT_TRUE(tcp.ok()) << tcp.status();
    tcp_ = *std::move(tcp);
    server_.attach(*tcp_);
    ASSERT_EQ(tcp_->listen(kPort, 255), absl::OkStatus());
    stack_ = std::thread([this] {
      while (!stop_) {
        pollfd readable{port_->descriptor(), POLLIN, 0};
        ::poll(&readable, 1, 1);
        for (int i = 0; i < 64; ++i) {
          const auto frame = port_->receive();
          if (!frame) {
            break;
          }
          tcp_->input(*frame);
        }
        server_.work();
        tcp_->tick(std::chrono::steady_clock::now());
      }
    });
  }
  void TearDown() override {
    stop_ = true;
    if (stack_.joinable()) {
      stack_.join();
    }
  }
  /// A connected socket with a time limit; -1: refused.
  static int connect_to(const char* address, std::uint16_t port = kPort) {
    const bool is_v4 = std::string_view(address).find(':') == std::string_view::npos;
    const int fd = ::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{20, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    if (is_v4) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      ::inet_pton(AF_INET, address, &v4.sin_addr);
    } else {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      ::inet_pton(AF_INET6, address, &v6.sin6_addr);
    }
    const auto* to = is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
    if (::connect(fd, to, is_v4 ? sizeof v4 : sizeof v6) != 0) {
      ::close(fd);
      return -1;
    }
    return fd;
  }
  /// Sends `bytes` random bytes and compares what comes back, to its end.
  static void expect_echo(int fd, std::size_t bytes) {
    std::minstd_rand random(static_cast<unsigned>(bytes));
    std::vector<std::uint8_t> sent(bytes);
    std::ranges::generate(sent, [&] { return static_cast<std::uint8_t>(random() >> 8U); });
    std::thread sender([&] {
      for (std::size_t at = 0; at < sent.size();) {
        const ssize_t part = ::send(fd, &sent[at], std::min<std::size_t>(sent.size() - at, 100'000), MSG_NOSIGNAL);
        if (part <= 0) {
          break;
        }
        at += static_cast<std::size_t>(part);
      }
      ::shutdown(fd, SHUT_WR);
    });
    std::vector<std::uint8_t> received(bytes + 1);
    std::size_t at = 0;
    for (ssize_t part = 1; part > 0 && at < received.size();
         at += static_cast<std::size_t>(std::max<ssize_t>(part, 0))) {
      part = ::recv(fd, &received[at], received.size() - at, 0);
    }
    sender.join();
    received.resize(at);
    EXPECT_EQ(received.size(), sent.size());
    EXPECT_TRUE(received == sent);
  }

  std::unique_ptr<Port> port_;
  Relay* relay_ = nullptr;
  std::optional<Bridge> bridge_;
  std::optional<BridgeProcess> process_;
  EchoServer server_;
  std::unique_ptr<Tcp> tcp_;
  std::atomic<bool> stop_ = false;
  std::thread stack_;
};

class KernelPeer : public OverPort, public ::testing::WithParamInterface<Link> {
 protected:
  void SetUp() override { start(GetParam(), 0, true); }
};

TEST_P(KernelPeer, gets_back_what_it_sends_over_both_families) {
  for (const char* address : {"10.9.0.2", "fd00:9::2"}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{1460}, std::size_t{100'000},
                                    std::size_t{GetParam().far_text == nullptr ? 8'000'000U : 2'000'000U}}) {
      SCOPED_TRACE(std::string(address) + " " + std::to_string(bytes));
      const int fd = connect_to(address);
      ASSERT_GE(fd, 0);
      expect_echo(fd, bytes);
      ::close(fd);
    }
  }
  EXPECT_EQ(server_.taken, 8U);
  EXPECT_EQ(server_.lost, 0U);
}

TEST_P(KernelPeer, has_many_connections_at_a_time) {
  constexpr std::size_t kConnections = 300;
  std::vector<int> fds;
  for (std::size_t i = 0; i < kConnections; ++i) {
    fds.push_back(connect_to("10.9.0.2"));
    ASSERT_GE(fds.back(), 0);
  }
  for (std::size_t i = 0; i < kConnections; ++i) {
    expect_echo(fds[i], 1 + i * 7);
    ::close(fds[i]);
  }
  EXPECT_EQ(server_.lost, 0U);
}

TEST_P(KernelPeer, gets_every_byte_though_frames_are_lost) {
  if (std::system("nft 'add table inet loss; add chain inet loss in { type filter hook input priority 0; }; "
                  "add rule inet loss in ip saddr 10.9.0.2 tcp sport 7 numgen random mod 100 < 3 drop'") != 0) {
    GTEST_SKIP() << "frames are lost by nft";
  }
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([client] {
      const int fd = connect_to("10.9.0.2");
      ASSERT_GE(fd, 0);
      expect_echo(fd, 2'000'000 + static_cast<std::size_t>(client));
      ::close(fd);
    });
  }
  std::ranges::for_each(clients, &std::thread::join);
  EXPECT_EQ(server_.lost, 0U);
}

TEST_P(KernelPeer, a_port_that_nobody_listens_at_refuses) {
  EXPECT_EQ(connect_to("10.9.0.2", 8), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST_P(KernelPeer, answers_pings_of_both_families) {
  EXPECT_EQ(std::system("ping -c 1 -W 5 10.9.0.2 >/dev/null && ping -c 1 -W 5 fd00:9::2 >/dev/null"), 0);
}

INSTANTIATE_TEST_SUITE_P(Ports, KernelPeer, ::testing::Values(kTap, kVeth, kRing));

/// The CPU cuts segments and makes checksums, and the kernel judges them. One test: memif takes a second to connect.
using Memif = OverPort;
TEST_F(Memif, gets_back_what_it_sends_over_both_families) {
  start(kMemif, 0, true);
  if (IsSkipped() || HasFatalFailure()) {
    return;
  }
  for (const char* address : {"10.9.0.2", "fd00:9::2"}) {
    SCOPED_TRACE(address);
    const int fd = connect_to(address);
    ASSERT_GE(fd, 0);
    expect_echo(fd, 1'000'000);
    ::close(fd);
  }
  EXPECT_EQ(server_.lost, 0U);
  EXPECT_EQ(port_->counters().bad_checksum, 0U);
}

class BadLink : public OverPort {
 protected:
  void expect_bytes(unsigned seed, bool cuts_segments) {
    start(kTap, seed, cuts_segments);
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    std::vector<std::thread> clients;
    for (const char* address : {"10.9.0.2", "10.9.0.2", "fd00:9::2"}) {
      clients.emplace_back([address] {
        const int fd = connect_to(address);
        ASSERT_GE(fd, 0);
        expect_echo(fd, 500'000);
        ::close(fd);
      });
    }
    std::ranges::for_each(clients, &std::thread::join);
    EXPECT_EQ(server_.lost, 0U);
    TearDown();
    EXPECT_GT(relay_->lost, 0U);
    EXPECT_GT(relay_->doubled, 0U);
    EXPECT_GT(relay_->delayed, 0U);
  }
};

TEST_F(BadLink, large_frames_are_lost_doubled_and_reordered) { expect_bytes(1, true); }
TEST_F(BadLink, single_segments_are_lost_doubled_and_reordered) { expect_bytes(2, false); }

TEST(PortTable, names_its_ports_where_the_key_is_none) {
  const Result<std::unique_ptr<Port>> port = open_port("tun", "x");
  EXPECT_EQ(port.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(port.status().message().find("tap, dev, ring, memif, dpdk"), std::string_view::npos) << port.status();
}

TEST(PortTable, refuses_what_is_no_interface) {
  for (const char* kind : {"tap", "dev", "ring"}) {
    EXPECT_EQ(open_port(kind, "").status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(open_port(kind, std::string(200, 'x')).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(open_port("dev", "none0").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace catena::stack
