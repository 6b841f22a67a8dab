// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/lines.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace catena::nf_process {
namespace {

/// A ring in the memory of the test.
class Lines : public ::testing::Test {
 protected:
  LineWriter writer() { return {*head_, ring_}; }
  LineReader reader() { return {*head_, ring_}; }
  LineRingHead& head() { return *head_; }
  std::vector<std::byte>& ring() { return ring_; }

 private:
  std::unique_ptr<LineRingHead> head_ = std::make_unique<LineRingHead>();
  std::vector<std::byte> ring_ = std::vector<std::byte>(kLineRingBytes);
};

constexpr std::uint32_t kNf = 31;

RecordOf record(std::uint64_t packet, std::string fields) {
  return {kNf, {packet, packet::Verdict::kDrop, 3, std::move(fields)}};
}

TEST_F(Lines, come_as_they_were_written_round_the_ring) {
  LineWriter writes = writer();
  LineReader reads = reader();
  const std::string text = concat("\"text\":\"", std::string(9000, 'x'), "\"");
  for (std::uint64_t packet = 0; packet < 1000; ++packet) {  // some nine times round
    ASSERT_TRUE(writes.write(record(packet, text)).value());
    ASSERT_TRUE(writes.write(AlertOf{2, {packet, "{\"action\":\"allowed\"}"}}).value());
    ASSERT_TRUE(writes.write(EndOfUnit{}).value());
    const auto first = std::get<RecordOf>(*reads.next().value());
    EXPECT_EQ(first.nf, kNf);
    EXPECT_EQ(first.line.packet, packet);
    EXPECT_EQ(first.line.verdict, packet::Verdict::kDrop);
    EXPECT_EQ(first.line.reason, 3);
    ASSERT_EQ(first.line.fields, text);
    const auto second = std::get<AlertOf>(*reads.next().value());
    EXPECT_EQ(second.nf, 2U);
    EXPECT_EQ(second.line.alert, "{\"action\":\"allowed\"}");
    EXPECT_TRUE(std::holds_alternative<EndOfUnit>(*reads.next().value()));
    EXPECT_FALSE(reads.next().value().has_value());
  }
}

TEST_F(Lines, wait_where_there_is_no_room_and_are_not_longer_than_may_be) {
  LineWriter writes = writer();
  LineReader reads = reader();
  const RecordOf line = record(1, concat("\"text\":\"", std::string(60'000, 'x'), "\""));
  int written = 0;
  while (writes.write(line).value()) {
    ++written;
  }
  EXPECT_EQ(written, 17) << "of 60,035 bytes each in a mebibyte";
  ASSERT_TRUE(reads.next().value().has_value());
  EXPECT_TRUE(writes.write(line).value());
  EXPECT_FALSE(writes.write(line).value());
  EXPECT_TRUE(absl::IsInvalidArgument(writes.write(record(1, std::string(kMaxLineBytes + 1, ' '))).status()));
}

TEST_F(Lines, that_are_none_are_found_out) {
  for (const std::uint64_t claimed : {std::uint64_t{1}, std::uint64_t{kLineRingBytes + 1}, ~std::uint64_t{0}}) {
    head().pushed = claimed;
    EXPECT_TRUE(absl::IsDataLoss(reader().next().status())) << claimed;
  }
  // of a kind that is none, of a verdict that is none, longer than what was pushed, longer than may be
  for (const auto& [at, value] : std::vector<std::pair<std::size_t, std::uint32_t>>{
           {0, 3U}, {20, 9U}, {4, 1000U}, {4, kMaxLineBytes + 1}, {4, ~0U}}) {
    head().pushed = 0;
    head().taken = 0;
    LineWriter writes = writer();
    ASSERT_TRUE(writes.write(record(1, "\"rule\":1")).value());
    std::memcpy(ring().data() + at, &value, sizeof value);
    EXPECT_TRUE(absl::IsDataLoss(reader().next().status())) << at << ": " << value;
  }
}

TEST(LineTexts, put_nothing_into_the_file_that_is_not_theirs) {
  for (const char* fields : {"", "\"rule\":103", "\"rule\":1,\"name\":\"a b\"", "\"of\":{\"nf\":\"x\"}"}) {
    EXPECT_TRUE(are_record_fields(fields)) << fields;
  }
  for (const char* fields :
       {"rule", "\"rule\"", "\"rule\":1}\n{\"packet\":1", "\"rule\":1}", "\"nf\":\"other\"", "\"\\u006ef\":\"other\"",
        "\"verdict\":\"pass\"", "\"a\":\"\n\"", "\"a\":\"\xFF\"", "\"a\":1,", "}{", " "}) {
    EXPECT_FALSE(are_record_fields(fields)) << fields;
  }
  EXPECT_TRUE(is_alert("{\"action\":\"allowed\",\"signature_id\":7}"));
  for (const char* alert : {"", "7", "[]", "{}}", "{}\n", "{\"a\":1},\"nf\":\"x\"", "{\"a\":\"\x01\"}"}) {
    EXPECT_FALSE(is_alert(alert)) << alert;
  }
  // deep, and still no more than text
  EXPECT_FALSE(is_alert(std::string(kMaxLineBytes, '[')));
  EXPECT_FALSE(are_record_fields(concat("\"a\":", std::string(kMaxLineBytes / 2, '['))));
}

}  // namespace
}  // namespace catena::nf_process
