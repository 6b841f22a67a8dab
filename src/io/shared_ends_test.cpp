// SPDX-License-Identifier: Apache-2.0
#include "io/shared_ends.hpp"

#include "io/test_support.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace catena::io {
namespace {

using testing::make_frames;
using testing::make_pool;
using testing::read_with_libpcap;
using testing::same_frames;

/// One packet at a time, from both.
void pump(SharedSource& source, SharedSink& sink, memory::PacketPool& pool, std::uint64_t& next_index, int units) {
  for (int i = 0; i < units; ++i) {
    memory::Unit* const unit = pool.acquire_unit();
    bool starved = false;
    ASSERT_EQ(source.receive(pool, *unit, next_index, starved), absl::OkStatus());
    ASSERT_EQ(sink.send(pool, *unit), absl::OkStatus());
    pool.release_unit(unit);
  }
}

TEST(SharedEnds, the_next_one_continues_where_the_one_before_ended_and_counts_from_zero) {
  const ScratchFolder folder;
  const auto frames = make_frames(700, 60, 1500);
  testing::write_with_libpcap(folder.path("in.pcap"), frames);
  const auto pool = make_pool();
  SharedSource first(open_pcap_source(folder.path("in.pcap")).value());
  SharedSink to_first(open_pcap_sink(folder.path("out.pcap")).value());
  std::uint64_t next_index = 0;
  pump(first, to_first, *pool, next_index, 1);
  const std::uint64_t of_first = next_index;
  ASSERT_GT(of_first, 0U);
  EXPECT_EQ(first.counts().seen, of_first);

  const auto second = SharedSource::after(first);
  const auto to_second = SharedSink::after(to_first);
  EXPECT_EQ(second->counts().seen, 0U) << "nothing is its own before it takes over";
  EXPECT_TRUE(first.transfer());
  to_first.transfer();
  EXPECT_FALSE(first.has_ended());
  first.stop();
  EXPECT_TRUE(first.has_ended());
  EXPECT_EQ(to_first.finish(), absl::OkStatus());
  second->take_over(first);
  to_second->take_over(to_first);
  while (!second->finished()) {
    pump(*second, *to_second, *pool, next_index, 1);
  }
  EXPECT_EQ(first.counts().seen, of_first) << "what comes later is not its own";
  EXPECT_EQ(to_first.counts().sent, of_first);
  EXPECT_EQ(second->counts().seen, frames.size() - of_first);
  EXPECT_EQ(to_second->counts().sent, frames.size() - of_first);
  EXPECT_EQ(to_second->finish(), absl::OkStatus());
  EXPECT_TRUE(same_frames(read_with_libpcap(folder.path("out.pcap")).frames, frames));
}

TEST(SharedEnds, drops_are_divided_as_packets_are) {
  struct Fixed final : Source {
    Status receive(memory::PacketPool&, memory::Unit&, std::uint64_t&, bool&) override { return absl::OkStatus(); }
    bool finished() const override { return false; }
    SourceCounts counts() const override { return now; }
    std::string describe() const override { return "fixed"; }
    void stop() override { ++stops; }
    SourceCounts now;
    int stops = 0;
  };
  const auto source = std::make_shared<Fixed>();
  source->now = {10, {{"too_long", 3}}};
  SharedSource first(source);
  const auto second = SharedSource::after(first);
  EXPECT_TRUE(first.transfer());
  first.stop();
  first.stop();
  source->now = {25, {{"too_long", 4}, {"backlog_full", 2}}};
  second->take_over(first);
  EXPECT_EQ(first.counts().seen, 10U);
  EXPECT_EQ(first.counts().drops.front().count, 3U);
  EXPECT_EQ(second->counts().seen, 15U);
  EXPECT_EQ(testing::count_of(second->counts().drops, "too_long"), 1U);
  EXPECT_EQ(testing::count_of(second->counts().drops, "backlog_full"), 2U);
  EXPECT_EQ(source->stops, 0) << "the next one still wants it";
  second->stop();
  EXPECT_EQ(source->stops, 1);
  EXPECT_FALSE(second->transfer()) << "it is too late";
}

}  // namespace
}  // namespace catena::io
