// SPDX-License-Identifier: Apache-2.0
// The monitor's kernel: what it says of packets is held to its definition, and what is exported to the CPU's bytes.
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/testing/traffic.hpp>

#include <cstring>
#include <map>

#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using nf::testing::Frame;
using nf::testing::make_frame;
using nf::testing::RunOptions;

/// Has the monitor's kernel, and keeps its results.
class Probe final : public nf::Nf {
 public:
  explicit Probe(std::vector<FlowResult>& results)
      : monitor_(*nf::testing::make_nf(catena_nf_monitor(), "{}")), results_(&results) {}
  nf::Hints hints() const override { return monitor_->hints(); }
  Result<nf::KernelSide> kernel_side() const override { return monitor_->kernel_side(); }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
  void complete(nf::Completion const& completion) override {
    const auto results = completion.results<FlowResult>();
    results_->insert(results_->end(), results.begin(), results.end());
  }

 private:
  std::unique_ptr<nf::Nf> monitor_;
  std::vector<FlowResult>* results_;
};

/// Packets of all kinds of flows and lengths, in flows of one packet, of some and of very many.
std::vector<Frame> kernel_traffic() {
  std::vector<Frame> frames;
  for (Frame const& frame : packet::testing::frames_of_every_kind()) {
    frames.insert(frames.end(), 3, frame);
  }
  frames.insert(frames.end(), 600, make_frame(17, 1, 2, 3, 4, std::string(1400, 'x')));
  for (std::uint32_t i = 0; i < 600; ++i) {  // keys that differ in a bit
    frames.push_back(make_frame(i % 2 == 0 ? 6 : 17, 1 + (i >> 1 & 1), 2 + (i >> 2 & 1),
                                static_cast<std::uint16_t>(3 + (i >> 3 & 1)),
                                static_cast<std::uint16_t>(4 + (i >> 4 & 1)), std::string(i % 7, 'x')));
    if (i % 2 == 0) {
      frames.back()[47] = static_cast<std::uint8_t>(1U << i % 8);  // TCP's flags
    }
  }
  for (std::uint32_t i = 0; i < 600; ++i) {
    frames.push_back(make_frame(17, i, 2, 3, 4, ""));
  }
  std::vector<Frame> const hostile = packet::testing::hostile_frames();
  frames.insert(frames.end(), hostile.begin(), hostile.end());
  return frames;
}

/// What a monitor is given of these frames.
std::vector<Observation> observed(std::vector<Frame> const& frames) {
  nf::testing::PacketStore store(frames);
  const packet::Batch all = store.all();
  std::vector<Observation> result;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].is(packet::kIpv4)) {
      result.push_back(observe(all[i]));
    }
  }
  return result;
}

TEST(MonitorKernel, says_what_the_flows_of_each_group_add_up_to) {
  const std::vector<Frame> frames = kernel_traffic();
  const std::vector<Observation> packets = observed(frames);
  ASSERT_GT(packets.size(), 3000U);
  ASSERT_FALSE(nf::testing::devices().empty());
  for (device::Device* device : nf::testing::devices()) {
    SCOPED_TRACE(nf::testing::name_of(device));
    std::vector<FlowResult> results;
    RunOptions options;
    options.unit_size = 100;
    options.units_per_launch = static_cast<std::uint32_t>(frames.size() / options.unit_size + 1);
    const auto run = nf::testing::run(catena_nf_monitor(), std::make_unique<Probe>(results), frames, device, options);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->counters.kernel_faults, 0U);
    const std::vector<FlowResult> expected = testing::results_of(packets);
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(std::memcmp(&results[i], &expected[i], sizeof results[i]), 0)
          << i << ": " << results[i].bytes << " bytes, flags " << results[i].tcp_flags << ", " << int{results[i].others}
          << " others, distance " << int{results[i].distance};
    }
  }
}

/// Everything that a monitor says.
struct Said {
  std::string json;
  std::string ipfix;
  std::map<std::string, std::uint64_t> statistics;
};

class MonitorOnDevices : public ::testing::Test {
 protected:
  /// Expects the same of every device, for launches and units of many sizes, as of the CPU.
  void expect_same(std::string_view more, std::vector<Frame> const& frames, RunOptions options = {}) {
    const std::string yaml =
        concat("export: [{format: json, file: flows.jsonl}, {format: ipfix, file: flows.ipfix}]\n", more);
    const Said expected = run(yaml, frames, options, nullptr);
    ASSERT_FALSE(expected.json.empty());
    ASSERT_FALSE(nf::testing::devices().empty());
    for (device::Device* device : nf::testing::devices()) {
      for (auto const& [unit_size, units] : {std::pair(256U, 1U), {1U, 5U}, {63U, 9U}, {250U, 4U}, {1024U, 2U}}) {
        SCOPED_TRACE(concat(nf::testing::name_of(device), ", ", units, " units of ", unit_size, ", ", yaml));
        options.unit_size = unit_size;
        options.units_per_launch = units;
        const Said said = run(yaml, frames, options, device);
        EXPECT_TRUE(said.json == expected.json);
        EXPECT_TRUE(said.ipfix == expected.ipfix);
        EXPECT_EQ(said.statistics, expected.statistics);
      }
    }
  }

 private:
  Said run(std::string const& yaml, std::vector<Frame> const& frames, RunOptions const& options,
           device::Device* device) {
    const nf::testing::RunResult result = testing::run(yaml, frames, folder_, options, device);
    Said said{folder_.read("flows.jsonl"), folder_.read("flows.ipfix"), {}};
    for (nf::Statistic const& statistic : result.statistics) {
      said.statistics[statistic.name] = statistic.value;
    }
    said.statistics.erase("memory_bytes");
    return said;
  }
  testing::ScratchFolder folder_;
};

TEST_F(MonitorOnDevices, export_the_same_of_every_kind_of_packet) {
  expect_same("", kernel_traffic());
  expect_same("max_flows: 100", kernel_traffic());
}

/// Pauses, stamps that go back, frames that are cut short; time-outs and evictions between packets of one launch. A
/// launch takes longer than any time-out, or than none.
TEST_F(MonitorOnDevices, export_the_same_however_flows_end) {
  const testing::Traffic traffic(4000);
  for (const std::uint64_t times_faster : {1U, 100U}) {
    RunOptions options;
    for (const std::uint64_t arrival_ns : traffic.arrivals_ns) {
      options.arrivals_ns.push_back(arrival_ns / times_faster);
    }
    for (const char* yaml :
         {"", "idle_timeout_s: 1", "active_timeout_s: 1", "active_timeout_s: 10", "max_flows: 64",
          "max_flows: 3\nactive_timeout_s: 3", "max_flows: 300\nidle_timeout_s: 2\nactive_timeout_s: 2"}) {
      expect_same(yaml, traffic.frames, options);
    }
  }
}

TEST_F(MonitorOnDevices, export_nothing_of_packets_that_were_dropped_before) {
  const testing::Traffic traffic(2000);
  RunOptions options;
  options.arrivals_ns = traffic.arrivals_ns;
  options.dropped_before = [](std::size_t i) { return i % 3 == 0 || i % 700 < 100; };
  expect_same("max_flows: 100\nactive_timeout_s: 5", traffic.frames, options);
}

}  // namespace
}  // namespace catena::monitor
