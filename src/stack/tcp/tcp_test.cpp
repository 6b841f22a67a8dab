// SPDX-License-Identifier: Apache-2.0
// What an application may do in events, and timers of connections that are idle in between.
#include "stack/tcp/tcp.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "stack/tcp/raw_peer.hpp"

namespace catena::stack::testing {
namespace {

class Application final : public TcpEvents {
 public:
  bool accepted(ConnectionId connection, Endpoint const&, Endpoint const& peer) override {
    by_port[peer.port] = connection;
    return true;
  }
  bool received(ConnectionId connection, std::span<const std::byte> bytes) override {
    ++events;
    return on_received(connection, bytes);
  }
  void acknowledged(ConnectionId, std::size_t bytes) override { acknowledged_bytes += bytes; }
  void peer_closed(ConnectionId connection) override { on_peer_closed(connection); }
  void reset(ConnectionId connection) override { on_reset(connection); }

  std::map<std::uint16_t, ConnectionId> by_port;
  std::function<bool(ConnectionId, std::span<const std::byte>)> on_received = [](auto, auto) { return true; };
  std::function<void(ConnectionId)> on_peer_closed = [](auto) {};
  std::function<void(ConnectionId)> on_reset = [](auto) {};
  std::size_t events = 0;
  std::size_t acknowledged_bytes = 0;
};

class TcpOfRawPeers : public ::testing::Test {
 protected:
  void SetUp() override {
    TcpOptions options;
    options.mac = kStackMac;
    options.ipv4 = {packet::Address::of_v4(kStackV4), 24, std::nullopt};
    Result<std::unique_ptr<Tcp>> tcp = Tcp::create(options, wire_, application_);
    ASSERT_TRUE(tcp.ok()) << tcp.status();
    tcp_ = *std::move(tcp);
    now_ = std::chrono::steady_clock::now();
    ASSERT_EQ(tcp_->listen(7, 255), absl::OkStatus());
    introduce();
    blocks_ = tcp_->counters().memory_blocks;
  }
  /// The stack learns the peer's MAC, which it forgets after five minutes.
  void introduce() {
    Bytes arp = ethernet(0x0806);
    put(arp, Bytes{0, 1, 8, 0, 6, 4, 0, 1});
    put(arp, kPeerMac);
    put32(arp, kPeerV4);
    put(arp, Bytes(6));
    put32(arp, kStackV4);
    tcp_->input(as_frame(arp));
  }
  void advance(std::chrono::milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += Tcp::kTick;
      tcp_->tick(now_);
    }
  }
  RawPeer connected(std::uint16_t port) {
    RawPeer peer(wire_, *tcp_, port);
    EXPECT_TRUE(peer.connect({2, 4, 5, 0xB4}));
    return peer;
  }
  void write(ConnectionId connection, std::string const& text) {
    ASSERT_TRUE(tcp_->write(connection, std::as_bytes(std::span(text)), false));
  }

