// SPDX-License-Identifier: Apache-2.0
#include "service/user_limits.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace catena::service {
namespace {

constexpr uid_t kAnn = 3001;
constexpr uid_t kBob = 3002;

TEST(UserTurns, are_those_of_each_user) {
  UserTurns turns;
  const auto of_ann = turns.take(kAnn, {});
  ASSERT_TRUE(of_ann.ok());
  EXPECT_TRUE(turns.take(kBob, {}).ok()) << "others do not wait";
}

TEST(UserTurns, come_one_after_another) {
  UserTurns turns;
  std::atomic<int> inside{0};
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto turn = turns.take(kAnn, {});
      EXPECT_EQ(++inside, 1);
      std::this_thread::yield();
      --inside;
      ++done;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(done, 8);
}

TEST(UserTurns, are_not_waited_for_by_a_request_that_is_given_up) {
  UserTurns turns;
  const auto first = turns.take(kAnn, {});
  std::stop_source gone;
  std::thread client([&gone] { gone.request_stop(); });
  EXPECT_TRUE(absl::IsCancelled(turns.take(kAnn, gone.get_token()).status()));
  client.join();
}

TEST(UserLimits, are_for_those_alone_whose_rights_are_not_the_services) {
  if (!has_other_rights({kAnn, kAnn, {}})) {
    GTEST_SKIP() << "only a service of root has users with other rights";
  }
  EXPECT_EQ(chain_file_limits({kAnn, kAnn, {}}).bytes, std::size_t{1} << 20U);
  EXPECT_LT(chain_file_limits({kAnn, kAnn, {}}).nodes, yaml_limits({kAnn, kAnn, {}}).nodes);
  EXPECT_EQ(chain_file_limits(own_user()).bytes, nf::YamlLimits{}.bytes);
  EXPECT_EQ(yaml_limits(own_user()).nodes, nf::YamlLimits{}.nodes);
}

}  // namespace
}  // namespace catena::service
