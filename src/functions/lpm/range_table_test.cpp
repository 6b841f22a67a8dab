// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/range_table.hpp"

#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>

#include "functions/lpm/lpm_oracle.hpp"
#include "functions/lpm/prefix_generator.hpp"

namespace catena::lpm {
namespace {

constexpr std::size_t kFixedBytes = std::size_t{2} << 20;

void expect_same_as_oracle(std::vector<Route> const& routes, std::vector<std::uint32_t> const& addresses) {
  const auto table = RangeTable::create(routes);
  ASSERT_TRUE(table.ok()) << table.status();
  testing::LpmOracle oracle;
  for (Route const& route : routes) {
    oracle.add(route.address, route.length, route.port);
  }
  for (const std::uint32_t address : addresses) {
    ASSERT_EQ(table->find(address), oracle.find(address)) << std::hex << address;
  }
  EXPECT_LE(table->bytes(), 8 * routes.size() + kFixedBytes + sizeof(std::uint32_t));
}

TEST(RangeTable, without_routes_nothing_is_found) { expect_same_as_oracle({}, {0, 1, 0x0A000000, 0xFFFFFFFF}); }

TEST(RangeTable, prefixes_end_where_they_should) {
  expect_same_as_oracle({{0, 1, 1, 0}}, {0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF});
  expect_same_as_oracle({{0x80000000, 1, 7, 1}, {0xFFFFFFFF, 2, 8, 32}},
                        {0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF});
  expect_same_as_oracle({{0, 1, 2, 32}}, {0, 1, 0xFFFFFFFF});
}

class Nested : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Nested, a_table_for_each_length_finds_the_same) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Route> routes = testing::nested_routes(GetParam(), seed);
    expect_same_as_oracle(routes, testing::addresses_near(routes, 20'000));
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, Nested, ::testing::Values(1, 2, 5, 50, 2000), ::testing::PrintToStringParamName());

TEST(RangeTable, the_longest_chain_of_prefixes_is_found_link_by_link) {
  std::vector<Route> routes;
  for (std::uint8_t length = 0; length <= 32; ++length) {
    routes.push_back({0, 0, length, length});
  }
  std::vector<std::uint32_t> addresses{0};
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    addresses.insert(addresses.end(), {1U << bit, (1U << bit) - 1});
  }
  expect_same_as_oracle(routes, addresses);
}

TEST(RangeTable, every_second_host_of_a_network_is_a_range_of_its_own) {
  std::vector<Route> routes;
  for (std::uint32_t host = 0; host < 0x20000; host += 2) {
    routes.push_back({0x0A000000 + host, 0, static_cast<std::uint16_t>(host % 9), 32});
  }
  expect_same_as_oracle(routes, testing::addresses_near(routes, 200'000));
}

TEST(RangeTable, the_internet_s_table_is_found_as_by_a_table_for_each_length) {
  const std::vector<Route> routes = testing::internet_routes(shared_data(), 251);
  ASSERT_GE(routes.size(), 45'094U);
  expect_same_as_oracle(routes, testing::addresses_near(routes, 500'000));
}

}  // namespace
}  // namespace catena::lpm
