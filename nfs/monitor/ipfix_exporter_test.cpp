// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <vector>

#include "exporter.hpp"
#include "ipfix_testing.hpp"
#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

using monitor::testing::Bytes;
using monitor::testing::Collector;
using monitor::testing::MemoryOutput;
using monitor::testing::Message;

FlowRecord tcp_record(std::uint32_t src) {
  return {testing::key(src, 0xC6336402, 40'000, 443, 6),
          0x1'0000'0001,
          0x2'0000'0002,
          1'700'000'000'123'999'999,
          1'700'000'001'456'000'000,
          0x1C2,
          0xB8,
          EndReason::kActive};
}
FlowRecord icmp_record() {
  return {testing::key(7, 8, 0, 3 * 256 + 13, 1), 2, 112, 5'000'000, 6'000'000, 0, 0, EndReason::kIdle};
}

class Ipfix : public ::testing::Test {
 protected:
  std::unique_ptr<Exporter> exporter(IpfixOptions options = {}) {
    return ipfix_exporter(std::make_unique<MemoryOutput>(written_), options);
  }
  std::vector<Message> decoded() {
    Collector collector;
    std::vector<Message> result;
    for (Bytes const& bytes : written_.messages) {
      result.push_back(collector.decode(bytes));
      EXPECT_EQ(result.back().version, 10);
      EXPECT_EQ(result.back().length, bytes.size());
    }
    return result;
  }
  MemoryOutput::Written written_;
};

// The bytes of RFC 7011 sections 3.1 to 3.4 and IANA's numbers, written out.
TEST_F(Ipfix, a_message_is_byte_for_byte_what_the_rfc_says) {
  const auto ipfix = exporter({.observation_domain = 0x01020304});
  ipfix->add({testing::key(0x0A000001, 0x0A000002, 0x1234, 0x0050, 6), 3, 180, 1'000'000, 2'999'999, 0x013, 0x20,
              EndReason::kIdle},
             9'000'000'000);
  ASSERT_TRUE(ipfix->finish(0x11223344ULL * 1'000'000'000).ok());
  const Bytes header{0, 10, 0, 0xA9, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 1, 2, 3, 4};
  const Bytes templates{0, 2,   0, 100,                                            // set, length
                        1, 0,   0, 12,                                             // template 256
                        0, 8,   0, 4,   0, 12,  0, 4, 0, 7,   0, 2, 0, 11,  0, 2,  // addresses, ports
                        0, 4,   0, 1,   0, 5,   0, 1, 0, 2,   0, 8, 0, 1,   0, 8,  // protocol, class, packets, octets
                        0, 152, 0, 8,   0, 153, 0, 8, 0, 136, 0, 1, 0, 6,   0, 2,  // start, end, reason, control bits
                        1, 1,   0, 10,                                             // template 257
                        0, 8,   0, 4,   0, 12,  0, 4, 0, 32,  0, 2, 0, 4,   0, 1,  // addresses, ICMP type and code
                        0, 5,   0, 1,   0, 2,   0, 8, 0, 1,   0, 8, 0, 152, 0, 8, 0, 153, 0, 8, 0, 136, 0, 1};
  const Bytes data{1, 0, 0, 53, 10, 0, 0,   1, 10, 0, 0, 2, 0x12, 0x34, 0, 0x50, 6, 0x20, 0, 0, 0, 0, 0, 0, 0, 3,   0,
                   0, 0, 0, 0,  0,  0, 180, 0, 0,  0, 0, 0, 0,    0,    1, 0,    0, 0,    0, 0, 0, 0, 2, 1, 0, 0x13};
  Bytes expected = header;
  expected.insert(expected.end(), templates.begin(), templates.end());
  expected.insert(expected.end(), data.begin(), data.end());
  ASSERT_THAT(written_.messages, SizeIs(1));
  EXPECT_EQ(written_.messages[0], expected);
  EXPECT_TRUE(written_.finished);
}

TEST_F(Ipfix, a_collector_reads_the_values_of_both_templates) {
  const auto ipfix = exporter();
  ipfix->add(tcp_record(0xC0000201), 1);
  ipfix->add(icmp_record(), 1);
  ipfix->flush(1'700'000'002'000'000'000);
  const std::vector<Message> messages = decoded();
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].domain, 1U);
  EXPECT_EQ(messages[0].export_time, 1'700'000'002U);
  EXPECT_THAT(messages[0].sets, ElementsAre(2, 256, 257));
  ASSERT_THAT(messages[0].records, SizeIs(2));
  const std::map<std::uint16_t, std::uint64_t> tcp{{8, 0xC0000201},
                                                   {12, 0xC6336402},
                                                   {7, 40'000},
                                                   {11, 443},
                                                   {4, 6},
                                                   {5, 0xB8},
                                                   {6, 0x1C2},
                                                   {2, 0x1'0000'0001},
                                                   {1, 0x2'0000'0002},
                                                   {152, 1'700'000'000'123},
                                                   {153, 1'700'000'001'456},
                                                   {136, 2}};
  EXPECT_EQ(messages[0].records[0], tcp);
  const std::map<std::uint16_t, std::uint64_t> icmp{{8, 7}, {12, 8},  {32, 3 * 256 + 13}, {4, 1},   {5, 0},
                                                    {2, 2}, {1, 112}, {152, 5},           {153, 6}, {136, 1}};
  EXPECT_EQ(messages[0].records[1], icmp);
}

TEST_F(Ipfix, messages_are_short_and_their_sequence_numbers_count_earlier_records) {
  const auto ipfix = exporter();
  constexpr std::uint32_t kRecords = 500;
  for (std::uint32_t src = 0; src < kRecords; ++src) {
    ipfix->add(src % 7 == 3 ? icmp_record() : tcp_record(src), 1);
  }
  ipfix->flush(1);
  std::uint32_t records = 0;
  for (Message const& message : decoded()) {
    EXPECT_EQ(message.sequence, records);
    records += static_cast<std::uint32_t>(message.records.size());
    EXPECT_LE(message.length, 1400);
  }
  EXPECT_EQ(records, kRecords);
  EXPECT_GT(written_.messages[1].size(), 1300U) << "messages are full";
  EXPECT_EQ(written_.records[0], decoded()[0].records.size());
}

TEST_F(Ipfix, records_keep_their_order) {
  const auto ipfix = exporter();
  for (std::uint32_t src = 0; src < 100; ++src) {
    ipfix->add(tcp_record(src), 1);
    ipfix->add(icmp_record(), 1);
  }
  ipfix->flush(1);
  std::uint64_t number = 0;
  for (Message const& message : decoded()) {
    for (auto const& record : message.records) {
      EXPECT_EQ(record.at(8), number % 2 == 0 ? number / 2 : 7U);
      ++number;
    }
  }
  EXPECT_EQ(number, 200U);
}

TEST_F(Ipfix, a_file_has_its_templates_once_at_its_start) {
  const auto ipfix = exporter({.template_refresh = 0});
  for (int message = 0; message < 50; ++message) {
    ipfix->add(tcp_record(1), 1);
    ipfix->flush(1);
  }
  const std::vector<Message> messages = decoded();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].templates, i == 0 ? 2U : 0U) << i;
  }
}

TEST_F(Ipfix, templates_are_sent_again_after_the_configured_number_of_messages) {
  const auto ipfix = exporter({.template_refresh = 5});
  for (int message = 0; message < 23; ++message) {
    ipfix->add(tcp_record(1), 1);
    ipfix->flush(1);
  }
  const std::vector<Message> messages = decoded();
  ASSERT_THAT(messages, SizeIs(23));
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].templates, i % 5 == 0 ? 2U : 0U) << i;
    EXPECT_EQ(messages[i].sequence, i) << "templates do not count";
  }
}