  Wire wire_;
  Application application_;
  std::unique_ptr<Tcp> tcp_;
  std::chrono::steady_clock::time_point now_;
  std::size_t blocks_ = 0;
};

/// As a proxy does. The two are in different buckets for nearly all pairs.
TEST_F(TcpOfRawPeers, an_event_may_end_another_connection) {
  constexpr std::uint16_t kPairs = 64;
  std::vector<RawPeer> peers;
  for (std::uint16_t i = 0; i < 2 * kPairs; ++i) {
    peers.push_back(connected(static_cast<std::uint16_t>(30'000 + i)));
  }
  std::map<ConnectionId, ConnectionId> other;
  for (std::uint16_t i = 0; i < 2 * kPairs; ++i) {
    other[application_.by_port[static_cast<std::uint16_t>(30'000 + i)]] =
        application_.by_port[static_cast<std::uint16_t>(30'000 + (i ^ 1))];
  }
  application_.on_reset = [&](ConnectionId connection) { tcp_->reset(other[connection]); };
  const std::string text = "for the other one";
  application_.on_received = [&](ConnectionId connection, auto) {
    write(other[connection], text);
    return true;
  };
  for (std::uint16_t i = 0; i < 2 * kPairs; i += 2) {
    peers[i].say("x");
    EXPECT_EQ(peers[i + 1U].hear(), text);
    peers[i].send({.flags = kRst, .number = peers[i].number});
    const std::vector<SentSegment> sent = peers[i + 1U].take();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_NE(sent[0].flags & kRst, 0);
  }
  EXPECT_EQ(tcp_->connections(), 0U);
  EXPECT_EQ(tcp_->counters().memory_blocks, blocks_);
}

/// Timers' events: both connections refused bytes, which lwIP offers again at each tick.
TEST_F(TcpOfRawPeers, an_event_of_a_timer_may_end_another_connection) {
  RawPeer first = connected(30'000);
  RawPeer second = connected(30'001);
  connected(30'002);
  application_.on_received = [](auto, auto) { return false; };
  first.say("x");
  second.say("x");
  application_.on_received = [&](ConnectionId connection, auto) {
    for (auto const& [port, id] : application_.by_port) {
      if (id != connection) {
        tcp_->reset(id);
      }
    }
    application_.on_received = [](auto, auto) { return true; };
    return true;
  };
  advance(std::chrono::milliseconds(50));
  EXPECT_EQ(tcp_->connections(), 1U);
}

TEST_F(TcpOfRawPeers, bytes_that_come_with_the_end_are_freed) {
  for (const bool resets : {true, false}) {
    RawPeer peer = connected(30'000);
    application_.on_received = [&](ConnectionId connection, auto) {
      resets ? tcp_->reset(connection) : tcp_->close(connection);
      return false;
    };
    peer.say("refused");
    EXPECT_EQ(tcp_->connections(), 0U);
    peer.send({.flags = kRst, .number = peer.number});
    EXPECT_EQ(tcp_->counters().memory_blocks, blocks_) << resets;
  }
}

TEST_F(TcpOfRawPeers, a_close_in_an_event_sends_its_fin_at_once) {
  RawPeer peer = connected(30'000);
  application_.on_received = [&](ConnectionId connection, auto) {
    tcp_->close(connection);
    return true;
  };
  peer.say("x");
  peer.hear();
  EXPECT_TRUE(peer.has_fin);
  peer.send({.flags = kRst, .number = peer.number});
}

TEST_F(TcpOfRawPeers, several_segments_out_of_order_come_as_one_piece) {
  RawPeer peer = connected(30'000);
  std::string received;
  application_.on_received = [&](ConnectionId, std::span<const std::byte> bytes) {
    received.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  };
  const std::string text = "0123456789abcdef";
  for (const std::size_t at : {12, 4, 8, 0}) {
    peer.send({.number = peer.number + static_cast<std::uint32_t>(at),
               .acknowledged = peer.acknowledged,
               .data = Bytes(text.begin() + static_cast<std::ptrdiff_t>(at),
                             text.begin() + static_cast<std::ptrdiff_t>(at) + 4)});
  }
  EXPECT_EQ(received, text);
  EXPECT_EQ(application_.events, 1U);
}

TEST_F(TcpOfRawPeers, an_idle_connection_has_its_timers_when_it_needs_them) {
  RawPeer peer = connected(30'000);
  for (int round = 0; round < 3; ++round) {
    advance(std::chrono::seconds(150));  // longer than stall_limit
    ASSERT_EQ(tcp_->connections(), 1U);
    introduce();
    const std::string text = "sent again";
    write(application_.by_port[30'000], text);
    EXPECT_EQ(peer.take().size(), 1U);
    advance(std::chrono::milliseconds(100));
    EXPECT_EQ(peer.take().size(), 0U);
    advance(std::chrono::milliseconds(5000));
    EXPECT_EQ(peer.hear(), text);
    EXPECT_EQ(application_.acknowledged_bytes, text.size() * static_cast<std::size_t>(round + 1));
    // an ACK that waits for more
    peer.say("x");
    advance(std::chrono::milliseconds(20));
    const std::vector<SentSegment> sent = peer.take();
    ASSERT_FALSE(sent.empty());
    EXPECT_EQ(sent.back().acknowledged, peer.number);
  }
}

}  // namespace
}  // namespace catena::stack::testing
