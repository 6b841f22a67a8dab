// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/icmp.hpp>

#include "packet/testing/one_packet.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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

TEST(ErrorBudget, that_shards_share_is_that_of_one_though_their_times_go_back_and_forth) {
  ErrorBudget budget(10, 3);
  constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;
  constexpr std::uint64_t kTenth = 100'000'000;
  std::uint32_t taken = 0;
  for (std::uint64_t tenth = 0; tenth < 100; ++tenth) {
    for (const std::uint64_t behind : {0U, 1U, 0U, 1U, 0U}) {
      taken += budget.take(kStart + (tenth + 1 - behind) * kTenth) ? 1 : 0;
    }
  }
  EXPECT_EQ(taken, 3U + 99U);

  constexpr std::uint32_t kThreads = 4;
  std::atomic<std::uint32_t> by_threads{0};
  ErrorBudget shared(1000, 50);
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (std::uint64_t us = 0; us < 100'000; ++us) {
        by_threads += shared.take(kStart + us * 1000) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(by_threads, 50U + 99U) << "a tenth of a second";
}

/// The budget's answers for `count` stamps from `first_ns` on, a tenth of a second apart.
std::uint32_t take_often(ErrorBudget& budget, std::uint64_t first_ns, std::uint32_t count) {
  std::uint32_t taken = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    taken += budget.take(first_ns + i * std::uint64_t{100'000'000}) ? 1 : 0;
  }
  return taken;
}

TEST(ErrorBudget, keeps_its_rate_after_any_stamp) {
  constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;
  constexpr std::uint64_t kYear = std::uint64_t{365} * 86'400 * 1'000'000'000;
  constexpr std::uint64_t kLater = kStart + 1'000'000'000'000;
  for (const std::uint64_t stamp :
       {kStart + kYear, kStart - kYear, kStart, std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX, UINT64_MAX - 1}) {
    for (const bool is_first : {false, true}) {
      ErrorBudget budget(10, 3);
      if (!is_first) {
        EXPECT_EQ(take_often(budget, kStart, 100), 100U);
      }
      budget.take(stamp);
      // as soon as the clock knows that the stamp was wrong
      take_often(budget, kLater, PacketClock::kStepPackets);
      EXPECT_EQ(take_often(budget, kLater + kYear / 365, 100), 100U) << stamp;
      std::uint32_t taken = 0;
      for (std::uint32_t i = 0; i < 1000; ++i) {  // a hundredth of a second apart
        taken += budget.take(kLater + kYear / 100 + i * std::uint64_t{10'000'000}) ? 1 : 0;
      }
      EXPECT_EQ(taken, 3U + 99U) << stamp << ": and not more";
    }
  }
}

TEST(ErrorBudget, gives_no_more_for_single_wrong_stamps) {
  constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;
  ErrorBudget budget(10, 3);
  std::uint32_t taken = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) {  // a hundredth of a second apart
    taken += budget.take(kStart + i * std::uint64_t{10'000'000}) ? 1 : 0;
    taken += budget.take(i % 2 == 0 ? 0 : kStart - 3'600'000'000'000) ? 1 : 0;
  }
  EXPECT_EQ(taken, 3U + 999U);
}

TEST(ErrorBudget, gives_only_its_burst_while_the_stamps_do_not_move) {
  for (const std::uint64_t stamp : {std::uint64_t{0}, std::uint64_t{1'700'000'000'000'000'000}, UINT64_MAX}) {
    ErrorBudget budget(10, 3);
    std::uint32_t taken = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
      taken += budget.take(stamp) ? 1 : 0;
    }
    EXPECT_EQ(taken, 3U) << stamp;
  }
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
