// SPDX-License-Identifier: Apache-2.0
#include "chain/layout.hpp"

#include "chain/flow.hpp"
#include "chain/testing/kernel_nfs.hpp"
#include "nf/named_files.hpp"
#include "plan/unit_size.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace catena::chain {
namespace {

using plan::Processor;

constexpr std::uint32_t kMaxSlots = 1U << 20;

/// A source of random choices; equal seeds give equal choices.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(random_() % (high - low + 1));
  }
  bool chance(std::uint32_t percent) { return between(1, 100) <= percent; }
  template <typename T>
  T pick(std::vector<T> const& all) {
    return all[between(0, static_cast<std::uint32_t>(all.size()) - 1)];
  }

 private:
  std::mt19937 random_;
};

std::string random_text(Dice& dice) {
  const std::uint32_t devices = dice.chance(80) ? 1 : dice.between(2, 3);
  std::string text =
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {packet: ",
             dice.pick<int>({60, 512, 1514}), "}}\n  tx: ", dice.chance(50) ? "null" : "{pcap: /none/out.pcap}",
             "\n  device: [");
  for (std::uint32_t i = 0; i < devices; ++i) {
    text += concat(i == 0 ? "" : ", ", "\"cuda:", i, "\"");
  }
  text += concat("]\n  shards: ", dice.chance(50) ? "auto" : std::to_string(dice.between(devices, 4)));
  text += concat("\n  tuning: {unit_packets: ", dice.pick<std::string>({"auto", "auto", "16", "256", "1024"}),
                 ", units_per_launch: ", dice.pick<int>({1, 8, 64}), ", launches_in_flight: ", dice.between(1, 4),
                 dice.chance(20) ? ", pool_slots: 65536" : "", "}\n");
  text += dice.chance(50) ? concat("  flow: {qt: ", dice.pick<int>({2, 3, 5}), "}\n") : "";
  text += "  nfs:\n";
  const std::uint32_t nfs = dice.between(1, 6);
  for (std::uint32_t i = 0; i < nfs; ++i) {
    const std::string type = dice.pick<std::string>({"able", "able", "able", "cpuonly", "unable"});
    const std::string on =
        type == "able" ? dice.pick<std::string>({"cpu", "gpu", "auto"}) : dice.pick<std::string>({"cpu", "auto"});
    text += concat("    - {name: n", i, ", type: ", type, ", on: ", on,
                   ", isolation: ", dice.chance(25) ? "process" : "none", ", config: {x: ", i, "}}\n");
  }
  return text;
}

/// A spec, a machine, and options with costs.
struct Case {
  std::string text;
  ChainConfig spec;
  Machine machine;
  RunOptions options;
};

void add_random_costs(Dice& dice, Case& one) {
  for (NfConfig const& entry : one.spec.nfs) {
    const NfKey key = key_of(entry, {}).value();
    if (dice.chance(90)) {
      keep(one.options.sync.profile.nfs_on_cpu, {key, 2048, "", double(dice.between(1, 1000)), 0});
    }
    MeasuredNf nf{key, 2048, "", {}, 1, 1};
    nf.cost.kernel.intercept = dice.pick<double>({100, 10'000, 900'000});
    keep(one.options.sync.profile.nfs, nf);
  }
}

Case random_case(std::uint32_t seed) {
  Dice dice(seed);
  Case one;
  one.text = random_text(dice);
  Result<ChainConfig> spec = parse_chain(one.text, "c.yaml");
  EXPECT_TRUE(spec.ok()) << spec.status() << "\n" << one.text;
  one.spec = spec.ok() ? *std::move(spec) : ChainConfig();
  one.machine.cores = dice.between(1, 64);
  one.machine.assumes_device = dice.chance(20);
  for (std::size_t i = 0; i < one.spec.devices.size() && dice.chance(80); ++i) {
    device::DeviceInfo info;
    info.name = "Some GPU";
    info.compute_units = dice.between(1, 132);
    one.machine.devices.push_back(info);
  }
  if (dice.chance(20)) {
    one.machine.memory = {PacketMemory::Owner::kPrevious, kMaxSlots};
  }
  one.options.workers = dice.chance(70) ? 0 : dice.between(1, 8);
  one.options.cores.resize(dice.chance(30) ? dice.between(1, 8) : 0);
  add_random_costs(dice, one);
  return one;
}

/// Cores that the open numbers are for.
std::uint32_t cores_of(Case const& one) {
  return one.options.cores.empty() ? one.machine.cores : static_cast<std::uint32_t>(one.options.cores.size());
}

