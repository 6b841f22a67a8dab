// SPDX-License-Identifier: Apache-2.0
#include "replay_window.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace catena::ipsec {
namespace {

/// RFC 4303 section 3.4.3 in words: everything seen is remembered, nothing left of the window is accepted.
class PlainWindow {
 public:
  explicit PlainWindow(std::uint32_t packets = 64) : packets_(packets) {}
  bool accept(std::uint32_t sequence) {
    if (sequence == 0 || std::uint64_t{sequence} + packets_ <= highest_ || !seen_.insert(sequence).second) {
      return false;
    }
    highest_ = std::max<std::uint64_t>(highest_, sequence);
    return true;
  }

 private:
  std::uint32_t packets_;
  std::uint64_t highest_ = 0;
  std::set<std::uint32_t> seen_;
};

TEST(ReplayWindow, accepts_each_number_once) {
  ReplayWindow window;
  for (std::uint32_t sequence = 1; sequence < 200; ++sequence) {
    EXPECT_TRUE(window.accept(sequence));
    EXPECT_FALSE(window.accept(sequence));
  }
}

TEST(ReplayWindow, never_accepts_zero) { EXPECT_FALSE(ReplayWindow().accept(0)); }

TEST(ReplayWindow, accepts_the_63_numbers_behind_the_highest_and_no_more) {
  ReplayWindow window;
  ASSERT_TRUE(window.accept(1000));
  EXPECT_TRUE(window.accept(1000 - 63));
  EXPECT_FALSE(window.accept(1000 - 64));
  EXPECT_TRUE(window.accept(1000 - 1));
  EXPECT_FALSE(window.accept(1000 - 63));
}

TEST(ReplayWindow, remembers_what_it_saw_when_it_slides) {
  ReplayWindow window;
  ASSERT_TRUE(window.accept(10));
  ASSERT_TRUE(window.accept(10 + 63));
  EXPECT_FALSE(window.accept(10));
  ASSERT_TRUE(window.accept(10 + 63 + 64));
  EXPECT_TRUE(window.accept(10 + 63 + 1));
  EXPECT_FALSE(window.accept(10 + 63));
}

TEST(ReplayWindow, works_up_to_the_last_number) {
  ReplayWindow window;
  ASSERT_TRUE(window.accept(1));
  ASSERT_TRUE(window.accept(0xFFFFFFFF));
  EXPECT_FALSE(window.accept(0xFFFFFFFF));
  EXPECT_TRUE(window.accept(0xFFFFFFFE));
  EXPECT_FALSE(window.accept(0xFFFFFFFF - 64));
  EXPECT_FALSE(window.accept(1));
}

/// RFC 4303 Appendix A2.2, word for word, with its window of W = 64: the high half for low half `low`.
std::uint32_t high_half_of_the_rfc(std::uint64_t highest, std::uint32_t low) {
  constexpr std::uint32_t kW = 64;
  const auto th = static_cast<std::uint32_t>(highest >> 32);
  const auto tl = static_cast<std::uint32_t>(highest);
  if (tl >= kW - 1) {  // case A
    return low >= tl - kW + 1 ? th : th + 1;
  }
  return low >= tl - kW + 1 ? th - 1 : th;  // case B; the left edge is modulo 2^32
}

TEST(ReplayWindow, infers_the_high_half_as_the_rfc_does) {
  std::mt19937_64 generator(3);
  constexpr std::uint64_t kReach = (std::uint64_t{1} << 32) - ReplayWindow::kBehind;
  for (int i = 0; i < 200000; ++i) {
    // near the wrap of the low half, and anywhere
    const std::uint64_t high = 1 + generator() % 1000;
    const std::uint64_t highest = i % 2 == 0 ? high * (std::uint64_t{1} << 32) + generator() % 200 - 100
                                             : high << 32 | static_cast<std::uint32_t>(generator());
    const std::uint64_t number = highest - 63 + (i % 3 == 0 ? generator() % 300 : generator() % kReach);
    const auto low = static_cast<std::uint32_t>(number);
    const ReplayWindow window(64, highest);
    ASSERT_EQ(window.extend(low), number) << highest;
    ASSERT_EQ(std::uint64_t{high_half_of_the_rfc(highest, low)} << 32 | low, number) << highest;
  }
}

TEST(ReplayWindow, knows_an_old_packet_for_what_it_is) {
  const std::uint64_t highest = (std::uint64_t{7} << 32) + 1000;
  for (const std::uint64_t behind :
       {std::uint64_t{64}, std::uint64_t{999}, std::uint64_t{100000}, ReplayWindow::kBehind}) {
    EXPECT_EQ(ReplayWindow(64, highest).extend(static_cast<std::uint32_t>(highest - behind)), highest - behind);
  }
}

TEST(ReplayWindow, gives_the_same_high_half_while_it_lags_behind) {
  // the packet pool holds at most 2^20 packets, so no window lags further
  constexpr std::uint64_t kLag = 1U << 20;
  std::mt19937_64 generator(5);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t highest = (std::uint64_t{3} << 32) + generator() % (1U << 22) - (1U << 21);
    const std::uint64_t number = highest - generator() % 10000 + generator() % 10000;
    const auto low = static_cast<std::uint32_t>(number);
    ASSERT_EQ(ReplayWindow(64, highest).extend(low), number);
    ASSERT_EQ(ReplayWindow(64, highest - kLag).extend(low), number);
  }
}

