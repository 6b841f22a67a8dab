// SPDX-License-Identifier: Apache-2.0
#include "eal/eal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_malloc.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace catena::eal {
namespace {

using ::testing::HasSubstr;

// One process, one EAL: all is in one case, in order.
TEST(Eal, is_started_once_for_all_threads_with_affinity_kept) {
  cpu_set_t cpus_before;
  ASSERT_EQ(sched_getaffinity(0, sizeof cpus_before, &cpus_before), 0);
  const std::vector<std::string> extra{"--vdev=net_null0"};
  ASSERT_TRUE(start(extra).ok());
  cpu_set_t cpus_after;
  ASSERT_EQ(sched_getaffinity(0, sizeof cpus_after, &cpus_after), 0);
  EXPECT_TRUE(CPU_EQUAL(&cpus_before, &cpus_after));

  std::vector<Status> statuses(4);
  {
    std::vector<std::jthread> threads;
    for (Status& status : statuses) {
      threads.emplace_back([&status] { status = start(); });
    }
  }
  for (Status const& status : statuses) {
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(start(extra).ok());
  const std::vector<std::string> other{"--vdev=net_null1"};
  const Status late = start(other);
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(late.message()), HasSubstr("--vdev=net_null1"));

  void* memory = rte_zmalloc("test", std::size_t{64} << 20, 64);
  EXPECT_NE(memory, nullptr);
  rte_free(memory);
}

}  // namespace
}  // namespace catena::eal
