// SPDX-License-Identifier: Apache-2.0
#include "next_hops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace catena::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<PortTable> read(std::string_view yaml) {
  Result<nf::Config> config = nf::Config::parse(yaml, "chain.yaml");
  if (!config.ok()) {
    return config.status();
  }
  return read_port_table(*config);
}

TEST(PortTable, entries_are_read) {
  const auto table = read(
      "routes: r.txt\n"
      "ports:\n"
      "  - {port: 3, mac: 02:00:00:00:00:0a, next_hop_mac: 02:00:00:00:00:FF}\n"
      "  - {port: 65533, mac: 00:11:22:33:44:55, next_hop_mac: 66:77:88:99:aa:bb}\n");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 2U);
  EXPECT_THAT(table->at(3).own, ElementsAre(2, 0, 0, 0, 0, 0x0A));
  EXPECT_THAT(table->at(3).next_hop, ElementsAre(2, 0, 0, 0, 0, 0xFF));
  EXPECT_THAT(table->at(65533).next_hop, ElementsAre(0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB));
}

TEST(PortTable, no_key_is_an_empty_table) {
  const auto table = read("routes: r.txt\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->empty());
}

struct BadCase {
  std::string name;
  std::string entries;
  std::string message;
};
class BadPortTable : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadPortTable, is_an_error_with_position) {
  const auto table = read("ports:\n" + GetParam().entries);
  ASSERT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(table.status().message()), HasSubstr(GetParam().message));
  EXPECT_THAT(std::string(table.status().message()), ::testing::ContainsRegex("chain.yaml:[0-9]+:[0-9]+: "));
}

INSTANTIATE_TEST_SUITE_P(
    Entries, BadPortTable,
    ::testing::Values(
        BadCase{"port_missing", "  - {mac: 02:00:00:00:00:01, next_hop_mac: 02:00:00:00:00:02}\n", "port"},
        BadCase{"mac_missing", "  - {port: 1, next_hop_mac: 02:00:00:00:00:02}\n", "mac"},
        BadCase{"next_hop_missing", "  - {port: 1, mac: 02:00:00:00:00:02}\n", "next_hop_mac"},
        BadCase{"port_too_large", "  - {port: 65534, mac: 02:00:00:00:00:01, next_hop_mac: 02:00:00:00:00:02}\n",
                "65533"},
        BadCase{"short_mac", "  - {port: 1, mac: 02:00:00:00:01, next_hop_mac: 02:00:00:00:00:02}\n",
                "'mac' is '02:00:00:00:01'"},
        BadCase{"no_hex", "  - {port: 1, mac: 02:00:00:00:00:0g, next_hop_mac: 02:00:00:00:00:02}\n",
                "write a MAC address as"},
        BadCase{"dashes", "  - {port: 1, mac: 02-00-00-00-00-01, next_hop_mac: 02:00:00:00:00:02}\n",
                "write a MAC address as"},
        BadCase{"group_source", "  - {port: 1, mac: 01:00:5e:00:00:01, next_hop_mac: 02:00:00:00:00:02}\n",
                "group address"},
        BadCase{"unknown_key", "  - {port: 1, mac: 02:00:00:00:00:01, next_hop_mac: 02:00:00:00:00:02, vlan: 3}\n",
                "vlan"},
        BadCase{"port_twice",
                "  - {port: 1, mac: 02:00:00:00:00:01, next_hop_mac: 02:00:00:00:00:02}\n"
                "  - {port: 1, mac: 02:00:00:00:00:03, next_hop_mac: 02:00:00:00:00:04}\n",
                "port 1 has an entry already"}),
    [](auto const& tested) { return tested.param.name; });

TEST(NextHops, ports_are_numbered_from_one_and_know_their_addresses) {
  const std::vector<lpm::Route> routes{{0, 1, 9, 0}, {0x0A000000, 2, 4, 8}, {0x0B000000, 3, 9, 8}};
  const PortTable ports{{4, {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}}};
  const NextHops hops(routes, ports);
  ASSERT_EQ(hops.hops().size(), 3U);
  EXPECT_EQ(hops.numbers().number_of(9), 1);
  EXPECT_EQ(hops.numbers().number_of(4), 2);
  EXPECT_EQ(hops.numbers().number_of(5), 0);
  EXPECT_EQ(hops.hops()[1].port, 9);
  EXPECT_FALSE(hops.hops()[1].rewrites_macs);
  EXPECT_TRUE(hops.hops()[2].rewrites_macs);
  EXPECT_THAT(hops.hops()[2].macs, ElementsAre(2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1));
}

TEST(SpecialRoutes, are_own_addresses_and_broadcasts_and_win_over_routes_to_the_same_address) {
  const MacAddress mac{2, 0, 0, 0, 0, 1};
  const PortTable ports{{0, {mac, mac, {0x0A090001, 24}}},
                        {1, {mac, mac, {0x0A0900FF, 8}}},  // a host's address in a larger network that overlaps
                        {2, {mac, mac, {}}},
                        {3, {mac, mac, {0xC0000200, 31}}}};
  std::vector<lpm::Route> routes{{0, 1, 5, 0}, {0x0A090001, 2, 6, 32}, {0x0A090002, 3, 7, 32}, {0xC0000200, 4, 8, 31}};
  routes = with_special_routes(routes, special_routes(ports));
  std::vector<std::tuple<std::uint32_t, int, int>> found;
  for (lpm::Route const& route : routes) {
    found.emplace_back(route.address, route.length, route.port);
  }
  using Found = std::tuple<std::uint32_t, int, int>;
  EXPECT_THAT(found,
              ElementsAre(Found{0, 0, 5}, Found{0x0A000000, 32, kBroadcastPort}, Found{0x0A090000, 32, kBroadcastPort},
                          Found{0x0A090001, 32, kOwnAddressPort}, Found{0x0A090002, 32, 7},
                          Found{0x0A0900FF, 32, kOwnAddressPort}, Found{0x0AFFFFFF, 32, kBroadcastPort},
                          Found{0xC0000200, 31, 8}, Found{0xC0000200, 32, kOwnAddressPort}));
  const NextHops hops(routes, ports);
  EXPECT_EQ(hops.hops()[0].decision, kNoRoute);
  EXPECT_EQ(hops.hops()[hops.numbers().number_of(kOwnAddressPort)].decision, kToRouter);
  EXPECT_EQ(hops.hops()[hops.numbers().number_of(kBroadcastPort)].decision, kBroadcast);
  EXPECT_EQ(hops.hops()[hops.numbers().number_of(5)].decision, kForward);
}

}  // namespace
}  // namespace catena::router
