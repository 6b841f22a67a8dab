// SPDX-License-Identifier: Apache-2.0
#include "chain/placing.hpp"

#include "chain/instances.hpp"
#include "chain/testing/kernel_nfs.hpp"
#include "io/source.hpp"
#include "nf/named_files.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace catena::chain {
namespace {

using plan::Processor;
using share::Reason;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ChainConfig chain_of(std::string const& nfs) {
  auto config = parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: "
                                   "{packet: 100}}\n  tx: null\n  nfs:\n",
                                   nfs),
                            "c.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *std::move(config) : ChainConfig();
}

/// Knows what each NF costs: so much on the CPU, and so much for each launch.
SyncOptions costs(ChainConfig const& config, double cpu_ns, double launch_ns) {
  SyncOptions sync;
  for (NfConfig const& entry : config.nfs) {
    const NfKey key = key_of(entry, {}).value();
    keep(sync.profile.nfs_on_cpu, {key, 128, "", cpu_ns, 0});
    MeasuredNf nf{key, 128, "", {}, 1, 1};
    nf.cost.kernel.intercept = launch_ns;
    keep(sync.profile.nfs, nf);
  }
  return sync;
}

Location gpu(std::uint32_t sms) {
  device::DeviceInfo info;
  info.name = "Some GPU";
  info.compute_units = sms;
  return {info, 1, 0};
}

constexpr const char* kTwo =
    "    - {name: a, type: able, on: auto}\n    - {name: b, type: able, on: auto, config: {x: 1}}\n";

TEST(Placing, costs_decide) {
  ChainConfig config = chain_of(kTwo);
  auto placed = place(config, costs(config, 500, 1000), gpu(8), testing::kernel_nfs());
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->nfs[0].on, Processor::kGpu);
  EXPECT_EQ(placed->nfs[1].on, Processor::kGpu);
  EXPECT_EQ(placed->device, "Some GPU");
  EXPECT_EQ(placed->packet_bytes, 100U);
  EXPECT_EQ(placed->nfs[0].cpu_ns, 500);
  EXPECT_GT(placed->nfs[0].gpu_ns, 0);
  EXPECT_LT(placed->nfs[0].gpu_ns, 500);
  EXPECT_DOUBLE_EQ(placed->all_cpu.packets_per_s, 1e9 / 1000);
  EXPECT_GT(placed->chosen.packets_per_s, placed->all_cpu.packets_per_s);
  EXPECT_FALSE(placed->is_partial);

  // as often as one asks, and another answer where another thing is asked
  placed = place(config, costs(config, 500, 1000), gpu(8), testing::kernel_nfs());
  EXPECT_EQ(placed->nfs[0].on, Processor::kGpu);
  placed = place(config, costs(config, 1, 900'000), gpu(8), testing::kernel_nfs());
  EXPECT_EQ(placed->nfs[0].on, Processor::kCpu);
  EXPECT_EQ(placed->nfs[1].on, Processor::kCpu);
  EXPECT_EQ(placed->nfs[0].reason, Reason::kNotFaster);
}

TEST(Placing, costs_of_reshard_stages_and_ends_are_taken_from_the_profile) {
  ChainConfig config = chain_of(kTwo);
  SyncOptions sync = costs(config, 500, 1000);
  config.nfs[0].on = Processor::kGpu;
  config.nfs[0].is_auto = false;
  config.nfs[1].is_auto = false;
  Location on = gpu(8);
  on.workers = 4;
  auto placed = place(config, sync, on, testing::kernel_nfs());
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_DOUBLE_EQ(placed->chosen.packets_per_s, 1e9 / 500) << "the second NF";
  sync.profile.nfs_on_cpu[1].after_gpu_ns = 800;
  EXPECT_DOUBLE_EQ(place(config, sync, on, testing::kernel_nfs())->chosen.packets_per_s, 1e9 / 800);
  sync.profile.nfs[0].host_alone_ns = 900;
  sync.profile.nfs[0].cost.cpu_ns_per_packet = 1;
  EXPECT_DOUBLE_EQ(place(config, sync, on, testing::kernel_nfs())->chosen.packets_per_s, 1e9 / 900);
  keep(sync.profile.ends, MeasuredEnds{128, "", 1000, 10});
  placed = place(config, sync, on, testing::kernel_nfs());
  EXPECT_DOUBLE_EQ(placed->chosen.packets_per_s, 1e9 / 1000);
  EXPECT_EQ(to_json(*placed)["chosen"]["limited_by"], "rx");
  EXPECT_THAT(describe(*placed), Contains(HasSubstr("as placed: 1.00 Mpps, by rx")));
  sync.profile.ends[0] = {128, "", 10, 2000};
  EXPECT_EQ(to_json(*place(config, sync, on, testing::kernel_nfs()))["chosen"]["limited_by"], "tx");
  config.shards = 2;
  EXPECT_DOUBLE_EQ(place(config, sync, on, testing::kernel_nfs())->chosen.packets_per_s, 1e9 / 1000)
      << "each shard has a tx";
}

TEST(Placing, what_the_user_says_stays) {
  ChainConfig config = chain_of(
      "    - {name: a, type: able, on: gpu}\n    - {name: b, type: able, config: {x: 1}}\n"
      "    - {name: c, type: able, on: auto, config: {x: 2}}\n");
  const auto placed = place(config, costs(config, 500, 1000), gpu(8), testing::kernel_nfs());
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->nfs[0].on, Processor::kGpu);
  EXPECT_EQ(placed->nfs[1].on, Processor::kCpu);
  EXPECT_EQ(placed->nfs[2].on, Processor::kGpu);
}

