// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ends.hpp"

#include "pipeline/test_support.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace catena::runtime {
namespace {

constexpr Ends::PoolSize kSize{.slots = 1024, .unit_packets = 64, .queues = 1};
constexpr std::uint32_t kFrameBytes = 60;

/// Notes its start and its end.
class NotingSource final : public io::Source {
 public:
  explicit NotingSource(std::vector<std::string>& notes) : notes_(&notes) {}
  void start() override { notes_->push_back("start"); }
  void stop() override { notes_->push_back("stop"); }
  Status receive(memory::PacketPool& /*pool*/, memory::Unit& /*unit*/, std::uint64_t& /*next_index*/,
                 bool& /*starved*/) override {
    return absl::OkStatus();
  }
  bool finished() const override { return false; }
  io::SourceCounts counts() const override { return {7, {}}; }
  std::string describe() const override { return "noting"; }

 private:
  std::vector<std::string>* notes_;
};

class EndsTest : public ::testing::Test {
 protected:
  EndsTest() {
    options_.make_source = [this] { return std::make_unique<NotingSource>(notes_); };
  }
  Status open(Ends& ends, Ends const* before = nullptr) {
    Status status = ends.make_pools(1, kSize, before);
    status.Update(ends.open_ports(config_, options_, ShardMap(1, 0), before));
    status.Update(ends.open_outputs(config_, options_, {}, {}, before));
    return status;
  }
  /// One packet.
  static void send(Ends& ends) {
    memory::PacketPool& pool = ends.pool_of(0);
    memory::Unit* const unit = pool.acquire_unit();
    ASSERT_TRUE(unit != nullptr && pool.acquire_slots(*unit, 1));
    std::fill_n(pool.slot(unit->slots()[0]) + packet::kSlotHeadroom, kFrameBytes, std::uint8_t{1});
    pool.set_arrived(unit->slots()[0], kFrameBytes, 0, 0);
    unit->count = 1;
    EXPECT_EQ(ends.sinks()[0]->send(pool, *unit), absl::OkStatus());
    pool.release_unit(unit);
  }

  ScratchFolder folder_;
  std::string out_ = folder_.path("out.pcap");
  chain::ChainConfig config_ = testing::config_of("{generator: {}}", concat("{pcap: ", out_, "}"));
  RunOptions options_;
  std::vector<std::string> notes_;
};

TEST_F(EndsTest, are_passed_on_open_and_count_anew) {
  Ends first;
  ASSERT_EQ(open(first), absl::OkStatus());
  EXPECT_TRUE(notes_.empty());
  first.start();
  send(first);
  Ends next;
  ASSERT_EQ(open(next, &first), absl::OkStatus());
  EXPECT_TRUE(first.pass_on_sources());
  first.pass_on_sinks();
  first.stop();
  EXPECT_EQ(first.finish({}, true), absl::OkStatus());
  EXPECT_EQ(notes_, std::vector<std::string>{"start"}) << "the source goes on";
  next.sources()[0]->take_over(*first.sources()[0]);
  next.sinks()[0]->take_over(*first.sinks()[0]);
  EXPECT_EQ(next.sources()[0]->counts().seen, 0U);
  EXPECT_EQ(next.sinks()[0]->counts().sent, 0U);
  send(next);
  EXPECT_EQ(first.sinks()[0]->counts().sent, 1U);
  EXPECT_EQ(next.sinks()[0]->counts().sent, 1U);
  next.stop();
  EXPECT_EQ(next.finish({}, false), absl::OkStatus());
  EXPECT_EQ(notes_, (std::vector<std::string>{"start", "stop"}));
  constexpr std::uint64_t kFileHeader = 24;
  constexpr std::uint64_t kPacketHeader = 16;
  EXPECT_EQ(std::filesystem::file_size(out_), kFileHeader + 2 * (kPacketHeader + kFrameBytes)) << "one file for both";
}

TEST_F(EndsTest, of_two_chains_have_the_same_slots) {
  Ends first;
  ASSERT_EQ(open(first), absl::OkStatus());
  Ends next;
  ASSERT_EQ(open(next, &first), absl::OkStatus());
  EXPECT_EQ(next.slots(), kSize.slots);
  memory::Unit* const unit = next.pool_of(0).acquire_unit();
  ASSERT_TRUE(next.pool_of(0).acquire_slots(*unit, 10));
  EXPECT_EQ(next.used_slots(), 10U);
  EXPECT_EQ(first.used_slots(), 10U);
}

TEST_F(EndsTest, that_have_stopped_are_not_passed_on) {
  Ends first;
  ASSERT_EQ(open(first), absl::OkStatus());
  first.start();
  first.stop();
  EXPECT_FALSE(first.pass_on_sources());
  EXPECT_EQ(notes_, (std::vector<std::string>{"start", "stop"}));
}

TEST_F(EndsTest, of_shards_are_one_for_each) {
  config_ = testing::config_of("{generator: {count: 10}}", "null");
  options_.make_source = nullptr;
  Ends ends;
  ASSERT_EQ(ends.make_pools(2, kSize), absl::OkStatus());
  ASSERT_EQ(ends.open_ports(config_, options_, ShardMap(2, 7)), absl::OkStatus());
  ASSERT_EQ(ends.open_outputs(config_, options_, {}, {}), absl::OkStatus());
  EXPECT_TRUE(ends.are_divided());
  EXPECT_EQ(ends.slots(), 2 * kSize.slots);
  EXPECT_EQ(ends.sources().size(), 2U);
  EXPECT_EQ(ends.sinks().size(), 2U);
  EXPECT_EQ(&ends.pool_of(3), ends.pools()[1].get());
  EXPECT_NE(&ends.reserve_of(0), &ends.reserve_of(1));
  Ends next;
  EXPECT_EQ(next.make_pools(1, kSize, &ends).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace catena::runtime
