// SPDX-License-Identifier: Apache-2.0
#include "chain/chain.hpp"
#include "nf/testing/scratch_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::chain {
namespace {

using nf::testing::ScratchFolder;
using ::testing::HasSubstr;

ChainConfig config_of(std::string const& rx, std::string const& tx) {
  Result<ChainConfig> config =
      parse_chain("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: " + rx + "\n  tx: " + tx +
                      "\n  nfs: []\n",
                  "chain.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

/// A port that goes on counting: the packets of a moment ago are never all.
class RunningPort final : public dataplane::Source {
 public:
  Status receive(dataplane::PacketPool& pool, dataplane::Unit& unit, std::uint64_t& next_index,
                 bool& starved) override {
    starved = !pool.acquire_slots(unit, 1);
    if (!starved) {
      pool.set_arrived(unit.slots[0], 60, next_index++, 0);
      unit.count = 1;
      ++delivered_;
    }
    return absl::OkStatus();
  }
  bool finished() const override { return delivered_ == 1000; }
  dataplane::SourceCounts counts() const override {
    lost_ += 7;
    return {delivered_ + lost_, {{"backlog_full", lost_}}};
  }
  std::string describe() const override { return "running"; }

 private:
  std::uint64_t delivered_ = 0;
  mutable std::uint64_t lost_ = 0;
};

TEST(Chain, counters_of_a_port_that_runs_on_are_read_at_one_moment) {
  RunOptions options;
  options.make_source = [] { return std::make_unique<RunningPort>(); };
  auto chain = Chain::create(config_of("{generator: {}}", "null"), options, nf::Registry());
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_TRUE((*chain)->run().ok());
  const Report report = (*chain)->report();
  EXPECT_TRUE(report.accounted()) << report.seen << " seen, " << report.sent << " sent, " << report.dropped()
                                  << " dropped";
  EXPECT_EQ(report.sent, 1000U);
  EXPECT_GT(report.dropped(), 0U);
}

/// Fails after some packets.
class FailingSink final : public dataplane::Sink {
 public:
  explicit FailingSink(std::unique_ptr<dataplane::Sink> inner) : inner_(std::move(inner)) {}
  Status send(dataplane::PacketPool& pool, dataplane::Unit& unit) override {
    CATENA_RETURN_IF_ERROR(inner_->send(pool, unit));
    return ++units_ == 2 ? absl::DataLossError("the port is gone") : absl::OkStatus();
  }
  Status finish() override { return inner_->finish(); }
  dataplane::SinkCounts counts() const override { return inner_->counts(); }
  std::string describe() const override { return "failing"; }

 private:
  std::unique_ptr<dataplane::Sink> inner_;
  int units_ = 0;
};

TEST(Chain, outputs_have_what_came_to_them_when_a_failed_run_returns) {
  const ScratchFolder folder;
  RunOptions options;
  options.make_sink = [&]() -> Result<std::unique_ptr<dataplane::Sink>> {
    CATENA_ASSIGN_OR_RETURN(auto file, dataplane::open_pcap_sink(folder.path("out.pcap")));
    return std::make_unique<FailingSink>(std::move(file));
  };
  auto chain = Chain::create(config_of("{generator: {packet: 60, count: 2560}}", "null"), options, nf::Registry());
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(std::string((*chain)->run().message()), HasSubstr("the port is gone"));
  // a process whose device hangs leaves without a destructor
  EXPECT_EQ(folder.read("out.pcap").size(), 24U + 2 * 256 * (16 + 60));
}

TEST(Chain, one_that_cannot_be_made_has_changed_no_file) {
  ScratchFolder folder;
  for (const char* name : {"out.pcap", "record", "trace"}) {
    folder.write(name, "of yesterday");
  }
  folder.write("damaged.pcap", "no capture");
  RunOptions options;
  options.record_path = folder.path("record");
  options.trace_path = folder.path("trace");
  const std::string tx = "{pcap: " + folder.path("out.pcap") + "}";
  EXPECT_FALSE(
      Chain::create(config_of("{pcap: " + folder.path("damaged.pcap") + "}", tx), options, nf::Registry()).ok());
  options.make_source = [] { return absl::UnavailableError("no such source"); };
  EXPECT_FALSE(Chain::create(config_of("{generator: {}}", tx), options, nf::Registry()).ok());
  options.make_source = nullptr;
  options.trace_path = folder.path("no/such/folder");
  EXPECT_FALSE(Chain::create(config_of("{generator: {}}", tx), options, nf::Registry()).ok());
  for (const char* name : {"out.pcap", "record", "trace"}) {
    EXPECT_EQ(folder.read(name), "of yesterday") << name;
  }
}

}  // namespace
}  // namespace catena::chain
