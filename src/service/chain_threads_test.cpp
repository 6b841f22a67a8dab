// SPDX-License-Identifier: Apache-2.0
#include "service/chain_threads.hpp"

#include "base/core/log_context.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace catena::service {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLong{60};

TEST(ChainThreads, a_chain_that_hangs_holds_up_no_other_one) {
  std::promise<void> end;
  std::promise<std::string> other;
  ChainThreads threads;
  ASSERT_TRUE(threads.run("hangs", [hold = end.get_future().share()] { hold.wait(); }).ok());
  EXPECT_TRUE(absl::IsAborted(threads.run("hangs", [] {})));
  ASSERT_TRUE(threads.run("other", [&other] { other.set_value(LogContext::chain()); }).ok());
  EXPECT_EQ(other.get_future().get(), "other");
  EXPECT_TRUE(threads.is_at_work("hangs"));
  EXPECT_FALSE(threads.wait(Clock::now()));
  end.set_value();
  EXPECT_TRUE(threads.wait(Clock::now() + kLong));
  EXPECT_FALSE(threads.is_at_work("hangs"));
  EXPECT_TRUE(threads.run("hangs", [] {}).ok());
}

TEST(ChainThreads, what_work_holds_is_given_back_with_its_end) {
  ChainThreads threads;
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = held;
  ASSERT_TRUE(threads.run("a", [held = std::move(held)] {}).ok());
  ASSERT_TRUE(threads.wait(Clock::now() + kLong));
  EXPECT_TRUE(watched.expired());
}

TEST(ChainThreads, work_that_throws_ends_nothing_else) {
  ChainThreads threads;
  ASSERT_TRUE(threads.run("a", [] { throw std::bad_alloc(); }).ok());
  ASSERT_TRUE(threads.wait(Clock::now() + kLong));
  EXPECT_TRUE(threads.run("a", [] {}).ok());
}

}  // namespace
}  // namespace catena::service