TEST(ReplayWindow, starts_with_a_high_half_of_zero) {
  const ReplayWindow window;
  for (const std::uint32_t low : {0U, 1U, 1U << 31, 0xFFFFFFFFU}) {
    EXPECT_EQ(window.extend(low), low);
  }
}

TEST(ReplayWindow, goes_on_where_another_one_ended) {
  ReplayWindow first;
  for (const std::uint32_t sequence : {5U, 7U, 8U}) {
    ASSERT_TRUE(first.accept(sequence));
  }
  ReplayWindow second(64, first.highest(), first.seen());
  EXPECT_FALSE(second.accept(8));
  EXPECT_FALSE(second.accept(5));
  EXPECT_TRUE(second.accept(6));
  EXPECT_TRUE(second.accept(9));
}

/// Sizes on both sides of whole words.
constexpr std::uint32_t kSizes[] = {64, 65, 100, 127, 128, 129, 1000, 1024, 4095, 4096};

TEST(ReplayWindow, agrees_with_the_plain_definition_on_random_traffic) {
  std::mt19937 generator(7);
  for (const std::uint32_t packets : kSizes) {
    for (int round = 0; round < 20; ++round) {
      ReplayWindow window(packets);
      PlainWindow plain(packets);
      std::int64_t centre = std::uniform_int_distribution<std::int64_t>(0, 0xFFFFFFFF)(generator);
      for (int i = 0; i < 2000; ++i) {
        const std::uint32_t jump = i % 400 == 0 ? 3 * packets : packets + packets / 2;
        centre += generator() % 50 == 0 ? generator() % jump : generator() % 3;
        const std::int64_t number = centre - static_cast<std::int64_t>(generator() % (packets + packets / 4));
        const auto sequence = static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, 0xFFFFFFFF));
        ASSERT_EQ(window.accept(sequence), plain.accept(sequence))
            << sequence << " after " << i << " packets, window " << packets;
        if (i % 100 == 99) {  // it is saved and loaded in between
          window = ReplayWindow(packets, window.highest(), window.seen());
        }
      }
    }
  }
}

TEST(ReplayWindow, accepts_all_of_its_numbers_in_any_order_once) {
  for (const std::uint32_t packets : kSizes) {
    ReplayWindow window(packets);
    constexpr std::uint64_t kHighest = (std::uint64_t{5} << 32) + 17;
    ASSERT_TRUE(window.accept(kHighest));
    for (std::uint32_t behind = packets - 1; behind > 0; --behind) {
      ASSERT_TRUE(window.accept(kHighest - behind)) << packets;
      ASSERT_FALSE(window.accept(kHighest - behind)) << packets;
    }
    EXPECT_FALSE(window.accept(kHighest - packets)) << packets;
    EXPECT_FALSE(window.accept(kHighest)) << packets;
  }
}

TEST(ReplayWindow, of_another_size_goes_on_and_takes_unknown_numbers_for_seen) {
  ReplayWindow narrow(64);
  for (const std::uint32_t sequence : {1000U, 990U, 950U}) {
    ASSERT_TRUE(narrow.accept(sequence));
  }
  ReplayWindow wide(128, narrow.highest(), narrow.seen());
  for (const std::uint32_t sequence : {1000U, 990U, 950U, 936U, 900U, 873U}) {
    EXPECT_FALSE(wide.accept(sequence)) << sequence << ": seen, or before all that the narrow one knew";
  }
  EXPECT_TRUE(wide.accept(937));
  EXPECT_TRUE(wide.accept(1001));
  ReplayWindow narrow_again(64, wide.highest(), wide.seen());
  EXPECT_FALSE(narrow_again.accept(937));
  EXPECT_TRUE(narrow_again.accept(938));
  ReplayWindow odd(65);
  ASSERT_TRUE(odd.accept(1000));
  ReplayWindow after_odd(128, odd.highest(), odd.seen());
  EXPECT_FALSE(after_odd.accept(935)) << "of the second word, but not of the window of 65";
  EXPECT_TRUE(after_odd.accept(936));
  EXPECT_FALSE(ReplayWindow(4096, 5000, {}).accept(4999)) << "nothing is known: all count as seen";
  EXPECT_TRUE(ReplayWindow(4096, 5000, {}).accept(5001));
}

TEST(ReplayWindow, ends_at_the_first_and_the_last_number) {
  for (const std::uint32_t packets : kSizes) {
    ReplayWindow window(packets);
    EXPECT_TRUE(window.accept(2));
    EXPECT_TRUE(window.accept(1));
    EXPECT_FALSE(window.accept(0));
    EXPECT_TRUE(window.accept(UINT64_MAX));
    EXPECT_TRUE(window.accept(UINT64_MAX - packets + 1));
    EXPECT_FALSE(window.accept(UINT64_MAX - packets));
    EXPECT_FALSE(window.accept(UINT64_MAX));
  }
}

}  // namespace
}  // namespace catena::ipsec
