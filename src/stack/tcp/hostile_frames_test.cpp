// SPDX-License-Identifier: Apache-2.0
// Frames that no honest peer sends. After each attack the stack serves an honest peer, and has its memory back.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "stack/tcp/echo_server.hpp"
#include "stack/tcp/raw_peer.hpp"
#include "stack/tcp/tcp.hpp"

namespace catena::stack::testing {
namespace {

constexpr std::uint16_t kEcho = 7;

Bytes mss_option(std::uint16_t mss) {
  return {2, 4, static_cast<std::uint8_t>(mss >> 8U), static_cast<std::uint8_t>(mss)};
}

class HostileFrames : public ::testing::Test {
 protected:
  static TcpOptions options() {
    TcpOptions options;
    options.mac = kStackMac;
    options.ipv4 = {packet::Address::of_v4(kStackV4), 24, packet::Address::of_v4(kPeerV4)};
    options.ipv6 = {*packet::Address::parse("fd00:9::2"), 64, std::nullopt};
    return options;
  }
  void SetUp() override { start(options(), 16); }
  void start(TcpOptions const& options, std::uint16_t backlog) {
    tcp_.reset();
    server_.emplace();
    Result<std::unique_ptr<Tcp>> tcp = Tcp::create(options, wire_, *server_);
    ASSERT_TRUE(tcp.ok()) << tcp.status();
    tcp_ = *std::move(tcp);
    now_ = std::chrono::steady_clock::now();
    server_->attach(*tcp_);
    ASSERT_EQ(tcp_->listen(kEcho, backlog), absl::OkStatus());
    expect_service();
    blocks_ = tcp_->counters().memory_blocks;
  }
  void TearDown() override {
    // half-open connections end after 20 s, those without an answer by stall_limit
    advance(std::chrono::seconds(25));
    expect_service();
    advance(std::chrono::seconds(1));
    EXPECT_EQ(tcp_->connections(), 0U);
    EXPECT_LE(tcp_->counters().memory_blocks, blocks_);
    tcp_.reset();
  }
  void input(Bytes const& frame) {
    tcp_->input(as_frame(frame));
    server_->work();
  }
  void advance(std::chrono::milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += Tcp::kTick;
      tcp_->tick(now_);
      server_->work();
    }
  }
  /// The stack learns the peer's MAC of both families.
  void introduce() {
    Bytes arp = ethernet(0x0806);
    put(arp, Bytes{0, 1, 8, 0, 6, 4, 0, 1});
    put(arp, kPeerMac);
    put32(arp, kPeerV4);
    put(arp, Bytes(6));
    put32(arp, kStackV4);
    input(arp);
    Bytes solicitation{135, 0, 0, 0, 0, 0, 0, 0};
    put(solicitation, address_v6(2));
    put(solicitation, Bytes{1, 1});
    put(solicitation, kPeerMac);
    input(icmpv6(solicitation));
  }
  RawPeer peer(bool is_v4 = true, std::uint16_t port = kEcho) { return {wire_, *tcp_, next_port_++, port, is_v4}; }
  RawPeer connected(Bytes const& options = {}, std::uint16_t window = 0xFFFF) {
    RawPeer made = peer();
    EXPECT_TRUE(made.connect(options, window));
    return made;
  }
  std::string echo(RawPeer& of, std::string_view text) {
    of.say(text);
    server_->work();
    return of.hear();
  }
  /// Ends a connection from outside, whatever its state.
  void cut(RawPeer& of) { of.send({.flags = kRst, .number = of.number}); }
  /// Both families: connects, gets its bytes back, closes.
  void expect_service() {
    introduce();
    for (const bool is_v4 : {true, false}) {
      RawPeer honest = peer(is_v4);
      ASSERT_TRUE(honest.connect(mss_option(1460))) << (is_v4 ? "IPv4" : "IPv6");
      std::string received;
      std::string sent;
      for (int i = 0; i < 5; ++i) {
        const std::string text(1000, static_cast<char>('a' + i));
        sent += text;
        received += echo(honest, text);
      }
      EXPECT_EQ(received, sent);
      honest.send({.flags = kFin | kAck, .number = honest.number, .acknowledged = honest.acknowledged});
      ++honest.number;
      server_->work();
      EXPECT_EQ(honest.hear(), "");
      EXPECT_TRUE(honest.has_fin);
      ++honest.acknowledged;
      honest.acknowledge();
    }
    wire_.segments.clear();
  }
  void expect_alive(RawPeer& of) { EXPECT_EQ(echo(of, "still here"), "still here"); }

