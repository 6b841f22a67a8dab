// SPDX-License-Identifier: Apache-2.0
#include "group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "ipfix_testing.hpp"
#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using monitor::testing::Bytes;
using monitor::testing::Collector;
using monitor::testing::MemoryOutput;
using monitor::testing::Message;
using ::testing::SizeIs;

/// Takes nothing.
class LosingOutput final : public Output {
 public:
  void write(std::span<const std::uint8_t> /*bytes*/, std::uint64_t records) override { lose(records); }
  Status finish() override { return absl::DataLossError("full"); }
};

EndedFlow ended(std::uint32_t src, std::uint64_t clock_ns) {
  return {{testing::key(src, 9, 1, 2, 6), 1, 100, clock_ns, clock_ns, 0, 0, EndReason::kIdle}, clock_ns};
}

std::vector<NamedExporter> exporters_to(MemoryOutput::Written& ipfix, MemoryOutput::Written& json) {
  std::vector<NamedExporter> exporters;
  exporters.push_back({"ipfix", ipfix_exporter(std::make_unique<MemoryOutput>(ipfix), {.template_refresh = 7})});
  exporters.push_back({"json", json_exporter(std::make_unique<MemoryOutput>(json))});
  return exporters;
}

/// The source addresses of all records; expects sequence numbers and export times of one observation domain.
std::vector<std::uint64_t> expect_one_sequence(std::vector<Bytes> const& messages) {
  Collector collector;
  std::vector<std::uint64_t> sources;
  std::uint32_t last_time = 0;
  for (Bytes const& bytes : messages) {
    const Message message = collector.decode(bytes);
    EXPECT_EQ(message.sequence, sources.size());
    EXPECT_GE(message.export_time, last_time);
    last_time = message.export_time;
    for (auto const& record : message.records) {
      sources.push_back(record.at(8));
    }
  }
  return sources;
}

std::size_t lines_of(std::vector<Bytes> const& pieces) {
  std::size_t lines = 0;
  for (Bytes const& piece : pieces) {
    lines += static_cast<std::size_t>(std::count(piece.begin(), piece.end(), '\n'));
  }
  return lines;
}

TEST(Group, monitors_in_several_threads_write_whole_records_in_one_sequence) {
  constexpr std::uint32_t kMonitors = 2;
  constexpr std::uint32_t kRecords = 20'000;
  MemoryOutput::Written ipfix;
  MemoryOutput::Written json;
  Group group(exporters_to(ipfix, json), kMonitors);
  std::vector<std::thread> threads;
  for (std::uint32_t monitor = 0; monitor < kMonitors; ++monitor) {
    threads.emplace_back([&group, monitor] {
      for (std::uint32_t i = 0; i < kRecords; i += 2) {
        const std::uint64_t clock_ns = (1000 + monitor + i / 100) * kTestSecond;
        const std::vector flows{ended(monitor * kRecords + i, clock_ns), ended(monitor * kRecords + i + 1, clock_ns)};
        EXPECT_EQ(group.add(flows), 0U);
        EXPECT_EQ(group.flush_each_second(clock_ns), 0U);
        group.set_stamp(monitor, clock_ns);
        EXPECT_GE(group.latest_stamp_ns(), clock_ns);
      }
      EXPECT_TRUE(group.finish(2000 * kTestSecond).status.ok());
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<std::uint64_t> sources = expect_one_sequence(ipfix.messages);
  ASSERT_THAT(sources, SizeIs(kMonitors * kRecords));
  std::sort(sources.begin(), sources.end());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    ASSERT_EQ(sources[i], i);
  }
  EXPECT_EQ(lines_of(json.messages), sources.size());
  EXPECT_LT(ipfix.messages.size(), sources.size() / 20) << "a second is over once, not once for each monitor";
}

TEST(Group, the_last_monitor_ends_the_outputs) {
  MemoryOutput::Written ipfix;
  MemoryOutput::Written json;
  Group group(exporters_to(ipfix, json), 3);
  for (std::uint32_t monitor = 0; monitor < 3; ++monitor) {
    EXPECT_FALSE(ipfix.finished);
    EXPECT_FALSE(json.finished);
    group.add(std::vector{ended(monitor, kTestSecond)});
    EXPECT_TRUE(group.finish(kTestSecond).status.ok());
  }
  EXPECT_TRUE(ipfix.finished);
  EXPECT_TRUE(json.finished);
  EXPECT_THAT(expect_one_sequence(ipfix.messages), ::testing::ElementsAre(0, 1, 2));
}

TEST(Group, lost_records_are_counted_once_and_the_last_monitor_reports_the_error) {
  std::vector<NamedExporter> exporters;
  exporters.push_back({"ipfix", ipfix_exporter(std::make_unique<LosingOutput>(), {})});
  Group group(std::move(exporters), 2);
  std::uint64_t lost[2] = {};
  for (std::uint32_t i = 0; i < 1000; ++i) {
    lost[i % 2] += group.add(std::vector{ended(i, kTestSecond)});
  }
  EXPECT_GT(lost[0], 0U);
  const Group::Finish first = group.finish(kTestSecond);
  EXPECT_EQ(first.lost, 0U);
  EXPECT_TRUE(first.status.ok());
  const Group::Finish last = group.finish(kTestSecond);
  EXPECT_GT(last.lost, 0U);
  EXPECT_EQ(last.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(lost[0] + lost[1] + first.lost + last.lost, 1000U);
}

TEST(Group, export_times_do_not_go_back_where_one_monitor_is_behind) {
  MemoryOutput::Written ipfix;
  MemoryOutput::Written json;
  Group group(exporters_to(ipfix, json), 2);
  for (const std::uint64_t second : {50U, 40U, 51U, 49U, 60U, 30U}) {
    group.add(std::vector{ended(1, second * kTestSecond)});
    group.flush_each_second(second * kTestSecond);
  }
  group.finish(30 * kTestSecond);
  group.finish(20 * kTestSecond);
  EXPECT_THAT(expect_one_sequence(ipfix.messages), SizeIs(6));
}

}  // namespace
}  // namespace catena::monitor
