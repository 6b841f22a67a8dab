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
  bool accept(std::uint32_t sequence) {
    if (sequence == 0 || std::uint64_t{sequence} + 64 <= highest_ || !seen_.insert(sequence).second) {
      return false;
    }
    highest_ = std::max<std::uint64_t>(highest_, sequence);
    return true;
  }

 private:
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

TEST(ReplayWindow, agrees_with_the_plain_definition_on_random_traffic) {
  std::mt19937 generator(7);
  for (int round = 0; round < 50; ++round) {
    ReplayWindow window;
    PlainWindow plain;
    std::int64_t centre = std::uniform_int_distribution<std::int64_t>(0, 0xFFFFFFFF)(generator);
    for (int i = 0; i < 2000; ++i) {
      centre += generator() % 50 == 0 ? generator() % 300 : generator() % 3;
      const std::int64_t number = centre - static_cast<std::int64_t>(generator() % 80);
      const auto sequence = static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, 0xFFFFFFFF));
      ASSERT_EQ(window.accept(sequence), plain.accept(sequence)) << sequence << " after " << i << " packets";
    }
  }
}

}  // namespace
}  // namespace catena::ipsec
