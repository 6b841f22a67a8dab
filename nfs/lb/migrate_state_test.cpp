// SPDX-License-Identifier: Apache-2.0
// A load balancer that takes the place of another one in a running chain.
#include "lb_testing.hpp"

#include <catena/nf/testing/migration.hpp>
#include <catena/nf/testing/portable.hpp>

#include <gmock/gmock.h>

#include <deque>
#include <map>

namespace catena::lb {
namespace {

using namespace nf::testing;
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

/// With whether both are in one process.
class MigrateState : public ::testing::TestWithParam<bool> {
 protected:
  static Status could_take_over(LiveLb& after, LiveLb& before) {
    return GetParam() ? nf::testing::carry_over(before.lb(), after.lb())
                      : nf::testing::prepare_migration(before.lb(), after.lb());
  }
  static void take_over(LiveLb& after, LiveLb& before) {
    const Status ready = could_take_over(after, before);
    ASSERT_TRUE(ready.ok()) << ready;
    if (!GetParam()) {
      nf::testing::migrate_state(before.lb(), after.lb());
    }
  }
};
INSTANTIATE_TEST_SUITE_P(From, MigrateState, ::testing::Bool(),
                         [](auto const& test) { return test.param ? "another_process" : "the_same_process"; });

TEST_P(MigrateState, flows_stay_with_backends_that_are_not_down) {
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

TEST_P(MigrateState, answers_of_flows_and_counts_continue) {
  LiveLb before;
  before.send(request(1, kSyn));
  const std::uint32_t backend = before.backend_for(request(1));
  const std::uint64_t created = before.statistic("flows_created");
  LiveLb after(concat(kYaml, "answers_without_flow: pass\n"));
  take_over(after, before);
  const Frame from_service = make_segment(kServiceAddress, client_address(1), 80, client_port(1), kAck, "HTTP/1.1 200");
  EXPECT_EQ(after.send(answer(1, backend)).frame, from_service);
  EXPECT_EQ(after.statistic("flows_created"), created);
  EXPECT_EQ(after.statistic(concat("backend_web", backend & 0xFF, "_packets")), 3U);
}

TEST_P(MigrateState, a_backend_that_comes_back_has_its_number_and_no_others_flows) {
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

/// More names in all than a table has numbers.
TEST_P(MigrateState, backends_that_went_give_their_numbers_back) {
  constexpr std::uint32_t kBackends = 3000;
  const auto with = [](std::uint32_t change) {
    std::string yaml =
        "table_size: 409609\nservices:\n  - address: 203.0.113.10\n    port: 80\n    protocol: tcp\n    backends:\n";
    for (std::uint32_t i = 0; i < kBackends; ++i) {
      yaml += concat("      - {name: b", change, "-", i, ", address: 10.", change, ".", i / 256, ".", i % 256, "}\n");
    }
    return yaml;
  };
  LiveLb first(with(0));
  first.send(request(1, kSyn));
  const std::uint32_t backend = first.backend_for(request(1));
  std::deque<LiveLb> versions;
  LiveLb* before = &first;
  for (std::uint32_t change = 1; change <= 4; ++change) {
    take_over(versions.emplace_back(with(change)), *before);
    if (HasFatalFailure()) {
      return;
    }
    before = &versions.back();
    for (nf::Statistic const& each : before->lb().statistics()) {
      const bool is_new = each.name.starts_with(concat("backend_b", change, "_"));
      EXPECT_TRUE(!is_new || each.value == 0) << each.name << ": another one's packets";
    }
    EXPECT_NE(before->backend_for(request(1)), backend) << "it is no more";
    EXPECT_EQ(before->backend_for(request(1)) >> 16, 0x0A00U + change);
  }
}

TEST_P(MigrateState, other_limits_are_refused) {
  LiveLb before;
  for (const char* other : {"max_flows: 1000\n", "timeouts: {udp: 10}\n"}) {
    LiveLb after(concat(kYaml, other));
    const Status status = could_take_over(after, before);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << other << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("limits"));
  }
}

TEST(Load, a_damaged_state_does_no_harm) {
  LiveLb before;
  for (std::uint32_t client = 0; client < 40; ++client) {
    before.send(request(client, client % 3 == 0 ? kSyn : kAck));
    before.send(answer(client, before.backend_for(request(client))));
  }
  nf::testing::expect_damage_does_no_harm(
      before.lb(), [] { return make_lb(); },
      [](std::unique_ptr<nf::Nf> nf) {
        std::vector<Frame> frames;
        for (std::uint32_t client = 0; client < 60; ++client) {
          frames.push_back(request(client, kAck));
          frames.push_back(answer(client, 0x0A000001 + client % 3));
        }
        nf::testing::PacketStore store(frames);
        nf::testing::CpuNf lb(catena_nf_lb(), std::move(nf));
        lb.process(store.all());
        lb.nf().tick(9000 * kSecondNs);
      });
}

}  // namespace
}  // namespace catena::lb
