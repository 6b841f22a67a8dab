// SPDX-License-Identifier: Apache-2.0
// Launches of a shared step that say of themselves what their buffers do not hold: of an NF's kernel, and of those that
// move packets for it.
#include <catena/kernel/fault.hpp>
#include <catena/kernel/launch_params.hpp>
#include <catena/kernel/shared_layout.hpp>

#include <catena/core/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>

#include "gpu/copy/launch_plan.hpp"
#include "gpu/copy/staging_extent.hpp"
#include "gpu/copy/transfer_params.hpp"
#include "gpu/device/testing/shared_device.hpp"
#include "gpu/launch/adapt.hpp"
#include "gpu/program/program.hpp"

namespace catena::kernel {
namespace {

using copy::TransferParams;

constexpr std::uint32_t kLiesSlots = 16;
constexpr std::uint32_t kRows = 3;
constexpr std::uint32_t kPadded = 16;
constexpr std::uint32_t kGroup = 64;
constexpr std::chrono::seconds kLiesLimit{60};
constexpr std::byte kUnwritten{0xA5};
constexpr std::uint64_t kFar = std::uint64_t{1} << 20U;

constexpr const char* kLiesSource = R"(
#include <catena/kernel/context.hpp>
CATENA_KERNEL(count) {
  const auto packet = ctx.packet();
  if (packet.valid()) {
    packet.set<catena::packet::kMetaLength>(1);
    packet.set_result(packet.row());
  }
}
)";
constexpr EmbeddedFile kLiesFiles[] = {{"count.kernel.cpp", kLiesSource}};

KernelSpec count() {
  KernelSpec spec;
  spec.source = kLiesFiles;
  spec.name = "count";
  spec.group_size = kGroup;
  return spec;
}

copy::LaunchPlan plan() {
  copy::LaunchPlan plan;
  const packet::FieldSet places = packet::fields(packet::kMetaOffset, packet::kMetaLength, packet::kMetaLayers);
  plan.reads = packet::kFrameFields | packet::fields(packet::kMetaOffset);
  plan.writes = packet::fields(packet::kMetaLength);
  plan.result_bytes = 4;
  plan.shared = copy::SharedStep{packet::kFrameFields | places, packet::kFrameFields | plan.writes,
                                 TransferMethod::kStaged,       TransferMethod::kStaged,
                                 TransferMethod::kStaged,       TransferMethod::kStaged};
  return plan;
}

/// A launch buffer for kPadded rows without a byte to spare: header, columns, slot numbers, extents, frames.
struct LaunchBuffer {
  LaunchBuffer() : bytes(kFramesAt + kFramesBytes) {
    const LaunchHeader head{kRows, kRows, 0, 0};
    std::memcpy(bytes.data(), &head, sizeof head);
    for (std::uint32_t row = 0; row < kRows; ++row) {
      std::memcpy(bytes.data() + kSlotsAt + row * sizeof row, &row, sizeof row);
    }
  }
  static inline const std::size_t kColumns = packet::columns_size(copy::in_columns(plan()));
  static inline const std::size_t kSlotsAt = sizeof(LaunchHeader) + kPadded * kColumns;
  static inline const std::size_t kExtentsAt = kSlotsAt + kPadded * sizeof(std::uint32_t);
  static inline const std::size_t kFramesAt = kExtentsAt + kPadded * sizeof(copy::StagingExtent);
  static constexpr std::size_t kFramesBytes = 64;
  std::vector<std::byte> bytes;
};

class LaunchLies : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    const Result<device::Device*> device = device::testing::shared_device(GetParam());
    if (!device.ok()) {
      GTEST_SKIP() << GetParam() << ": " << device.status().message();
    }
    device_ = *device;
    stream_ = device_->create_stream().value();
  }

  std::unique_ptr<device::Buffer> copied(std::vector<std::byte> const& content) {
    auto buffer = device_->allocate(content.size()).value();
    EXPECT_EQ(stream_->copy_to_device(*buffer, 0, content), absl::OkStatus());
    return buffer;
  }
  std::vector<std::byte> back(device::Buffer& buffer) {
    std::vector<std::byte> bytes(buffer.size());
    EXPECT_EQ(stream_->copy_to_host(bytes, buffer, 0), absl::OkStatus());
    EXPECT_EQ(stream_->record().value()->wait(kLiesLimit, "test"), absl::OkStatus());
    return bytes;
  }
  std::vector<std::byte> poisoned(std::size_t bytes) { return std::vector<std::byte>(bytes, kUnwritten); }

  device::Device* device_ = nullptr;
  std::unique_ptr<device::Stream> stream_;
};

