// SPDX-License-Identifier: Apache-2.0
#include "service/quotas.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace catena::service {
namespace {

constexpr uid_t kUser = 3001;
constexpr uid_t kOther = 3002;

Result<Quotas> quotas_of(std::string const& text) {
  const std::string file = std::filesystem::temp_directory_path() / concat("quotas-", ::getpid(), ".yaml");
  std::ofstream(file) << text;
  Result<Quotas> quotas = Quotas::load(file);
  std::filesystem::remove(file);
  return quotas;
}

TEST(Quotas, a_row_has_what_it_says_and_else_the_default_one) {
  const Result<Quotas> quotas = quotas_of("default: {chains: 3}\nusers:\n  3001: {nf_processes: 5}\n");
  ASSERT_TRUE(quotas.ok()) << quotas.status().message();
  Amounts expected{};
  for (std::size_t i = 0; i < kQuotas.size(); ++i) {
    expected[i] = kQuotas[i].standard;
  }
  expected[0] = 3;
  EXPECT_EQ(quotas->of(kOther), expected);
  expected[static_cast<std::size_t>(Quota::kNfProcesses)] = 5;
  EXPECT_EQ(quotas->of(kUser), expected);
}

TEST(Quotas, a_wrong_file_is_an_error_at_its_place) {
  EXPECT_THAT(quotas_of("default: {chain: 3}\n").status().message(), ::testing::HasSubstr(".yaml:1:11: "));
  EXPECT_THAT(quotas_of("default: {chains: -1}\n").status().message(), ::testing::HasSubstr(".yaml:1:19: "));
  EXPECT_THAT(quotas_of("users:\n  mary: {chains: 1}\n").status().message(), ::testing::HasSubstr(".yaml:2:"));
  EXPECT_FALSE(quotas_of("user: {}\n").ok());
}

TEST(Quotas, a_refusal_has_the_quota_and_the_amounts) {
  const Quotas quotas;
  for (std::size_t i = 0; i < kQuotas.size(); ++i) {
    Amounts used{};
    Amounts asked{};
    asked[i] = 1;
    used[i] = kQuotas[i].standard - 1;
    EXPECT_TRUE(quotas.check(kUser, used, asked).ok()) << kQuotas[i].key;
    used[i] = kQuotas[i].standard;
    const Status status = quotas.check(kUser, used, asked);
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_THAT(status.message(), ::testing::HasSubstr(concat("the quota '", kQuotas[i].key, "' of user 3001 is ",
                                                              used[i], "; ", used[i], " used, 1 asked")));
    EXPECT_TRUE(quotas.check(0, used, asked).ok());
    EXPECT_TRUE(quotas.check(kUser, used, {}).ok()) << "what a chain does not need it may have no more of";
  }
}

TEST(ApplyRate, counts_a_minute_for_each_user) {
  const Result<Quotas> quotas = quotas_of("default: {applies_per_minute: 2}\n");
  ASSERT_TRUE(quotas.ok());
  ApplyRate rate;
  const ApplyRate::Clock::time_point begin;
  const auto add = [&](uid_t user, int second) {
    return rate.add(user, *quotas, begin + std::chrono::seconds(second));
  };
  EXPECT_TRUE(add(kUser, 0).ok());
  EXPECT_TRUE(add(kUser, 30).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(add(kUser, 59)));
  EXPECT_TRUE(add(kOther, 59).ok());
  EXPECT_TRUE(add(kUser, 60).ok());
  EXPECT_FALSE(add(kUser, 61).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(add(0, 61).ok());
  }
}

}  // namespace
}  // namespace catena::service
