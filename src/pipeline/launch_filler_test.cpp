// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launch_filler.hpp"

#include "pipeline/testing/marker_bench.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace catena::runtime {
namespace {

class LaunchFillerTest : public ::testing::Test {
 protected:
  memory::Unit* send(std::uint32_t packets = testing::MarkerBench::kUnitPackets) {
    memory::Unit* const unit = &bench_.unit_of(packets);
    bench_.queue().push(unit);
    return unit;
  }
  DeviceUse use_;
  testing::MarkerBench bench_;
  LaunchFiller filler_{bench_.queue()};
};

TEST_F(LaunchFillerTest, launches_have_the_units_in_order_and_numbers) {
  EXPECT_FALSE(filler_.has_units());
  EXPECT_EQ(filler_.release(), nullptr);
  std::vector<memory::Unit*> units;
  for (int i = 0; i < 3; ++i) {
    units.push_back(send(50));
  }
  bench_.queue().close();
  ASSERT_TRUE(filler_.has_units());
  DeviceLaunch& first = bench_.launch();
  filler_.begin(first);
  EXPECT_EQ(filler_.launch(), &first);
  EXPECT_TRUE(filler_.fill(use_));
  EXPECT_TRUE(filler_.is_full()) << "the third unit has too many packets";
  EXPECT_EQ(first.units(), (std::vector<memory::Unit*>{units[0], units[1]}));
  EXPECT_TRUE(filler_.has_units());
  EXPECT_FALSE(filler_.is_drained()) << "the queue is, but not the filler";
  EXPECT_EQ(filler_.release(), &first);
  EXPECT_EQ(filler_.launch(), nullptr);

  DeviceLaunch& second = bench_.launch();
  filler_.begin(second);
  EXPECT_TRUE(filler_.fill(use_));
  EXPECT_FALSE(filler_.is_full());
  EXPECT_EQ(second.units(), std::vector<memory::Unit*>{units[2]});
  EXPECT_EQ(second.timeline().number, 1U);
  EXPECT_TRUE(filler_.is_drained());
  EXPECT_FALSE(filler_.fill(use_)) << "nothing came";
}

TEST_F(LaunchFillerTest, all_units_of_a_launch_are_given_to_the_nf) {
  send(10);
  send(10);
  DeviceLaunch& launch = bench_.launch();
  filler_.begin(launch);
  filler_.fill(use_);
  EXPECT_EQ(launch.group_ends(), std::vector<std::size_t>{2});
}

TEST_F(LaunchFillerTest, a_unit_for_the_host_waits_behind_the_units_before_it) {
  memory::Unit* const before = send();
  memory::Unit* const stale = send();
  memory::Unit* const after = send();
  before->device_epoch = use_.epoch();
  stale->device_epoch = DeviceUse().epoch();
  DeviceLaunch& launch = bench_.launch(4 * testing::MarkerBench::kUnitPackets);
  filler_.begin(launch);
  EXPECT_TRUE(filler_.fill(use_));
  EXPECT_EQ(launch.units(), std::vector<memory::Unit*>{before});
  EXPECT_EQ(filler_.for_host(), stale);
  EXPECT_FALSE(filler_.fill(use_)) << "no unit overtakes it";
  filler_.release();
  filler_.take_for_host();
  EXPECT_EQ(filler_.for_host(), nullptr);

  after->host_fallback = true;
  filler_.begin(bench_.launch());
  EXPECT_FALSE(filler_.fill(use_));
  EXPECT_EQ(filler_.for_host(), after);
  EXPECT_TRUE(filler_.has_units());
}

TEST_F(LaunchFillerTest, without_a_device_each_unit_is_for_the_host) {
  filler_.divert();
  EXPECT_EQ(filler_.for_host(), nullptr);
  memory::Unit* const first = send();
  memory::Unit* const second = send();
  bench_.queue().close();
  filler_.divert();
  filler_.divert();
  EXPECT_EQ(filler_.for_host(), first);
  filler_.take_for_host();
  filler_.divert();
  EXPECT_EQ(filler_.for_host(), second);
  EXPECT_FALSE(filler_.is_drained());
  filler_.take_for_host();
  EXPECT_TRUE(filler_.is_drained());
}

TEST_F(LaunchFillerTest, a_unit_that_was_too_large_is_for_the_host_before_later_ones) {
  send();
  memory::Unit* const large = send();
  send();
  filler_.begin(bench_.launch(testing::MarkerBench::kUnitPackets));
  filler_.fill(use_);
  filler_.divert();
  EXPECT_EQ(filler_.for_host(), large);
}

}  // namespace
}  // namespace catena::runtime
