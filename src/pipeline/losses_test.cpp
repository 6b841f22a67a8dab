// SPDX-License-Identifier: Apache-2.0
#include "pipeline/losses.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Losses, each_has_a_text_with_its_name) {
  EXPECT_THAT(describe({}), IsEmpty());
  EXPECT_TRUE(Losses{}.empty());
  const Losses both{"'outputs' of 'spec' has changed", {"nat", "flows"}};
  EXPECT_FALSE(both.empty());
  EXPECT_THAT(describe(both),
              ElementsAre("packets that arrive during the replacement ('outputs' of 'spec' has changed)",
                          "the state of NF 'nat'", "the state of NF 'flows'"));
  const Losses of_state{.nf_states = {"nat"}};
  EXPECT_FALSE(of_state.empty());
  EXPECT_THAT(describe(of_state), ElementsAre("the state of NF 'nat'"));
}

}  // namespace
}  // namespace catena::runtime