using TransferLie = std::function<void(TransferParams&, LaunchHeader&)>;

std::vector<std::pair<const char*, TransferLie>> transfer_lies() {
  return {
      {"nothing", [](auto&, auto&) {}},
      {"more rows", [](auto&, auto& head) { head.rows = kPadded + 1; }},
      {"rows without end", [](auto&, auto& head) { head.rows = 0xFFFFFFFFU; }},
      {"slot numbers behind the end", [](auto& params, auto&) { params.slots_offset = kFar; }},
      {"slot numbers in front", [](auto& params, auto&) { params.slots_offset = ~std::uint64_t{15}; }},
      {"slot numbers far apart", [](auto& params, auto&) { params.slots_row_bytes = 0xFFFFFFF0U; }},
      {"extents behind the end", [](auto& params, auto&) { params.extents_offset = kFar; }},
      {"frames behind the end", [](auto& params, auto&) { params.frames_offset = kFar; }},
      {"frames in front", [](auto& params, auto&) { params.frames_offset = ~std::uint64_t{15}; }},
      {"long frames", [](auto& params, auto&) { params.frames_bytes = LaunchBuffer::kFramesBytes + 1; }},
      {"more slots", [](auto& params, auto&) { params.slots = kLiesSlots + 1; }},
      {"a pool that is not there", [](auto& params, auto&) { params.body = KernelPath::kPool; }},
      {"work-items without end", [](auto& params, auto&) { params.lane_bits = 31; }},
  };
}

TEST_P(LaunchLies, of_what_moves_packets_move_nothing) {
  for (const bool in : {true, false}) {
    const auto program = program::build(*device_, copy::transfer_source(plan(), in), "transfer").value();
    device::Kernel& kernel = *program->kernel(in ? copy::kMoveIn : copy::kMoveOut).value();
    auto lies = transfer_lies();
    if (in) {
      lies.emplace_back("a header behind the end", [](auto& params, auto&) { params.head_offset = kFar; });
    } else {
      lies.emplace_back("flags behind the end", [](auto& params, auto&) { params.flags_offset = kFar; });
      lies.emplace_back("flags in front", [](auto& params, auto&) { params.flags_offset = ~std::uint64_t{15}; });
    }
    for (auto const& [name, lie] : lies) {
      SCOPED_TRACE(concat(name, in ? ", in" : ", out"));
      LaunchBuffer launch;
      TransferParams params{};
      params.slots_offset = sizeof(LaunchHeader);
      params.slots_row_bytes = static_cast<std::uint32_t>(LaunchBuffer::kColumns);
      params.extents_offset = LaunchBuffer::kExtentsAt;
      params.frames_offset = LaunchBuffer::kFramesAt;
      params.frames_bytes = LaunchBuffer::kFramesBytes;
      params.flags_offset = sizeof(FaultReport);
      params.slots = kLiesSlots;
      params.body = KernelPath::kStaging;
      LaunchHeader head{kRows, kRows, 0, 0};
      lie(params, head);
      std::memcpy(launch.bytes.data(), &head, sizeof head);
      const auto batch = copied(launch.bytes);
      std::vector<std::byte> out_bytes =
          poisoned(sizeof(FaultReport) + kPadded * (1 + packet::columns_size(copy::out_columns(plan()))));
      std::fill_n(out_bytes.begin() + sizeof(FaultReport), kPadded, std::byte{0});  // no row was at fault
      const auto out = copied(out_bytes);
      std::vector<std::byte> shared_bytes(shared_buffer_bytes(kLiesSlots), in ? kUnwritten : std::byte{0});
      const auto shared = copied(shared_bytes);
      const std::array<device::KernelArgument, 6> arguments{batch.get(),
                                                            out.get(),
                                                            shared.get(),
                                                            static_cast<device::Buffer*>(nullptr),
                                                            std::as_bytes(std::span(&params, 1)),
                                                            device::BufferSizes{}};
      ASSERT_EQ(stream_->launch(kernel, {1, kGroup, 0}, arguments), absl::OkStatus());
      const bool has_moved = back(*shared) != shared_bytes || back(*out) != out_bytes;
      EXPECT_EQ(has_moved, name == lies[0].first);
      EXPECT_TRUE(back(*batch) == launch.bytes);
    }
  }
}

