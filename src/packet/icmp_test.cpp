// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/icmp.hpp>

#include "packet/testing/one_packet.hpp"

#include <gtest/gtest.h>

namespace catena::packet {
namespace {

using testing::Bytes;
using testing::from_hex;
using testing::OnePacket;

constexpr std::uint32_t kRouter = 0xC0000201;  // 192.0.2.1, as make_cases.py has it

TEST(IcmpError, is_what_scapy_makes_of_the_packet_or_nothing) {
  const auto cases = testing::read_cases("icmp_errors.txt");
  ASSERT_GT(cases.size(), 30U);
  for (auto const& words : cases) {
    ASSERT_EQ(words.size(), 7U);
    if (words[0] == "echo_request_to_reply") {
      continue;
    }
    const IcmpError error{static_cast<std::uint8_t>(std::stoul(words[1])),
                          static_cast<std::uint8_t>(std::stoul(words[2])),
                          static_cast<std::uint32_t>(std::stoul(words[3]))};
    // with room in front of the frame, and where tunnels have used it up
    for (const std::uint16_t offset : std::initializer_list<std::uint16_t>{kSlotHeadroom, 28, 27, 0}) {
      OnePacket one(from_hex(words[5]), offset);
      one.packet().set_mtu(100);
      ASSERT_EQ(may_report(one.packet()), words[6] != "none") << words[0];
      if (words[6] == "none") {
        continue;
      }
      make_icmp_error(one.packet(), error, kRouter);
      EXPECT_EQ(one.frame(), from_hex(words[6])) << words[0] << " at " << offset;
      EXPECT_TRUE(one.packet().is(kIpv4 | kIcmp)) << words[0] << ": parsed again";
      EXPECT_EQ(one.packet().mtu(), 0U) << "an error is never cut";
      EXPECT_FALSE(may_report(one.packet())) << words[0] << ": never about an error";
    }
  }
}

TEST(EchoReply, is_what_scapy_makes_of_the_request) {
  std::size_t replies = 0;
  for (auto const& words : testing::read_cases("icmp_errors.txt")) {
    if (words[0] != "echo_request_to_reply") {
      continue;
    }
    OnePacket one(from_hex(words[5]));
    make_echo_reply(one.packet());
    EXPECT_EQ(one.frame(), from_hex(words[6]));
    ++replies;
  }
  EXPECT_EQ(replies, 2U);
}

TEST(ErrorBudget, gives_a_burst_and_then_a_rate) {
  ErrorBudget budget(10, 3);
  constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;
  constexpr std::uint64_t kTenth = 100'000'000;
  EXPECT_TRUE(budget.take(kStart) && budget.take(kStart) && budget.take(kStart));
  EXPECT_FALSE(budget.take(kStart));
  EXPECT_FALSE(budget.take(kStart + kTenth - 1));
  EXPECT_TRUE(budget.take(kStart + kTenth));
  EXPECT_FALSE(budget.take(kStart + kTenth));
  EXPECT_FALSE(budget.take(kStart)) << "a time that goes back adds nothing";
  EXPECT_TRUE(budget.take(kStart + 100 * kTenth) && budget.take(kStart + 100 * kTenth) &&
              budget.take(kStart + 100 * kTenth));
  EXPECT_FALSE(budget.take(kStart + 100 * kTenth)) << "no more than the burst is saved up";
}

TEST(ErrorBudget, of_nothing_gives_nothing) {
  ErrorBudget budget(0, 0);
  EXPECT_FALSE(budget.take(0));
  EXPECT_FALSE(budget.take(UINT64_MAX));
  ErrorBudget once(0, 1);
  EXPECT_TRUE(once.take(5));
  EXPECT_FALSE(once.take(UINT64_MAX));
}

}  // namespace
}  // namespace catena::packet