TEST(Placing, an_nf_that_cannot_be_on_the_gpu_is_on_the_cpu_and_says_why) {
  ChainConfig config = chain_of(
      "    - {name: a, type: cpuonly, on: auto}\n    - {name: b, type: unable, on: auto}\n"
      "    - {name: c, type: able, on: auto}\n");
  SyncOptions sync = costs(config, 500, 1000);
  std::erase_if(sync.profile.nfs_on_cpu, [](MeasuredOnCpu const& nf) { return nf.nf.type == "able"; });
  const auto placed = place(config, sync, gpu(8), testing::kernel_nfs());
  ASSERT_TRUE(placed.ok()) << placed.status();
  for (PlacedEntry const& entry : placed->nfs) {
    EXPECT_EQ(entry.on, Processor::kCpu) << entry.name;
  }
  EXPECT_THAT(describe(placed->nfs[0]), HasSubstr("a  auto -> cpu: 500.0 ns per packet; type 'cpuonly' has no kernel"));
  EXPECT_THAT(describe(placed->nfs[1]), HasSubstr("too many rules"));
  EXPECT_EQ(placed->nfs[2].reason, Reason::kNotKnown);
  EXPECT_THAT(describe(placed->nfs[2]),
              HasSubstr("on the CPU for packets of 100 bytes is unknown; `catena profile --nf"));
  EXPECT_TRUE(placed->is_partial);
}

TEST(Placing, costs_of_smaller_packets_and_other_rules_are_not_known) {
  ChainConfig config = chain_of(kTwo);
  SyncOptions sync = costs(config, 500, 1000);
  config.rx.as<io::GeneratorConfig>().packet_bytes = 129;
  auto placed = place(config, sync, gpu(8), testing::kernel_nfs());
  EXPECT_EQ(placed->nfs[0].reason, Reason::kNotKnown);
  config = chain_of(kTwo);
  config.nfs[0].config = *nf::Config::parse("{x: 2}", "c.yaml");
  placed = place(config, sync, gpu(8), testing::kernel_nfs());
  EXPECT_EQ(placed->nfs[0].reason, Reason::kNotKnown);
  EXPECT_EQ(placed->nfs[1].reason, Reason::kFaster);
}

TEST(Placing, without_a_device_all_is_on_the_cpu) {
  ChainConfig config = chain_of(kTwo);
  const auto placed = place(config, costs(config, 500, 1000), {}, testing::kernel_nfs());
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->nfs[0].on, Processor::kCpu);
  EXPECT_THAT(describe(*placed),
              ElementsAre(HasSubstr("no device is available"), HasSubstr("no device is available"),
                          HasSubstr("as placed: 1.00 Mpps"), HasSubstr("1.00 Mpps"), HasSubstr("1.00 Mpps")));
}

TEST(Placing, an_nf_in_a_process_is_priced_by_a_plan_of_its_own) {
  // side by side two NFs share what they move, in processes each moves its own
  ChainConfig together = chain_of(kTwo);
  ChainConfig apart = together;
  apart.nfs[0].isolation = apart.nfs[1].isolation = Isolation::kProcess;
  const SyncOptions sync = costs(together, 500, 1000);
  const auto one = place(together, sync, gpu(8), testing::kernel_nfs());
  const auto other = place(apart, sync, gpu(8), testing::kernel_nfs());
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(other->nfs[0].on, Processor::kGpu);
  EXPECT_EQ(other->nfs[1].on, Processor::kGpu);
  EXPECT_EQ(one->nfs[0].gpu_ns, other->nfs[0].gpu_ns) << "the first moves the same";
  EXPECT_LT(one->nfs[1].gpu_ns, other->nfs[1].gpu_ns) << "the second finds it on the device";
}

TEST(Placing, nfs_of_one_process_are_priced_by_one_plan) {
  ChainConfig together = chain_of(kTwo);
  ChainConfig grouped = together;
  grouped.nfs[0].isolation = grouped.nfs[1].isolation = Isolation::kProcess;
  grouped.nfs[0].group = grouped.nfs[1].group = "g";
  const SyncOptions sync = costs(together, 500, 1000);
  const auto one = place(together, sync, gpu(8), testing::kernel_nfs());
  const auto other = place(grouped, sync, gpu(8), testing::kernel_nfs());
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(other->nfs[1].on, Processor::kGpu);
  EXPECT_EQ(one->nfs[0].gpu_ns, other->nfs[0].gpu_ns);
  EXPECT_EQ(one->nfs[1].gpu_ns, other->nfs[1].gpu_ns) << "the second finds it on the device";
}

TEST(Placing, says_all_that_is_wrong_with_the_chain) {
  ChainConfig config = chain_of("    - {name: a, type: nothing, on: auto}\n    - {name: b, type: naught, on: auto}\n");
  const Status status = place(config, {}, gpu(8), testing::kernel_nfs()).status();
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'nothing'"), HasSubstr("'naught'")));
}

TEST(Placing, is_told_in_json_with_the_numbers) {
  ChainConfig config = chain_of(kTwo);
  const auto placed = place(config, costs(config, 500, 1000), gpu(8), testing::kernel_nfs());
  ASSERT_TRUE(placed.ok()) << placed.status();
  const nlohmann::ordered_json json = to_json(*placed);
  EXPECT_EQ(json["nfs"][0]["on"], "gpu");
  EXPECT_EQ(json["nfs"][0]["reason"], "faster");
  EXPECT_EQ(json["nfs"][0]["cpu_ns"], 500);
  EXPECT_EQ(json["all_cpu"]["packets_per_s"], 1e6);
  EXPECT_EQ(json["all_cpu"]["limited_by"], "workers");
  EXPECT_GT(json["chosen"]["packets_per_s"], 1e6);
  EXPECT_EQ(json["compute_units"], 8);
}

}  // namespace
}  // namespace catena::chain