/// The positions of the messages with templates.
std::vector<std::size_t> with_templates(std::vector<Message> const& messages) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].templates > 0) {
      positions.push_back(i);
    }
  }
  return positions;
}

TEST_F(Ipfix, templates_are_sent_again_after_the_configured_time) {
  const auto ipfix = exporter({.template_refresh = 20, .template_refresh_ns = 600 * kTestSecond});
  for (const std::uint64_t second : {0U, 1U, 599U, 600U, 601U, 1199U, 1201U, 90'000U}) {
    ipfix->add(tcp_record(1), second * kTestSecond);
    ipfix->flush(second * kTestSecond);
  }
  const std::vector<Message> messages = decoded();
  std::uint32_t records = 0;
  std::uint32_t templates_at = 0;
  for (Message const& message : messages) {
    templates_at = message.templates > 0 ? message.export_time : templates_at;
    EXPECT_LT(message.export_time - templates_at, 600U) << "data follow templates of the last ten minutes";
    EXPECT_EQ(message.sequence, records) << "templates do not count";
    records += static_cast<std::uint32_t>(message.records.size());
  }
  EXPECT_EQ(records, 8U);
  EXPECT_THAT(with_templates(messages), SizeIs(4)) << "at 0, 600, 1201 and 90,000";
}

TEST_F(Ipfix, a_record_that_waited_over_the_time_for_its_message_has_templates_before_it) {
  const auto ipfix = exporter({.template_refresh = 20, .template_refresh_ns = 600 * kTestSecond});
  for (const std::uint64_t second : {0U, 10U, 4000U, 4010U}) {
    ipfix->flush(second * kTestSecond);  // as a monitor does: the record before has waited for this time
    ipfix->add(tcp_record(1), second * kTestSecond);
  }
  ipfix->flush(4020 * kTestSecond);
  const std::vector<Message> messages = decoded();
  ASSERT_THAT(messages, SizeIs(5));
  EXPECT_THAT(with_templates(messages), ElementsAre(0, 1));
  EXPECT_EQ(messages[1].export_time, 4000U);
  EXPECT_EQ(messages[2].export_time, 4000U);
  EXPECT_THAT(messages[1].sets, ElementsAre(2)) << "the message was made before its templates were due";
  EXPECT_EQ(messages[2].sequence, 1U);
}

TEST_F(Ipfix, templates_are_sent_again_in_time_while_no_flow_ends) {
  const auto ipfix = exporter({.template_refresh = 20, .template_refresh_ns = 600 * kTestSecond});
  ipfix->flush(0);
  ipfix->add(tcp_record(1), 1);
  for (std::uint64_t second = 1; second < 1900; ++second) {
    ipfix->flush(second * kTestSecond);
  }
  const std::vector<Message> messages = decoded();
  ASSERT_THAT(messages, SizeIs(4));
  EXPECT_THAT(with_templates(messages), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(written_.records, ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(messages[3].sequence, 1U);
  EXPECT_EQ(messages[3].export_time, 1801U);
}

TEST_F(Ipfix, templates_sent_by_time_count_for_the_number_of_messages) {
  const auto ipfix = exporter({.template_refresh = 5, .template_refresh_ns = 600 * kTestSecond});
  for (const std::uint64_t second : {0U, 1U, 2U, 700U, 701U, 702U, 703U, 704U, 705U}) {
    ipfix->add(tcp_record(1), second * kTestSecond);
    ipfix->flush(second * kTestSecond);
  }
  EXPECT_THAT(with_templates(decoded()), ElementsAre(0, 3, 8));
}

TEST_F(Ipfix, without_records_nothing_is_sent) {
  const auto ipfix = exporter();
  ipfix->flush(1);
  EXPECT_TRUE(ipfix->finish(2).ok());
  EXPECT_THAT(written_.messages, SizeIs(0));
  EXPECT_TRUE(written_.finished);
}

}  // namespace
}  // namespace catena::monitor
