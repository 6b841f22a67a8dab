// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_binding.hpp"

#include "base/core/keep.hpp"
#include "gpu/device/testing/faulty_device.hpp"
#include "pipeline/testing/marker_bench.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace catena::runtime {
namespace {

using testing::MarkerBench;

class DeviceBindingTest : public ::testing::Test {
 protected:
  std::unique_ptr<DeviceBinding> binding(DeviceUse& use) {
    return DeviceBinding::create(bench_.instance(), bench_.device_nf(), bench_.pool(), bench_.options(use)).value();
  }
  DeviceUse use_;
  DeviceUse next_use_;
  MarkerBench bench_;
};

TEST_F(DeviceBindingTest, launches_are_used_and_returned) {
  const auto binding = this->binding(use_);
  DeviceLaunch* const first = binding->take_idle();
  DeviceLaunch* const second = binding->take_idle();
  ASSERT_TRUE(first != nullptr && second != nullptr && first != second);
  EXPECT_EQ(first->timeline().lane, 0U);
  EXPECT_EQ(second->timeline().lane, 1U);
  EXPECT_EQ(binding->take_idle(), nullptr);
  binding->put_back(*first);
  EXPECT_EQ(binding->take_idle(), first);
}

TEST_F(DeviceBindingTest, a_launch_has_room_within_its_bounds) {
  DeviceStageOptions options = bench_.options(use_);
  for (const auto& [wanted, room] : {std::pair{0U, 128U}, {100U, 100U}, {1U, 64U}, {1000U, 128U}}) {
    options.bounds.max_packets = wanted;
    const auto binding = DeviceBinding::create(bench_.instance(), bench_.device_nf(), bench_.pool(), options).value();
    EXPECT_EQ(binding->take_idle()->batch().room(), room) << wanted;
  }
}

TEST_F(DeviceBindingTest, fields_only_on_the_device_need_a_shared_buffer) {
  DeviceStageOptions options = bench_.options(use_);
  options.only_on_device = packet::fields(packet::kIpv4Ttl);
  const Status status = DeviceBinding::create(bench_.instance(), bench_.device_nf(), bench_.pool(), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "NF mark: a plan with fields left on the device alone needs a shared buffer");
}

TEST_F(DeviceBindingTest, a_unit_without_data_on_a_device_is_saved_as_it_is) {
  const auto binding = this->binding(use_);
  memory::Unit& unit = bench_.unit_of();
  EXPECT_EQ(binding->recover(unit), HostRecovery::Outcome::kSaved);
  unit.device_epoch = use_.epoch();
  EXPECT_EQ(binding->recover(unit), HostRecovery::Outcome::kSaved);
  unit.device_epoch = next_use_.epoch();
  EXPECT_EQ(binding->recover(unit), HostRecovery::Outcome::kSaved) << "no plan left a field on a device";
}

TEST_F(DeviceBindingTest, the_first_loss_takes_the_device_out_of_use_with_its_reason) {
  const auto binding = this->binding(use_);
  binding->lose(absl::UnavailableError("fell off the bus"));
  binding->lose(absl::InternalError("again"));
  EXPECT_FALSE(use_.allowed());
  EXPECT_TRUE(use_.answers());
  EXPECT_EQ(use_.reason(), absl::UnavailableError("NF mark: fell off the bus"));
  EXPECT_FALSE(binding->gave_up());
}

TEST(DeviceBinding, a_device_that_does_not_answer_is_given_up_and_that_is_remembered) {
  auto owned = std::make_unique<device::testing::FaultyDevice>(*nf::testing::devices().front());
  device::testing::FaultyDevice& device = *owned;
  keep_until_exit(std::move(owned));
  MarkerBench bench(device);
  DeviceUse use;
  DeviceUse next_use;
  const auto binding =
      DeviceBinding::create(bench.instance(), bench.device_nf(), bench.pool(), bench.options(use)).value();
  const Status late = binding->too_late();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_EQ(late.message(), "stage mark waited more than 10000 ms for device " + device.info().name);
  binding->lose(late);
  EXPECT_FALSE(use.answers());
  EXPECT_TRUE(binding->gave_up());
  const auto next =
      DeviceBinding::create(bench.instance(), bench.device_nf(), bench.pool(), bench.options(next_use)).value();
  EXPECT_FALSE(next->gave_up());
  next->continue_after(*binding);
  EXPECT_TRUE(next->gave_up());
}

}  // namespace
}  // namespace catena::runtime
