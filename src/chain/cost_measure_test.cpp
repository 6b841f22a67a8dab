// SPDX-License-Identifier: Apache-2.0
// The parts of measure() on every device that is here; all of it together: tests/cli/cli_test.py.
#include "chain/cost_measure.hpp"

#include "chain/host_meter.hpp"
#include "chain/transfer_meter.hpp"
#include "device/testing/faulty_device.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace catena::chain {
namespace {

using device::testing::Call;
using device::testing::FaultyDevice;
using plan::Direction;
using plan::Method;
using ::testing::Each;
using ::testing::Gt;
using ::testing::SizeIs;

class Measuring : public ::testing::TestWithParam<device::Choice> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<device::Device>> opened = device::open(GetParam());
    if (!opened.ok()) {
      GTEST_SKIP() << opened.status();
    }
    device_ = *std::move(opened);
    faulty_.emplace(*device_);
  }

  std::unique_ptr<device::Device> device_;
  std::optional<FaultyDevice> faulty_;
};

TEST_P(Measuring, every_method_brings_every_byte) {
  const auto meter = TransferMeter::create(*device_);
  ASSERT_TRUE(meter.ok()) << meter.status();
  EXPECT_TRUE((*meter)->can_gather());
  EXPECT_EQ((*meter)->check_bytes(), absl::OkStatus());
}

TEST_P(Measuring, one_transfer_and_two_at_once_take_time) {
  const auto meter = TransferMeter::create(*device_);
  ASSERT_TRUE(meter.ok()) << meter.status();
  for (const Method method : {Method::kStaged, Method::kStrided, Method::kGather}) {
    const Transfer in{method, Direction::kToDevice, Cargo::kFrames, 256, 300};
    const Transfer out{method, Direction::kToHost, Cargo::kFrames, 256, 300};
    for (std::vector<Transfer> const& transfers : {std::vector{in}, std::vector{out}, std::vector{in, out}}) {
      const Result<std::vector<double>> times = (*meter)->time(transfers);
      ASSERT_TRUE(times.ok()) << times.status();
      EXPECT_THAT(*times, SizeIs(transfers.size()));
      EXPECT_THAT(*times, Each(Gt(0.0)));
    }
  }
  for (const Transfer transfer : {Transfer{Method::kGather, Direction::kToHost, Cargo::kField, 8192, 4},
                                  Transfer{Method::kStaged, Direction::kToDevice, Cargo::kWithin, 8192, 1514}}) {
    const Result<std::vector<double>> times = (*meter)->time({&transfer, 1});
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_THAT(*times, Each(Gt(0.0)));
  }
}

TEST_P(Measuring, a_device_that_cannot_map_host_memory_has_no_gather) {
  faulty_->fail(Call::kMapHost, 1, absl::UnimplementedError("cannot map"));
  const auto meter = TransferMeter::create(*faulty_);
  ASSERT_TRUE(meter.ok()) << meter.status();
  EXPECT_FALSE((*meter)->can_gather());
  EXPECT_EQ((*meter)->check_bytes(), absl::OkStatus());
}

TEST_P(Measuring, what_a_device_says_when_it_fails_is_the_error) {
  const Status failure = absl::UnavailableError("the device fell off the bus");
  for (const Call call :
       {Call::kAllocate, Call::kAllocatePinned, Call::kCreateStream, Call::kCopyToDevice, Call::kFill, Call::kLaunch,
        Call::kRecord, Call::kReady, Call::kCopyRowsToDevice, Call::kCopyRowsToHost, Call::kCopyToHost, Call::kFlush}) {
    FaultyDevice device(*device_);
    device.fail(call, 1, failure);
    std::vector<MeasureProgress> seen;
    const Result<plan::CostModel> costs =
        measure(device, [&seen](MeasureProgress const& progress) { seen.push_back(progress); });
    EXPECT_EQ(costs.status(), failure) << static_cast<int>(call);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].done, i);
      EXPECT_GT(seen[i].total, i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Measuring, ::testing::Values(device::Choice::kOpenCl, device::Choice::kCuda),
                         [](::testing::TestParamInfo<device::Choice> const& test) {
                           return std::string(test.param == device::Choice::kCuda ? "cuda" : "opencl");
                         });

TEST(HostMeter, batching_and_bringing_back_take_time) {
  std::vector<std::byte> staging(std::size_t{HostMeter::kBatch} * packet::kMaxFrameBytes);
  const auto meter = HostMeter::create(staging);
  ASSERT_TRUE(meter.ok()) << meter.status();
  for (const bool in : {true, false}) {
    EXPECT_GT((*meter)->copy_frames(1514, in), 0);
    EXPECT_GT((*meter)->copy_fields(1, in), 0);
    EXPECT_GT((*meter)->copy_fields(HostMeter::kMostFields, in), 0);
  }
}

}  // namespace
}  // namespace catena::chain
