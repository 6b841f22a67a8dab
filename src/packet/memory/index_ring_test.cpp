// SPDX-License-Identifier: Apache-2.0
#include "packet/memory/index_ring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace catena::memory {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kLimit = 1000;

struct Memory {
  RingState state{};
  std::array<std::uint32_t, 8> entries{};
};

std::vector<std::uint32_t> pop(IndexRing& ring, std::size_t count) {
  std::vector<std::uint32_t> indices(count);
  EXPECT_TRUE(ring.pop(indices));
  return indices;
}

bool push(IndexRing& ring, std::vector<std::uint32_t> const& indices) { return ring.push(indices); }

TEST(IndexRing, what_went_in_first_comes_out_first_lap_after_lap) {
  Memory memory;
  IndexRing ring(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
  std::uint32_t next = 0;
  for (std::uint32_t lap = 0; lap < 50; ++lap) {
    ASSERT_TRUE(push(ring, {next, next + 1, next + 2}));
    EXPECT_EQ(ring.size(), 3U);
    ASSERT_THAT(pop(ring, 3), ElementsAre(next, next + 1, next + 2));
    next += 3;
  }
}

TEST(IndexRing, it_takes_and_gives_all_or_nothing) {
  Memory memory;
  IndexRing ring(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
  EXPECT_TRUE(push(ring, {1, 2, 3, 4, 5}));
  EXPECT_FALSE(push(ring, {6, 7, 8, 9}));
  EXPECT_EQ(ring.size(), 5U);
  EXPECT_TRUE(push(ring, {6, 7, 8})) << "every entry can be used";
  std::vector<std::uint32_t> indices(9);
  EXPECT_FALSE(ring.pop(indices));
  EXPECT_EQ(ring.size(), 8U);
  EXPECT_THAT(pop(ring, 8), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_FALSE(ring.pop(std::span(indices).first(1)));
  EXPECT_FALSE(ring.is_broken());
}

TEST(IndexRing, positions_may_pass_the_end_of_their_numbers) {
  Memory memory;
  memory.state.in = memory.state.out = 0xFFFFFFFD;
  IndexRing ring(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
  ASSERT_TRUE(push(ring, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ring.size(), 6U);
  EXPECT_THAT(pop(ring, 6), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(IndexRing, who_looks_on_takes_nothing) {
  Memory memory;
  IndexRing ring(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
  ASSERT_TRUE(push(ring, {4, 5, 6}));
  std::vector<std::uint32_t> seen(2);
  EXPECT_TRUE(ring.peek(seen));
  EXPECT_THAT(seen, ElementsAre(4, 5));
  EXPECT_EQ(ring.size(), 3U);
  seen.resize(4);
  EXPECT_FALSE(ring.peek(seen));
}

TEST(IndexRing, who_takes_knows_what_comes_next_once_it_has_looked) {
  Memory memory;
  IndexRing ring(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
  ASSERT_TRUE(push(ring, {4, 5}));
  EXPECT_EQ(ring.known_next(), std::nullopt) << "nobody has looked yet";
  ASSERT_THAT(pop(ring, 1), ElementsAre(4));
  EXPECT_EQ(ring.known_next(), 5U);
  EXPECT_EQ(ring.size(), 1U);
  memory.entries[1] = kLimit;
  EXPECT_EQ(ring.known_next(), std::nullopt) << "another process made it up";
  EXPECT_FALSE(ring.is_broken()) << "it is found where it comes out";
}

TEST(IndexRing, a_closed_ring_still_gives_what_is_inside) {
  Memory memory;
  IndexRing ring(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
  ASSERT_TRUE(push(ring, {4}));
  EXPECT_FALSE(ring.is_closed());
  ring.close();
  EXPECT_TRUE(ring.is_closed());
  EXPECT_THAT(pop(ring, 1), ElementsAre(4));
}

TEST(IndexRing, an_index_that_another_process_made_up_never_comes_out) {
  for (const std::uint32_t wrong : {kLimit, kLimit + 1, 0x80000000U, 0xFFFFFFFFU}) {
    Memory memory;
    IndexRing ring(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
    ASSERT_TRUE(push(ring, {1, 2, 3}));
    memory.entries[1] = wrong;
    std::vector<std::uint32_t> indices(3);
    EXPECT_FALSE(ring.peek(indices));
    EXPECT_FALSE(ring.pop(indices));
    EXPECT_TRUE(ring.is_broken());
    EXPECT_FALSE(ring.pop(std::span(indices).first(1))) << "nothing of it is believed any more";
    EXPECT_FALSE(push(ring, {4}));
  }
}

TEST(IndexRing, positions_that_another_process_made_up_end_it) {
  for (const bool at_in : {true, false}) {
    for (const std::uint32_t position : {9U, 100U, 0x80000000U, 0xFFFFFFF0U}) {
      Memory memory;
      IndexRing giving(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
      IndexRing taking(memory.state, memory.entries, kLimit, IndexRing::Ends::kOneEach);
      (at_in ? memory.state.in : memory.state.out) = at_in ? position : 0U - position;
      std::vector<std::uint32_t> indices(8);
      giving.push(indices);  // may go where it knew of room before
      EXPECT_FALSE(giving.push(indices)) << position;
      EXPECT_FALSE(taking.pop(indices)) << position;
      EXPECT_TRUE(giving.is_broken()) << position;
      EXPECT_TRUE(taking.is_broken()) << position;
      EXPECT_LE(taking.size(), taking.capacity());
    }
  }
}

/// `threads` at each shared end pass every index through, `laps` times; each comes out as often as it went in.
void pass_through(IndexRing::Ends ends, std::size_t givers, std::size_t takers) {
  constexpr std::uint32_t kIndices = 64;
  constexpr std::uint32_t kLaps = 400;
  RingState state{};
  std::vector<std::uint32_t> entries(kIndices);
  IndexRing ring(state, entries, kIndices, ends);
  std::vector<std::atomic<std::uint32_t>> seen(kIndices);
  std::atomic<std::uint64_t> left{std::uint64_t{kLaps} * kIndices * givers};
  std::vector<std::thread> threads;
  for (std::size_t giver = 0; giver < givers; ++giver) {
    threads.emplace_back([&] {
      for (std::uint32_t lap = 0; lap < kLaps; ++lap) {
        for (std::uint32_t first = 0; first < kIndices; first += 4) {
          const std::array<std::uint32_t, 4> part{first, first + 1, first + 2, first + 3};
          while (!ring.push(part)) {
            std::this_thread::yield();
          }
        }
      }
    });
  }
  for (std::size_t taker = 0; taker < takers; ++taker) {
    threads.emplace_back([&] {
      std::array<std::uint32_t, 2> part{};
      while (left.load() != 0) {
        if (!ring.pop(part)) {
          std::this_thread::yield();
          continue;
        }
        EXPECT_EQ(part[0] + 1, part[1]) << "what one push put in is together";
        seen[part[0]].fetch_add(1);
        seen[part[1]].fetch_add(1);
        left.fetch_sub(2);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::uint32_t index = 0; index < kIndices; ++index) {
    EXPECT_EQ(seen[index], kLaps * givers) << index;
  }
  EXPECT_EQ(ring.size(), 0U);
}

TEST(IndexRing, one_thread_at_each_end) { pass_through(IndexRing::Ends::kOneEach, 1, 1); }
TEST(IndexRing, many_threads_put_in) { pass_through(IndexRing::Ends::kManyEach, 4, 1); }
TEST(IndexRing, many_threads_at_each_end) { pass_through(IndexRing::Ends::kManyEach, 3, 3); }

}  // namespace
}  // namespace catena::memory
