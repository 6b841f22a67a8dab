// SPDX-License-Identifier: Apache-2.0
// TCP connections that share a mapping: each has a state of its own.
#include <gtest/gtest.h>
#include <catena/core/text.hpp>

#include <initializer_list>
#include <string>
#include <vector>

#include "nat_testing.hpp"

namespace catena::nat::testing {
namespace {

using namespace nf::testing;

constexpr std::uint32_t kPeer = 0xC6336408;  // 198.51.100.8
constexpr std::uint16_t kPort = 5555;
constexpr std::uint16_t kServerPort = 443;

/// Segments of connections from 10.0.0.5:5555, each with its time. Initial sequence numbers: 1000 inside, 9000 outside.
class Script {
 public:
  Script& out(std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledged, std::string_view data = "",
              std::uint32_t to = kServer) {
    return add(with_numbers(make_segment(kHost, to, kPort, kServerPort, flags, data), sequence, acknowledged));
  }
  Script& in(std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledged, std::string_view data = "",
             std::uint32_t from = kServer) {
    return add(with_numbers(make_segment(from, kExternal, kServerPort, kPort, flags, data), sequence, acknowledged));
  }
  Script& open(std::uint32_t peer = kServer) {
    return out(kSyn, 1000, 0, "", peer).in(kSyn | kAck, 9000, 1001, "", peer).out(kAck, 1001, 9001, "", peer);
  }
  Script& close(std::uint32_t peer = kServer) {
    return out(kFin | kAck, 1001, 9001, "", peer).in(kFin | kAck, 9001, 1002, "", peer).out(kAck, 1002, 9002, "", peer);
  }
  Script& wait(std::uint64_t seconds) {
    now_s_ += seconds;
    return *this;
  }
  /// Data of the server, acknowledged by the host.
  Script& receive(std::uint32_t peer = kServer) {
    return in(kPsh | kAck, 9001, 1001, "data", peer).out(kAck, 1001, 9005, "", peer);
  }
  /// Whether the mapping lives after that: a packet of an endpoint without a connection passes.
  bool lives(std::string_view more = "") {
    add(make_segment(0x08080808, kExternal, 9, kPort, kAck));
    return passed(run(more), frames_.size() - 1);
  }
  /// The same in a number of shards, where the mapping may have another port.
  bool lives_in(std::uint32_t shards) {
    add(make_segment(0x08080808, kExternal, 9, kPort, kAck));
    DividedNat nat(kOneAddress, shards);
    std::uint16_t external = 0;
    Frame sent;
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      Frame const& frame = frames_[i];
      const bool is_outbound = source_of(frame) == kHost;
      sent =
          nat.send(is_outbound ? frame : with_ends(frame, source_of(frame), source_port_of(frame), kExternal, external),
                   times_[i])
              .frame;
      external = is_outbound ? source_port_of(sent) : external;
    }
    return !sent.empty();
  }
  RunResult run(std::string_view more = "") const { return run_everywhere(frames_, concat(kOneAddress, more), times_); }

 private:
  Script& add(Frame frame) {
    frames_.push_back(std::move(frame));
    times_.push_back(now_s_ * kSecond);
    return *this;
  }

