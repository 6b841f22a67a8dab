// SPDX-License-Identifier: Apache-2.0
#include "pipeline/auto_placement.hpp"

#include "chain/chain_file.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/test_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using plan::Processor;
using ::testing::HasSubstr;

constexpr std::uint32_t kPlacedFor = 1500;
constexpr std::uint32_t kFound = 60;
constexpr std::uint64_t kSampledPackets = 2 * TrafficWatch::kMinPackets;

/// Reads a header field, on the CPU and in a kernel.
class AutoReader final : public nf::Nf {
 public:
  nf::Hints hints() const override {
    return {.cr = packet::fields(packet::kIpv4Src), .gr = packet::fields(packet::kIpv4Src)};
  }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.name = "reader";
    return side;
  }
};
Result<std::unique_ptr<nf::Nf>> make_auto_reader(nf::Config& /*config*/) { return std::make_unique<AutoReader>(); }
constexpr nf::Descriptor kAutoReader{
    .type = "reader", .help = "", .drop_reasons = {}, .config = {}, .has_kernel = true, .create = &make_auto_reader};

/// A chain with an NF `on: auto`, which a GPU is good for if packets are small, and the CPU else.
class AutoPlacementTest : public ::testing::Test {
 protected:
  AutoPlacementTest() {
    EXPECT_TRUE(registry_.add(kAutoReader).ok());
    Result<chain::ChainConfig> config = chain::parse_chain(
        "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: {generator: {packet: 1500}}\n"
        "  tx: null\n  tuning: {unit_packets: auto}\n  nfs:\n    - {name: a, type: reader, on: auto}\n",
        "chain.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    config_ = *std::move(config);
    gpu_.name = "Some GPU";
    gpu_.compute_units = 8;
    const chain::NfKey key = chain::key_of(config_.nfs[0], {}).value();
    for (const std::uint32_t bytes : {kFound, kPlacedFor}) {
      keep(options_.sync.profile.nfs_on_cpu, {key, bytes, "", bytes == kFound ? 500.0 : 1.0, 0});
      chain::MeasuredNf nf{key, bytes, "", {}, 1, 1};
      nf.cost.kernel.intercept = bytes == kFound ? 1000 : 900'000;
      keep(options_.sync.profile.nfs, nf);
    }
  }
  void resolve(std::vector<device::DeviceInfo> devices) {
    ASSERT_EQ(placement_.resolve(config_, options_, {.devices = std::move(devices)}, registry_), absl::OkStatus());
    config_ = chain::with_layout(std::move(config_), placement_.layout());
  }
  /// Places and makes its NF.
  void place() {
    resolve({gpu_});
    NfEntry entry = testing::entry_of("a", kAutoReader, std::make_unique<AutoReader>());
    entry.content = content_of(config_.nfs[0], {});
    std::vector<std::vector<NfEntry>> shards(1);
    shards[0].push_back(std::move(entry));
    std::vector<Segment> segments;
    segments.push_back(testing::segment_of(0, std::move(shards)));
    pipeline_ = Pipeline({}, std::move(segments), 7);
  }
  Result<std::optional<Replacement>> find_better(std::uint32_t bytes) {
    return placement_.find_better(config_, options_, pipeline_, bytes, registry_);
  }

  nf::Registry registry_;
  RunOptions options_;
  device::DeviceInfo gpu_;
  chain::ChainConfig config_;
  Pipeline pipeline_;
  AutoPlacement placement_;
};

TEST_F(AutoPlacementTest, a_placement_of_the_user_is_never_sampled) {
  EXPECT_EQ(placement_.placement(), nullptr);
  EXPECT_EQ(placement_.sample(kSampledPackets, kSampledPackets * kFound), std::nullopt);
  EXPECT_EQ(placement_.sample(2 * kSampledPackets, 2 * kSampledPackets * kFound), std::nullopt);
}

TEST_F(AutoPlacementTest, packets_of_another_size_may_have_a_better_placement) {
  place();
  ASSERT_NE(placement_.placement(), nullptr);
  EXPECT_EQ(placement_.placement()->packet_bytes, kPlacedFor);
  EXPECT_EQ(config_.nfs[0].on, Processor::kCpu);
  EXPECT_EQ(placement_.sample(kSampledPackets, kSampledPackets * kFound), std::nullopt) << "once may be a burst";
  EXPECT_EQ(placement_.sample(2 * kSampledPackets, 2 * kSampledPackets * kFound), kFound);
  const auto better = find_better(kFound);
  ASSERT_TRUE(better.ok()) << better.status();
  ASSERT_TRUE(*better);
  EXPECT_EQ((*better)->config.nfs[0].on, Processor::kGpu);
  EXPECT_EQ((*better)->options.sync.packet_bytes, kFound);
  EXPECT_EQ((*better)->config.tuning.unit_packets, chain::kAutoUnitPackets) << "chosen again";
  EXPECT_THAT((*better)->why,
              HasSubstr("packets have 60 bytes now, and NFs were placed for 1500: 'a' to the gpu goes"));
  EXPECT_EQ(config_.nfs[0].on, Processor::kCpu) << "of the running chain";
}

TEST_F(AutoPlacementTest, the_best_placement_has_no_better_one) {
  place();
  const auto better = find_better(kPlacedFor);
  ASSERT_TRUE(better.ok()) << better.status();
  EXPECT_FALSE(*better);
}

TEST_F(AutoPlacementTest, changed_files_wait_for_a_request) {
  place();
  pipeline_.entries()[0][0]->content->key.configuration = "of another file";
  const auto better = find_better(kFound);
  ASSERT_TRUE(better.ok()) << better.status();
  EXPECT_FALSE(*better);
}

TEST_F(AutoPlacementTest, without_a_device_nothing_is_sampled) {
  resolve({});
  ASSERT_NE(placement_.placement(), nullptr);
  EXPECT_EQ(config_.nfs[0].on, Processor::kCpu);
  EXPECT_EQ(placement_.sample(kSampledPackets, kSampledPackets * kFound), std::nullopt);
  EXPECT_EQ(placement_.sample(2 * kSampledPackets, 2 * kSampledPackets * kFound), std::nullopt);
}

TEST_F(AutoPlacementTest, a_unit_size_of_the_user_stays) {
  config_.tuning.unit_packets = 32;
  resolve({});
  EXPECT_EQ(config_.tuning.unit_packets, 32U);
  EXPECT_FALSE(placement_.has_chosen_units());
  config_.tuning.unit_packets = chain::kAutoUnitPackets;
  resolve({});
  EXPECT_EQ(config_.tuning.unit_packets, memory::kDefaultUnitPackets);
  EXPECT_TRUE(placement_.has_chosen_units());
}

}  // namespace
}  // namespace catena::runtime
