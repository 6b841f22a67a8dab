// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <catena/core/testing/scratch_folder.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/nf/testing/run_everywhere.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "firewall.hpp"

namespace catena::firewall::testing {

/// The `rule` of each record line, in order.
inline std::vector<int> rules_in(nf::testing::RunResult const& result) {
  constexpr std::string_view kKey = "\"rule\":";
  std::vector<int> rules;
  for (std::string const& line : result.records) {
    const std::size_t at = line.find(kKey);
    EXPECT_NE(at, std::string::npos) << line;
    rules.push_back(std::stoi(line.substr(at + kKey.size())));
  }
  return rules;
}

/// Fixture with a folder for a rules file; makes firewalls from it.
class FirewallTest : public ::testing::Test {
 protected:
  static constexpr std::string_view kYaml = "{rules: fw.rules, default: allow}";

  void write_rules(std::string_view text) { folder_.write("fw.rules", text); }
  Result<std::unique_ptr<nf::Nf>> make(std::string_view yaml = kYaml) {
    return nf::testing::make_nf(catena_nf_firewall(), yaml, folder_.path());
  }
  nf::testing::RunResult run(std::vector<nf::testing::Frame> const& frames, std::string_view yaml = kYaml) {
    return nf::testing::run_everywhere(
        catena_nf_firewall(), [&] { return make(yaml); }, frames);
  }

  ScratchFolder folder_;
};

}  // namespace catena::firewall::testing
