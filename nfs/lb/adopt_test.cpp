// SPDX-License-Identifier: Apache-2.0
// A load balancer that takes the place of another one in a running chain.
#include "lb_testing.hpp"

#include <gmock/gmock.h>

#include <map>

namespace catena::lb {
namespace {

using namespace testing;

using ::testing::HasSubstr;

/// Without web2, with web4, and web3 on its way out.
constexpr std::string_view kChanged = R"(services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends:
      - {name: web4, address: 10.0.0.4, port: 8080}
      - {name: web1, address: 10.0.0.1, port: 8080}
      - {name: web3, address: 10.0.0.3, port: 8080, state: drain}
)";
constexpr std::uint32_t kClients = 300;

void take_over(LiveLb& after, LiveLb& before) {
  const Status ready = after.lb().prepare_to_adopt(before.lb());
  ASSERT_TRUE(ready.ok()) << ready;
  after.lb().adopt(before.lb());
}

TEST(Adopt, flows_stay_with_backends_that_are_not_down) {
  LiveLb before;
  std::map<std::uint32_t, std::uint32_t> backends;
  for (std::uint32_t client = 0; client < kClients; ++client) {
    before.send(request(client, kSyn));
    backends[client] = before.backend_for(request(client));
  }
  LiveLb after(kChanged);
  take_over(after, before);
  std::uint32_t moved = 0;
  for (auto const& [client, backend] : backends) {
    const std::uint32_t now = after.backend_for(request(client));
    if (backend == 0x0A000002) {
      ++moved;
      EXPECT_NE(now, backend) << "client " << client << ": that backend is no more";
      EXPECT_NE(now, 0x0A000003U) << "client " << client << ": that one takes no new flows";
    } else {
      EXPECT_EQ(now, backend) << "client " << client;
    }
  }
  EXPECT_GT(moved, 0U);
  EXPECT_LT(moved, kClients);
  std::map<std::uint32_t, std::uint32_t> of_new;
  for (std::uint32_t client = kClients; client < 2 * kClients; ++client) {
    ++of_new[after.backend_for(request(client, kSyn))];
  }
  EXPECT_EQ(of_new.size(), 2U) << "web1 and web4";
  EXPECT_GT(of_new[0x0A000004], 0U);
  EXPECT_EQ(after.no_backend(), 0U);
}

TEST(Adopt, answers_of_flows_and_counts_go_on) {
  LiveLb before;
  before.send(request(1, kSyn));
  const std::uint32_t backend = before.backend_for(request(1));
  const std::uint64_t created = before.statistic("flows_created");
  LiveLb after(concat(kYaml, "answers_without_flow: pass\n"));
  take_over(after, before);
  const Frame from_service =
      with_tcp_flags(make_frame(kTcp, kServiceAddress, client_address(1), 80, client_port(1), "HTTP/1.1 200"), kAck);
  EXPECT_EQ(after.send(answer(1, backend)).frame, from_service);
  EXPECT_EQ(after.statistic("flows_created"), created);
  EXPECT_EQ(after.statistic(concat("backend_web", backend & 0xFF, "_packets")), 3U);
}

TEST(Adopt, a_backend_that_comes_back_has_its_number_and_no_others_flows) {
  LiveLb first;
  std::map<std::uint32_t, std::uint32_t> backends;
  for (std::uint32_t client = 0; client < kClients; ++client) {
    first.send(request(client, kSyn));
    backends[client] = first.backend_for(request(client));
  }
  LiveLb second(kChanged);
  take_over(second, first);
  LiveLb third;
  take_over(third, second);
  for (auto const& [client, backend] : backends) {
    if (backend != 0x0A000002) {
      EXPECT_EQ(third.backend_for(request(client)), backend) << "client " << client;
    }
  }
}

TEST(Adopt, other_limits_are_refused) {
  LiveLb before;
  for (const char* other : {"max_flows: 1000\n", "timeouts: {udp: 10}\n"}) {
    LiveLb after(concat(kYaml, other));
    const Status status = after.lb().prepare_to_adopt(before.lb());
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << other << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("limits"));
  }
}

}  // namespace
}  // namespace catena::lb
