// SPDX-License-Identifier: Apache-2.0
#include "pipeline/congestion_hook.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

namespace catena::runtime {
namespace {

using namespace std::chrono_literals;

class CongestionHookTest : public ::testing::Test {
 protected:
  std::string said() const {
    std::stringstream text;
    text << std::ifstream(folder_.path("said")).rdbuf();
    return text.str();
  }
  bool says(std::string const& text) const {
    for (const auto end = std::chrono::steady_clock::now() + 20s;
         said() != text && std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(2ms);
    }
    return said() == text;
  }
  chain::FlowHookConfig running(std::string const& script) const {
    return {.command = {"/bin/sh", "-c", script, "hook", folder_.path("said")}, .period_ms = 20, .paused = 0.5};
  }

  std::shared_ptr<SourcePauses> pauses_ = std::make_shared<SourcePauses>();
  ScratchFolder folder_;
};

TEST_F(CongestionHookTest, a_command_is_told_of_each_change) {
  const CongestionHook hook(running(R"(echo "$CATENA_CHAIN is $CATENA_STATE" >> "$1")"), "office", pauses_);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(hook.runs(), 0U);
  pauses_->begin();
  EXPECT_TRUE(says("office is congested\n")) << said();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(hook.runs(), 1U) << "once";
  pauses_->end();
  EXPECT_TRUE(says("office is congested\noffice is free\n")) << said();
  EXPECT_EQ(hook.failures(), 0U);
}

TEST_F(CongestionHookTest, what_changes_while_a_command_runs_is_told_when_it_has_ended) {
  folder_.write("gate", "");
  const CongestionHook hook(
      running(R"(echo "$CATENA_STATE" >> "$1"; while [ -e ")" + folder_.path("gate") + R"(" ]; do sleep 0.01; done)"),
      "office", pauses_);
  pauses_->begin();
  EXPECT_TRUE(says("congested\n"));
  pauses_->end();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(hook.runs(), 1U);
  std::filesystem::remove(folder_.path("gate"));
  EXPECT_TRUE(says("congested\nfree\n"));
}

TEST_F(CongestionHookTest, one_that_fails_is_counted) {
  auto config = running("exit 3");
  {
    const CongestionHook hook(config, "office", pauses_);
    pauses_->begin();
    while (hook.failures() == 0) {  // counted before anything else happens
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(hook.runs(), 1U);
    pauses_->end();
  }
  config.command = {folder_.path("nothing")};
  const CongestionHook hook(config, "office", pauses_);
  pauses_->begin();
  while (hook.failures() == 0) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(hook.runs(), 0U);
  pauses_->end();
}

TEST_F(CongestionHookTest, what_a_command_has_started_goes_on_when_it_has_ended) {
  std::string pid;
  {
    const CongestionHook hook(running(R"(sleep 60 & echo $! > "$1")"), "office", pauses_);
    pauses_->begin();
    while (said().empty()) {
      std::this_thread::sleep_for(1ms);
    }
    pid = said();
    std::this_thread::sleep_for(100ms);  // it has ended
  }
  EXPECT_EQ(::kill(std::stoi(pid), 0), 0) << "it was ended with the chain";
  ::kill(std::stoi(pid), SIGKILL);
}

TEST_F(CongestionHookTest, one_that_does_not_end_is_ended) {
  {
    const CongestionHook hook(running(R"(trap '' TERM; echo $$ > "$1"; while :; do sleep 0.01; done)"), "office",
                              pauses_);
    pauses_->begin();
    while (said().empty()) {
      std::this_thread::sleep_for(1ms);
    }
  }
  EXPECT_NE(::kill(std::stoi(said()), 0), 0) << "it is still there";
}

}  // namespace
}  // namespace catena::runtime
