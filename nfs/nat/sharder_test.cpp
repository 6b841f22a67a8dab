// SPDX-License-Identifier: Apache-2.0
#include "sharder.hpp"

#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <vector>

#include "nat_testing.hpp"

namespace catena::nat::testing {
namespace {

using namespace nf::testing;

constexpr std::uint32_t kShards = 8;
constexpr std::uint32_t kDividedRouter = 0x0A0000FE;

std::shared_ptr<const Shards> make_shards(std::string_view more = "") {
  nf::Config config = nf::Config::parse(concat(kOneAddress, "max_mappings: 100\n", more), "test.yaml").value();
  config.set_shard({0, kShards});
  return std::make_shared<Shards>(read_nat_config(config).value());
}

class Dividing : public ::testing::Test {
 protected:
  std::optional<std::uint32_t> shard_of(Frame const& frame, std::uint64_t arrival_ns = 0) {
    nf::testing::PacketStore store(std::span(&frame, 1), std::span(&arrival_ns, 1));
    return sharder_.shard_of(store.all()[0]);
  }
  std::uint32_t host_shard(std::uint32_t host) const { return shards_->shard_of_inside(host); }
  /// The shard that gives out this port of UDP and TCP, or this identifier.
  std::optional<std::uint32_t> port_shard(std::uint16_t port, Protocol protocol = Protocol::kUdp) const {
    return shards_->shard_of_external({kExternal, port, protocol});
  }

