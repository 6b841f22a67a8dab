// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>

#include <cstring>
#include <filesystem>
#include <optional>

#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Bytes = std::vector<std::uint8_t>;

class Files : public ::testing::Test {
 protected:
  testing::ScratchFolder folder_;
};

TEST_F(Files, holds_what_was_written_in_order) {
  const auto file = file_output(nf::own_outputs(), folder_.path("out"));
  file->write(Bytes{'a', 'b'}, 1);
  file->write(Bytes{'c'}, 1);
  EXPECT_TRUE(file->finish().ok());
  EXPECT_EQ(folder_.read("out"), "abc");
  EXPECT_EQ(file->lost_records(), 0U);
}

TEST_F(Files, is_made_by_finish_if_nothing_was_written_and_not_before) {
  const auto file = file_output(nf::own_outputs(), folder_.path("out"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  EXPECT_TRUE(file->finish().ok());
  EXPECT_TRUE(std::filesystem::exists(folder_.path("out")));
}

TEST_F(Files, appends_to_an_older_file) {
  for (const char* text : {"older, ", "newer"}) {
    const auto file = file_output(nf::own_outputs(), folder_.path("out"));
    file->write({reinterpret_cast<const std::uint8_t*>(text), std::strlen(text)}, 1);
    ASSERT_TRUE(file->finish().ok());
  }
  EXPECT_EQ(folder_.read("out"), "older, newer");
}

TEST_F(Files, that_cannot_be_opened_are_data_loss_with_their_name) {
  const auto file = file_output(nf::own_outputs(), folder_.path("nowhere/out"));
  file->write(Bytes{1}, 3);
  file->write(Bytes{2}, 4);
  EXPECT_EQ(file->lost_records(), 7U);
  const Status status = file->finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nowhere/out: cannot be created: No such file"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("7 flow records"));
}

TEST_F(Files, on_a_full_device_are_data_loss_with_their_name) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "this system has no /dev/full";
  }
  const auto file = file_output(nf::own_outputs(), "/dev/full");
  file->write(Bytes{1}, 5);
  EXPECT_EQ(file->lost_records(), 5U);
  const Status status = file->finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full: No space left"));
}

TEST(Udp, each_write_is_a_datagram) {
  const testing::Receiver receiver;
  auto udp = udp_output(*nf::own_outputs(), concat("127.0.0.1:", receiver.port()));
  ASSERT_TRUE(udp.ok()) << udp.status();
  (*udp)->write(Bytes{1, 2, 3}, 1);
  (*udp)->write(Bytes{4}, 1);
  EXPECT_THAT(receiver.take(), ElementsAre(Bytes{1, 2, 3}, Bytes{4}));
  EXPECT_EQ((*udp)->lost_records(), 0U);
}

TEST(Udp, names_are_resolved) {
  const testing::Receiver receiver;
  auto udp = udp_output(*nf::own_outputs(), concat("localhost:", receiver.port()));
  ASSERT_TRUE(udp.ok()) << udp.status();
  (*udp)->write(Bytes{1}, 1);
  EXPECT_THAT(receiver.take(), SizeIs(1));
}

TEST(Udp, a_host_that_does_not_resolve_is_an_invalid_argument) {
  const auto udp = udp_output(*nf::own_outputs(), "256.1.1.1.invalid:4739");
  EXPECT_EQ(udp.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(udp.status().message()), HasSubstr("256.1.1.1.invalid"));
}

TEST(Udp, what_a_closed_port_refuses_is_counted_and_no_error) {
  std::optional<testing::Receiver> receiver(std::in_place);
  auto udp = udp_output(*nf::own_outputs(), concat("127.0.0.1:", receiver->port()));
  ASSERT_TRUE(udp.ok());
  receiver.reset();
  for (int i = 0; i < 10; ++i) {
    (*udp)->write(Bytes{1}, 7);  // the system reports the refusal of one datagram when the next one is sent
  }
  EXPECT_GE((*udp)->lost_records(), 7U);
  EXPECT_EQ((*udp)->lost_records() % 7, 0U);
  EXPECT_TRUE((*udp)->finish().ok());
}

// Linux reports that a closed port refused a datagram when the next one is sent, and does not send that one (udp(7)).
TEST(Udp, a_receiver_that_starts_late_gets_the_first_datagram_after_that) {
  std::optional<testing::Receiver> receiver(std::in_place);
  const std::uint16_t port = receiver->port();
  auto udp = udp_output(*nf::own_outputs(), concat("127.0.0.1:", port));
  ASSERT_TRUE(udp.ok());
  receiver.reset();
  (*udp)->write(Bytes{1}, 3);  // refused
  receiver.emplace(port);
  (*udp)->write(Bytes{2}, 5);
  (*udp)->write(Bytes{3}, 7);
  EXPECT_THAT(receiver->take(), ElementsAre(Bytes{2}, Bytes{3}));
  EXPECT_EQ((*udp)->lost_records(), 3U);
}

TEST(Udp, what_is_too_long_for_a_datagram_is_counted) {
  const testing::Receiver receiver;
  auto udp = udp_output(*nf::own_outputs(), concat("127.0.0.1:", receiver.port()));
  (*udp)->write(Bytes(70'000), 2);
  EXPECT_EQ((*udp)->lost_records(), 2U);
}

}  // namespace
}  // namespace catena::monitor
