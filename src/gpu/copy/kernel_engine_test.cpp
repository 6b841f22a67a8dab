// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/kernel_engine.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/hostcopy/testing/engine_check.hpp"

namespace catena::copy {
namespace {

TEST(KernelEngine, moves_each_byte_to_its_place_and_no_other) {
  std::uint32_t opened = 0;
  for (hostcopy::EngineKind const& kind : kernel_engine_kinds()) {
    SCOPED_TRACE(kind.name);
    Result<std::unique_ptr<hostcopy::Engine>> engine = kind.open();
    if (!engine.ok()) {
      EXPECT_FALSE(kind.probe().ok());
      GTEST_LOG_(WARNING) << "without " << kind.name << ": " << engine.status();
      continue;
    }
    ++opened;
    hostcopy::testing::expect_moves_each_byte(**engine, 40'000, 300);
  }
  EXPECT_GT(opened, 0U);
}

TEST(KernelEngine, reaches_many_memories_that_come_and_go) {
  for (hostcopy::EngineKind const& kind : kernel_engine_kinds()) {
    SCOPED_TRACE(kind.name);
    if (Result<std::unique_ptr<hostcopy::Engine>> engine = kind.open(); engine.ok()) {
      hostcopy::testing::expect_reaches_many_memories(**engine);
    }
  }
}

TEST(KernelEngine, refuses_memory_that_was_not_registered) {
  Result<std::unique_ptr<hostcopy::Engine>> engine = hostcopy::open_engine("opencl", kernel_engine_kinds());
  ASSERT_TRUE(engine.ok()) << engine.status();
  ASSERT_EQ((*engine)->configure({4, 1}), absl::OkStatus());
  alignas(4096) static std::array<std::byte, 8192> memory{};
  ASSERT_EQ((*engine)->register_memory(memory), absl::OkStatus());
  std::array<std::byte, 16> elsewhere{};
  const std::array<std::array<hostcopy::Move, 1>, 3> wrong = {{{{{elsewhere.data(), memory.data(), 16}}},
                                                               {{{memory.data(), elsewhere.data(), 16}}},
                                                               {{{memory.data(), memory.data() + 8180, 16}}}}};
  for (auto const& moves : wrong) {
    EXPECT_TRUE(absl::IsInvalidArgument((*engine)->enqueue_copy(1, moves)));
  }
  const std::array<hostcopy::Move, 1> right = {{{memory.data(), memory.data() + 8176, 16}}};
  EXPECT_EQ((*engine)->enqueue_copy(2, right), absl::OkStatus());
  Result<std::optional<hostcopy::Engine::Completion>> done = std::nullopt;
  while (done.ok() && !*done) {
    done = (*engine)->dequeue_copy();
  }
  ASSERT_EQ(done.status(), absl::OkStatus());
  ASSERT_EQ((*engine)->unregister_memory(memory), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument((*engine)->enqueue_copy(3, right))) << "it is registered no more";
}

TEST(KernelEngine, refuses_more_jobs_than_configured_until_some_are_done) {
  Result<std::unique_ptr<hostcopy::Engine>> engine = hostcopy::open_engine("opencl", kernel_engine_kinds());
  ASSERT_TRUE(engine.ok()) << engine.status();
  ASSERT_EQ((*engine)->configure({2, 1}), absl::OkStatus());
  alignas(4096) static std::array<std::byte, 4096> memory{};
  ASSERT_EQ((*engine)->register_memory(memory), absl::OkStatus());
  const std::array<hostcopy::Move, 1> moves = {{{memory.data(), memory.data() + 64, 16}}};
  EXPECT_EQ((*engine)->enqueue_copy(1, moves), absl::OkStatus());
  EXPECT_EQ((*engine)->enqueue_copy(2, moves), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted((*engine)->enqueue_copy(3, moves)));
  Result<std::optional<hostcopy::Engine::Completion>> done = std::nullopt;
  while (done.ok() && !*done) {
    done = (*engine)->dequeue_copy();
  }
  ASSERT_EQ(done.status(), absl::OkStatus());
  EXPECT_EQ((*engine)->enqueue_copy(3, moves), absl::OkStatus());
}

}  // namespace
}  // namespace catena::copy
