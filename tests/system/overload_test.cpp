// SPDX-License-Identifier: Apache-2.0
// Random graphs behind a port that brings twice of what they can do: nothing is lost inside, what is lost is lost and
// counted at the port, and memory does not grow. CATENA_OVERLOAD_SECONDS: how long, over all graphs.
#include "system/random_graphs.hpp"

#include "pipeline/session.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace catena::testing {
namespace {

using Clock = std::chrono::steady_clock;

/// A port to which packets come at a rate, whether somebody takes them or not: a queue of some thousands keeps them,
/// and what does not fit there is lost.
class BusyPort final : public io::Source {
 public:
  BusyPort(double packets_per_s, double seconds)
      : packets_per_s_(packets_per_s),
        seconds_(seconds),
        inner_(*io::make_generator({.flows = 512, .count = std::uint64_t{1} << 40})) {}
  void start() override { began_ = Clock::now(); }
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    constexpr std::uint64_t kQueue = 4096;
    const auto arrived = static_cast<std::uint64_t>(elapsed() * packets_per_s_);
    if (arrived > taken_ + lost_ + kQueue) {
      lost_ = arrived - taken_ - kQueue;
    }
    if (arrived < taken_ + lost_ + pool.unit_packets()) {
      return absl::OkStatus();
    }
    CATENA_RETURN_IF_ERROR(inner_->receive(pool, unit, next_index, starved));
    taken_ += unit.count;
    return absl::OkStatus();
  }
  bool finished() const override { return elapsed() > seconds_; }
  io::SourceCounts counts() const override { return {taken_ + lost_, {{"backlog_full", lost_}}}; }
  std::string describe() const override { return "busy port"; }
  std::optional<io::LiveClock> live_clock() const override { return clock_; }
  std::uint64_t lost() const { return lost_; }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  double packets_per_s_;
  double seconds_;
  std::unique_ptr<io::Source> inner_;
  Clock::time_point began_ = Clock::now();
  std::uint64_t taken_ = 0;
  std::uint64_t lost_ = 0;
  io::LiveClock clock_;
};

std::uint64_t memory_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

struct Outcome {
  runtime::Report report;
  double packets_per_s = 0;
  std::int64_t growth_bytes = 0;  ///< of memory, from the first fifth of the run to its end
};

/// Runs a graph behind a port of that rate; 0: one that waits.
Outcome run(GraphText const& graph, std::uint32_t gpu_mask, double packets_per_s, double seconds) {
  ChainRun texts{graph.nfs, gpu_mask, clear_traffic().front().capture,
                 nf::testing::devices().empty() ? "none" : nf::testing::devices().back()->info().backend,
                 "  flow: {}\n" + graph.rows};
  const std::string output = (scratch_folder() / "out.pcap").string();
  std::string text = chain_text(texts, output);
  const std::string tx = concat("tx: {pcap: ", output, "}");
  const std::size_t at = text.find(tx);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, tx.size(), "tx: null");
  Result<chain::ChainConfig> config = chain::parse_chain(text, data_file("chain/test.yaml"));
  EXPECT_TRUE(config.ok()) << config.status();
  runtime::RunOptions options;
  options.workers = 2;
  const double rate = packets_per_s == 0 ? 1e9 : packets_per_s;
  options.make_source = [&]() -> Result<std::unique_ptr<io::Source>> {
    return std::make_unique<BusyPort>(rate, seconds);
  };
  auto session = runtime::Session::create(*std::move(config), options, nf::builtin_nfs());
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) {
    return {};
  }
  std::uint64_t before = 0;
  std::jthread watcher([&](std::stop_token const& stop) {
    const auto then =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds / 5));
    while (!stop.stop_requested() && Clock::now() < then) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    before = memory_bytes();
  });
  EXPECT_TRUE((*session)->run().ok());
  watcher.request_stop();
  watcher.join();
  Outcome outcome{(*session)->report()};
  outcome.growth_bytes = static_cast<std::int64_t>(memory_bytes()) - static_cast<std::int64_t>(before);
  outcome.packets_per_s = static_cast<double>(outcome.report.rx.received) / outcome.report.seconds;
  return outcome;
}

std::uint64_t lost_at_rx(runtime::Report const& report) {
  std::uint64_t lost = 0;
  for (io::NamedCount const& drop : report.rx.drops) {
    EXPECT_EQ(drop.name, "backlog_full");
    lost += drop.count;
  }
  return lost;
}

double seconds_in_all() {
  const char* const text = std::getenv("CATENA_OVERLOAD_SECONDS");
  constexpr double kDefault = 40;
  return text == nullptr ? kDefault : std::atof(text);
}

constexpr unsigned kGraphs = 12;

class Overload : public ::testing::TestWithParam<unsigned> {};

TEST_P(Overload, nothing_is_lost_inside_and_memory_is_flat) {
  RandomGraphs graphs(GetParam());
  const GraphText graph = graphs.next();
  const std::uint32_t mask = graphs.below(1U << graph.nfs.size());
  SCOPED_TRACE(graph.rows);
  const double seconds = seconds_in_all() / kGraphs;
  // what the chain takes of a port that always has more
  const Outcome most = run(graph, mask, 0, seconds / 4);
  ASSERT_GT(most.packets_per_s, 0);
  double rate = 2 * most.packets_per_s;
  Outcome outcome = run(graph, mask, rate, seconds);
  // a machine that had other work while it was measured may do more than twice of that
  for (int more = 0; more < 3 && lost_at_rx(outcome.report) == 0; ++more) {
    rate *= 2;
    outcome = run(graph, mask, rate, seconds);
  }
  runtime::Report const& report = outcome.report;
  EXPECT_TRUE(report.accounted()) << to_text(report);
  EXPECT_EQ(report.rx.slots_in_use, 0U) << "slots leaked";
  for (runtime::NfReport const& nf : report.nfs) {
    EXPECT_EQ(nf.queue.drops, 0U) << nf.name;
    EXPECT_TRUE(nf.device.error.empty()) << nf.device.error;
  }
  EXPECT_GT(lost_at_rx(report), 0U) << "it was no overload";
  constexpr std::int64_t kNoGrowth = 32 << 20;
  EXPECT_LT(outcome.growth_bytes, kNoGrowth);
  RecordProperty("received", std::to_string(report.rx.received));
  RecordProperty("lost_at_rx", std::to_string(lost_at_rx(report)));
}

INSTANTIATE_TEST_SUITE_P(Graphs, Overload, ::testing::Range(1U, kGraphs + 1));

}  // namespace
}  // namespace catena::testing
