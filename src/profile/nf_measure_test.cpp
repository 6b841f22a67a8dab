// SPDX-License-Identifier: Apache-2.0
#include "profile/nf_measure.hpp"

#include "gpu/device/testing/faulty_device.hpp"
#include "gpu/device/testing/shared_device.hpp"

#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace catena::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

chain::ChainConfig chain_of(std::string const& nfs) {
  const std::string text =
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: small}\nspec:\n  rx: {generator: ",
             "{packet: 64}}\n  tx: null\n  nfs:\n", nfs);
  auto config = chain::parse_chain(text, source_path("examples/chains/small.yaml"));
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *std::move(config) : chain::ChainConfig();
}

constexpr const char* kFirewall =
    "    - {name: fw, type: firewall, on: gpu, config: {rules: ../branch-office/fw.rules, default: allow}}\n";
constexpr const char* kRemarkOnCpu = "    - {name: mark, type: remark, on: cpu, config: {map: [{from: 0, to: 10}]}}\n";
constexpr const char* kLastRemark = "    - {name: last, type: remark, on: cpu, config: {map: [{from: 10, to: 0}]}}\n";
constexpr const char* kDecrypt =
    "    - {name: vpn, type: ipsec, on: gpu, config: {direction: decrypt, sa: ../branch-office/sa.yaml}}\n";

/// Without a kernel.
class Looker final : public nf::Nf {
 public:
  nf::Hints hints() const override { return {.cr = packet::fields(packet::kIpv4Src)}; }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
};
constexpr nf::Descriptor kLooker{
    .type = "looker",
    .help = "decides nothing",
    .drop_reasons = {},
    .config = {},
    .create = [](nf::Config& /*config*/) -> Result<std::unique_ptr<nf::Nf>> { return std::make_unique<Looker>(); }};

NfMeasureOptions few() {
  NfMeasureOptions options;
  options.packet_bytes = {64, 256};
  options.max_packets = 256;
  options.limit = std::chrono::hours(1);
  return options;
}

class MeasuringNfs : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    const Result<device::Device*> opened = device::testing::shared_device(GetParam());
    if (!opened.ok()) {
      GTEST_SKIP() << opened.status();
    }
    device_ = *opened;
  }
  Result<NfMeasurements> measure(chain::ChainConfig const& config, NfMeasureOptions const& options = few(),
                                 MeasureObserver const& observer = {}) {
    return measure_nfs(*device_, config, nf::builtin_nfs(), {}, options, observer);
  }

  device::Device* device_ = nullptr;
};

TEST_P(MeasuringNfs, each_nf_on_the_gpu_has_times_for_each_packet_size) {
  std::vector<MeasureProgress> seen;
  const auto measured = measure(chain_of(concat(kFirewall, kRemarkOnCpu, kDecrypt)), few(),
                                [&seen](MeasureProgress const& progress) { seen.push_back(progress); });
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_THAT(measured->nfs, SizeIs(4)) << "two NFs are on the gpu";
  EXPECT_THAT(measured->traffic, HasSubstr("generator"));
  for (std::size_t i = 0; i < 4; ++i) {
    NfMeasurement const& nf = measured->nfs[i];
    EXPECT_EQ(nf.packet_bytes, i < 2 ? 64U : 256U);
    EXPECT_EQ(nf.key, measured->nfs[(i + 2) % 4].key) << "the same NF";
    if (nf.name == "vpn") {
      EXPECT_THAT(nf.times.launches, IsEmpty());
      EXPECT_THAT(nf.why_not, HasSubstr("no packet of this traffic")) << "the generator sends no ESP";
      continue;
    }
    EXPECT_EQ(nf.name, "fw");
    EXPECT_EQ(nf.key.type, "firewall");
    EXPECT_THAT(nf.why_not, IsEmpty());
    EXPECT_EQ(nf.times.sms, device_->info().compute_units);
    ASSERT_THAT(nf.times.launches, SizeIs(3));
    for (std::size_t point = 0; point < 3; ++point) {
      LaunchPoint const& launch = nf.times.launches[point];
      EXPECT_EQ(launch.packets, 64U << point);
      EXPECT_GT(launch.kernel_ns, 0);
      EXPECT_GT(launch.round_trip_ns, 0);
    }
    EXPECT_EQ(nf.times.kernels.empty(), !measured->why_no_parts.empty());
    EXPECT_EQ(nf.times.kernels.size() % 3, 0U) << "every part has every number of packets";
  }
  EXPECT_NE(measured->nfs[0].key, measured->nfs[1].key);
  ASSERT_FALSE(seen.empty());
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].done, seen[i - 1].done);
  }
  EXPECT_EQ(seen.back().done, seen.back().total);
}