void expect_threads(Case const& one, ChainLayout const& layout) {
  const auto devices = static_cast<std::uint32_t>(one.spec.devices.size());
  EXPECT_GE(layout.shards, std::max(1U, devices));
  EXPECT_LE(layout.shards, kMaxShards);
  if (one.spec.shards != kAutoShards) {
    EXPECT_EQ(layout.shards, one.spec.shards);
  } else {
    EXPECT_LE(layout.shards, std::max(devices, one.options.workers != 0 ? one.options.workers : cores_of(one)));
  }
  EXPECT_GE(layout.workers, 1U);
  EXPECT_LE(layout.workers, layout.shards * (one.spec.nfs.size() + 2)) << "one per stage";
  EXPECT_LE(layout.workers, one.options.workers != 0 ? one.options.workers : cores_of(one));
}

void expect_placement(Case const& one, ChainLayout const& layout) {
  ASSERT_EQ(layout.nfs.size(), one.spec.nfs.size());
  for (std::size_t i = 0; i < layout.nfs.size(); ++i) {
    NfConfig const& entry = one.spec.nfs[i];
    NfLayout const& nf = layout.nfs[i];
    EXPECT_EQ(nf.name, entry.name);
    EXPECT_EQ(nf.process != ProcessKind::kChain, entry.isolation == Isolation::kProcess);
    if (!entry.is_auto) {
      EXPECT_EQ(nf.on, entry.on) << nf.name << " is fixed";
    } else if (nf.on == Processor::kGpu) {
      EXPECT_FALSE(one.machine.devices.empty()) << nf.name;
      EXPECT_EQ(entry.type, "able") << nf.name;
      EXPECT_EQ(nf.reason, share::Reason::kFaster) << nf.name;
    }
  }
}

void expect_memory(Case const& one, ChainLayout const& layout) {
  Tuning const& tuning = one.spec.tuning;
  if (tuning.unit_packets != kAutoUnitPackets) {
    EXPECT_EQ(layout.unit_packets, tuning.unit_packets);
  }
  EXPECT_GE(layout.unit_packets, plan::kMinAutoUnitPackets);
  EXPECT_LE(layout.unit_packets, memory::kMaxUnitPackets);
  EXPECT_LE(layout.unit_packets * tuning.units_per_launch, kMaxLaunchPackets);
  EXPECT_TRUE(std::has_single_bit(layout.slots)) << layout.slots;
  const bool is_previous = one.machine.memory.owner == PacketMemory::Owner::kPrevious;
  EXPECT_TRUE(!is_previous || layout.slots == kMaxSlots);
  const bool has_flow = !one.spec.flow.position.empty();
  EXPECT_TRUE(!has_flow || layout.flow == one.spec.flow.mode);
  if (!has_flow || (!tuning.says_pool_slots && layout.slots < kMaxSlots)) {
    const Status limits = flow_limits(with_layout(one.spec, layout), layout.unit_packets).status();
    EXPECT_EQ(limits, absl::OkStatus()) << "slots for all packets waiting and in work";
  }
}

/// How often the random cases have a property, so that the test says something about it.
struct Seen {
  int shards = 0;
  int on_gpu_by_choice = 0;
  int on_cpu_by_choice = 0;
  int units = 0;
  int slots = 0;
  int backpressure = 0;

  void add(Case const& one, ChainLayout const& layout) {
    shards += one.spec.shards == kAutoShards && layout.shards > 1 ? 1 : 0;
    units += layout.unit_packets != memory::kDefaultUnitPackets && one.spec.tuning.unit_packets == 0 ? 1 : 0;
    slots += layout.slots != one.spec.tuning.pool_slots ? 1 : 0;
    backpressure += one.spec.flow.position.empty() && layout.flow == FlowMode::kBackpressure ? 1 : 0;
    for (std::size_t i = 0; i < layout.nfs.size(); ++i) {
      const bool is_auto = one.spec.nfs[i].is_auto;
      on_gpu_by_choice += is_auto && layout.nfs[i].on == Processor::kGpu ? 1 : 0;
      on_cpu_by_choice += is_auto && layout.nfs[i].reason == share::Reason::kNotFaster ? 1 : 0;
    }
  }
};

