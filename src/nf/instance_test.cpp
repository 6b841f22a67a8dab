// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/instance.hpp>
#include <catena/nf/testing/harness.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace catena::nf {
namespace {

using testing::Frame;
using testing::RunOptions;
using testing::RunResult;

/// Adds `aux` to the TTL, XORs the payload with the port's low byte and says so; drops packets with TTL 7. On the
/// device, packets to port 6666 read far outside the payload and those to port 6667 write there.
constexpr char kKernel[] = R"(
#include <catena/kernel/context.hpp>
using namespace catena;
CATENA_KERNEL(marker) {
  auto packet = ctx.packet();
  if (!packet.valid()) return;
  const u32 add = packet.aux<u32>();
  const u16 port = packet.get<packet::kL4Dport>();
  auto payload = packet.payload();
  if (port == 6666) { u32 sum = 0; for (i32 i = 0; i < 100000; i += 999) sum += payload[i]; packet.set_result<u32>(sum); return; }
  if (port == 6667) { payload.set(1 << 20, 1); payload.set(-5000, 1); return; }
  u32 sum = 0;
  for (u32 i = 0; i < payload.length(); ++i) {
    const u8 value = static_cast<u8>(payload[static_cast<i32>(i)] ^ (port & 0xFF));
    payload.set(static_cast<i32>(i), value);
    sum += value;
  }
  packet.set<packet::kIpv4Ttl>(static_cast<u8>(packet.get<packet::kIpv4Ttl>() + add));
  packet.set<packet::kMetaPort>(port);
  packet.set_result<u32>(sum);
}
)";
constexpr std::array<kernel::SourceFile, 1> kSource{{{"marker.kernel.cpp", kKernel}}};

constexpr std::array<DropReason, 1> kReasons{{{"seven", "the TTL was 7"}}};

class Marker final : public Nf {
 public:
  Hints hints() const override { return {}; }

  void prepare(packet::Batch const& batch, std::span<std::byte> aux, Outcome& outcome) override {
    const auto add = array_of<std::uint32_t>(aux);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      add[i] = ++count_ % 5;
      if (batch[i].l3()[8] == 7) {
        outcome.drop(batch[i], 0);
        outcome.record(batch[i], packet::Verdict::kDrop, 0, "");
      }
    }
  }

  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const packet::Packet packet = batch[i];
      const std::uint16_t port = packet::load_be16(packet.l4() + 2);
      std::uint32_t sum = 0;
      for (std::uint8_t& byte : packet.payload()) {
        byte = static_cast<std::uint8_t>(byte ^ (port & 0xFFU));
        sum += byte;
      }
      packet.l3()[8] = static_cast<std::uint8_t>(packet.l3()[8] + array_of<const std::uint32_t>(aux)[i]);
      packet.set_port(port);
      array_of<std::uint32_t>(results)[i] = sum;
    }
  }

  void complete(packet::Batch const& batch, std::span<const std::byte> /*aux*/, std::span<const std::byte> results,
                SpillView const* /*spill*/, std::uint32_t /*first_row*/, Outcome& outcome) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      outcome.record(batch[i], packet::Verdict::kPass, -1,
                     "\"sum\":" + std::to_string(array_of<std::uint32_t>(results)[i]));
    }
  }

  Result<KernelSide> kernel_side() const override {
    KernelSide side;
    side.spec.source = kSource;
    side.spec.kernel = "marker";
    side.spec.reads = packet::fields(packet::kIpv4Ttl, packet::kL4Dport, packet::kPayload);
    side.spec.writes = packet::fields(packet::kIpv4Ttl, packet::kMetaPort, packet::kPayload);
    side.spec.aux_bytes = 4;
    side.spec.result_bytes = 4;
    return side;
  }

 private:
  std::uint32_t count_ = 0;
};

Descriptor marker_descriptor() {
  Descriptor descriptor;
  descriptor.type = "marker";
  descriptor.help = "for tests";
  descriptor.needs = packet::kPorts;
  descriptor.drop_reasons = kReasons;
  descriptor.aux_bytes = 4;
  descriptor.result_bytes = 4;
  descriptor.has_kernel = true;
  return descriptor;
}

