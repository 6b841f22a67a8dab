// SPDX-License-Identifier: Apache-2.0
#include "pipeline/unit_replies.hpp"

#include "pipeline/test_support.hpp"
#include "pipeline/testing/process_bench.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace catena::runtime {
namespace {

using nf_process::PacketEntry;
using packet::Verdict;

std::uint64_t drops_of(nf::Instance const& instance, std::string_view reason) {
  for (auto const& [name, count] : instance.drops()) {
    if (name == reason) {
      return count;
    }
  }
  return 0;
}

/// Two NFs in a process, and a unit of three packets sent to it.
class UnitRepliesTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kPosition = 4;

  explicit UnitRepliesTest(bool has_lines = false)
      : bench_(has_lines),
        lines_(bench_.pool().arena()),
        link_(bench_.connection(), bench_.notifier(), has_lines),
        replies_(nfs_, kPosition, bench_.pool(), has_lines ? &lines_ : nullptr) {
    sent_.first_slot = link_.write(unit_, bench_.pool());
    reply_ = bench_.receive();
  }
  Status apply() { return replies_.apply(reply_, sent_, 1, link_); }
  packet::Packet packet(std::uint32_t i) const { return batch_[i]; }
  /// Of the frame in the memory of the process.
  std::byte& byte(std::uint32_t i, std::size_t at) {
    return link_.connection().slot(reply_[i].slot)[reply_[i].offset + at];
  }

  testing::ProcessBench bench_;
  nf::Instance first_{"first", testing::kIdle, std::make_shared<testing::IdleNf>(), nf::OnUnsupported::kPass, false};
  nf::Instance second_{"second", testing::kIdle, std::make_shared<testing::IdleNf>(), nf::OnUnsupported::kPass, false};
  ProcessNfs nfs_{{&first_, &second_}};
  RecordLog lines_;
  ProcessLink link_;
  UnitReplies replies_;
  memory::Unit& unit_ = bench_.unit_of(3);
  packet::Batch batch_ = bench_.pool().batch(unit_);
  SentUnit sent_{&unit_, 0, {}};
  std::vector<PacketEntry> reply_;
};

TEST_F(UnitRepliesTest, packets_have_what_the_nfs_made_of_them) {
  byte(1, 60) = std::byte{'y'};
  reply_[1].port = 3;
  reply_[1].mtu = 1400;
  reply_[2].length = static_cast<std::uint16_t>(reply_[2].length - 10);
  ASSERT_EQ(apply(), absl::OkStatus());
  EXPECT_EQ(packet(0).frame()[60], 'x');
  EXPECT_EQ(packet(1).frame()[60], 'y');
  EXPECT_EQ(packet(1).port(), 3U);
  EXPECT_EQ(batch_.meta().mtu[batch_.slots()[1]], 1400U);
  EXPECT_EQ(packet(2).length(), reply_[2].length);
  EXPECT_EQ(first_.counters().in, 3U);
  EXPECT_EQ(second_.counters().in, 3U);
  EXPECT_FALSE(replies_.has_lines());
}

TEST_F(UnitRepliesTest, bytes_that_no_nf_writes_stay) {
  bench_.connection()->field_mask = nf_process::FieldMask({packet::kAllFields, packet::FieldSet{0}});
  byte(0, 60) = std::byte{'y'};
  reply_[0].port = 3;
  ASSERT_EQ(apply(), absl::OkStatus());
  EXPECT_EQ(packet(0).frame()[60], 'x');
  EXPECT_EQ(packet(0).port(), 0U);
  ++reply_[0].length;
  EXPECT_EQ(apply().code(), absl::StatusCode::kDataLoss);
}

TEST_F(UnitRepliesTest, decisions_count_as_those_of_the_nfs_that_made_them) {
  reply_[0].verdict = static_cast<std::uint8_t>(Verdict::kDrop);
  reply_[0].nf = 0;
  reply_[0].reason = 0;
  reply_[0].alerts = 1;
  reply_[1].verdict = static_cast<std::uint8_t>(Verdict::kReply);
  reply_[1].nf = 1;
  reply_[2].alerts = 2;
  ASSERT_EQ(apply(), absl::OkStatus());
  EXPECT_EQ(packet(0).verdict(), Verdict::kDrop);
  EXPECT_EQ(packet(1).verdict(), Verdict::kReply);
  EXPECT_EQ(packet(2).verdict(), Verdict::kAlert);
  EXPECT_EQ(first_.counters().in, 3U);
  EXPECT_EQ(second_.counters().in, 2U);
  EXPECT_EQ(first_.outcome().alerts(), 1U);
  EXPECT_EQ(second_.outcome().alerts(), 1U);
  EXPECT_EQ(first_.outcome().replies(), 0U);
  EXPECT_EQ(second_.outcome().replies(), 1U);
  EXPECT_EQ(drops_of(first_, "unsupported"), 1U) << "reason 0 of an NF without reasons of its own";
}

