// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.hpp"
#include "runtime/test_support.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace catena::runtime {
namespace {

using testing::config_of;

/// A port that goes on counting: the packets of a moment ago are never all.
class RunningPort final : public io::Source {
 public:
  explicit RunningPort(std::uint32_t bytes = 60) : bytes_(bytes) {}
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    starved = !pool.acquire_slots(unit, 1);
    if (!starved) {
      pool.set_arrived(unit.slots()[0], bytes_, next_index++, 0);
      unit.count = 1;
      ++delivered_;
    }
    return absl::OkStatus();
  }
  bool finished() const override { return delivered_ == 1000; }
  io::SourceCounts counts() const override {
    lost_ += 7;
    return {delivered_ + lost_, {{"backlog_full", lost_}}};
  }
  std::string describe() const override { return "running"; }

 private:
  std::uint32_t bytes_;
  std::uint64_t delivered_ = 0;
  mutable std::uint64_t lost_ = 0;
};

TEST(Session, counters_of_a_port_that_runs_on_are_read_at_one_moment) {
  chain::RunOptions options;
  options.make_source = [] { return std::make_unique<RunningPort>(); };
  auto chain = Session::create(config_of("{generator: {}}", "null"), options, nf::Registry());
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_TRUE((*chain)->run().ok());
  const Report report = (*chain)->report();
  EXPECT_TRUE(report.accounted()) << report.seen << " seen, " << report.sent << " sent, " << report.dropped()
                                  << " dropped";
  EXPECT_EQ(report.sent, 1000U);
  EXPECT_GT(report.dropped(), 0U);
}

/// Says what it is told of the run.
class ToldPort final : public io::Source {
 public:
  ToldPort(std::vector<std::string>& told, bool fails) : told_(&told), fails_(fails) {}
  void start() override { told_->push_back("start"); }
  void stop() override { told_->push_back("stop"); }
  Status receive(memory::PacketPool& /*pool*/, memory::Unit& /*unit*/, std::uint64_t& /*next_index*/,
                 bool& /*starved*/) override {
    told_->push_back("receive");
    return fails_ ? absl::UnavailableError("gone") : absl::OkStatus();
  }
  bool finished() const override { return told_->back() == "receive"; }
  io::SourceCounts counts() const override { return {}; }
  std::string describe() const override { return "told"; }

 private:
  std::vector<std::string>* told_;
  bool fails_;
};

TEST(Session, a_source_is_told_when_the_run_begins_and_ends) {
  for (const bool fails : {false, true}) {
    std::vector<std::string> told;
    chain::RunOptions options;
    options.make_source = [&] { return std::make_unique<ToldPort>(told, fails); };
    auto chain = Session::create(config_of("{generator: {}}", "null"), options, nf::Registry());
    ASSERT_TRUE(chain.ok()) << chain.status();
    EXPECT_TRUE(told.empty()) << "packets until here are others'";
    EXPECT_EQ((*chain)->run().ok(), !fails);
    ASSERT_GE(told.size(), 3U);
    EXPECT_EQ(told[0], "start");
    EXPECT_EQ(told[1], "receive");
    EXPECT_EQ(told[2], "stop");
  }
}

TEST(Session, progress_counts_as_sent_what_the_port_took) {
  chain::RunOptions options;
  options.make_source = [] { return std::make_unique<RunningPort>(16); };  // below what a port carries
  auto chain = Session::create(config_of("{generator: {}}", "{dpdk: net_null_progress}"), options, nf::Registry());
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_TRUE((*chain)->run().ok());
  const RunProgress progress = (*chain)->progress();
  EXPECT_EQ(progress.received, 1000U);
  EXPECT_EQ(progress.sent, 0U);
  EXPECT_EQ(progress.dropped, 1000U);
}

}  // namespace
}  // namespace catena::runtime
