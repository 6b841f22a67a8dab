// SPDX-License-Identifier: Apache-2.0
#include "pipeline/downstream_chains.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace catena::runtime {
namespace {

using std::chrono::milliseconds;

class DownstreamChainTest : public ::testing::Test {
 protected:
  FlowSignal request_at(DownstreamChain::Clock::time_point now) {
    const std::optional<FlowSignal> request = chain_.request(now);
    EXPECT_TRUE(request.has_value());
    return request.value_or(FlowSignal());
  }

  const DownstreamChain::Clock::time_point start_{std::chrono::hours(1)};
  DownstreamChain chain_{"test", start_};
};

TEST_F(DownstreamChainTest, is_congested_from_a_slow_down_to_a_fasten_up) {
  const std::uint64_t asker = request_at(start_).asker;
  EXPECT_TRUE(chain_.accept({FlowSignal::Kind::kSlowDown, asker, 1, 3}, start_));
  EXPECT_TRUE(chain_.is_congested());
  EXPECT_EQ(chain_.hops(), 3);
  EXPECT_FALSE(chain_.accept({FlowSignal::Kind::kFastenUp, asker, 1}, start_)) << "not a later one";
  EXPECT_FALSE(chain_.accept({FlowSignal::Kind::kFastenUp, asker + 1, 2}, start_)) << "for another requester";
  EXPECT_FALSE(chain_.accept({FlowSignal::Kind::kAsk, asker, 2}, start_)) << "a request";
  EXPECT_TRUE(chain_.is_congested());
  EXPECT_TRUE(chain_.accept({FlowSignal::Kind::kFastenUp, asker, 2}, start_));
  EXPECT_FALSE(chain_.is_congested());
  EXPECT_TRUE(chain_.accept({FlowSignal::Kind::kSlowDown, asker, 3, kMaxFlowHops}, start_));
  EXPECT_FALSE(chain_.is_congested()) << "too far away";
}

TEST_F(DownstreamChainTest, a_slow_down_expires_without_repetition) {
  const std::uint64_t asker = request_at(start_).asker;
  EXPECT_TRUE(chain_.accept({FlowSignal::Kind::kSlowDown, asker, 1}, start_));
  EXPECT_FALSE(chain_.expire(start_ + kFlowHold));
  EXPECT_TRUE(chain_.is_congested());
  EXPECT_TRUE(chain_.expire(start_ + kFlowHold + milliseconds(1)));
  EXPECT_FALSE(chain_.is_congested());
  EXPECT_FALSE(chain_.expire(start_ + kFlowHold + milliseconds(1))) << "once";
}

TEST_F(DownstreamChainTest, requests_are_periodic_and_silence_begins_a_new_session) {
  const FlowSignal first = request_at(start_);
  EXPECT_EQ(chain_.request(start_ + kFlowAsk / 2), std::nullopt);
  const FlowSignal second = request_at(start_ + kFlowAsk);
  EXPECT_EQ(second.asker, first.asker);
  EXPECT_GT(second.sequence, first.sequence);
  EXPECT_FALSE(chain_.is_silent());

  const auto later = start_ + kFlowForget + milliseconds(1);
  const FlowSignal third = request_at(later);
  EXPECT_TRUE(chain_.is_silent());
  EXPECT_NE(third.asker, first.asker);
  EXPECT_FALSE(chain_.accept({FlowSignal::Kind::kSlowDown, first.asker, 9}, later)) << "recorded";
  EXPECT_TRUE(chain_.accept({FlowSignal::Kind::kFastenUp, third.asker, 1}, later));
  EXPECT_FALSE(chain_.is_silent());
}

}  // namespace
}  // namespace catena::runtime
