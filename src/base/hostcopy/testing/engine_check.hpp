// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "base/hostcopy/engine.hpp"

namespace catena::hostcopy::testing {

/// Moves of all lengths up to `max_bytes` and all alignments, several jobs in flight: each byte comes to its place, and
/// no other changes. `engine` is configured here.
inline void expect_moves_each_byte(Engine& engine, std::size_t max_bytes, std::uint32_t jobs) {
  constexpr std::uint32_t kInFlight = 8;
  constexpr std::uint32_t kMoves = 3;
  constexpr std::byte kUntouched{0xA5};
  const std::size_t room = max_bytes + 256;                                    // of a move
  const std::size_t bytes = (room * kMoves * kInFlight + 4095) / 4096 * 4096;  // of sources, and of targets
  auto* const mapped =
      static_cast<std::byte*>(::mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(mapped), MAP_FAILED);
  const std::span<std::byte> from(mapped, bytes);
  const std::span<std::byte> to(mapped + bytes, bytes);
  ASSERT_EQ(engine.configure({kInFlight, kMoves}), absl::OkStatus());
  ASSERT_EQ(engine.register_memory(from), absl::OkStatus());
  ASSERT_EQ(engine.register_memory(to), absl::OkStatus());

  std::minstd_rand random(7);
  std::ranges::generate(from, [&] { return static_cast<std::byte>(random() >> 8U); });
  std::ranges::fill(to, kUntouched);
  std::vector<std::byte> expected(to.begin(), to.end());
  struct Flight {
    std::uint32_t place;
    std::vector<Move> moves;
  };
  std::map<Engine::Job, Flight> in_flight;
  std::deque<Engine::Job> order;
  std::vector<std::uint32_t> free_places(kInFlight);
  std::iota(free_places.begin(), free_places.end(), 0U);
  Engine::Job next = 1000;
  std::uint32_t completed = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (completed < jobs && std::chrono::steady_clock::now() < until) {
    while (in_flight.size() < kInFlight && next < 1000 + jobs) {
      const Engine::Job job = next++;
      Flight& flight = in_flight[job];
      flight.place = free_places.back();
      free_places.pop_back();
      std::vector<Move>& moves = flight.moves;
      for (std::uint32_t move = 0; move < kMoves; ++move) {
        const std::size_t place = (std::size_t{flight.place} * kMoves + move) * room;
        const std::size_t length = random() % (max_bytes + 1);
        const std::size_t source = random() % (bytes - length);
        const std::size_t target = place + random() % 256;
        moves.push_back({from.data() + source, to.data() + target, static_cast<std::uint32_t>(length)});
        std::fill_n(to.begin() + static_cast<std::ptrdiff_t>(place), room, kUntouched);
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(place), room, kUntouched);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), length,
                    expected.begin() + static_cast<std::ptrdiff_t>(target));
      }
      ASSERT_EQ(engine.enqueue_copy(job, moves), absl::OkStatus());
      order.push_back(job);
    }
    const auto peeked = engine.peek_copy();
    ASSERT_EQ(peeked.status(), absl::OkStatus());
    if (!*peeked) {
      continue;
    }
    const auto done = engine.dequeue_copy();
    ASSERT_EQ(done.status(), absl::OkStatus());
    ASSERT_TRUE(*done);
    EXPECT_EQ((*done)->job, (*peeked)->job) << "dequeue_copy() takes what peek_copy() showed";
    EXPECT_TRUE((*done)->is_moved);
    ASSERT_TRUE(in_flight.contains((*done)->job));
    EXPECT_TRUE(!engine.capabilities().is_ordered || (*done)->job == order.front());
    std::erase(order, (*done)->job);
    const std::uint32_t place = in_flight[(*done)->job].place;
    const std::size_t begin = std::size_t{place} * kMoves * room;
    ASSERT_TRUE(
        std::ranges::equal(to.subspan(begin, kMoves * room), std::span(expected).subspan(begin, kMoves * room)));
    in_flight.erase((*done)->job);
    ++completed;
    free_places.push_back(place);
  }
  EXPECT_EQ(completed, jobs);
  const auto none = engine.dequeue_copy();
  EXPECT_TRUE(none.ok() && !*none);
}

/// Memories come and go, many at a time and more in all: each job with two of them moves its bytes. `engine` is
/// configured here.
inline void expect_reaches_many_memories(Engine& engine) {
  constexpr std::uint32_t kMemories = 64;
  constexpr std::uint32_t kRounds = 3;
  constexpr std::size_t kBytes = 8192;  // of a memory: whole pages
  constexpr std::uint32_t kMoved = 5000;
  auto* const mapped = static_cast<std::byte*>(
      ::mmap(nullptr, (kMemories + 1) * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(mapped), MAP_FAILED);
  const auto memory = [&](std::uint32_t number) { return std::span(mapped + number * kBytes, kBytes); };
  const std::span<std::byte> target = memory(kMemories);
  ASSERT_EQ(engine.configure({kMemories, 1}), absl::OkStatus());
  ASSERT_EQ(engine.register_memory(target), absl::OkStatus());
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    std::vector<Move> moves;
    for (std::uint32_t i = 0; i < kMemories; ++i) {
      ASSERT_EQ(engine.register_memory(memory(i)), absl::OkStatus()) << "memory " << i << " of round " << round;
      std::ranges::fill(memory(i).first(kMoved), static_cast<std::byte>(i + round));
      // to its own second half, or to the common memory
      std::byte* const to = i % 2 == 0 ? target.data() + i * 100 : memory(i).data() + kMoved;
      moves.push_back({memory(i).data(), to, i % 2 == 0 ? 100 : std::uint32_t{kBytes - kMoved}});
    }
    std::uint32_t started = 0;
    std::uint32_t done = 0;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (done < kMemories && std::chrono::steady_clock::now() < until) {
      Status enqueued;
      while (started < kMemories && enqueued.ok()) {
        enqueued = engine.enqueue_copy(started, std::span(moves).subspan(started, 1));
        started += enqueued.ok() ? 1 : 0;
      }
      ASSERT_TRUE(enqueued.ok() || absl::IsResourceExhausted(enqueued)) << enqueued;
      const auto completion = engine.dequeue_copy();
      ASSERT_EQ(completion.status(), absl::OkStatus());
      if (!*completion) {
        continue;
      }
      ++done;
      EXPECT_TRUE((*completion)->is_moved);
      Move const& move = moves[(*completion)->job];
      EXPECT_TRUE(std::equal(move.from, move.from + move.bytes, move.to)) << "memory " << (*completion)->job;
      ASSERT_EQ(engine.unregister_memory(memory(static_cast<std::uint32_t>((*completion)->job))), absl::OkStatus());
    }
    ASSERT_EQ(done, kMemories);
  }
  EXPECT_EQ(engine.unregister_memory(memory(0)), absl::OkStatus()) << "which is not registered";
}

}  // namespace catena::hostcopy::testing
