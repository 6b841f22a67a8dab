// SPDX-License-Identifier: Apache-2.0
// A NAT that takes the place of another one in a running chain.
#include "nat_testing.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/migration.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/nf/testing/portable.hpp>

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace catena::nat {
namespace {

using namespace nf::testing;
using namespace testing;

using ::testing::HasSubstr;

constexpr std::uint32_t kOtherHost = 0x0A000009;

/// A NAT that gets its packets one after another.
class LiveNat {
 public:
  explicit LiveNat(std::string_view yaml) : nat_(catena_nf_nat(), *make(yaml)) {}

  /// As it leaves; empty: it was dropped.
  Frame send(Frame const& frame) {
    nf::testing::PacketStore store(std::span(&frame, 1), std::span(&now_ns, 1));
    nat_.process(store.all());
    const packet::Packet packet = store.all()[0];
    return packet.verdict() == packet::Verdict::kDrop ? Frame()
                                                      : Frame(packet.frame(), packet.frame() + packet.length());
  }
  /// `elsewhere`: as if they were in two processes.
  void take_over(LiveNat& before, bool elsewhere) {
    const Status ready = could_take_over(before, elsewhere);
    ASSERT_TRUE(ready.ok()) << ready;
    if (!elsewhere) {
      nf::testing::migrate_state(before.nf(), nf());
    }
    now_ns = before.now_ns;
  }
  Status could_take_over(LiveNat& before, bool elsewhere) {
    return elsewhere ? nf::testing::carry_over(before.nf(), nf()) : nf::testing::prepare_migration(before.nf(), nf());
  }
  nf::Nf& nf() { return nat_.nf(); }
  std::uint64_t statistic(std::string_view name) {
    for (nf::Statistic const& each : nat_.nf().statistics()) {
      if (each.name == name) {
        return each.value;
      }
    }
    ADD_FAILURE() << name;
    return 0;
  }

  std::uint64_t now_ns = 1000 * kSecond;

 private:
  nf::testing::CpuNf nat_;
};

class MigrateState : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(From, MigrateState, ::testing::Bool(),
                         [](auto const& test) { return test.param ? "another_process" : "the_same_process"; });

TEST_P(MigrateState, mappings_stay_with_their_ports) {
  LiveNat before(kOneAddress);
  before.send(udp(kHost, 1234, kServer, 53));
  EXPECT_EQ(source_port_of(before.send(udp(kOtherHost, 1234, kServer, 53))), 1236);
  LiveNat after(concat(kOneAddress, "inbound_to_inside: pass\n"));
  after.take_over(before, GetParam());
  EXPECT_EQ(source_port_of(after.send(udp(kOtherHost, 1234, kServer, 53))), 1236);
  EXPECT_EQ(after.send(udp(kServer, 53, kExternal, 1236)), udp(kServer, 53, kOtherHost, 1234));
  EXPECT_EQ(after.statistic("mappings_created"), 2U);
  EXPECT_NE(after.send(udp(kServer, 1, kHost, 2)), Frame()) << "by its own configuration";
  EXPECT_EQ(source_port_of(after.send(udp(kHost, 1236, kServer, 53))), 1238) << "a port that is taken";
}

TEST_P(MigrateState, sessions_stay_with_their_states_and_windows) {
  const auto open = [](LiveNat& nat, std::uint32_t peer) {
    nat.send(with_numbers(make_segment(kHost, peer, 1234, 80, kSyn), 1000, 0));
    nat.send(with_numbers(make_segment(peer, kExternal, 80, 1234, kSyn | kAck), 9000, 1001));
    nat.send(with_numbers(make_segment(kHost, peer, 1234, 80, kAck), 1001, 9001));
  };
  const auto reset = [](LiveNat& nat, std::uint32_t peer, std::uint32_t sequence) {
    nat.send(with_numbers(make_segment(peer, kExternal, 80, 1234, kRst), sequence, 0));
  };
  const auto lives_after = [](LiveNat& nat, std::uint64_t seconds) {
    nat.now_ns += seconds * kSecond;
    return !nat.send(make_segment(kServer, kExternal, 9, 1234, kAck)).empty();
  };
  const auto carried = [&](LiveNat& after) {
    LiveNat before(kOneAddress);
    open(before, kServer);
    open(before, kServer + 1);
    reset(before, kServer, 9001);
    after.take_over(before, GetParam());
    EXPECT_EQ(after.statistic("sessions"), 2U);
    EXPECT_EQ(after.statistic("half_open"), 0U);
  };
  LiveNat one(kOneAddress);
  carried(one);
  reset(one, kServer + 1, 9002);
  EXPECT_TRUE(lives_after(one, 7440)) << "not the next number";
  EXPECT_FALSE(lives_after(one, 1));
  LiveNat other(kOneAddress);
  carried(other);
  reset(other, kServer + 1, 9001);
  EXPECT_FALSE(lives_after(other, 241));
}

TEST(Load, a_state_of_an_earlier_version_is_refused) {
  LiveNat nat(kOneAddress);
  nf::StateWriter earlier;  // began with the number of external addresses
  earlier.put(std::uint64_t{1});
  earlier.put(kExternal);
  nf::StateReader reader(earlier.bytes());
  EXPECT_EQ(dynamic_cast<nf::Portable&>(nat.nf()).load(reader).code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(nat.send(udp(kHost, 1234, kServer, 53)), Frame());
}

TEST_P(MigrateState, time_continues) {
  LiveNat before(kOneAddress);
  before.send(udp(kHost, 1234, kServer, 53));
  before.now_ns += 200 * kSecond;
  LiveNat after(concat(kOneAddress, "inbound_to_inside: pass\n"));
  after.take_over(before, GetParam());
  after.now_ns += 102 * kSecond;  // more than 300 in all
  EXPECT_EQ(after.send(udp(kServer, 53, kExternal, 1234)), Frame());
}

TEST_P(MigrateState, a_host_that_is_no_longer_inside_gets_no_new_mapping) {
  LiveNat before(kOneAddress);
  before.send(udp(kHost, 1234, kServer, 53));
  LiveNat after("inside: [10.64.0.0/10]\nexternal: [203.0.113.1]\n");
  after.take_over(before, GetParam());
  EXPECT_EQ(after.send(udp(kHost, 1234, kServer, 53)), udp(kHost, 1234, kServer, 53)) << "between others";
  EXPECT_EQ(source_of(after.send(udp(0x0A400001, 1234, kServer, 53))), kExternal);
}

TEST_P(MigrateState, other_addresses_ports_and_limits_are_refused) {
  LiveNat before(kOneAddress);
  for (const std::string& other :
       {std::string("inside: [10.0.0.0/8]\nexternal: [203.0.113.2]\n"), concat(kOneAddress, "ports: 2000-3000\n"),
        concat(kOneAddress, "max_mappings: 1000\n"), concat(kOneAddress, "timeouts: {udp: 301}\n")}) {
    LiveNat after(other);
    const Status status = after.could_take_over(before, GetParam());
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << other;
    EXPECT_THAT(std::string(status.message()), HasSubstr("have changed"));
  }
}

TEST(Load, a_damaged_state_does_no_harm) {
  const std::string config = concat(kOneAddress, "max_mappings: 64\nmax_half_open: 16\nports: 2000-2031\n");
  LiveNat before(config);
  for (std::uint16_t i = 0; i < 100; ++i) {
    before.now_ns += kSecond / 3;
    before.send(udp(kHost + i % 20U, static_cast<std::uint16_t>(1000 + i % 9), kServer, 53));
    before.send(
        make_segment(kHost + i % 7U, kServer, static_cast<std::uint16_t>(1000 + i), 80, i % 2 == 0 ? kSyn : kAck));
  }
  nf::testing::expect_damage_does_no_harm(
      before.nf(), [&config] { return *make(config); },
      [](std::unique_ptr<nf::Nf> nf) {
        std::vector<Frame> frames;
        std::vector<std::uint64_t> stamps;
        for (std::uint16_t i = 0; i < 80; ++i) {
          frames.push_back(udp(kHost + i, 1000, kServer, 53));
          frames.push_back(udp(kServer, 53, kExternal, static_cast<std::uint16_t>(2000 + i)));
          stamps.insert(stamps.end(), 2, (1040 + std::uint64_t{i} * i) * kSecond);
        }
        nf::testing::PacketStore store(frames, stamps);
        nf::testing::CpuNf nat(catena_nf_nat(), std::move(nf));
        nat.process(store.all());
        nat.nf().tick(9000 * kSecond);
      });
}

}  // namespace
}  // namespace catena::nat
