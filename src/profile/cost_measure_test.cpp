// SPDX-License-Identifier: Apache-2.0
// The parts of measure() on every device that is here; all of it together: tests/cli/cli_test.py.
#include "profile/cost_measure.hpp"

#include "gpu/device/testing/faulty_device.hpp"
#include "profile/host_meter.hpp"
#include "profile/transfer_meter.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace catena::profile {
namespace {

using device::testing::Call;
using device::testing::FaultyDevice;
using ::testing::SizeIs;

class Measuring : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<device::Device>> opened = device::open(device::DevicePreference::of(GetParam()));
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
  EXPECT_TRUE((*meter)->can_time(TransferMethod::kGather));
  EXPECT_EQ((*meter)->check_bytes(), absl::OkStatus());
}

/// The call by which a transfer is enqueued.
Call call_of(Transfer const& transfer) {
  const bool in = transfer.direction == Direction::kToDevice;
  if (transfer.method == TransferMethod::kGather || transfer.content == TransferContent::kWithin) {
    return Call::kLaunch;
  }
  if (transfer.method == TransferMethod::kStrided) {
    return in ? Call::kCopyRowsToDevice : Call::kCopyRowsToHost;
  }
  return in ? Call::kCopyToDevice : Call::kCopyToHost;
}

TEST_P(Measuring, times_are_those_of_the_transfers_asked_for_to_their_end) {
  constexpr double kSamples = 7;
  constexpr std::chrono::milliseconds kDelay{2};
  constexpr double kDelayNs = 2e6;
  const auto meter = TransferMeter::create(*faulty_);
  ASSERT_TRUE(meter.ok()) << meter.status();
  std::vector<std::vector<Transfer>> all;
  for (const TransferMethod method : {TransferMethod::kStaged, TransferMethod::kStrided, TransferMethod::kGather}) {
    const Transfer in{method, Direction::kToDevice, TransferContent::kFrames, 256, 300};
    const Transfer out{method, Direction::kToHost, TransferContent::kFrames, 256, 300};
    all.insert(all.end(), {{in}, {out}, {in, out}});
  }
  all.push_back({{TransferMethod::kGather, Direction::kToHost, TransferContent::kField, 8192, 4}});
  all.push_back({{TransferMethod::kStaged, Direction::kToDevice, TransferContent::kWithin, 8192, 1514}});
  // nothing ends earlier than this after its last transfer was enqueued
  faulty_->delay_events(kDelay);
  for (std::vector<Transfer> const& transfers : all) {
    std::vector<std::uint64_t> before;
    for (Transfer const& transfer : transfers) {
      before.push_back(faulty_->calls(call_of(transfer)));
    }
    const auto start = std::chrono::steady_clock::now();
    const Result<std::vector<double>> times = (*meter)->time(transfers);
    const auto took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start);
    ASSERT_TRUE(times.ok()) << times.status();
    ASSERT_THAT(*times, SizeIs(transfers.size()));
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto enqueued = static_cast<double>(faulty_->calls(call_of(transfers[i])) - before[i]);
      ASSERT_GE(enqueued, kSamples) << "the calls of this very method";
      // each sample has at most this many of them, and takes the delay at least
      const double max_in_sample = enqueued / kSamples;
      EXPECT_GE((*times)[i], kDelayNs / max_in_sample);
      EXPECT_LE((*times)[i], took.count() / kSamples) << "all samples were taken in that time";
    }
  }
}

TEST_P(Measuring, a_device_that_cannot_map_host_memory_has_no_gather) {
  faulty_->fail(Call::kMapHost, 1, absl::UnimplementedError("cannot map"));
  const auto meter = TransferMeter::create(*faulty_);
  ASSERT_TRUE(meter.ok()) << meter.status();
  EXPECT_FALSE((*meter)->can_time(TransferMethod::kGather));
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

INSTANTIATE_TEST_SUITE_P(All, Measuring, ::testing::ValuesIn(device::backend_names()),
                         [](auto const& test) { return std::string(test.param); });

/// A meter whose staging is marked before each work.
class HostMeterTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kBytes = 1514;

  void SetUp() override {
    auto made = HostMeter::create(staging_);
    ASSERT_TRUE(made.ok()) << made.status();
    meter_ = *std::move(made);
  }
  void mark(std::uint8_t value) { std::fill(staging_.begin(), staging_.end(), std::byte{value}); }
  /// Bytes of staging from the front on that have `value`.
  std::size_t front(std::uint8_t value) const {
    return static_cast<std::size_t>(
        std::find_if(staging_.begin(), staging_.end(), [value](std::byte byte) { return byte != std::byte{value}; }) -
        staging_.begin());
  }

  std::vector<std::byte> staging_ = std::vector<std::byte>(std::size_t{HostMeter::kBatch} * packet::kMaxFrameBytes);
  std::unique_ptr<HostMeter> meter_;
};

TEST_F(HostMeterTest, what_is_timed_batches_every_packet_and_brings_it_back) {
  const std::uint8_t fresh = std::to_integer<std::uint8_t>(staging_.front());  // as frames are
  mark(fresh + 1);
  EXPECT_GT(meter_->copy_frames(kBytes, true), 0);
  EXPECT_EQ(front(fresh), std::size_t{HostMeter::kBatch} * kBytes);
  mark(fresh + 2);
  EXPECT_GT(meter_->copy_frames(kBytes, false), 0);
  EXPECT_EQ(front(fresh + 2), staging_.size()) << "only frames are written";
  // batches take turns: some of the next ones that are batched are those that were written
  bool was_written = false;
  for (int turn = 0; turn < 32 && !was_written; ++turn) {
    mark(fresh + 3);
    meter_->copy_frames(kBytes, true);
    was_written = front(fresh + 2) == std::size_t{HostMeter::kBatch} * kBytes;
  }
  EXPECT_TRUE(was_written);
}

TEST_F(HostMeterTest, what_is_timed_copies_whole_columns) {
  const std::uint8_t fresh = std::to_integer<std::uint8_t>(staging_.front());
  mark(fresh + 1);
  EXPECT_GT(meter_->copy_fields(1, true), 0);
  EXPECT_EQ(front(fresh), std::size_t{HostMeter::kBatch} * 4) << "an address a packet";
  mark(fresh + 1);
  EXPECT_GT(meter_->copy_fields(HostMeter::kMaxFields, true), 0);
  EXPECT_EQ(front(fresh), std::size_t{HostMeter::kBatch} * (4 + 4 + 2 + 2 + 1 + 1 + 2 + 2));
}

}  // namespace
}  // namespace catena::profile