  std::shared_ptr<const Shards> shards_ = make_shards();
  NatSharder sharder_{shards_};
};

TEST_F(Dividing, hosts_spread_evenly_and_nobody_can_tell_where) {
  const std::shared_ptr<const Shards> others = make_shards();
  std::vector<std::uint32_t> hosts(kShards);
  std::uint32_t differ = 0;
  for (std::uint32_t host = 0x0A000000; host < 0x0A000000 + 8000; ++host) {
    ++hosts.at(host_shard(host));
    differ += host_shard(host) != others->shard_of_inside(host) ? 1 : 0;
  }
  for (const std::uint32_t count : hosts) {
    EXPECT_GT(count, 700U);
    EXPECT_LT(count, 1300U);
  }
  EXPECT_GT(differ, 6000U) << "of another run";
}

TEST(FewPorts, are_those_of_as_many_shards) {
  const std::shared_ptr<const Shards> shards = make_shards("ports: 2000-2002\n");
  for (std::uint32_t host = 0x0A000000; host < 0x0A000000 + 1000; ++host) {
    EXPECT_LT(shards->shard_of_inside(host), 3U);
  }
  for (std::uint16_t i = 0; i < 3; ++i) {
    EXPECT_EQ(shards->shard_of_external({kExternal, static_cast<std::uint16_t>(2000 + i), Protocol::kUdp}), i);
  }
  EXPECT_EQ(shards->shard_of_external({kExternal, 2003, Protocol::kUdp}), std::nullopt);
}

TEST_F(Dividing, outbound_packets_go_by_their_host_whatever_they_are) {
  for (std::uint32_t host = kHost; host < kHost + 20; ++host) {
    const std::uint32_t shard = host_shard(host);
    EXPECT_EQ(shard_of(udp(host, 1, kServer, 2)), shard);
    EXPECT_EQ(shard_of(udp(host, 9, kExternal, 2000)), shard) << "hairpinned";
    EXPECT_EQ(shard_of(make_segment(host, 0x08080808, 3, 4, 0x02)), shard);
    EXPECT_EQ(shard_of(echo_request(host, kServer, 7)), shard);
    EXPECT_EQ(shard_of(in_two(udp(host, 1, kServer, 2), 5, 16).first), shard);
    EXPECT_EQ(shard_of(in_two(udp(host, 1, kServer, 2), 5, 16).second), shard);
    EXPECT_EQ(shard_of(udp(kServer, 2, host, 1)), shard) << "from outside, not translated";
  }
}

TEST_F(Dividing, inbound_packets_go_by_their_port_or_identifier) {
  for (std::uint32_t port = 1024; port <= 65535; port += 17) {
    const auto number = static_cast<std::uint16_t>(port);
    ASSERT_EQ(shard_of(udp(kServer, 53, kExternal, number)), port_shard(number));
    ASSERT_EQ(shard_of(echo_reply(kServer, kExternal, number)), port_shard(number, Protocol::kIcmp));
  }
  EXPECT_EQ(port_shard(1024), 0U);
  EXPECT_EQ(port_shard(65535), kShards - 1);
  EXPECT_EQ(port_shard(0, Protocol::kIcmp), 0U);
}

TEST_F(Dividing, errors_go_by_what_they_are_about) {
  const Frame sent = udp(kExternal, 33333, kServer, 53);
  EXPECT_EQ(shard_of(make_error(3, kServer, sent)), port_shard(33333));
  EXPECT_EQ(shard_of(make_error(11, 0x08080808, echo_request(kExternal, kServer, 9))), port_shard(9, Protocol::kIcmp));
  for (std::uint32_t host = kHost; host < kHost + 20; ++host) {
    const Frame received = udp(kServer, 53, host, 1234);
    EXPECT_EQ(shard_of(make_error(3, host, received)), host_shard(host));
    EXPECT_EQ(shard_of(make_error(11, kDividedRouter, received)), host_shard(host)) << "not by who sent it";
    EXPECT_EQ(shard_of(make_error(3, kDividedRouter, udp(kExternal, 2000, host, 1))), host_shard(host)) << "hairpinned";
  }
  Frame damaged = make_error(3, kServer, sent);
  damaged[kL4 + 8] ^= 0x40;
  EXPECT_EQ(shard_of(damaged), std::nullopt);
}

TEST_F(Dividing, what_no_shard_translates_may_go_to_any) {
  EXPECT_EQ(shard_of(udp(kHost, 1, kHost + 1, 2)), std::nullopt);
  EXPECT_EQ(shard_of(udp(kServer, 1, 0x08080808, 2)), std::nullopt);
  EXPECT_EQ(shard_of(udp(kHost, 1, 0xE00000FB, 2)), std::nullopt);
  EXPECT_EQ(shard_of(udp(kServer, 53, kExternal, 1023)), std::nullopt) << "nobody's port";
  EXPECT_EQ(shard_of(make_frame(50, kServer, kExternal, 0, 0, "esp")), std::nullopt);
  EXPECT_EQ(shard_of(make_icmp(13, 0, kServer, kExternal, 0, {})), std::nullopt);
  NatSharder on_port_3(make_shards("inside_ports: [3]\n"));
  const Frame spoofed = udp(kHost, 1, kServer, 2);
  nf::testing::PacketStore store(std::span(&spoofed, 1));
  EXPECT_EQ(on_port_3.shard_of(store.all()[0]), std::nullopt);
}

TEST_F(Dividing, inbound_fragments_follow_their_first_for_thirty_seconds) {
  const auto [first, second] = in_two(udp(kServer, 53, kExternal, 44444), 7, 16);
  EXPECT_EQ(shard_of(second), std::nullopt) << "before the first";
  EXPECT_EQ(shard_of(first), port_shard(44444));
  EXPECT_EQ(shard_of(second, 30 * kSecond), port_shard(44444));
  EXPECT_EQ(shard_of(in_two(udp(kServer, 53, kExternal, 44444), 8, 16).second, 30 * kSecond), std::nullopt);
  EXPECT_EQ(shard_of(second, 31 * kSecond), std::nullopt);
}

TEST_F(Dividing, a_flood_of_first_fragments_evicts_the_oldest_and_takes_no_memory) {
  const auto part = [](std::uint32_t number) {
    return in_two(udp(kServer + number / 65536, 53, kExternal, 44444), static_cast<std::uint16_t>(number), 16);
  };
  constexpr std::uint32_t kFlood = 3 * FragmentTable::kDatagrams;
  for (std::uint32_t i = 0; i < kFlood; ++i) {
    ASSERT_EQ(shard_of(part(i).first), port_shard(44444));
  }
  EXPECT_EQ(shard_of(part(kFlood - FragmentTable::kDatagrams - 1).second), std::nullopt);
  EXPECT_EQ(shard_of(part(kFlood - FragmentTable::kDatagrams).second), port_shard(44444));
  EXPECT_EQ(shard_of(part(kFlood - 1).second), port_shard(44444));
}

TEST_F(Dividing, first_fragments_to_ports_that_nobody_has_are_not_remembered) {
  const auto [first, second] = in_two(udp(kServer, 53, kExternal, 44444), 7, 16);
  shard_of(first);
  for (std::uint32_t i = 0; i < 2 * FragmentTable::kDatagrams; ++i) {
    shard_of(in_two(udp(0x08000000 + i, 53, kExternal, 80), 9, 16).first);
  }
  EXPECT_EQ(shard_of(second), port_shard(44444));
}

TEST(Sharder, those_of_one_nat_agree) {
  DividedNat nat(kOneAddress, kShards);
  const std::unique_ptr<nf::Sharder> other = nat.nat(0).nf().sharder();
  for (std::uint32_t host = kHost; host < kHost + 100; ++host) {
    const Frame frame = udp(host, 1, kServer, 2);
    nf::testing::PacketStore store(std::span(&frame, 1));
    const auto shard = nat.sharder().shard_of(store.all()[0]);
    ASSERT_TRUE(shard.has_value());
    EXPECT_EQ(other->shard_of(store.all()[0]), shard);
  }
}

}  // namespace
}  // namespace catena::nat::testing