  std::vector<Frame> frames_;
  std::vector<std::uint64_t> times_;
  std::uint64_t now_s_ = 1'700'000'000;
};

TEST(Session, a_rst_of_another_endpoint_ends_no_connection) {
  EXPECT_TRUE(Script().open().in(kRst, 9001, 0, "", kPeer).wait(600).lives());
  EXPECT_TRUE(Script().open().in(kRst | kAck, 9001, 1001, "", kPeer).wait(7440).lives());
}

TEST(Session, a_rst_outside_the_window_ends_no_connection) {
  EXPECT_TRUE(Script().open().in(kRst, 5, 0).wait(600).lives());
  EXPECT_TRUE(Script().open().in(kRst, 9002, 0).wait(600).lives()) << "in the window: RFC 5961 section 3.2 asks back";
  EXPECT_TRUE(Script().open().in(kRst, 9002, 0).in(kRst, 9002, 0).wait(600).lives()) << "nor does its repetition";
  EXPECT_FALSE(Script().open().in(kRst, 9001, 0).wait(241).lives());
  EXPECT_TRUE(Script().open().in(kRst, 9001, 0).wait(240).lives());
}

TEST(Session, the_end_of_a_connection_to_one_peer_leaves_the_one_to_another) {
  EXPECT_TRUE(Script().open().open(kPeer).close(kPeer).wait(7440).lives());
  EXPECT_FALSE(Script().open().open(kPeer).close(kPeer).wait(7441).lives());
  EXPECT_FALSE(Script().open().open(kPeer).close(kPeer).close().wait(241).lives());
}

/// Whether the mapping lives, everywhere alike.
bool lives_everywhere(Script const& script) {
  const bool lives = Script(script).lives();
  for (const std::uint32_t shards : {1U, 3U}) {
    EXPECT_EQ(Script(script).lives_in(shards), lives) << shards << " shards";
  }
  return lives;
}

/// Two connections of one mapping. That to `ended` has gone, that to `peer` exists.
void expect_the_remaining_one_keeps_its_state(std::uint32_t ended, std::uint32_t peer) {
  const auto alone = [&] { return Script().open().open(kPeer).close(ended).wait(200).receive(peer).wait(41); };
  RunResult result = alone().receive(peer).run();
  EXPECT_EQ(statistic(result, "sessions"), 1U);
  EXPECT_EQ(statistic(result, "half_open"), 0U);
  EXPECT_TRUE(lives_everywhere(alone().wait(7399)));
  EXPECT_FALSE(lives_everywhere(alone().wait(7400)));
  EXPECT_TRUE(lives_everywhere(alone().in(kRst, 9001, 0, "", peer).wait(600))) << "an old number";
  EXPECT_FALSE(lives_everywhere(alone().in(kRst, 9005, 0, "", peer).wait(241)));
  const auto with_another = [&] { return alone().open(kPeer + 1).close(peer).wait(241); };
  result = with_another().receive(kPeer + 1).run();
  EXPECT_EQ(statistic(result, "sessions"), 1U);
  EXPECT_TRUE(lives_everywhere(with_another().wait(7199)));
  EXPECT_FALSE(lives_everywhere(with_another().close(kPeer + 1).wait(241)));
}

TEST(Session, the_first_one_of_a_mapping_ends_and_a_further_one_lives) {
  expect_the_remaining_one_keeps_its_state(kServer, kPeer);
}

TEST(Session, a_further_one_of_a_mapping_ends_and_the_first_one_lives) {
  expect_the_remaining_one_keeps_its_state(kPeer, kServer);
}

TEST(Session, a_rst_is_valid_where_the_receiver_expects_it) {
  EXPECT_FALSE(Script().open().receive().in(kRst, 9005, 0).wait(241).lives());
  EXPECT_TRUE(Script().open().receive().in(kRst, 9001, 0).wait(600).lives()) << "an old number";
  EXPECT_FALSE(Script().open().in(kPsh | kAck, 9001, 1001, "data").in(kRst | kAck, 9005, 1001).wait(241).lives())
      << "at once after data";
  EXPECT_FALSE(Script().open().out(kRst, 1001, 0).wait(241).lives()) << "of the inside";
  EXPECT_TRUE(Script().open().out(kRst, 1002, 0).wait(600).lives());
  EXPECT_TRUE(Script().open().in(kRst, 9001, 0).out(kAck, 1001, 9001).wait(600).lives()) << "the inside goes on";
}

TEST(Session, a_fin_outside_the_window_ends_nothing) {
  EXPECT_FALSE(Script().open().close().wait(241).lives());
  EXPECT_TRUE(Script().open().in(kFin | kAck, 900'000, 1001).out(kFin | kAck, 1001, 9001).wait(600).lives());
  EXPECT_TRUE(Script().open().in(kFin | kAck, 9001, 2001).out(kFin | kAck, 1001, 9001).wait(600).lives())
      << "acknowledges what was not sent";
  EXPECT_TRUE(Script().open().in(kFin | kAck, 9001, 1001, "", kPeer).out(kFin | kAck, 1001, 9001).wait(600).lives())
      << "of another endpoint";
}

TEST(Session, a_syn_starts_another_connection_only_after_a_fin_of_the_inside) {
  const auto again = [](Script script) {
    return script.out(kSyn, 5000, 0).in(kSyn | kAck, 20'000, 5001).out(kAck, 5001, 20'001);
  };
  EXPECT_FALSE(again(Script().open().out(kFin | kAck, 1001, 9001)).in(kRst, 20'001, 0).wait(241).lives());
  EXPECT_TRUE(again(Script().open().out(kFin | kAck, 1001, 9001)).wait(7440).lives());
  EXPECT_TRUE(again(Script().open()).in(kRst, 20'001, 0).wait(600).lives());
}

TEST(Session, inbound_segments_keep_no_session) {
  EXPECT_FALSE(Script().open().wait(7000).in(kPsh | kAck, 9001, 1001, "data").wait(441).lives());
  EXPECT_TRUE(Script().open().wait(7000).receive().wait(441).lives());
}

TEST(Session, a_connection_met_in_its_middle_ends_by_fins_and_by_the_exact_rst) {
  const auto met = [] { return Script().out(kAck, 1001, 9001).receive(); };
  EXPECT_TRUE(met().wait(7440).lives());
  EXPECT_TRUE(met().in(kRst, 9006, 0).wait(600).lives());
  EXPECT_FALSE(met().in(kRst, 9005, 0).wait(241).lives());
  EXPECT_FALSE(met().in(kFin | kAck, 9005, 1001).out(kFin | kAck, 1001, 9006).wait(241).lives());
}

TEST(Session, a_connection_of_the_outside_to_a_mapped_port_has_a_session_by_its_answer) {
  const auto served = [] {
    return Script().open().close().wait(100).in(kSyn, 9000, 0, "", kPeer).out(kSyn | kAck, 1000, 9001, "", kPeer);
  };
  EXPECT_FALSE(served().wait(241).lives()) << "half open";
  const auto established = [&served] { return served().in(kAck, 9001, 1001, "", kPeer).receive(kPeer); };
  EXPECT_TRUE(established().wait(7440).lives());
  EXPECT_FALSE(established().in(kRst, 9005, 0, "", kPeer).wait(241).lives());
}

TEST(Session, outsiders_make_none) {
  Script script;
  script.open();
  for (std::uint32_t i = 0; i < 100; ++i) {
    script.in(kSyn, i, 0, "", 0x08080000 + i).out(kRst | kAck, 0, i + 1, "", 0x08080000 + i);
  }
  EXPECT_EQ(statistic(script.run(), "sessions"), 1U);
}

// ---- Limits

TEST(Session, a_full_mapping_gives_the_place_of_one_that_is_not_established) {
  Script script;
  script.open().out(kSyn, 1000, 0, "", kPeer).wait(1).open(kPeer + 1);
  const RunResult result = script.run("max_sessions_per_mapping: 2\n");
  EXPECT_EQ(statistic(result, "sessions"), 2U);
  EXPECT_EQ(statistic(result, "sessions_replaced"), 1U);
  EXPECT_EQ(statistic(result, "sessions_shared"), 0U);
  EXPECT_TRUE(script.close().close(kPeer).wait(7439).lives("max_sessions_per_mapping: 2\n")) << "the third";
}

TEST(Session, no_peer_of_a_mapping_full_of_established_ones_ends_those_of_others) {
  for (const std::string_view full : {"max_sessions_per_mapping: 2\n", "max_mappings: 1\nmax_sessions: 2\n"}) {
    Script script;
    script.open().wait(1).open(kPeer).wait(1).open(kPeer + 1);
    const RunResult result = script.run(full);
    EXPECT_EQ(statistic(result, "sessions"), 2U);
    EXPECT_EQ(statistic(result, "sessions_shared"), 1U);
    EXPECT_EQ(statistic(result, "sessions_replaced"), 0U);
    script.close(kPeer).close(kPeer + 1).in(kRst, 9001, 0, "", kPeer + 1);
    EXPECT_TRUE(Script(script).wait(7430).lives(full)) << "that to the first one may live";
    EXPECT_FALSE(Script(script).wait(7441).lives(full));
  }
}

TEST(Session, a_mapping_of_many_handshakes_is_half_open) {
  Script script;
  script.out(kSyn, 1000, 0).out(kSyn, 1000, 0, "", kPeer);
  RunResult result = script.run();
  EXPECT_EQ(statistic(result, "half_open"), 1U);
  EXPECT_EQ(statistic(result, "sessions"), 2U);
  result = script.in(kSyn | kAck, 9000, 1001).out(kAck, 1001, 9001).run();
  EXPECT_EQ(statistic(result, "half_open"), 0U);
  script.in(kRst, 9001, 0).wait(239).out(kSyn, 1000, 0, "", kPeer).wait(2);
  result = script.out(kSyn, 1000, 0, "", kPeer).run();
  EXPECT_EQ(statistic(result, "sessions"), 1U) << "that of the RST has gone";
  EXPECT_EQ(statistic(result, "half_open"), 1U);
}

TEST(Session, the_end_of_the_mapping_ends_its_sessions) {
  Script script;
  script.out(kSyn, 1000, 0).out(kSyn, 1000, 0, "", kPeer).wait(241);
  RunResult result = script.out(kSyn, 1000, 0, "", kPeer).run("max_half_open: 1\n");
  EXPECT_EQ(statistic(result, "sessions"), 1U);
  EXPECT_EQ(statistic(result, "mappings_created"), 2U);
  EXPECT_EQ(statistic(result, "mappings_expired"), 1U);
}

}  // namespace
}  // namespace catena::nat::testing
