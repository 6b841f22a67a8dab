// SPDX-License-Identifier: Apache-2.0
// A process that may have no more threads refuses chains and goes on.
#include "service/chain_run.hpp"
#include "service/chain_threads.hpp"
#include "service/validated_spec.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <utility>

namespace catena::service {
namespace {

/// While it lives no thread begins: no memory has room for its stack.
class NoThreads {
 public:
  NoThreads() {
    constexpr std::size_t kTooLarge = std::size_t{1} << 62U;
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t none;
    EXPECT_EQ(::pthread_attr_init(&none), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&none, kTooLarge), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&none), 0);
    ::pthread_attr_destroy(&none);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(NoThreads const&) = delete;
  NoThreads& operator=(NoThreads const&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(NoThreads, a_run_fails) {
  const nf::Registry registry;
  chain::ChainConfig config;
  config.name = "a";
  const NoThreads none;
  ChainRun run(std::move(config), {}, own_user(), registry);
  EXPECT_TRUE(absl::IsResourceExhausted(run.wait_until_ready()));
  EXPECT_EQ(run.state(), ChainState::kFailed);
}

TEST(NoThreads, a_spec_is_refused) {
  const NoThreads none;
  EXPECT_TRUE(absl::IsResourceExhausted(prepare({"/a.yaml"}, {}, own_user(), nf::Registry()).status()));
}

TEST(NoThreads, work_of_a_chain_does_not_begin) {
  ChainThreads threads;
  const NoThreads none;
  EXPECT_TRUE(absl::IsResourceExhausted(threads.run("a", [] {})));
  EXPECT_FALSE(threads.is_at_work("a"));
}

}  // namespace
}  // namespace catena::service
