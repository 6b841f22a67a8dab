// SPDX-License-Identifier: Apache-2.0
#include "pipeline/binding_slot.hpp"

#include "pipeline/testing/marker_bench.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace catena::runtime {
namespace {

class BindingSlotTest : public ::testing::Test {
 protected:
  std::unique_ptr<DeviceBinding> binding(DeviceUse& use) {
    DeviceStageOptions options = bench_.options(use);
    options.in_flight = 1;
    options.units_per_launch = 1;
    return DeviceBinding::create(bench_.instance(), bench_.device_nf(), bench_.pool(), options).value();
  }
  DeviceUse use_;
  DeviceUse next_use_;
  testing::MarkerBench bench_;
  BindingSlot slot_{binding(use_)};
};

TEST_F(BindingSlotTest, another_part_of_the_device_is_taken_as_soon_as_nothing_uses_the_current_one) {
  DeviceBinding* const first = &slot_.current();
  EXPECT_FALSE(slot_.has_offer());
  EXPECT_FALSE(slot_.take()) << "nothing is offered";
  auto next = binding(use_);
  DeviceBinding* const offered = next.get();
  slot_.offer(std::move(next));
  EXPECT_TRUE(slot_.has_offer());
  EXPECT_FALSE(slot_.has_taken());
  EXPECT_TRUE(slot_.is_moving_on());
  ASSERT_TRUE(slot_.take());
  EXPECT_EQ(&slot_.current(), offered);
  EXPECT_EQ(&slot_.latest(), offered);
  EXPECT_TRUE(slot_.has_taken());
  EXPECT_FALSE(slot_.is_moving_on());
  EXPECT_EQ(slot_.reclaim().get(), first);
  EXPECT_EQ(slot_.reclaim(), nullptr);
}

TEST_F(BindingSlotTest, another_device_is_taken_when_the_current_one_is_out_of_use) {
  slot_.offer(binding(next_use_));
  EXPECT_FALSE(slot_.is_moving_on());
  EXPECT_FALSE(slot_.take());
  EXPECT_TRUE(use_.stop(absl::UnavailableError("lost")));
  EXPECT_EQ(slot_.device_status(), absl::UnavailableError("lost"));
  EXPECT_TRUE(slot_.take());
  EXPECT_EQ(&slot_.current().use(), &next_use_);
  EXPECT_EQ(slot_.device_status(), absl::OkStatus());
}

TEST_F(BindingSlotTest, nothing_of_a_device_out_of_use_is_taken) {
  slot_.offer(binding(use_));
  EXPECT_TRUE(use_.stop(absl::UnavailableError("lost")));
  EXPECT_FALSE(slot_.is_moving_on());
  EXPECT_FALSE(slot_.take());
  EXPECT_NE(slot_.reclaim(), nullptr) << "it was not taken";
  EXPECT_TRUE(slot_.has_taken());
  slot_.offer(binding(use_));
  EXPECT_FALSE(slot_.has_offer()) << "it is not accepted any more";
}

TEST_F(BindingSlotTest, the_previous_binding_is_reclaimed_before_the_next_is_taken) {
  slot_.offer(binding(use_));
  ASSERT_TRUE(slot_.take());
  slot_.offer(binding(use_));
  EXPECT_FALSE(slot_.take());
  EXPECT_NE(slot_.reclaim(), nullptr);
  EXPECT_TRUE(slot_.take());
}

TEST_F(BindingSlotTest, a_later_offer_replaces_one_not_taken) {
  slot_.offer(binding(next_use_));
  auto last = binding(use_);
  DeviceBinding* const offered = last.get();
  slot_.offer(std::move(last));
  ASSERT_TRUE(slot_.take());
  EXPECT_EQ(&slot_.current(), offered);
}

TEST_F(BindingSlotTest, a_polling_thread_takes_each_of_many_offers) {
  std::atomic<bool> has_ended{false};
  std::thread poller([this, &has_ended] {
    while (!has_ended) {
      if (slot_.has_offer()) {
        slot_.take();
      }
      EXPECT_TRUE(slot_.current().use().allowed());
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 20; ++i) {
    slot_.offer(binding(use_));
    EXPECT_TRUE(testing::MarkerBench::wait_for([this] { return slot_.has_taken(); }));
    EXPECT_NE(slot_.reclaim(), nullptr);
    EXPECT_EQ(&slot_.latest().use(), &use_);
    EXPECT_EQ(slot_.device_status(), absl::OkStatus());
  }
  has_ended = true;
  poller.join();
}

}  // namespace
}  // namespace catena::runtime