  Wire wire_;
  std::optional<EchoServer> server_;
  std::unique_ptr<Tcp> tcp_;
  std::chrono::steady_clock::time_point now_;
  std::uint16_t next_port_ = 20'000;
  std::size_t blocks_ = 0;
};

// SYN floods

Bytes syn_from(std::uint32_t source, std::uint16_t port, std::uint16_t to = kEcho) {
  return ipv4(source, kTcpProtocol, tcp(port, to, {.flags = kSyn, .number = source}));
}

TEST_F(HostileFrames, a_flood_of_syns_leaves_room_for_an_honest_peer) {
  std::uint32_t source = 0x0B000001;
  const auto flood = [&](int syns) {
    for (int i = 0; i < syns; ++i, ++source) {
      input(syn_from(source, static_cast<std::uint16_t>(1024 + i)));
    }
  };
  flood(2000);
  EXPECT_EQ(tcp_->counters().half_open, 16U);
  EXPECT_EQ(tcp_->counters().half_open_dropped, 2000U - 16);
  RawPeer honest = peer();
  ASSERT_TRUE(honest.begin());
  flood(15);  // during the honest peer's round trip
  honest.acknowledge();
  flood(100);
  expect_alive(honest);
  EXPECT_EQ(tcp_->counters().half_open, 16U);
  cut(honest);
}

TEST_F(HostileFrames, ten_thousand_half_open_connections_of_one_listener_leave_others_served) {
  constexpr std::uint16_t kMostBacklog = 4096;
  constexpr std::uint32_t kSyns = 10'000;
  start(options(), kMostBacklog);
  ASSERT_EQ(tcp_->listen(8, 16), absl::OkStatus());
  RawPeer before = peer(true, 8);
  ASSERT_TRUE(before.connect(mss_option(1460)));
  for (std::uint32_t i = 0; i < kSyns; ++i) {
    input(syn_from(0x0B000001 + i, 1024));
  }
  EXPECT_EQ(tcp_->counters().half_open, kMostBacklog);
  EXPECT_EQ(tcp_->counters().half_open_dropped, kSyns - kMostBacklog);
  for (int round = 0; round < 10; ++round) {
    RawPeer after = peer(true, 8);
    ASSERT_TRUE(after.connect(mss_option(1460)));
    expect_alive(after);
    expect_alive(before);
    cut(after);
    advance(std::chrono::milliseconds(100));
    for (std::uint32_t i = 0; i < kSyns / 10; ++i) {
      input(syn_from(0x0C000001 + i, 1024));
    }
    wire_.segments.clear();
  }
  cut(before);
  tcp_->stop_listening(8);
}

TEST_F(HostileFrames, the_fullest_listener_pays_for_the_limit_of_all) {
  TcpOptions limited = options();
  limited.max_half_open = 20;
  start(limited, 100);
  ASSERT_EQ(tcp_->listen(8, 100), absl::OkStatus());
  RawPeer quiet = peer(true, 8);
  ASSERT_TRUE(quiet.begin());
  for (std::uint32_t i = 0; i < 300; ++i) {
    input(syn_from(0x0B000001 + i, 1024));
  }
  EXPECT_EQ(tcp_->counters().half_open, 20U);
  quiet.acknowledge();
  EXPECT_EQ(tcp_->connections(), 1U);
  cut(quiet);
  tcp_->stop_listening(8);
}

TEST_F(HostileFrames, a_listener_that_stops_takes_its_half_open_connections_along) {
  RawPeer half = peer();
  ASSERT_TRUE(half.begin());
  tcp_->stop_listening(kEcho);
  ASSERT_EQ(tcp_->listen(kEcho, 16), absl::OkStatus());  // it may have the memory of the last one
  half.acknowledge();
  const std::vector<SentSegment> sent = half.take();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].flags & kRst, kRst);
  EXPECT_EQ(tcp_->counters().half_open, 0U);
}

TEST_F(HostileFrames, a_syn_with_fin_opens_nothing) {
  RawPeer odd = peer();
  odd.send({.flags = kSyn | kFin, .number = 1});
  EXPECT_TRUE(odd.take().empty());
  EXPECT_EQ(tcp_->counters().half_open, 0U);
}

