// SPDX-License-Identifier: Apache-2.0
// The counts of a chain that runs, read by another thread.
#include "system/chain_runner.hpp"

#include "chain/chain_file.hpp"
#include "pipeline/counts.hpp"
#include "pipeline/session.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace catena::testing {
namespace {

namespace counts = runtime::counts;
using metrics::Snapshot;

constexpr std::uint32_t kReads = 50;
constexpr std::chrono::seconds kLimit{60};

/// NFs with statistics of their own, two of them on a device.
std::string chain_file() {
  const std::string data = std::string(CATENA_SOURCE_DIR) + "/tests/data/chain";
  return "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: live}\nspec:\n"
         "  rx: {generator: {packet: imix, flows: 500}}\n"
         "  tx: null\n  device: opencl\n  nfs:\n"
         "    - {name: fw, type: firewall, on: gpu, config: {rules: " +
         data +
         "/fw.rules, default: allow}}\n"
         "    - {name: flows, type: monitor, on: cpu, config: {}}\n"
         "    - {name: nat, type: nat, on: cpu, config: {inside: [10.0.0.0/8], external: [203.0.113.1]}}\n"
         "    - {name: rt, type: router, on: gpu, config: {routes: " +
         data + "/routes.txt}}\n";
}

void expect_in_order(Snapshot const& now, Snapshot const& before) {
  ASSERT_EQ(now.samples().size(), before.samples().size()) << "a count came or went";
  for (std::size_t i = 0; i < now.samples().size(); ++i) {
    metrics::Sample const& sample = now.samples()[i];
    ASSERT_EQ(sample.name, before.samples()[i].name);
    ASSERT_EQ(sample.labels, before.samples()[i].labels);
    if (sample.name.ends_with("_total")) {
      ASSERT_GE(sample.value, before.samples()[i].value) << sample.name;
    }
  }
  EXPECT_LE(now.sum(counts::kSent), now.sum(counts::kReceived));
  EXPECT_LE(now.sum(counts::kReceived), now.sum(counts::kSeen));
  EXPECT_GE(now.times(counts::kLatency).count(), before.times(counts::kLatency).count());
}

TEST(LiveCounts, are_read_while_packets_run_and_add_up_at_the_end) {
  Result<chain::ChainConfig> config = chain::parse_chain(chain_file(), "live.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  runtime::RunOptions options;
  options.workers = 3;
  auto session = runtime::Session::create(*std::move(config), options, nf::builtin_nfs());
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE((*session)->counts().sums(counts::kStatistic, "name", {{"nf", "flows"}}).empty())
      << "all counts are there from the start";
  std::atomic<bool> done{false};
  Status status;
  std::thread runner([&] {
    status = (*session)->run();
    done = true;
  });
  Snapshot before = (*session)->counts();
  const auto until = std::chrono::steady_clock::now() + kLimit;
  std::uint64_t flows = 0;
  // until packets have left and the NF on another thread has told its own count, and some times more
  for (std::uint32_t reads = 0; reads < kReads && std::chrono::steady_clock::now() < until && !done;) {
    const Snapshot now = (*session)->counts();
    expect_in_order(now, before);
    const runtime::Report report = (*session)->report();
    EXPECT_GE(report.rx.received, now.sum(counts::kReceived));
    flows = now.sum(counts::kStatistic, {{"nf", "flows"}, {"name", "flows"}});
    reads += now.sum(counts::kSent) > 0 && flows > 0 ? 1 : 0;
    before = now;
  }
  EXPECT_FALSE(done) << status;
  EXPECT_GT(flows, 0U) << "an NF's own statistics are told while it works";
  (*session)->stop();
  runner.join();
  ASSERT_TRUE(status.ok()) << status;
  expect_in_order((*session)->counts(), before);
  const runtime::Report report = (*session)->report();
  EXPECT_TRUE(report.accounted());
  EXPECT_GT(report.tx.sent, 0U);
  EXPECT_EQ(report.tx.latency.count(), report.tx.sent);
  EXPECT_EQ(report.rx.slots_in_use, 0U);
  EXPECT_EQ((*session)->counts().sum(counts::kIn, {{"nf", "fw"}}), report.rx.received);
}

}  // namespace
}  // namespace catena::testing
