// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/event_notifier.hpp"

#include <gtest/gtest.h>

#include <poll.h>

#include <atomic>
#include <thread>

namespace catena::ipc {
namespace {

/// Waits for `milliseconds` at most.
bool rings(EventNotifier const& notifier, int milliseconds = 0) {
  pollfd poll{notifier.descriptor(), POLLIN, 0};
  return ::poll(&poll, 1, milliseconds) > 0;
}

TEST(EventNotifier, is_readable_from_ring_to_quiet) {
  EventNotifier notifier;
  EXPECT_FALSE(rings(notifier));
  notifier.quiet();
  EXPECT_FALSE(rings(notifier));
  for (int round = 0; round < 2; ++round) {
    notifier.ring();
    notifier.ring();
    EXPECT_TRUE(rings(notifier));
    EXPECT_TRUE(rings(notifier)) << "until it is quiet";
    notifier.quiet();
    EXPECT_FALSE(rings(notifier));
  }
}

TEST(EventNotifier, work_before_a_ring_is_seen_after_it_is_quiet) {
  constexpr int kRounds = 20'000;
  EventNotifier notifier;
  std::atomic<int> work{0};
  std::thread worker([&] {
    for (int i = 0; i < kRounds; ++i) {
      work.fetch_add(1, std::memory_order_relaxed);
      notifier.ring();
    }
  });
  for (int done = 0; done < kRounds;) {
    ASSERT_TRUE(rings(notifier, 30'000)) << "a ring was lost after " << done;
    notifier.quiet();
    done = work.load(std::memory_order_relaxed);
  }
  worker.join();
}

}  // namespace
}  // namespace catena::ipc
