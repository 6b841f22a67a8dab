// SPDX-License-Identifier: Apache-2.0
// rte_fib judges the ranges and the kernel's table.
#include "functions/lpm/dpdk/fib.hpp"

#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>

#include "functions/lpm/dir24_8.hpp"
#include "functions/lpm/lookup.kernel.hpp"
#include "functions/lpm/prefix_generator.hpp"
#include "functions/lpm/range_table.hpp"

namespace catena::lpm {
namespace {

void expect_agreement(std::vector<Route> const& routes, std::vector<std::uint32_t> addresses) {
  const PortNumbers hops(routes);
  const auto fib = Fib::create(routes, hops);
  ASSERT_TRUE(fib.ok()) << fib.status();
  const auto ranges = RangeTable::create(routes);
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  const Dir24_8<u32> tables = build_dir24_8<u32>(routes, hops);
  std::vector<std::uint64_t> judged(addresses.size());
  fib->lookup(addresses.data(), judged.data(), static_cast<std::uint32_t>(addresses.size()));
  std::size_t found = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto port = ranges->find(addresses[i]);
    ASSERT_EQ(port.has_value(), judged[i] != kNoHop) << std::hex << addresses[i];
    if (port) {
      ASSERT_EQ(*port, hops.ports()[judged[i]]) << std::hex << addresses[i];
      ++found;
    }
    ASSERT_EQ((find_hop<u32>(
                  addresses[i], [&](u64 entry) { return tables.tbl24[entry]; },
                  [&](u64 entry) { return tables.tbl8[entry]; })),
              judged[i])
        << std::hex << addresses[i];
  }
  EXPECT_GT(found, addresses.size() / 10);
}

TEST(Fib, agrees_on_the_internet_s_table) {
  const std::vector<Route> routes = testing::internet_routes(shared_data(), 251);
  ASSERT_GE(routes.size(), 45'094U);
  expect_agreement(routes, testing::addresses_near(routes, 1'000'000));
}

TEST(Fib, agrees_on_prefixes_in_prefixes) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Route> routes = testing::nested_routes(3000, seed);
    expect_agreement(routes, testing::addresses_near(routes, 50'000));
  }
}

}  // namespace
}  // namespace catena::lpm
