// SPDX-License-Identifier: Apache-2.0
// Random TCP connections of many inside ports, and which of them the connection tracking of the Linux kernel knew after
// each quiet period. oracle/linux_tcp.py writes such files; CATENA_NAT_TCP_CORPUS names another one than the kept one.
#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "nat_testing.hpp"

namespace catena::nat::testing {
namespace {

using namespace nf::testing;

constexpr std::uint32_t kFirstPeer = 0xC6336401;  // 198.51.100.1
constexpr std::uint32_t kStranger = 0x08080808;
/// Above all time-outs, but far below that of established connections.
constexpr std::uint64_t kQuietS = 250;

std::uint8_t flags_of(std::string_view letters) {
  std::uint8_t flags = 0;
  for (const char letter : letters) {
    flags |= letter == 'S' ? kSyn : letter == 'A' ? kAck : letter == 'F' ? kFin : letter == 'R' ? kRst : kPsh;
  }
  return flags;
}

/// A segment, or the question whether a mapping lives.
struct Step {
  Frame frame;
  bool is_outbound = false;
  bool is_question = false;
  bool lives = false;  ///< the answer
};

/// "> PEER FLAGS SEQUENCE ACK WINDOW SCALE BYTES", after the direction.
Step read_segment_line(std::istringstream& line, std::uint16_t port, bool is_outbound) {
  std::uint32_t peer = 0;
  std::string flags;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledged = 0;
  std::uint16_t window = 0;
  int scale = -1;
  std::size_t bytes = 0;
  line >> peer >> flags >> sequence >> acknowledged >> window >> scale >> bytes;
  EXPECT_TRUE(line) << line.str();
  std::string after_header;
  if (scale >= 0) {
    after_header = {'\1', '\3', '\3', static_cast<char>(scale)};
  }
  after_header += std::string(bytes, 'x');
  Frame frame = is_outbound ? make_segment(kHost, kFirstPeer + peer, port, 80, flags_of(flags), after_header)
                            : make_segment(kFirstPeer + peer, kExternal, 80, port, flags_of(flags), after_header);
  frame[kL4 + 12] = scale >= 0 ? 0x60 : 0x50;
  packet::store_be16(&frame[kL4 + 14], window);
  return {with_numbers(std::move(frame), sequence, acknowledged), is_outbound};
}

class TcpOracle : public ::testing::Test {
 protected:
  /// A round of a port: its segments, and at the end the question.
  using Round = std::vector<Step>;

  void SetUp() override {
    const char* other = std::getenv("CATENA_NAT_TCP_CORPUS");
    std::ifstream file(other != nullptr ? std::string(other) : source_path("nfs/nat/oracle/tcp_sessions.txt"));
    std::uint16_t port = 0;
    std::size_t round = 0;
    for (std::string text; std::getline(file, text);) {
      std::istringstream line(text);
      std::string word;
      line >> word;
      rounds_.resize(std::max(rounds_.size(), round + 1));
      if (word == "port") {
        line >> port;
        round = 0;
      } else if (word == "alive") {
        bool lives = false;
        line >> lives;
        rounds_[round].push_back({make_segment(kStranger, kExternal, 9, port, kAck), false, true, lives});
        ++round;
      } else {
        rounds_[round].push_back(read_segment_line(line, port, word == ">"));
      }
    }
    ASSERT_GE(rounds_.size(), 2U);
  }
  /// Round by round: the segments of all ports, a quiet period, and all questions.
  std::vector<Step> steps(std::vector<std::uint64_t>& times) const {
    std::vector<Step> result;
    std::uint64_t now_s = 1'700'000'000;
    for (Round const& round : rounds_) {
      for (const bool questions : {false, true}) {
        for (Step const& step : round) {
          if (step.is_question == questions) {
            result.push_back(step);
            times.push_back(now_s * kSecond);
          }
        }
        now_s += questions ? 0 : kQuietS;
      }
    }
    return result;
  }

 private:
  std::vector<Round> rounds_;
};

TEST_F(TcpOracle, mappings_live_as_long_as_linux_keeps_one_of_their_connections) {
  std::vector<std::uint64_t> times;
  const std::vector<Step> all = steps(times);
  std::vector<Frame> frames;
  for (Step const& step : all) {
    frames.push_back(step.frame);
  }
  const RunResult result = run_everywhere(frames, kOneAddress, times);
  std::size_t alive = 0;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_question) {
      alive += all[i].lives ? 1 : 0;
      wrong += passed(result, i) != all[i].lives ? 1 : 0;
      EXPECT_EQ(passed(result, i), all[i].lives)
          << "port " << destination_port_of(all[i].frame) << " at " << times[i] / kSecond;
    }
  }
  EXPECT_GT(alive, 0U);
  EXPECT_EQ(wrong, 0U);
}

TEST_F(TcpOracle, shards_keep_the_same_connections) {
  std::vector<std::uint64_t> times;
  const std::vector<Step> all = steps(times);
  for (const std::uint32_t shards : {1U, 3U}) {
    DividedNat nat(kOneAddress, shards);
    std::vector<std::uint16_t> external(65536);  // by inside port
    std::vector<std::uint16_t> inside(65536);    // by external port, which may have passed to another inside port
    for (std::size_t i = 0; i < all.size(); ++i) {
      Frame frame = all[i].frame;
      if (all[i].is_outbound) {
        const std::uint16_t port = source_port_of(frame);
        external[port] = source_port_of(nat.send(frame, times[i]).frame);
        inside[external[port]] = port;
        continue;
      }
      const std::uint16_t port = destination_port_of(frame);
      bool lives = inside[external[port]] == port;
      if (lives) {
        frame = with_ends(frame, source_of(frame), source_port_of(frame), kExternal, external[port]);
        lives = !nat.send(frame, times[i]).frame.empty();
      }
      ASSERT_TRUE(!all[i].is_question || lives == all[i].lives) << "step " << i << ", " << shards << " shards";
    }
  }
}

}  // namespace
}  // namespace catena::nat::testing