TEST_P(MeasuringNfs, time_that_is_over_ends_it_after_three_points_and_is_said) {
  NfMeasureOptions options = few();
  options.packet_bytes = {64};
  options.max_packets = 1024;
  options.limit = std::chrono::nanoseconds(1);
  const auto measured = measure(chain_of(kFirewall), options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(measured->nfs.front().times.launches, SizeIs(3));
  EXPECT_THAT(measured->notes, ElementsAre(HasSubstr("launches of 512 packets and more")));
}

TEST_P(MeasuringNfs, every_nf_has_its_time_on_the_cpu_wherever_it_is) {
  const auto measured = measure(chain_of(concat(kFirewall, kRemarkOnCpu, kDecrypt)));
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_THAT(measured->on_cpu, SizeIs(6)) << "three NFs, two packet sizes";
  for (std::size_t i = 0; i < 6; ++i) {
    CpuMeasurement const& nf = measured->on_cpu[i];
    EXPECT_EQ(nf.name, (std::array{"fw", "mark", "vpn"}[i % 3]));
    EXPECT_EQ(nf.packet_bytes, i < 3 ? 64U : 256U);
    EXPECT_EQ(nf.why_not.empty(), nf.name != "vpn") << "the generator sends no ESP";
    EXPECT_EQ(nf.ns_per_packet > 0, nf.name != "vpn");
    EXPECT_GE(nf.spread_percent, 0);
  }
  EXPECT_EQ(measured->on_cpu[0].key, measured->nfs[0].key) << "fw";
}

TEST_P(MeasuringNfs, an_nf_that_may_be_on_either_is_measured_on_both) {
  nf::Registry registry = nf::builtin_nfs();
  ASSERT_TRUE(registry.add(kLooker).ok());
  const chain::ChainConfig chain = chain_of(
      "    - {name: fw, type: firewall, on: auto, isolation: process, config: {rules: ../branch-office/fw.rules, "
      "default: allow}}\n"
      "    - {name: mark, type: remark, on: auto, config: {map: [{from: 0, to: 10}]}}\n"
      "    - {name: seen, type: looker, on: auto}\n");
  const auto measured = measure_nfs(*device_, chain, registry, {}, few(), {});
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_THAT(measured->nfs, SizeIs(4)) << "two NFs have a kernel";
  EXPECT_EQ(measured->nfs[0].name, "fw");
  EXPECT_THAT(measured->nfs[0].times.launches, SizeIs(3));
  EXPECT_GT(measured->nfs[0].times.launches[0].cpu_ns, 0);
  EXPECT_EQ(measured->nfs[1].name, "mark");
  EXPECT_THAT(measured->on_cpu, SizeIs(6));
  EXPECT_THAT(measured->notes,
              ElementsAre(HasSubstr("seen was measured on the CPU alone: type 'looker' has no kernel")));
}

TEST_P(MeasuringNfs, what_changes_beside_nfs_on_the_other_side_is_measured_of_each) {
  const auto measured = measure(chain_of(concat(
      kFirewall, "    - {name: mark, type: remark, on: auto, config: {map: [{from: 0, to: 10}]}}\n", kLastRemark)));
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_THAT(measured->nfs, SizeIs(4));
  for (NfMeasurement const& nf : measured->nfs) {
    EXPECT_TRUE(nf.host_alone_ns.has_value()) << nf.name << ", " << nf.packet_bytes;
  }
  ASSERT_THAT(measured->on_cpu, SizeIs(6));
  for (CpuMeasurement const& nf : measured->on_cpu) {
    EXPECT_EQ(nf.after_gpu_ns > 0, nf.name != "fw") << nf.name << ": nobody is before the first";
  }
  ASSERT_THAT(measured->ends, SizeIs(2));
  EXPECT_EQ(measured->ends[0].packet_bytes, 64U);
  EXPECT_EQ(measured->ends[1].packet_bytes, 256U);
  for (EndsMeasurement const& ends : measured->ends) {
    EXPECT_GT(ends.times.rx_ns, 0);
    EXPECT_GT(ends.times.tx_ns, 0);
  }
}

TEST_P(MeasuringNfs, of_a_chain_on_the_cpu_the_cpu_is_measured) {
  const auto measured = measure(chain_of(kRemarkOnCpu));
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(measured->nfs, IsEmpty());
  EXPECT_THAT(measured->on_cpu, SizeIs(2));
  EXPECT_THAT(measured->notes, IsEmpty());
}

TEST_P(MeasuringNfs, what_a_device_says_when_it_fails_is_the_error) {
  using device::testing::Call;
  const Status failure = absl::UnavailableError("the device fell off the bus");
  for (const Call call : {Call::kAllocate, Call::kCreateStream, Call::kLaunch, Call::kRecord, Call::kReady}) {
    device::testing::FaultyDevice faulty(*device_);
    faulty.fail(call, 1, failure);
    const auto measured = measure_nfs(faulty, chain_of(kFirewall), nf::builtin_nfs(), {}, few(), {});
    EXPECT_EQ(measured.status(), failure) << static_cast<int>(call);
  }
}

INSTANTIATE_TEST_SUITE_P(All, MeasuringNfs, ::testing::ValuesIn(device::backend_names()),
                         [](auto const& test) { return std::string(test.param); });

}  // namespace
}  // namespace catena::profile
