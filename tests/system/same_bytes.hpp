// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "system/chain_runner.hpp"

#include <gtest/gtest.h>

/// What the tests of "the same bytes everywhere" have in common: the ways to run a chain, and how two runs are
/// compared.
namespace catena::testing {

/// Ways to synchronize host and device, besides the default.
struct SyncCase {
  const char* name;
  chain::SyncOptions options;
};
inline std::vector<SyncCase> const& sync_cases() {
  static const std::vector<SyncCase> kCases{
      {"copy", {plan::Mode::kCopy}},
      {"shared", {plan::Mode::kShared}},
      {"adaptive without pushdown", {plan::Mode::kAdaptive, false}},
      {"adaptive, staged", {plan::Mode::kAdaptive, true, costs_for(TransferMethod::kStaged)}},
      {"adaptive, strided", {plan::Mode::kAdaptive, true, costs_for(TransferMethod::kStrided)}},
      {"adaptive, gather", {plan::Mode::kAdaptive, true, costs_for(TransferMethod::kGather)}},
      {"shared, staged", {plan::Mode::kShared, true, costs_for(TransferMethod::kStaged)}},
      {"shared, gather", {plan::Mode::kShared, true, costs_for(TransferMethod::kGather)}}};
  return kCases;
}

inline void expect_same(ChainOutput const& actual, ChainOutput const& expected, std::string const& what) {
  // byte strings of megabytes: say that they differ, do not print them
  EXPECT_TRUE(actual.capture == expected.capture) << what << ": the output capture differs, " << actual.capture.size()
                                                  << " bytes against " << expected.capture.size();
  EXPECT_EQ(first_difference(actual.records, expected.records), "") << what << ": the record lines differ";
  EXPECT_TRUE(actual.report.accounted()) << what;
  EXPECT_EQ(actual.report.slots_in_use, 0U) << what << ": slots leaked";
  EXPECT_EQ(actual.report.sent, expected.report.sent) << what;
}

/// Whether every NF ran where `mask` wants it: none gave its device up.
inline void expect_placed(ChainOutput const& actual, std::uint32_t mask, std::string const& what) {
  for (std::size_t i = 0; i < actual.report.nfs.size(); ++i) {
    EXPECT_EQ(actual.report.nfs[i].placement, (mask >> i & 1U) != 0 ? "gpu" : "cpu") << what;
  }
}

}  // namespace catena::testing
