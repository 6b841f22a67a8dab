// SPDX-License-Identifier: Apache-2.0
#include "pipeline/units_in_process.hpp"

#include <gtest/gtest.h>

namespace catena::runtime {
namespace {

TEST(UnitsInProcess, units_return_in_order) {
  memory::Unit one;
  memory::Unit other;
  UnitsInProcess units;
  EXPECT_TRUE(units.empty());
  units.add({&one, 64, {}});
  units.add({&other, 128, {}});
  EXPECT_EQ(units.size(), 2U);
  EXPECT_EQ(units.oldest().unit, &one);
  EXPECT_EQ(units.pop().first_slot, 64U);
  EXPECT_EQ(units.pop().unit, &other);
  EXPECT_TRUE(units.empty());
}

TEST(UnitsInProcess, a_bound_counts_the_packets_of_units) {
  memory::Unit unit;
  unit.count = 10;
  UnitsInProcess units;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(units.has_room()) << "without a bound";
    units.add({&unit, 0, {}});
  }
  while (!units.empty()) {
    units.pop();
  }
  units.bound(11);
  units.add({&unit, 0, {}});
  EXPECT_TRUE(units.has_room());
  units.add({&unit, 0, {}});
  EXPECT_FALSE(units.has_room());
  units.pop();
  EXPECT_TRUE(units.has_room());
}

}  // namespace
}  // namespace catena::runtime
