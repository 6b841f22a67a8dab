// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/packet_clock.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace catena::packet {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDay = 86'400 * kSecond;
constexpr std::uint64_t kStart = 1'700'000'000 * kSecond;

/// `count` stamps from `first_ns` on, a millisecond apart.
std::uint64_t advance_often(PacketClock& clock, std::uint64_t first_ns, std::uint32_t count) {
  std::uint64_t now_ns = clock.now_ns();
  for (std::uint32_t i = 0; i < count; ++i) {
    now_ns = clock.advance(first_ns + i * kSecond / 1000);
  }
  return now_ns;
}

TEST(PacketClock, tells_the_time_of_stamps_that_go_on) {
  PacketClock clock;
  EXPECT_EQ(clock.advance(kStart), kStart);
  EXPECT_EQ(clock.advance(kStart + 5), kStart + 5);
  EXPECT_EQ(clock.advance(kStart + kDay), kStart + kDay) << "a quiet day is a day";
  EXPECT_EQ(clock.now_ns(), kStart + kDay);
}

TEST(PacketClock, starts_at_any_stamp_and_can_go_on_from_there) {
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    PacketClock clock;
    const std::uint64_t start = clock.advance(first);
    advance_often(clock, kStart, PacketClock::kStepPackets);
    EXPECT_GE(clock.advance(kStart + kDay), start + kDay - kSecond) << first;
  }
}

TEST(PacketClock, stays_where_it_is_for_stamps_that_come_out_of_order) {
  PacketClock clock;
  clock.advance(kStart);
  for (std::uint32_t i = 1; i < 10'000; ++i) {  // two queues, one half a second late
    EXPECT_EQ(clock.advance(kStart + i * 1000), kStart + i * 1000);
    EXPECT_EQ(clock.advance(kStart + i * 1000 - kSecond / 2), kStart + i * 1000);
  }
}

TEST(PacketClock, is_not_moved_by_single_stamps_far_back) {
  PacketClock clock;
  clock.advance(kStart);
  for (std::uint32_t i = 1; i < 10'000; ++i) {
    EXPECT_EQ(clock.advance(kStart + i * kSecond), kStart + i * kSecond);
    EXPECT_EQ(clock.advance(i % 2 == 0 ? 0 : kStart - kDay), kStart + i * kSecond);
  }
}

TEST(PacketClock, goes_on_after_the_stamps_were_set_back) {
  PacketClock clock;
  clock.advance(kStart);
  EXPECT_EQ(advance_often(clock, kStart - kDay, PacketClock::kStepPackets), kStart);
  const std::uint64_t last = kStart - kDay + (PacketClock::kStepPackets - 1) * kSecond / 1000;
  EXPECT_EQ(clock.advance(last + 20 * kSecond), kStart + 20 * kSecond);
}

TEST(PacketClock, goes_on_after_one_stamp_far_ahead) {
  PacketClock clock;
  clock.advance(kStart);
  EXPECT_EQ(clock.advance(kStart + 300 * kDay), kStart + 300 * kDay);
  EXPECT_EQ(advance_often(clock, kStart, PacketClock::kStepPackets), kStart + 300 * kDay);
  const std::uint64_t last = kStart + (PacketClock::kStepPackets - 1) * kSecond / 1000;
  EXPECT_EQ(clock.advance(last + 20 * kSecond), kStart + 300 * kDay + 20 * kSecond);
}

TEST(PacketClock, takes_a_jump_of_centuries_for_two_years) {
  PacketClock clock;
  clock.advance(kStart);
  EXPECT_EQ(clock.advance(~std::uint64_t{0}), kStart + PacketClock::kLongestStepNs);
}

TEST(PacketClock, never_goes_back_whatever_the_stamps) {
  std::mt19937_64 engine(1);
  PacketClock clock;
  std::uint64_t before = 0;
  for (std::uint32_t i = 0; i < 2'000'000; ++i) {
    const std::uint64_t stamp = i % 100 == 0 ? engine() : engine() % 1000;  // most jumps are followed by a set back
    const std::uint64_t now = clock.advance(stamp);
    ASSERT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace catena::packet