TEST_F(HostileFrames, connections_in_time_wait_are_bounded) {
  TcpOptions limited = options();
  limited.max_closing = 8;
  start(limited, 16);
  for (int i = 0; i < 50; ++i) {
    RawPeer closed = connected();
    tcp_->close(server_->any());
    server_->forget(server_->any());
    closed.hear();
    ++closed.acknowledged;
    closed.send({.flags = kFin | kAck, .number = closed.number, .acknowledged = closed.acknowledged});
  }
  EXPECT_EQ(tcp_->counters().closing, 8U);
  EXPECT_EQ(tcp_->counters().closing_dropped, 42U);
  advance(std::chrono::seconds(125));  // 2 MSL
  EXPECT_EQ(tcp_->counters().closing, 0U);
}

// Guesses (RFC 5961)

TEST_F(HostileFrames, only_the_exact_rst_resets) {
  RawPeer victim = connected();
  expect_alive(victim);
  for (const std::uint32_t number : {victim.number + 1, victim.number + 60'000}) {
    advance(std::chrono::seconds(1));
    victim.send({.flags = kRst, .number = number});
    const std::vector<SentSegment> sent = victim.take();
    ASSERT_EQ(sent.size(), 1U) << number - victim.number;
    EXPECT_EQ(sent[0].flags, kAck);
    EXPECT_EQ(sent[0].acknowledged, victim.number);
    EXPECT_EQ(sent[0].number, victim.acknowledged);
  }
  for (const std::uint32_t number : {victim.number - 1, victim.number + 70'000, victim.number + 0x80000000}) {
    advance(std::chrono::seconds(1));
    victim.send({.flags = kRst, .number = number});
    EXPECT_TRUE(victim.take().empty());
  }
  expect_alive(victim);
  victim.send({.flags = kRst, .number = victim.number});
  EXPECT_EQ(tcp_->connections(), 0U);
}

TEST_F(HostileFrames, challenges_are_limited_in_rate) {
  RawPeer victim = connected();
  const TcpCounters before = tcp_->counters();
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    victim.send({.flags = kRst, .number = victim.number + i});
    victim.send({.flags = kSyn, .number = victim.number + i});
  }
  EXPECT_EQ(victim.take().size(), 1U);
  advance(std::chrono::seconds(1));
  victim.send({.flags = kSyn, .number = victim.number});
  EXPECT_EQ(victim.take().size(), 1U);
  EXPECT_EQ(tcp_->counters().challenge_acks - before.challenge_acks, 2U);
  EXPECT_EQ(tcp_->counters().challenge_acks_withheld - before.challenge_acks_withheld, 1999U);
  expect_alive(victim);
  cut(victim);
}

TEST_F(HostileFrames, a_syn_challenges_whatever_its_number) {
  RawPeer victim = connected();
  for (const std::uint32_t number : {victim.number - 1, victim.number, victim.number + 100'000}) {
    advance(std::chrono::seconds(1));
    victim.send({.flags = kSyn, .number = number, .options = mss_option(1)});
    const std::vector<SentSegment> sent = victim.take();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].flags, kAck);
    EXPECT_EQ(sent[0].acknowledged, victim.number);
  }
  expect_alive(victim);
  cut(victim);
}

