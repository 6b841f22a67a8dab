// SPDX-License-Identifier: Apache-2.0
#include "service/claims.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace catena::service {
namespace {

using std::chrono::milliseconds;

TEST(Claims, a_name_is_of_one_operation_until_its_end) {
  Claims claims;
  {
    const Result<Claims::Claim> first = claims.take("a");
    ASSERT_TRUE(first.ok());
    EXPECT_TRUE(absl::IsAborted(claims.take("a").status()));
    EXPECT_TRUE(claims.take("b").ok());
    EXPECT_TRUE(claims.contains("a"));
    EXPECT_FALSE(claims.contains("b"));
  }
  EXPECT_TRUE(claims.is_empty());
  EXPECT_TRUE(claims.take("a").ok());
}

TEST(Claims, a_moved_claim_holds_the_name_once) {
  Claims claims;
  std::optional<Claims::Claim> outer;
  {
    Result<Claims::Claim> inner = claims.take("a");
    ASSERT_TRUE(inner.ok());
    outer.emplace(*std::move(inner));
  }
  EXPECT_TRUE(claims.contains("a"));
  outer.reset();
  EXPECT_FALSE(claims.contains("a"));
}

TEST(Claims, what_an_operation_wants_is_known_until_its_end) {
  Claims claims;
  {
    const Result<Claims::Claim> claim = claims.take("a");
    ASSERT_TRUE(claim.ok());
    claims.want("a", {"bank", 1000, {{"eth0"}}});
    ASSERT_EQ(claims.wanted().size(), 1U);
    EXPECT_EQ(claims.wanted()["a"].tenant, "bank");
    EXPECT_EQ(claims.wanted()["a"].resources.front().name, "eth0");
  }
  EXPECT_TRUE(claims.wanted().empty());
}

TEST(Claims, the_end_of_an_operation_is_waited_for_up_to_a_limit) {
  Claims claims;
  const Result<Claims::Claim> claim = claims.take("a");
  ASSERT_TRUE(claim.ok());
  EXPECT_EQ(claims.start_of("a"), Claims::Start());
  const Claims::Start start{nullptr, std::make_shared<std::stop_source>()};
  claims.set_start("a", start);
  EXPECT_EQ(claims.start_of("a"), start);
  claims.set_start("a", {});  // it goes on
  EXPECT_FALSE(claims.wait_for_end("a", start, milliseconds(10)));
  EXPECT_TRUE(claims.wait_for_end("b", start, milliseconds(0)));
}

TEST(Claims, the_end_of_an_operation_ends_its_start) {
  Claims claims;
  std::optional<Claims::Claim> claim(*claims.take("a"));
  const Claims::Start start{nullptr, std::make_shared<std::stop_source>()};
  claims.set_start("a", start);
  std::thread other([&claim] { claim.reset(); });
  EXPECT_TRUE(claims.wait_for_end("a", start, std::chrono::seconds(60)));
  other.join();
}

}  // namespace
}  // namespace catena::service
