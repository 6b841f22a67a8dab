// SPDX-License-Identifier: Apache-2.0
// Floods of connections whose clients never complete the handshake: what they cost, and whom.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lb_testing.hpp"

namespace catena::lb::testing {
namespace {

using namespace nf::testing;

/// A connection of a client through the load balancer; the backend answers to whoever the packets come from.
class Connection {
 public:
  Connection(LiveLb& live, std::uint32_t client) : live_(&live), client_(client) {}

  bool open() {
    backend_ = live_->backend_for(request(client_, kSyn));
    return is_answered(kSyn | kAck) && live_->backend_for(request(client_)) == backend_;
  }
  /// Both directions, and still the same backend by the flow, not by its hash.
  bool continues() { return live_->backend_for(request(client_)) == backend_ && is_answered(kAck); }

 private:
  bool is_answered(std::uint8_t flags) {
    const Frame back = live_->send(answer(client_, backend_, flags)).frame;
    return source_of(back) == kServiceAddress && packet::load_be16(&back[34]) == 80;
  }
  LiveLb* live_;
  std::uint32_t client_;
  std::uint32_t backend_ = 0;
};

constexpr std::uint32_t kFlooders = 1'000'000;

struct Flood {
  std::string name;
  std::string yaml;
  std::uint32_t half_open;  ///< so many fit at most
};
class Floods : public ::testing::TestWithParam<Flood> {};
INSTANTIATE_TEST_SUITE_P(Limits, Floods,
                         ::testing::Values(Flood{"max_half_open", "max_half_open: 300\n", 300},
                                           Flood{"max_flows", "max_flows: 600\nmax_half_open: 600\n", 600}),
                         [](auto const& flood) { return flood.param.name; });

TEST_P(Floods, ten_times_the_limit_leaves_established_connections_and_new_clients_alone) {
  // answers find their way by the flow alone
  LiveLb live(concat(GetParam().yaml, "answers_without_flow: pass\n", kYaml));
  const std::uint64_t memory = live.statistic("memory_bytes");
  std::vector<Connection> established;
  for (std::uint32_t client = 0; client < 100; ++client) {
    established.emplace_back(live, client);
    ASSERT_TRUE(established.back().open());
  }
  for (std::uint32_t flood = 0; flood < 10 * GetParam().half_open; ++flood) {
    live.send(request(kFlooders + flood, kSyn));
    if (flood % 30 == 0) {
      ASSERT_TRUE(established[flood / 30 % 100].continues()) << flood;
      established.emplace_back(live, 1000 + flood);
      ASSERT_TRUE(established.back().open() && established.back().continues()) << flood;
    }
    ASSERT_LE(live.statistic("half_open"), GetParam().half_open);
  }
  for (Connection& connection : established) {
    EXPECT_TRUE(connection.continues());
  }
  EXPECT_GT(live.statistic("flows_evicted"), 8 * GetParam().half_open);
  EXPECT_EQ(live.statistic("flows_not_tracked"), 0U);
  EXPECT_EQ(live.statistic("memory_bytes"), memory) << "nothing grew";
}

TEST(Flood, of_udp_takes_the_room_of_udp_and_half_open_flows_only) {
  LiveLb live(concat("max_flows: 200\nanswers_without_flow: pass\n", kYaml));
  Connection connection(live, 1);
  ASSERT_TRUE(connection.open());
  for (std::uint32_t flood = 0; flood < 2000; ++flood) {
    live.send(make_frame(kUdp, client_address(kFlooders + flood), kServiceAddress, client_port(flood), 53, "q"));
  }
  EXPECT_TRUE(connection.continues());
  EXPECT_EQ(live.statistic("flows"), 200U);
}

TEST(Flood, forged_acks_complete_no_handshake_that_no_backend_answered) {
  LiveLb live;
  for (const std::uint8_t flags : {kSyn, kAck, kAck}) {
    live.send(request(1, flags));
  }
  EXPECT_EQ(live.statistic("half_open"), 1U);
}

TEST(Flood, gives_the_same_everywhere) {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    frames.push_back(request(kFlooders + i, kSyn));
    if (i % 7 == 0) {
      frames.push_back(answer(kFlooders + i - i % 91, 0x0A000001 + i % 3, kSyn | kAck));
      frames.push_back(request(kFlooders + i - i % 91));
    }
  }
  const RunResult result =
      run(frames, concat("max_flows: 150\nmax_half_open: 90\nanswers_without_flow: pass\n", kYaml));
  EXPECT_GT(value_of(result.statistics, "flows_evicted"), 1000U);
  EXPECT_LE(value_of(result.statistics, "half_open"), 90U);
}

}  // namespace
}  // namespace catena::lb::testing
