// SPDX-License-Identifier: Apache-2.0
// What an application may do in events, timers of connections that are idle in between, and recovery after a loss.
#include "stack/tcp/tcp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
  void acknowledged(ConnectionId connection, std::size_t bytes) override {
    acknowledged_bytes += bytes;
    on_acknowledged(connection);
  }
  void peer_closed(ConnectionId connection) override { on_peer_closed(connection); }
  void reset(ConnectionId connection) override { on_reset(connection); }

  std::map<std::uint16_t, ConnectionId> by_port;
  std::function<bool(ConnectionId, std::span<const std::byte>)> on_received = [](auto, auto) { return true; };
  std::function<void(ConnectionId)> on_peer_closed = [](auto) {};
  std::function<void(ConnectionId)> on_reset = [](auto) {};
  std::function<void(ConnectionId)> on_acknowledged = [](auto) {};
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

/// A connection whose second segment of a flight is lost, while those above it arrive.
class TcpAfterLoss : public TcpOfRawPeers {
 protected:
  static constexpr std::size_t kLost = 500;

  void SetUp() override {
    TcpOfRawPeers::SetUp();
    peer_.emplace(connected(30'000));
    connection_ = application_.by_port[30'000];
    for (int i = 0; i < 20; ++i) {  // the congestion window opens
      say(std::string(1460, 'w'));
      peer_->hear();
    }
    begin_ = peer_->acknowledged;
    text_.clear();
    for (const std::size_t bytes : {std::size_t{100}, kLost, std::size_t{1460}, std::size_t{1460}, std::size_t{1460}}) {
      say(std::string(bytes, static_cast<char>('a' + pieces_.size())));
      pieces_.push_back(bytes);
    }
    for (SentSegment const& sent : peer_->take()) {
      if (sent.number - begin_ != pieces_[0]) {
        take(sent);
      }
    }
  }
  void say(std::string const& text) {
    kept_.push_back(text);  // TCP sends it from there
    text_ += text;
    write(connection_, kept_.back());
  }
  void take(SentSegment const& sent) {
    const std::size_t at = sent.number - begin_;
    ASSERT_LE(at + sent.data.size(), text_.size());
    received_.resize(std::max(received_.size(), at + sent.data.size()), '?');
    received_.replace(at, sent.data.size(), std::string(sent.data.begin(), sent.data.end()));
    fin_at_ = (sent.flags & kFin) != 0 ? at + sent.data.size() : fin_at_;
  }
  /// Takes what the stack sends, and acknowledges the bytes before the first one that is missing.
  void hear() {
    const std::vector<SentSegment> all = peer_->take();
    std::ranges::for_each(all, [this](SentSegment const& sent) { take(sent); });
    if (all.empty()) {
      return;
    }
    peer_->acknowledged = begin_ + static_cast<std::uint32_t>(std::min(received_.find('?'), received_.size()));
    peer_->acknowledge();
  }
  /// Acknowledges the first segment, and by option 5 those above the lost one.
  void report_loss(std::uint16_t window = 0xFFFF) {
    const auto first = begin_ + static_cast<std::uint32_t>(pieces_[0]);
    Bytes options{1, 1, 5, 10};
    put32(options, first + kLost);
    put32(options, begin_ + static_cast<std::uint32_t>(received_.size()));
    peer_->send({.number = peer_->number, .acknowledged = first, .window = window, .options = options});
  }

  std::optional<RawPeer> peer_;
  ConnectionId connection_ = 0;
  std::deque<std::string> kept_;
  std::string text_;
  std::uint32_t begin_ = 0;
  std::vector<std::size_t> pieces_;
  std::string received_;
  std::size_t fin_at_ = 0;
};

TEST_F(TcpAfterLoss, bytes_that_are_written_meanwhile_come_at_the_end) {
  bool has_written = false;
  application_.on_acknowledged = [&](ConnectionId) {
    if (!std::exchange(has_written, true)) {
      say("more");
    }
  };
  report_loss();
  hear();
  EXPECT_EQ(received_, text_);
  EXPECT_EQ(application_.acknowledged_bytes, 20 * 1460 + text_.size());
}

TEST_F(TcpAfterLoss, the_end_of_a_connection_comes_after_all_bytes) {
  for (const bool closes : {true, false}) {
    SCOPED_TRACE(closes);
    bool has_ended = false;
    application_.on_acknowledged = [&](ConnectionId connection) {
      if (!std::exchange(has_ended, true)) {
        closes ? tcp_->close(connection) : tcp_->close_sending(connection);
      }
    };
    report_loss();
    hear();
    EXPECT_EQ(received_, text_);
    EXPECT_EQ(fin_at_, text_.size());
    peer_->send({.flags = kRst, .number = peer_->number});
    pieces_.clear();
    received_.clear();
    fin_at_ = 0;
    TearDown();
    tcp_.reset();
    SetUp();
  }
}

/// The window is too small for the lost segment until the time-out, after which all are sent again.
TEST_F(TcpAfterLoss, a_time_out_sends_in_order) {
  report_loss(kLost - 1);
  EXPECT_TRUE(peer_->take().empty());
  advance(std::chrono::milliseconds(500));
  peer_->acknowledge();  // the window opens
  for (int round = 0; round < 100 && received_ != text_; ++round) {
    hear();
    advance(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(received_, text_);
}

TEST_F(TcpAfterLoss, lost_segments_leave_in_order) {
  for (int i = 0; i < 4; ++i) {
    say(std::string(1460, 'x'));
  }
  const std::vector<SentSegment> above = peer_->take();
  ASSERT_EQ(above.size(), 4U);
  const std::uint32_t second_lost = above[0].number;
  const auto report = [&](std::uint32_t end, std::uint16_t window) {
    Bytes options{1, 1, 5, 18};
    put32(options, begin_ + static_cast<std::uint32_t>(pieces_[0] + kLost));
    put32(options, second_lost);
    put32(options, above[1].number);
    put32(options, end);
    peer_->send({.number = peer_->number,
                 .acknowledged = begin_ + static_cast<std::uint32_t>(pieces_[0]),
                 .window = window,
                 .options = options});
  };
  report(above[3].number, kLost - 1);
  report(above[3].number + 1460, kLost - 1);
  EXPECT_TRUE(peer_->take().empty());
  report(above[3].number + 1460, kLost);
  const std::vector<SentSegment> again = peer_->take();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].number, begin_ + pieces_[0]);
}

/// Of a flight of kPieces segments.
struct Loss {
  const char* name;
  std::map<std::size_t, int> lost;  ///< by segment: how often
  bool is_by_time = false;          ///< no ACK reports it, so a timer sends it again
};
std::ostream& operator<<(std::ostream& to, Loss const& loss) { return to << loss.name; }

class TcpLosses : public TcpOfRawPeers, public ::testing::WithParamInterface<Loss> {
 protected:
  static constexpr std::size_t kPieces = 12;
  static constexpr std::size_t kBytes = 1460;

  /// Acknowledges the bytes before the first hole, and by option 5 the last blocks after it.
  void report(RawPeer& peer, std::uint32_t begin) const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks;
    for (const std::size_t piece : received_) {
      const auto left = begin + static_cast<std::uint32_t>(piece * kBytes);
      if (blocks.empty() || blocks.back().second != left) {
        blocks.emplace_back(left, left);
      }
      blocks.back().second += kBytes;
    }
    peer.acknowledged = begin;
    if (!blocks.empty() && blocks.front().first == begin) {
      peer.acknowledged = blocks.front().second;
      blocks.erase(blocks.begin());
    }
    constexpr std::size_t kMostBlocks = 3;
    const std::size_t count = std::min(blocks.size(), kMostBlocks);
    Bytes options;
    if (count > 0) {
      options = {1, 1, 5, static_cast<std::uint8_t>(2 + 8 * count)};
      for (std::size_t i = blocks.size() - count; i < blocks.size(); ++i) {
        put32(options, blocks[i].first);
        put32(options, blocks[i].second);
      }
    }
    peer.send({.number = peer.number, .acknowledged = peer.acknowledged, .options = options});
  }

  std::set<std::size_t> received_;  ///< segments
};

TEST_P(TcpLosses, are_recovered_and_nothing_else_is_sent_again) {
  RawPeer peer(wire_, *tcp_, 30'000);
  ASSERT_TRUE(peer.connect({2, 4, 5, 0xB4, 4, 2, 1, 1}));
  const ConnectionId connection = application_.by_port[30'000];
  const std::string window(kBytes, 'w');
  for (int i = 0; i < 20; ++i) {  // the congestion window opens
    write(connection, window);
    peer.hear();
  }
  const std::uint32_t begin = peer.acknowledged;
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < kPieces; ++i) {
    pieces.emplace_back(kBytes, static_cast<char>('a' + i));
  }
  for (std::string const& piece : pieces) {
    write(connection, piece);
  }
  std::map<std::size_t, int> lost = GetParam().lost;
  std::map<std::size_t, int> sent;
  constexpr int kMostTicks = 500;
  for (int ticks = 0; received_.size() < kPieces; ++ticks) {
    for (std::vector<SentSegment> segments = peer.take(); !segments.empty(); segments = peer.take()) {
      for (SentSegment const& segment : segments) {
        const std::size_t piece = (segment.number - begin) / kBytes;
        ASSERT_LT(piece, kPieces);
        ASSERT_EQ(std::string(segment.data.begin(), segment.data.end()), pieces[piece]);
        ++sent[piece];
        if (lost[piece]-- <= 0) {
          received_.insert(piece);
          report(peer, begin);
        }
      }
    }
    ASSERT_LT(ticks, received_.size() == kPieces || GetParam().is_by_time ? kMostTicks : 1) << "it waits for a timer";
    advance(Tcp::kTick);
  }
  EXPECT_EQ(application_.acknowledged_bytes, (20 + kPieces) * kBytes);
  for (std::size_t i = 0; i < kPieces && !GetParam().is_by_time; ++i) {
    EXPECT_EQ(sent[i], GetParam().lost.contains(i) ? 2 : 1) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Orders, TcpLosses,
    ::testing::Values(
        Loss{"first", {{0, 1}}}, Loss{"middle", {{6, 1}}}, Loss{"last", {{11, 1}}, true},
        Loss{"last_two", {{10, 1}, {11, 1}}, true}, Loss{"two_holes", {{3, 1}, {7, 1}}},
        Loss{"first_three", {{0, 1}, {1, 1}, {2, 1}}}, Loss{"every_second", {{0, 1}, {2, 1}, {4, 1}, {6, 1}}},
        Loss{"a_retransmission", {{3, 2}}, true}, Loss{"two_retransmissions", {{3, 3}, {7, 2}}, true},
        Loss{"all",
             {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}, {9, 1}, {10, 1}, {11, 1}},
             true}),
    [](auto const& of) { return std::string(of.param.name); });

/// Clients use their ports again while the stack's end is in TIME-WAIT (RFC 1122, 4.2.2.13).
TEST_F(TcpOfRawPeers, a_syn_above_the_last_number_takes_the_place_of_a_connection_in_time_wait) {
  RawPeer peer = connected(30'000);
  tcp_->close(application_.by_port[30'000]);
  peer.hear();
  ++peer.acknowledged;
  peer.send({.flags = kFin | kAck, .number = peer.number, .acknowledged = peer.acknowledged});
  ASSERT_EQ(tcp_->counters().closing, 1U);
  RawPeer old(wire_, *tcp_, 30'000);
  old.number = peer.number - 1000;
  EXPECT_FALSE(old.begin()) << "a SYN of the past";
  EXPECT_EQ(tcp_->counters().closing, 1U);
  RawPeer next(wire_, *tcp_, 30'000);
  next.number = peer.number + 1000;
  ASSERT_TRUE(next.connect({2, 4, 5, 0xB4}));
  EXPECT_EQ(tcp_->counters().closing, 0U);
  EXPECT_EQ(tcp_->connections(), 1U);
  std::string received;
  application_.on_received = [&](ConnectionId, std::span<const std::byte> bytes) {
    received.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  };
  next.say("of the new one");
  EXPECT_EQ(received, "of the new one");
  next.send({.flags = kRst, .number = next.number});
  EXPECT_EQ(tcp_->counters().memory_blocks, blocks_);
}

/// A probe of the last segment tells the peer that there is one, long before a time-out (RFC 8985, section 7).
TEST_F(TcpOfRawPeers, a_lost_end_of_a_flight_is_sent_again_soon) {
  RawPeer peer = connected(30'000);
  const std::array<std::string, 2> texts{std::string(1460, 'a'), std::string(700, 'b')};
  for (std::string const& text : texts) {
    write(application_.by_port[30'000], text);
  }
  EXPECT_EQ(peer.take().size(), 2U);
  advance(std::chrono::milliseconds(60));
  const std::vector<SentSegment> probe = peer.take();
  ASSERT_EQ(probe.size(), 1U);
  EXPECT_EQ(probe[0].number, peer.acknowledged + texts[0].size());
  EXPECT_EQ(std::string(probe[0].data.begin(), probe[0].data.end()), texts[1]);
  advance(std::chrono::milliseconds(60));
  EXPECT_TRUE(peer.take().empty());  // one for a flight
}

}  // namespace
}  // namespace catena::stack::testing