TEST_P(LaunchLies, of_an_nfs_kernel_are_counted_and_do_nothing_else) {
  using Lie = std::function<void(LaunchParams&, LaunchHeader&)>;
  const std::vector<std::pair<const char*, Lie>> lies = {
      {"nothing", [](auto&, auto&) {}},
      {"more rows", [](auto&, auto& head) { head.rows = kPadded + 1; }},
      {"rows without end", [](auto&, auto& head) { head.rows = 0xFFFFFFF0U; }},
      {"more slots", [](auto& params, auto&) { params.slots = kLiesSlots + 1; }},
      {"a part behind the end", [](auto& params, auto&) { params.batch_offset = kFar; }},
      {"a part in front", [](auto& params, auto&) { params.batch_offset = ~std::uint64_t{15}; }},
      {"a part at odd places", [](auto& params, auto&) { params.batch_offset = 8; }},
      {"state", [](auto& params, auto&) { params.state_bytes = 1; }},
      {"a spill area", [](auto& params, auto&) { params.spill_bytes = 1; }},
  };
  const auto program = build(*device_, count(), plan()).value();
  device::Kernel& kernel = *program->kernel("count").value();
  for (auto const& [name, lie] : lies) {
    SCOPED_TRACE(name);
    LaunchBuffer launch;
    LaunchParams params{};
    params.batch_offset = sizeof(LaunchHeader);
    params.slots = kLiesSlots;
    LaunchHeader head{kRows, kRows, 0, 0};
    lie(params, head);
    std::memcpy(launch.bytes.data(), &head, sizeof head);
    launch.bytes.resize(LaunchBuffer::kExtentsAt);
    const auto batch = copied(launch.bytes);
    std::vector<std::byte> out_bytes = poisoned(
        sizeof(FaultReport) + kPadded * (1 + packet::columns_size(copy::out_columns(plan())) + plan().result_bytes));
    std::fill_n(out_bytes.begin(), sizeof(FaultReport) + kPadded, std::byte{0});
    const auto out = copied(out_bytes);
    const std::vector<std::byte> shared_bytes = poisoned(shared_buffer_bytes(kLiesSlots));
    const auto shared = copied(shared_bytes);
    constexpr device::Buffer* kNone = nullptr;
    const std::array<device::KernelArgument, 7> arguments{
        batch.get(),          out.get(), kNone, kNone, shared.get(), std::as_bytes(std::span(&params, 1)),
        device::BufferSizes{}};
    ASSERT_EQ(stream_->launch(kernel, {2, kGroup, 0}, arguments), absl::OkStatus());
    const std::vector<std::byte> seen = back(*out);
    FaultReport report{};
    std::memcpy(&report, seen.data(), sizeof report);
    if (name == lies[0].first) {
      EXPECT_EQ(report.count, 0U);
      EXPECT_FALSE(seen == out_bytes);
      continue;
    }
    EXPECT_EQ(report.count, 1U);
    EXPECT_TRUE(std::equal(seen.begin() + sizeof(FaultReport), seen.end(), out_bytes.begin() + sizeof(FaultReport)));
    EXPECT_TRUE(back(*batch) == launch.bytes);
    EXPECT_TRUE(back(*shared) == shared_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(backends, LaunchLies, ::testing::ValuesIn(device::backend_names()),
                         [](auto const& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace catena::kernel
