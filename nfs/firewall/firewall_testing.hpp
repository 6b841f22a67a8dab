// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/eal/eal.hpp"
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

/// A folder for a rules file, and firewalls made of it.
class FirewallTest : public ::testing::Test {
 protected:
  static constexpr std::string_view kYaml = "{rules: fw.rules, default: allow}";

  static void SetUpTestSuite() { ASSERT_TRUE(dataplane::ensure_eal().ok()); }
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("firewall_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write_rules(std::string_view text) { std::ofstream(folder_ / "fw.rules") << text; }
  Result<std::unique_ptr<nf::Nf>> make(std::string_view yaml = kYaml) {
    return nf::testing::make_nf(catena_nf_firewall(), yaml, folder_.string());
  }
  /// Runs on the CPU and on every device, expects the same from all, and returns it.
  nf::testing::RunResult run(std::vector<nf::testing::Frame> const& frames, std::string_view yaml = kYaml) {
    auto firewall = make(yaml);
    EXPECT_TRUE(firewall.ok()) << firewall.status();
    if (!firewall.ok()) {
      return {};
    }
    auto cpu = nf::testing::run(catena_nf_firewall(), *std::move(firewall), frames);
    EXPECT_TRUE(cpu.ok()) << cpu.status();
    for (device::Device* device : nf::testing::devices()) {
      SCOPED_TRACE(device->info().name);
      auto on_device = nf::testing::run(catena_nf_firewall(), *make(yaml), frames, device);
      EXPECT_TRUE(on_device.ok()) << on_device.status();
      if (!on_device.ok()) {
        continue;
      }
      EXPECT_TRUE(on_device->packets == cpu->packets);
      EXPECT_EQ(on_device->records, cpu->records);
      EXPECT_EQ(on_device->drops, cpu->drops);
      EXPECT_EQ(on_device->counters.kernel_faults, 0U);
      EXPECT_EQ(on_device->counters.device_packets, cpu->counters.decided);
    }
    return *std::move(cpu);
  }

  std::filesystem::path folder_;
};

}  // namespace catena::firewall::testing