TEST_F(HostileFrames, data_with_a_guessed_ack_is_not_taken) {
  RawPeer victim = connected();
  expect_alive(victim);
  const auto inject = [&](std::uint8_t flags, std::uint32_t acknowledged) {
    advance(std::chrono::seconds(1));
    victim.send({.flags = flags, .number = victim.number, .acknowledged = acknowledged, .data = {'e', 'v', 'i', 'l'}});
    server_->work();
    std::vector<SentSegment> sent = victim.take();
    EXPECT_TRUE(std::ranges::all_of(sent, [](SentSegment const& s) { return s.data.empty() && s.flags == kAck; }));
    return sent.size();
  };
  EXPECT_EQ(inject(kAck, victim.acknowledged + 1), 1U) << "of what was not sent";
  EXPECT_EQ(inject(kAck, victim.acknowledged + 0x7FFFFFFF), 1U);
  EXPECT_EQ(inject(kAck, victim.acknowledged - 70'000), 1U) << "older than the largest window";
  EXPECT_EQ(inject(0, victim.acknowledged), 0U) << "no ACK";
  EXPECT_EQ(inject(kFin, victim.acknowledged), 0U);
  expect_alive(victim);
  cut(victim);
}

TEST_F(HostileFrames, a_segment_outside_the_window_moves_nothing) {
  RawPeer victim = connected();
  expect_alive(victim);
  // closes the window by a number that is far off; were it believed, nothing would leave
  victim.send({.flags = kAck, .number = victim.number + 200'000, .acknowledged = victim.acknowledged, .window = 0});
  victim.send({.flags = kAck, .number = victim.number - 200'000, .acknowledged = victim.acknowledged, .window = 0});
  victim.take();
  const std::string text = "still open";
  ASSERT_TRUE(tcp_->write(server_->any(), std::as_bytes(std::span(text)), false));
  EXPECT_EQ(victim.hear(), text);
  // a keep-alive probe of an honest peer is answered
  advance(std::chrono::seconds(1));
  victim.send({.flags = kAck, .number = victim.number - 1, .acknowledged = victim.acknowledged});
  EXPECT_EQ(victim.take().size(), 1U);
  // and so is all data that is sent again
  for (int i = 0; i < 3; ++i) {
    victim.send({.flags = kAck, .number = victim.number - 10, .acknowledged = victim.acknowledged, .data = Bytes(9)});
    EXPECT_EQ(victim.take().size(), 1U);
  }
  cut(victim);
}

TEST_F(HostileFrames, a_syn_with_ack_does_not_end_a_handshake) {
  RawPeer half = peer();
  ASSERT_TRUE(half.begin());
  half.send({.flags = kSyn | kAck, .number = half.number, .acknowledged = half.acknowledged, .data = Bytes(10)});
  EXPECT_EQ(tcp_->connections(), 0U);
  EXPECT_TRUE(half.take().empty());
  half.acknowledge();
  expect_alive(half);
  cut(half);
}

TEST_F(HostileFrames, a_flood_of_acks_is_answered_by_few) {
  RawPeer victim = connected();
  const std::uint64_t before = wire_.frames;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    victim.send({.flags = kAck, .number = victim.number, .acknowledged = victim.acknowledged + i * 1000});
    victim.send({.flags = kAck, .number = victim.number, .acknowledged = victim.acknowledged});
  }
  EXPECT_LE(wire_.frames - before, 2U);
  expect_alive(victim);
  cut(victim);
}

// Options

TEST_F(HostileFrames, options_of_impossible_lengths_are_survived) {
  std::vector<Bytes> all;
  for (const std::uint8_t kind : Bytes{2, 3, 4, 5, 8, 30, 254}) {
    for (const std::uint8_t length : Bytes{0, 1, 2, 3, 4, 5, 39, 40, 41, 255}) {
      all.push_back({kind, length});
      all.push_back({1, 1, kind, length});
      all.push_back({kind, length, 0xFF, 0xFF});
      Bytes full(40, 1);
      full[39] = kind;  // no length behind it
      all.push_back(full);
      full[38] = kind;
      full[39] = length;
      all.push_back(full);
    }
  }
  RawPeer known = connected();
  for (Bytes const& options : all) {
    RawPeer odd = peer();
    odd.begin(options);
    odd.acknowledge();
    odd.send({.flags = kRst, .number = odd.number});
    known.send({.number = known.number, .acknowledged = known.acknowledged, .options = options});
  }
  known.take();
  expect_alive(known);
  cut(known);
}

TEST_F(HostileFrames, the_mss_is_that_of_the_syn) {
  RawPeer small = connected(mss_option(1460), 60'000);
  small.say("x");
  small.send({.number = small.number, .acknowledged = small.acknowledged, .window = 0, .data = Bytes(1000)});
  small.number += 1000;
  server_->work();
  // lwIP splits a segment that does not fit the window, and asserts that the part is no larger than the MSS
  small.send({.number = small.number, .acknowledged = small.acknowledged, .window = 100, .options = mss_option(1)});
  advance(std::chrono::milliseconds(500));
  std::size_t longest = 0;
  for (SentSegment const& sent : small.take()) {
    longest = std::max(longest, sent.data.size());
  }
  EXPECT_EQ(longest, 100U);
  cut(small);
  RawPeer tiny = connected(mss_option(1));
  EXPECT_EQ(echo(tiny, std::string(80, 'y')), std::string(80, 'y'));
  cut(tiny);
}

// Windows

TEST_F(HostileFrames, the_last_byte_may_be_acknowledged_without_a_window) {
  RawPeer closed = connected(mss_option(1460), 0);
  closed.send(
      {.flags = kAck, .number = closed.number, .acknowledged = closed.acknowledged, .window = 0, .data = {'a'}});
  ++closed.number;
  server_->work();
  for (int i = 0; i < 20; ++i) {
    advance(std::chrono::milliseconds(100));
    for (SentSegment const& probe : closed.take()) {
      closed.acknowledged = probe.number + static_cast<std::uint32_t>(probe.data.size());
      closed.acknowledge(0);
    }
  }
  closed.acknowledge();
  expect_alive(closed);
  cut(closed);
}

class ZeroWindow : public HostileFrames, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    TcpOptions limited = options();
    limited.stall_limit = std::chrono::seconds(20);
    start(limited, 16);
  }
};

/// 0: the peer acknowledges each probe. 1: only the first one. 2: it sends its FIN, too.
TEST_P(ZeroWindow, is_not_waited_for_without_end) {
  std::vector<RawPeer> peers;
  for (int i = 0; i < 50; ++i) {
    peers.push_back(connected(mss_option(1460), 0));
    RawPeer& stuck = peers.back();
    const std::uint8_t flags = GetParam() == 2 ? kAck | kFin : kAck;
    stuck.send(
        {.flags = flags, .number = stuck.number, .acknowledged = stuck.acknowledged, .window = 0, .data = Bytes(1000)});
    stuck.number += GetParam() == 2 ? 1001 : 1000;
  }
  server_->work();
  EXPECT_EQ(tcp_->connections(), 50U);
  for (int i = 0; i < 400; ++i) {
    advance(std::chrono::milliseconds(100));
    for (RawPeer& stuck : peers) {
      if (const std::vector<SentSegment> probes = stuck.take();
          !probes.empty() && (probes.back().flags & kRst) == 0 && (GetParam() != 1 || i < 5)) {
        stuck.acknowledged = probes.back().number + static_cast<std::uint32_t>(probes.back().data.size());
        stuck.acknowledge(0);
      }
    }
  }
  EXPECT_EQ(tcp_->connections(), 0U);
  EXPECT_EQ(tcp_->counters().stalled, 50U);
}
INSTANTIATE_TEST_SUITE_P(Peers, ZeroWindow, ::testing::Values(0, 1, 2));

TEST_F(HostileFrames, the_window_opens_for_a_part_of_the_buffer) {
  RawPeer slow = connected(mss_option(1460));
  constexpr std::size_t kPiece = 1024;
  constexpr std::size_t kWindow = 64 * kPiece;  // no window scale was agreed
  for (std::size_t sent = 0; sent < kWindow; sent += kPiece) {
    slow.say(std::string(kPiece, 'x'));
  }
  EXPECT_EQ(slow.take().back().window, 0);
  server_->work();
  slow.take();
  slow.acknowledged += kWindow / 4;  // the server makes room for what of its echo has arrived
  slow.acknowledge();
  const std::vector<SentSegment> answers = slow.take();
  ASSERT_GE(answers.size(), 1U);
  EXPECT_EQ(answers.back().acknowledged, slow.number);
  EXPECT_EQ(answers.back().window, kWindow / 4);
  cut(slow);
}

TEST_F(HostileFrames, a_window_that_shrinks_is_obeyed) {
  RawPeer victim = connected(mss_option(1460), 60'000);
  std::string sent;
  std::string received;
  std::minstd_rand random(7);
  for (int i = 0; i < 300; ++i) {
    const std::string text(1 + random() % 400, static_cast<char>('a' + i % 26));
    sent += text;
    victim.send({.flags = kAck,
                 .number = victim.number,
                 .acknowledged = victim.acknowledged,
                 .window = static_cast<std::uint16_t>(random() % 3 == 0 ? 0 : random() % 500),
                 .data = Bytes(text.begin(), text.end())});
    victim.number += static_cast<std::uint32_t>(text.size());
    server_->work();
    if (i % 10 == 9) {
      received += victim.hear();
      advance(std::chrono::milliseconds(50));
    }
  }
  for (int i = 0; i < 50 && received.size() < sent.size(); ++i) {
    victim.acknowledge();
    advance(std::chrono::milliseconds(300));
    received += victim.hear();
  }
  EXPECT_TRUE(received == sent) << received.size() << " of " << sent.size();
  cut(victim);
}

// Data out of order

TEST_F(HostileFrames, overlaps_end_as_bytes_in_order) {
  std::minstd_rand random(11);
  for (int round = 0; round < 40; ++round) {
    RawPeer victim = connected(mss_option(1460));
    std::string stream(6000, ' ');
    std::ranges::generate(stream, [&] { return static_cast<char>('a' + random() % 26); });
    for (int i = 0; i < 60; ++i) {
      const std::size_t at = 1 + random() % (stream.size() - 1);
      const std::size_t bytes = 1 + random() % std::min<std::size_t>(1400, stream.size() - at);
      victim.send({.flags = kAck,
                   .number = victim.number + static_cast<std::uint32_t>(at),
                   .acknowledged = victim.acknowledged,
                   .data = Bytes(stream.begin() + static_cast<std::ptrdiff_t>(at),
                                 stream.begin() + static_cast<std::ptrdiff_t>(at + bytes))});
    }
    victim.take();
    std::string received;
    for (std::size_t at = 0; at < stream.size(); at += 500) {
      victim.say(std::string_view(stream).substr(at, 500));
      server_->work();
      received += victim.hear();
    }
    EXPECT_TRUE(received == stream);
    cut(victim);
  }
}

/// Each ends at the window's edge, where lwIP's assertions are.
TEST_F(HostileFrames, a_fin_over_the_edge_of_the_window_is_refused) {
  for (const std::uint32_t bytes : {10U, 1000U}) {
    RawPeer victim = connected(mss_option(1460));
    const std::uint32_t edge = victim.number + 64 * 1024;
    const auto send = [&](std::uint32_t number, std::uint32_t length, std::uint8_t flags) {
      victim.send({.flags = flags, .number = number, .acknowledged = victim.acknowledged, .data = Bytes(length)});
    };
    send(edge - bytes, bytes - 5, kAck | kFin);
    send(edge - bytes, bytes, kAck);
    send(edge - bytes - 1, bytes + 1, kAck);
    send(edge - bytes, bytes + 1, kAck);
    send(edge - 1, 1, kAck | kFin);
    send(edge, 0, kAck | kFin);
    send(edge, 100, kAck);
    // the hole is filled, also by segments over the edge
    for (std::uint32_t at = victim.number; at != edge - 536; at += 1300) {
      send(at, 1300, kAck);
    }
    send(edge - 536, 1400, kAck);
    send(victim.number, 65'400, kAck);
    victim.take();
    EXPECT_LE(tcp_->connections(), 1U);
    cut(victim);
    advance(std::chrono::seconds(1));
    if (tcp_->connections() != 0) {
      tcp_->reset(server_->any());
      server_->forget(server_->any());
    }
  }
}

TEST_F(HostileFrames, data_far_ahead_does_not_come_with_the_handshake) {
  RawPeer victim = peer();
  ASSERT_TRUE(victim.begin({2, 4, 5, 0xB4, 3, 3, 7, 0}));  // with a window scale: the stack's window is 1 MiB so far
  victim.send(
      {.flags = kAck, .number = victim.number + 900'000, .acknowledged = victim.acknowledged, .data = Bytes(60'000)});
  EXPECT_EQ(tcp_->connections(), 0U);
  victim.acknowledge();
  expect_alive(victim);
  cut(victim);
}

TEST_F(HostileFrames, data_out_of_order_is_bounded_in_memory) {
  TcpOptions limited = options();
  limited.max_memory = std::size_t{2} << 20U;
  start(limited, 16);
  std::vector<RawPeer> peers;
  for (int i = 0; i < 8; ++i) {
    peers.push_back(connected(mss_option(1460)));
    for (std::uint32_t at = 1; at < 500; ++at) {  // each is cut down to one byte, and holds all its memory
      peers.back().send({.flags = kAck,
                         .number = peers.back().number + at,
                         .acknowledged = peers.back().acknowledged,
                         .data = Bytes(1400)});
    }
    peers.back().take();
  }
  EXPECT_LT(tcp_->counters().memory_bytes, std::size_t{2} << 20U);
  expect_service();
  std::ranges::for_each(peers, [&](RawPeer& attacker) { cut(attacker); });
}

TEST_F(HostileFrames, urgent_data_is_data) {
  RawPeer victim = connected();
  for (const std::uint16_t urgent : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{4}, std::uint16_t{0xFFFF}}) {
    victim.send({.flags = kAck | kUrg,
                 .number = victim.number,
                 .acknowledged = victim.acknowledged,
                 .data = {'u', 'r', 'g'},
                 .urgent = urgent});
    victim.number += 3;
    server_->work();
    EXPECT_EQ(victim.hear(), "urg");
  }
  victim.send({.flags = kUrg | kAck, .number = victim.number, .acknowledged = victim.acknowledged, .urgent = 9});
  expect_alive(victim);
  cut(victim);
}

// Headers

TEST_F(HostileFrames, frames_cut_anywhere_are_survived) {
  RawPeer victim = connected();
  const Bytes segment = tcp(19'999, kEcho, {.flags = kSyn, .number = 5, .options = {2, 4, 5, 0xB4, 1, 3, 3, 7}});
  Bytes hops{kTcpProtocol, 1};
  hops.resize(16);
  put(hops, segment);
  Bytes solicitation{135, 0, 0, 0, 0, 0, 0, 0};
  put(solicitation, address_v6(2));
  put(solicitation, Bytes{1, 1, 2, 0, 0, 0, 9, 1});
  for (Bytes const& whole :
       {ipv4(kPeerV4, kTcpProtocol, segment), ipv6(kTcpProtocol, segment), ipv6(0, hops), ipv6(43, hops),
        ipv6(60, hops), icmpv6(solicitation), ipv4(kPeerV4, 1, Bytes{8, 0, 0xF7, 0xFF, 0, 0, 0, 0})}) {
    for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
      input(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)));
      Bytes fitting(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      if (bytes >= 54 && whole[12] == 0x86) {  // the IPv6 length tells of the cut
        set16(fitting, 18, static_cast<std::uint32_t>(bytes - 54));
        input(fitting);
      }
    }
  }
  expect_alive(victim);
  cut(victim);
}

TEST_F(HostileFrames, lengths_that_lie_are_survived) {
  RawPeer victim = connected();
  const Bytes segment = tcp(19'998, kEcho, {.flags = kSyn, .number = 5, .data = Bytes(20)});
  const Bytes v4 = ipv4(kPeerV4, kTcpProtocol, segment);
  const Bytes v6 = ipv6(kTcpProtocol, segment);
  for (const std::uint32_t length : {0U, 1U, 19U, 20U, 21U, 39U, 40U, 41U, 59U, 61U, 1500U, 0xFFFFU}) {
    Bytes lying = v4;
    set16(lying, 16, length);
    set16(lying, 24, 0);
    set16(lying, 24, packet::checksum_finish(packet::checksum_add(&lying[14], 20)));
    input(lying);
    lying = v6;
    set16(lying, 18, length);
    input(lying);
  }
  for (unsigned words = 0; words < 16; ++words) {
    Bytes lying = v4;
    lying[46] = static_cast<std::uint8_t>(words << 4U);  // the TCP header's length
    input(lying);
    lying = v4;
    lying[14] = static_cast<std::uint8_t>(0x40 | words);  // the IP header's length
    set16(lying, 24, 0);
    set16(lying, 24, packet::checksum_finish(packet::checksum_add(&lying[14], 20)));
    input(lying);
    lying = v6;
    lying[66] = static_cast<std::uint8_t>(words << 4U);
    input(lying);
  }
  for (const std::size_t bytes :
       {std::size_t{65'534}, std::size_t{65'535}, std::size_t{65'549}, std::size_t{65'550}, std::size_t{70'000}}) {
    Bytes large = v4;
    large.resize(bytes);
    input(large);
    large[12] = 0x86;
    large[13] = 0xDD;
    input(large);
    large[12] = 0x12;
    input(large);
  }
  expect_alive(victim);
  cut(victim);
}

TEST_F(HostileFrames, extension_headers_lead_to_the_same_connection) {
  RawPeer victim = peer(false);
  ASSERT_TRUE(victim.connect(mss_option(1220)));
  const Bytes pad{1, 4, 0, 0, 0, 0};
  for (const std::uint8_t kind : Bytes{0, 60, 43, 44}) {
    Bytes extended{kTcpProtocol, 0};
    put(extended, kind == 43 || kind == 44 ? Bytes(6) : pad);
    const std::string text = "behind " + std::to_string(kind);
    put(extended,
        tcp(static_cast<std::uint16_t>(next_port_ - 1), kEcho,
            {.number = victim.number, .acknowledged = victim.acknowledged, .data = Bytes(text.begin(), text.end())}));
    input(ipv6(kind, extended));
    victim.number += static_cast<std::uint32_t>(text.size());
    EXPECT_EQ(victim.hear(), text);
  }
  // many, and those that lwIP does not know
  Bytes chain;
  for (int i = 0; i < 100; ++i) {
    put(chain, Bytes{60, 0});
    put(chain, pad);
  }
  put(chain, Bytes{59, 0, 1, 4, 0, 0, 0, 0});
  input(ipv6(60, chain));
  for (int next = 0; next < 256; ++next) {
    for (const std::size_t bytes : {0, 1, 2, 7, 8, 9, 16}) {
      Bytes headers(bytes, 0xFF);
      input(ipv6(static_cast<std::uint8_t>(next), headers));
    }
  }
  expect_alive(victim);
  cut(victim);
}

TEST_F(HostileFrames, an_answer_to_another_network_takes_the_gateway) {
  TcpOptions routed = options();
  routed.ipv6->gateway = packet::Address::parse("fd00:9::1");
  start(routed, 16);
  Bytes syn = ipv6(kTcpProtocol, tcp(19'997, kEcho, {.flags = kSyn, .number = 5}));
  syn[23] = 0x77;  // another network
  input(syn);
  EXPECT_EQ(wire_.take(19'997).size(), 1U);
  syn = ipv6(kTcpProtocol, tcp(19'997, kEcho, {.flags = kRst, .number = 6}));
  syn[23] = 0x77;
  input(syn);
}

TEST_F(HostileFrames, fragments_are_dropped) {
  RawPeer victim = connected();
  const auto port = static_cast<std::uint16_t>(next_port_ - 1);
  const Bytes reset = tcp(port, kEcho, {.flags = kRst, .number = victim.number});
  for (const std::uint16_t fragment : std::initializer_list<std::uint16_t>{0x2000, 0x0001, 0x3FFF, 0x1FFF}) {
    input(ipv4(kPeerV4, kTcpProtocol, reset, fragment));
  }
  for (const std::uint16_t fragment : std::initializer_list<std::uint16_t>{0x0001, 0x0008, 0xFFF9}) {
    Bytes headers{kTcpProtocol, 0};
    put16(headers, fragment);
    put32(headers, 77);
    put(headers, reset);
    input(ipv6(44, headers));
  }
  expect_alive(victim);
  cut(victim);
}

TEST_F(HostileFrames, icmp_errors_end_nothing_and_shrink_nothing) {
  RawPeer victim = connected();
  const auto port = static_cast<std::uint16_t>(next_port_ - 1);
  const Bytes quoted = tcp(kEcho, port, {.number = victim.acknowledged, .acknowledged = victim.number});
  for (const std::uint8_t type : Bytes{3, 4, 5, 11, 12}) {
    for (std::uint8_t code = 0; code < 6; ++code) {
      Bytes error{type, code, 0, 0, 0, 0, 0, 68};
      Bytes inner = ipv4(kStackV4, kTcpProtocol, quoted);
      error.insert(error.end(), inner.begin() + 14, inner.end());
      set16(error, 2, packet::checksum_finish(packet::checksum_add(error.data(), error.size())));
      input(ipv4(kPeerV4, 1, error));
    }
  }
  const auto mss_of_answer = [&] {
    RawPeer asker = peer(false);
    const std::optional<SentSegment> answer = asker.begin(mss_option(1440));
    cut(asker);
    EXPECT_TRUE(answer && answer->options.size() >= 4 && answer->options[0] == 2);
    return answer ? packet::load_be16(&answer->options[2]) : 0;
  };
  const int before = mss_of_answer();
  for (const std::uint8_t type : Bytes{1, 2, 3, 4}) {
    for (const std::uint32_t mtu : {0U, 61U, 68U, 1279U}) {
      Bytes error{type, 0, 0, 0};
      put32(error, mtu);
      Bytes inner = ipv6(kTcpProtocol, quoted);
      std::copy_n(address_v6(2).begin(), 16, inner.begin() + 22);
      std::copy_n(address_v6(1).begin(), 16, inner.begin() + 38);
      error.insert(error.end(), inner.begin() + 14, inner.end());
      input(icmpv6(error));
    }
  }
  EXPECT_EQ(mss_of_answer(), before);
  expect_alive(victim);
  cut(victim);
}

}  // namespace
}  // namespace catena::stack::testing
