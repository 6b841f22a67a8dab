// SPDX-License-Identifier: Apache-2.0
#include "service/chain_run.hpp"

#include "gpu/device/testing/faulty_device.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <thread>

namespace catena::service {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kSoon = 20s;

/// A chain of one firewall, which takes what comes.
chain::ChainConfig firewall_chain(std::string const& rx, std::string const& on = "cpu") {
  static const ScratchFolder kFolder;
  kFolder.write("fw.rules", "deny tcp any any any 23\n");
  const std::string text = concat(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: ", rx,
      "\n  tx: null\n  tuning: {device_limit_ms: 50}\n  device: opencl\n  nfs:\n    - {name: fw, type: firewall, ",
      "on: ", on, ", config: {rules: fw.rules, default: allow}}\n");
  Result<chain::ChainConfig> config = chain::parse_chain(text, kFolder.path("a.yaml"));
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

nf::Registry const& nfs() {
  static const nf::Registry kRegistry = nf::builtin_nfs();
  return kRegistry;
}

/// One that is ready to run.
Result<std::unique_ptr<ChainRun>> made(chain::ChainConfig config, runtime::RunOptions const& options = {}) {
  auto run = std::make_unique<ChainRun>(std::move(config), options, own_user(), nfs());
  CATENA_RETURN_IF_ERROR(run->wait_until_ready());
  return run;
}

TEST(ChainRun, no_packets_run_before_it_is_started) {
  auto run = made(firewall_chain("{generator: {count: 100}}"));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE((*run)->wait(50ms));
  EXPECT_EQ((*run)->state(), ChainState::kStarting);
  EXPECT_EQ((*run)->report().rx.received, 0U);
  ASSERT_TRUE((*run)->start().ok());
  ASSERT_TRUE((*run)->wait(kSoon));
  EXPECT_EQ((*run)->state(), ChainState::kFinished);
  EXPECT_EQ((*run)->report().rx.received, 100U);
  EXPECT_EQ((*run)->counts().sum("catena_tx_packets_total"), 100U);
}

TEST(ChainRun, one_that_was_never_started_ends_too) {
  auto run = made(firewall_chain("{generator: {}}"));
  ASSERT_TRUE(run.ok()) << run.status();
  (*run)->stop();
  ASSERT_TRUE((*run)->wait(kSoon));
  EXPECT_EQ((*run)->state(), ChainState::kStopped);
  EXPECT_EQ((*run)->report().rx.received, 0U);
}

TEST(ChainRun, what_is_inside_is_finished_when_it_is_stopped) {
  auto run = made(firewall_chain("{generator: {}}"));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE((*run)->start().ok());
  while ((*run)->report().rx.received < 1000) {
    std::this_thread::sleep_for(1ms);
  }
  (*run)->stop();
  (*run)->stop();
  ASSERT_TRUE((*run)->wait(kSoon));
  EXPECT_EQ((*run)->state(), ChainState::kStopped);
  EXPECT_TRUE((*run)->report().accounted());
  EXPECT_GE((*run)->report().rx.received, 1000U);
}

TEST(ChainRun, one_that_waits_for_a_reader_can_be_stopped) {
  const ScratchFolder folder;
  runtime::RunOptions options;
  options.record_path = folder.path("fifo");
  ASSERT_EQ(::mkfifo(options.record_path.c_str(), 0600), 0);
  ChainRun run(firewall_chain("{generator: {}}"), options, own_user(), nfs());
  std::thread waiting([&run] { EXPECT_EQ(run.wait_until_ready().code(), absl::StatusCode::kCancelled); });
  EXPECT_FALSE(run.wait(50ms));
  EXPECT_EQ(run.state(), ChainState::kStarting);
  run.stop();
  waiting.join();
  EXPECT_TRUE(run.wait(kSoon));
  EXPECT_EQ(run.state(), ChainState::kStopped);
  EXPECT_EQ(run.start().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(run.state(), ChainState::kStopped);
}

TEST(ChainRun, what_keeps_a_session_from_being_made_is_said) {
  chain::ChainConfig config = firewall_chain("{generator: {}}");
  config.nfs.front().type = "firewal";
  const auto run = made(std::move(config));
  EXPECT_THAT(std::string(run.status().message()), HasSubstr("firewal"));
}

TEST(ChainRun, a_device_that_hangs_keeps_nobody_waiting) {
  Result<std::unique_ptr<device::Device>> real = device::open(device::DevicePreference::of("opencl"));
  ASSERT_TRUE(real.ok()) << real.status();
  static const std::unique_ptr<device::Device> kLasting = *std::move(real);  // what hangs is never taken down
  runtime::RunOptions options;
  device::testing::FaultyDevice* hanging = nullptr;
  options.open_device = [&hanging](device::DevicePreference const&,
                                   std::string*) -> Result<std::unique_ptr<device::Device>> {
    auto faulty = std::make_unique<device::testing::FaultyDevice>(*kLasting);
    hanging = faulty.get();
    return faulty;
  };
  auto run = made(firewall_chain("{generator: {rate: 20000}}", "gpu"), options);
  ASSERT_TRUE(run.ok()) << run.status();
  hanging->hold_events(true);
  ASSERT_TRUE((*run)->start().ok());
  while ((*run)->report().nfs.front().device.error.empty() && (*run)->state() == ChainState::kRunning) {
    std::this_thread::sleep_for(1ms);
  }
  (*run)->stop();
  ASSERT_TRUE((*run)->wait(kSoon));
  EXPECT_TRUE((*run)->abandoned_device());
}

}  // namespace
}  // namespace catena::service
