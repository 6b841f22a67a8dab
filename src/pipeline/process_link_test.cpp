// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_link.hpp"

#include "pipeline/testing/process_bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using nf_process::PacketEntry;

class ProcessLinkTest : public ::testing::Test {
 protected:
  testing::ProcessBench bench_;
  ProcessLink link_{bench_.connection(), bench_.notifier(), false};
};

TEST_F(ProcessLinkTest, the_process_gets_the_packets_and_their_metadata) {
  memory::Unit& unit = bench_.unit_of(3);
  packet::MetaColumns const& meta = bench_.pool().meta();
  meta.verdict[unit.slots()[1]] = static_cast<std::uint8_t>(packet::Verdict::kAlert);
  meta.verdict[unit.slots()[2]] = static_cast<std::uint8_t>(packet::Verdict::kDrop);
  meta.ingress[unit.slots()[0]] = 5;
  EXPECT_TRUE(bench_.receive().empty());
  const std::uint32_t first_slot = link_.write(unit, bench_.pool());
  link_.wake();
  const std::vector<PacketEntry> entries = bench_.receive();
  ASSERT_EQ(entries.size(), 3U);
  const std::vector<packet::Verdict> verdicts{packet::Verdict::kPass, packet::Verdict::kPass, packet::Verdict::kDrop};
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entries[i].slot, first_slot + i);
    EXPECT_EQ(entries[i].index, i);
    EXPECT_EQ(entries[i].arrival_ns, 7U);
    EXPECT_EQ(entries[i].alerts, 0U);
    EXPECT_EQ(static_cast<packet::Verdict>(entries[i].verdict), verdicts[i]) << "an alert is of an NF before";
    const std::uint8_t* const frame = bench_.pool().slot(unit.slots()[i]) + entries[i].offset;
    auto const* const copy = reinterpret_cast<std::uint8_t const*>(link_.connection().slot(entries[i].slot));
    EXPECT_EQ(std::equal(frame, frame + entries[i].length, copy + entries[i].offset), i != 2) << i;
  }
  EXPECT_EQ(entries[0].ingress, 5U);
}

TEST_F(ProcessLinkTest, units_have_slots_of_their_own_until_they_are_released) {
  std::set<std::uint32_t> blocks;
  memory::Unit& unit = bench_.unit_of(1);
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < link_.connection().channel.shape().depth; ++i) {
    ASSERT_TRUE(link_.has_room());
    last = link_.write(unit, bench_.pool());
    EXPECT_EQ(last % testing::ProcessBench::kUnitPackets, 0U);
    blocks.insert(last);
    bench_.reply(bench_.receive());
  }
  EXPECT_FALSE(link_.has_room());
  EXPECT_EQ(blocks.size(), link_.connection().channel.shape().depth);
  EXPECT_LE(last + testing::ProcessBench::kUnitPackets, link_.connection().channel.shape().slots());
  ASSERT_TRUE(link_.poll().value().has_value());
  link_.release(*blocks.begin());
  EXPECT_TRUE(link_.has_room());
  EXPECT_EQ(link_.write(unit, bench_.pool()), *blocks.begin()) << "the last one released is the first one used";
}

TEST_F(ProcessLinkTest, replies_come_in_order_and_once) {
  EXPECT_FALSE(link_.poll().value().has_value());
  memory::Unit& one = bench_.unit_of(1);
  memory::Unit& two = bench_.unit_of(2);
  const std::uint32_t first = link_.write(one, bench_.pool());
  const std::uint32_t second = link_.write(two, bench_.pool());
  bench_.reply(bench_.receive());
  bench_.reply(bench_.receive());
  EXPECT_EQ(link_.poll().value()->size(), 1U);
  EXPECT_EQ(link_.poll().value()->size(), 1U) << "it was not released";
  link_.release(first);
  EXPECT_EQ(link_.poll().value()->front().slot, second);
  link_.release(second);
  EXPECT_FALSE(link_.poll().value().has_value());
}

TEST_F(ProcessLinkTest, impossible_numbers_are_an_error) {
  bench_.replies().push(testing::ProcessBench::kUnitPackets + 1);
  EXPECT_EQ(link_.poll().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ProcessLinkTest, it_is_closed_once) {
  EXPECT_FALSE(link_.is_closed());
  EXPECT_EQ(bench_.units().closed(), 0U);
  link_.close(nf_process::kTransfersState);
  link_.close(nf_process::kEnds);
  EXPECT_TRUE(link_.is_closed());
  EXPECT_EQ(bench_.units().closed(), nf_process::kTransfersState);
}

TEST_F(ProcessLinkTest, the_end_of_the_process_is_seen_and_the_link_can_be_moved) {
  EXPECT_FALSE(link_.is_gone());
  ProcessLink other = std::move(link_);
  bench_.connection()->is_gone = true;
  EXPECT_TRUE(other.is_gone());
  EXPECT_TRUE(other.has_room());
  EXPECT_EQ(other.records(), nullptr);
}

TEST(ProcessLink, lines_about_packets_come_beside_the_units) {
  testing::ProcessBench bench(true);
  ProcessLink link(bench.connection(), bench.notifier(), true);
  ASSERT_NE(link.records(), nullptr);
  EXPECT_EQ(link.records()->gather(0), absl::OkStatus());
}

}  // namespace
}  // namespace catena::runtime