TEST(Layout, is_the_same_for_equal_specs_and_machines) {
  constexpr std::uint32_t kCases = 500;
  Seen seen;
  for (std::uint32_t seed = 0; seed < kCases; ++seed) {
    const Case one = random_case(seed);
    const Case same = random_case(seed);
    const Result<ChainLayout> layout = resolve(one.spec, one.machine, one.options, testing::kernel_nfs());
    ASSERT_TRUE(layout.ok()) << layout.status() << "\n" << one.text;
    const Result<ChainLayout> again = resolve(same.spec, same.machine, same.options, testing::kernel_nfs());
    ASSERT_TRUE(again.ok()) << again.status();
    const ::testing::ScopedTrace trace(__FILE__, __LINE__,
                                       concat("seed ", seed, "\n", one.text, to_json(*layout).dump()));
    EXPECT_EQ(*layout, *again) << to_json(*again).dump();
    expect_threads(one, *layout);
    expect_placement(one, *layout);
    expect_memory(one, *layout);
    seen.add(one, *layout);
  }
  constexpr int kOften = 20;
  EXPECT_GE(seen.shards, kOften);
  EXPECT_GE(seen.on_gpu_by_choice, kOften);
  EXPECT_GE(seen.on_cpu_by_choice, kOften);
  EXPECT_GE(seen.units, kOften);
  EXPECT_GE(seen.slots, kOften);
  EXPECT_GE(seen.backpressure, kOften);
}

TEST(Layout, has_the_evidence_of_its_placement) {
  const ChainConfig spec = *parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {packet: 100}}\n  tx: null\n"
      "  nfs: [{name: n, type: able, on: auto}]\n",
      "c.yaml");
  Placement evidence;
  const Result<ChainLayout> layout = resolve(spec, {.cores = 4}, {}, testing::kernel_nfs(), &evidence);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->nfs[0].reason, share::Reason::kNoGpu);
  ASSERT_EQ(evidence.nfs.size(), 1U);
  EXPECT_EQ(evidence.nfs[0].reason, share::Reason::kNoGpu);
  EXPECT_EQ(evidence.packet_bytes, 100U);
}

TEST(Layout, is_printed) {
  const ChainLayout layout{.shards = 2,
                           .workers = 3,
                           .unit_packets = 64,
                           .slots = 2048,
                           .flow = FlowMode::kBackpressure,
                           .nfs = {{"ids", Processor::kGpu, share::Reason::kFixed, ProcessKind::kGroup}}};
  EXPECT_EQ(to_json(layout).dump(), R"({"shards":2,"workers":3,"unit_packets":64,"slots":2048,"flow":"backpressure",)"
                                    R"("nfs":[{"name":"ids","on":"gpu","process":"group"}]})");
}

TEST(Layout, a_chain_that_replaces_another_has_its_slots) {
  ChainConfig spec = *parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
      "  nfs: [{name: n, type: able}]\n",
      "c.yaml");
  const std::uint32_t own = spec.tuning.pool_slots;
  const auto beside = [&spec](std::uint32_t slots) {
    const Machine machine{.devices = {}, .memory = {PacketMemory::Owner::kPrevious, slots}};
    return resolve(spec, machine, {}, testing::kernel_nfs());
  };
  EXPECT_EQ(beside(own)->slots, own);
  EXPECT_EQ(beside(2 * own)->slots, 2 * own);
  EXPECT_EQ(beside(2 * own)->flow, FlowMode::kBackpressure);
  const Status too_few = beside(own / 2).status();
  EXPECT_EQ(too_few.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(too_few.message(), concat("it needs ", own, " slots for packets, and the running chain has ", own / 2));
  const Result<ChainLayout> inside =
      resolve(spec, {.devices = {}, .memory = {PacketMemory::Owner::kCaller}}, {}, testing::kernel_nfs());
  EXPECT_EQ(inside->flow, FlowMode::kPool) << "limits are those of the caller";
}

TEST(Layout, a_unit_size_for_no_device_is_the_default) {
  ChainConfig spec = *parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {packet: 1514}}\n  tx: null\n"
      "  tuning: {unit_packets: auto}\n  nfs: [{name: n, type: able, on: gpu}]\n",
      "c.yaml");
  const auto units = [&spec](Machine const& machine) {
    return resolve(spec, machine, {}, testing::kernel_nfs())->unit_packets;
  };
  EXPECT_EQ(units({}), memory::kDefaultUnitPackets);
  const std::uint32_t suited = units({.devices = {device::DeviceInfo()}});
  EXPECT_NE(suited, memory::kDefaultUnitPackets);
  EXPECT_EQ(units({.assumes_device = true}), suited);
  EXPECT_TRUE(depends_on_device(spec));
  spec.nfs[0].isolation = Isolation::kProcess;
  EXPECT_EQ(units({.assumes_device = true}), memory::kDefaultUnitPackets) << "no NF of this process is on a device";
  EXPECT_FALSE(depends_on_device(spec));
}

}  // namespace
}  // namespace catena::chain
