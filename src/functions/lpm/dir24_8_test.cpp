// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/dir24_8.hpp"

#include <gtest/gtest.h>

#include <random>

#include "functions/lpm/lpm_oracle.hpp"

namespace catena::lpm {
namespace {

template <typename Entry>
Entry find(Dir24_8<Entry> const& table, std::uint32_t address) {
  const Entry top = table.tbl24[address >> 8];
  return (top & kGroupFlag<Entry>) == 0 ? top
                                        : table.tbl8.at((top ^ kGroupFlag<Entry>)*std::size_t{256} + (address & 0xFF));
}

/// Prefixes of all lengths, many of them nested, some of them side by side in one /24.
std::string nested_routes(std::uint32_t count) {
  auto random = [engine = std::mt19937(7)]() mutable { return static_cast<std::uint32_t>(engine()); };
  std::string text;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen;
  while (seen.size() < count) {
    const std::uint32_t length = random() % 33;
    const std::uint32_t base = 0x0A000000U | (random() & 0x00030303U);
    const std::uint32_t address = length == 0 ? 0 : base >> (32 - length) << (32 - length);
    if (std::find(seen.begin(), seen.end(), std::pair(address, length)) != seen.end()) {
      continue;
    }
    seen.emplace_back(address, length);
    text += std::to_string(address >> 24) + "." + std::to_string(address >> 16 & 255) + "." +
            std::to_string(address >> 8 & 255) + "." + std::to_string(address & 255) + "/" + std::to_string(length) +
            " " + std::to_string(random() % 50) + "\n";
  }
  return text;
}

template <typename Entry>
void expect_same_as_oracle() {
  const auto routes = parse_routes(nested_routes(200), "r.txt");
  ASSERT_TRUE(routes.ok()) << routes.status();
  testing::LpmOracle oracle;
  for (Route const& route : *routes) {
    oracle.add(route.address, route.length, route.port);
  }
  const PortNumbers hops(*routes);
  const Dir24_8<Entry> table = build_dir24_8<Entry>(*routes, hops);
  EXPECT_EQ(table.tbl8.size(), count_groups(*routes) * 256);
  std::uint32_t found = 0;
  for (std::uint32_t address = 0x0A000000; address < 0x0A040404; ++address) {
    const auto expected = oracle.find(address);
    const Entry number = find(table, address);
    ASSERT_EQ(number != kNoHop, expected.has_value()) << address;
    if (expected) {
      ++found;
      ASSERT_EQ(hops.ports()[number], *expected) << address;
    }
  }
  EXPECT_GT(found, 1000U);
}

TEST(Dir24_8, two_byte_entries_find_the_longest_prefix) { expect_same_as_oracle<u16>(); }
TEST(Dir24_8, four_byte_entries_find_the_longest_prefix) { expect_same_as_oracle<u32>(); }

TEST(Dir24_8, groups_are_counted_once_for_each_24) {
  const auto routes =
      parse_routes("10.0.0.0/25 1\n10.0.0.128/25 2\n10.0.1.0/24 3\n10.0.2.4/30 1\n10.0.2.9/32 1\n", "r");
  ASSERT_TRUE(routes.ok()) << routes.status();
  EXPECT_EQ(count_groups(*routes), 2U);
}

}  // namespace
}  // namespace catena::lpm
