// SPDX-License-Identifier: Apache-2.0
#include "chain/workers.hpp"

#include "chain/layout.hpp"
#include "chain/run_options.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::chain {
namespace {

using ::testing::HasSubstr;

TEST(Cores, lists_and_ranges_are_read_in_their_order) {
  const std::vector<std::uint32_t> usable = usable_cores();
  ASSERT_FALSE(usable.empty());
  const std::string last = std::to_string(usable.back());
  EXPECT_EQ(*parse_cores(last), std::vector<std::uint32_t>{usable.back()});
  EXPECT_EQ(*parse_cores(last + "-" + last), std::vector<std::uint32_t>{usable.back()});
  if (usable.size() > 1) {
    EXPECT_EQ(*parse_cores(concat(usable[1], ",", usable[0])), (std::vector<std::uint32_t>{usable[1], usable[0]}));
  }
}

TEST(Cores, other_texts_are_errors_that_say_what_to_write) {
  const std::string core = std::to_string(usable_cores().front());
  for (std::string const& text :
       {std::string(), std::string("a"), core + ",", core + "-", "-" + core, core + ";" + core, "0" + core,
        core + "-0" + core, std::string("5-2"), std::string("99999999999"), core + " "}) {
    const auto cores = parse_cores(text);
    EXPECT_TRUE(absl::IsInvalidArgument(cores.status())) << text;
    EXPECT_THAT(std::string(cores.status().message()), HasSubstr("write cores as 0,2-5")) << text;
  }
  EXPECT_THAT(std::string(parse_cores(core + "," + core).status().message()), HasSubstr("is listed twice"));
  EXPECT_THAT(std::string(parse_cores("1023").status().message()), HasSubstr("core 1023 is not one of them"));
}

TEST(AutoShards, are_as_many_as_may_gain) {
  const nf::Config empty = *nf::Config::parse("{}", "c.yaml");
  ChainConfig config;
  for (const plan::Processor on : {plan::Processor::kGpu, plan::Processor::kCpu}) {
    config.nfs.push_back({"a", "router", on, std::nullopt, nf::LinkLocal::kPass, empty, ""});
  }
  EXPECT_EQ(auto_shards(config, true, 16), 4U) << "with sources of their own, for a gpu";
  EXPECT_EQ(auto_shards(config, false, 16), 14U) << "rx and tx have a core each";
  ChainConfig of_processes = config;
  of_processes.nfs[0].isolation = of_processes.nfs[1].isolation = Isolation::kProcess;
  EXPECT_EQ(auto_shards(of_processes, false, 16), 4U) << "each process has a core";
  of_processes.nfs[0].group = of_processes.nfs[1].group = "g";
  EXPECT_EQ(auto_shards(of_processes, false, 16), 7U) << "and the NFs of a group have one process";
  EXPECT_EQ(auto_shards(config, false, 2), 1U);
  config.nfs[0].on = plan::Processor::kCpu;
  EXPECT_EQ(auto_shards(config, true, 12), 12U);
  EXPECT_EQ(auto_shards(config, true, 64), kMaxShards);
  ChainConfig of_auto = config;
  of_auto.nfs[0].is_auto = true;
  EXPECT_EQ(auto_shards(of_auto, true, 12), 3U) << "it may be on the gpu";
  ChainConfig of_interface = config;
  of_interface.rx = *parse_rx_option("dev:eth0");
  EXPECT_EQ(auto_shards(of_interface, false, 16), 6U) << "the kernel has half of the cores";
  ChainConfig of_many = config;
  of_many.nfs.resize(64, config.nfs[0]);
  EXPECT_EQ(auto_shards(of_many, true, 16), 8U) << "a pool has 1024 queues";
  config.nfs[0].on = config.nfs[1].on = plan::Processor::kGpu;
  EXPECT_EQ(auto_shards(config, false, 16), 1U) << "dividing costs what a gpu would gain";
  of_auto.nfs[0].on = of_auto.nfs[1].on = plan::Processor::kGpu;
  EXPECT_EQ(auto_shards(of_auto, false, 16), 14U) << "it may be on the CPU";
  config.devices.resize(3);
  EXPECT_EQ(auto_shards(config, false, 16), 3U) << "each device has one";
}

TEST(ParallelismOf, gives_each_of_several_devices_a_shard_of_those_that_a_file_leaves_open) {
  ChainConfig config;
  config.rx = *parse_rx_option("dpdk:net_null0");
  config.shards = kAutoShards;
  config.devices = {device::DevicePreference::of("cuda", 0), device::DevicePreference::of("cuda", 1)};
  ChainConfig one = config;
  one.shards = 1;
  EXPECT_EQ(parallelism_of(config, {}, 1).shards, 2U);
  EXPECT_EQ(check_shards(config, 2), absl::OkStatus());
  EXPECT_THAT(std::string(check_shards(one, parallelism_of(one, {}, 1).shards).message()),
              HasSubstr("each has a shard at least"));
}

TEST(DefaultWorkers, are_one_per_core_and_half_as_many_beside_the_kernel) {
  const PortConfig capture = *parse_rx_option("pcap:a.pcap");
  EXPECT_EQ(default_workers(capture, 6, 4), 4U);
  EXPECT_EQ(default_workers(capture, 3, 4), 3U);
  EXPECT_EQ(default_workers(capture, 3, 0), 1U);
  const PortConfig interface = *parse_rx_option("dpdk:net_af_packet_lan,iface=lan");
  EXPECT_EQ(default_workers(interface, 6, 1), 1U);
  EXPECT_EQ(default_workers(interface, 6, 2), 1U);
  EXPECT_EQ(default_workers(interface, 6, 8), 4U);
  const PortConfig nic = *parse_rx_option("dpdk:0000:03:00.0");
  EXPECT_EQ(default_workers(nic, 6, 2), 2U);
}

}  // namespace
}  // namespace catena::chain