/// UDP and TCP frames of many sizes, some with TTL 7, some that are not IPv4.
std::vector<Frame> frames(std::size_t count) {
  std::mt19937 random(3);
  std::vector<Frame> result;
  for (std::size_t i = 0; i < count; ++i) {
    Frame frame =
        testing::make_frame(random() % 2 == 0 ? packet::kProtocolTcp : packet::kProtocolUdp, 0x0A000001,
                            static_cast<std::uint32_t>(random()), 1234, static_cast<std::uint16_t>(random() % 6000),
                            std::string(random() % 1400, 'x'), static_cast<std::uint8_t>(random() % 4 == 0 ? 7 : 64));
    if (random() % 10 == 0) {
      frame[12] = 0x86;
    }
    result.push_back(std::move(frame));
  }
  return result;
}

RunResult run_ok(std::vector<Frame> const& input, device::Device* device, RunOptions const& options = {}) {
  static const Descriptor kDescriptor = marker_descriptor();
  Result<RunResult> result = testing::run(kDescriptor, std::make_unique<Marker>(), input, device, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult{};
}

class InstanceOnDevice : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(InstanceOnDevice, gives_what_the_cpu_gives) {
  const std::vector<Frame> input = frames(600);
  const RunResult expected = run_ok(input, nullptr, {.unit_size = 64});
  ASSERT_GT(expected.dropped("seven"), 0U);
  ASSERT_GT(expected.counters.unsupported, 0U);
  ASSERT_FALSE(testing::devices().empty());
  for (device::Device* device : testing::devices()) {
    for (const std::uint32_t units : {1U, 3U}) {
      const RunResult actual = run_ok(input, device, {.unit_size = GetParam(), .units_per_launch = units});
      EXPECT_TRUE(actual.packets == expected.packets) << device->info().name;
      std::vector<std::string> sorted = actual.records;
      std::vector<std::string> expected_sorted = expected.records;
      std::sort(sorted.begin(), sorted.end());
      std::sort(expected_sorted.begin(), expected_sorted.end());
      EXPECT_EQ(sorted, expected_sorted);
      EXPECT_EQ(actual.drops, expected.drops);
      EXPECT_EQ(actual.counters.device_packets, 600 - expected.counters.unsupported - expected.dropped("seven"));
      EXPECT_GT(actual.counters.transfers.bytes_to_device, 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(UnitSizes, InstanceOnDevice, ::testing::Values(1, 31, 32, 33, 255, 256));

TEST(Instance, all_dropped_reach_nobody) {
  std::vector<Frame> input(50, testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "abc", 7));
  for (device::Device* device : testing::devices()) {
    const RunResult result = run_ok(input, device);
    EXPECT_EQ(result.dropped("seven"), 50U);
    EXPECT_EQ(result.counters.device_packets, 0U);
  }
  EXPECT_EQ(run_ok(input, nullptr).dropped("seven"), 50U);
}

TEST(Instance, unsupported_packets_are_dropped_where_the_chain_says_so) {
  const std::vector<Frame> input{Frame(60, 0), testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, "abc"),
                                 Frame(3, 0), Frame()};
  const RunResult result = run_ok(input, nullptr, {.on_unsupported = OnUnsupported::kDrop});
  EXPECT_EQ(result.dropped("unsupported"), 3U);
  EXPECT_THAT(result.records,
              ::testing::Contains(R"({"packet":0,"nf":"marker","verdict":"drop","reason":"unsupported"})"));
}

/// A kernel that leaves its memory is stopped at the access, counted and reported; only its own packets are lost.
TEST(Isolation, packets_of_a_straying_kernel_are_dropped_and_the_others_are_right) {
  std::vector<Frame> input = frames(100);
  std::vector<Frame> straying = input;
  straying[10] = testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 6666, "read outside");
  straying[40] = testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 6667, "write outside");
  ASSERT_FALSE(testing::devices().empty());
  for (device::Device* device : testing::devices()) {
    const RunResult result = run_ok(straying, device);
    const RunResult expected = run_ok(straying, nullptr);
    EXPECT_EQ(result.dropped("kernel_fault"), 2U) << device->info().name;
    EXPECT_GT(result.counters.kernel_faults, 2U) << "every access outside counts";
    for (std::size_t i = 0; i < straying.size(); ++i) {
      if (i == 10 || i == 40) {
        EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kDrop);
        EXPECT_EQ(result.packets[i].frame, straying[i]) << "what a strayed kernel wrote is not believed";
      } else {
        EXPECT_TRUE(result.packets[i] == expected.packets[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace catena::nf