TEST_F(UnitRepliesTest, nothing_of_a_wrong_reply_counts) {
  const std::vector<std::function<void(std::vector<PacketEntry>&)>> lies{
      [](auto& reply) { reply.pop_back(); },     [](auto& reply) { ++reply[2].slot; },
      [](auto& reply) { reply[2].verdict = 9; }, [](auto& reply) { reply[2].offset = packet::kSlotBytes; },
      [](auto& reply) { reply[2].alerts = 4; },  [](auto& reply) { reply[2].output = nf::kOwnOutputs; },
  };
  const std::vector<PacketEntry> right = reply_;
  for (std::size_t lie = 0; lie < lies.size(); ++lie) {
    reply_ = right;
    byte(0, 60) = std::byte{'y'};
    reply_[0].port = 3;
    lies[lie](reply_);
    EXPECT_EQ(apply().code(), absl::StatusCode::kDataLoss) << lie;
  }
  EXPECT_EQ(packet(0).frame()[60], 'x');
  EXPECT_EQ(packet(0).port(), 0U);
  EXPECT_EQ(first_.counters().in, 0U);
}

TEST_F(UnitRepliesTest, packets_dropped_before_stay_as_they_are) {
  batch_[1].set_verdict(Verdict::kDrop);
  reply_[1].verdict = static_cast<std::uint8_t>(Verdict::kPass);
  byte(1, 60) = std::byte{'y'};
  ASSERT_EQ(apply(), absl::OkStatus());
  EXPECT_EQ(packet(1).verdict(), Verdict::kDrop);
  EXPECT_EQ(packet(1).frame()[60], 'x');
  EXPECT_EQ(first_.counters().in, 2U);
}

TEST_F(UnitRepliesTest, without_a_reply_the_first_nf_drops_the_live_packets) {
  batch_[1].set_verdict(Verdict::kDrop);
  replies_.drop(unit_);
  EXPECT_EQ(packet(0).verdict(), Verdict::kDrop);
  EXPECT_EQ(drops_of(first_, "process_failed"), 2U);
  EXPECT_EQ(drops_of(second_, "process_failed"), 0U);
}

class UnitRepliesWithLines : public UnitRepliesTest {
 protected:
  UnitRepliesWithLines() : UnitRepliesTest(true) {}
  void write(nf_process::Line const& line) { EXPECT_TRUE(writer_.write(line).value()); }
  nf_process::LineWriter writer_ = bench_.theirs().line_writer();
};

TEST_F(UnitRepliesWithLines, lines_are_those_of_nfs_of_the_chain) {
  EXPECT_TRUE(replies_.has_lines());
  write(nf_process::RecordOf{1, {2, Verdict::kPass, -1, "\"a\":1"}});
  write(nf_process::AlertOf{0, {1, "{\"b\":2}"}});
  write(nf_process::EndOfUnit{});
  ASSERT_EQ(apply(), absl::OkStatus());
  UnitRecords const& lines = lines_.of(unit_);
  ASSERT_EQ(lines.records.size(), 1U);
  EXPECT_EQ(lines.records[0].nf, kPosition + 1);
  EXPECT_EQ(lines.records[0].line.fields, "\"a\":1");
  ASSERT_EQ(lines.alerts.size(), 1U);
  EXPECT_EQ(lines.alerts[0].nf, kPosition);
}

TEST_F(UnitRepliesWithLines, a_line_about_a_packet_that_the_nf_did_not_have_is_wrong) {
  reply_[2].verdict = static_cast<std::uint8_t>(Verdict::kDrop);
  reply_[2].nf = 0;
  write(nf_process::RecordOf{1, {2, Verdict::kPass, -1, "\"a\":1"}});
  write(nf_process::EndOfUnit{});
  const Status status = apply();
  EXPECT_EQ(status, absl::DataLossError("a record about a packet it does not have"));
  EXPECT_EQ(first_.counters().in, 0U);
}

TEST_F(UnitRepliesWithLines, a_reply_before_all_of_its_lines_is_wrong) {
  EXPECT_EQ(apply(), absl::DataLossError("a unit without the end of its records"));
}

}  // namespace
}  // namespace catena::runtime
