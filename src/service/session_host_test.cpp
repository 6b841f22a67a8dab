// SPDX-License-Identifier: Apache-2.0
#include "service/session_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

namespace catena::service {
namespace {

using namespace std::chrono_literals;

constexpr auto kHostPatience = 20s;

/// A session of a chain without NFs.
Result<std::unique_ptr<runtime::Session>> session_of(std::string const& rx) {
  CATENA_ASSIGN_OR_RETURN(
      chain::ChainConfig config,
      chain::parse_chain("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: wire}\nspec:\n  rx: " + rx +
                             "\n  tx: null\n  nfs: []\n",
                         "wire.yaml"));
  static const nf::Registry kRegistry = nf::builtin_nfs();
  return runtime::Session::create(std::move(config), {}, kRegistry);
}

/// A host with a thread that runs its session.
class HostedSession {
 public:
  explicit HostedSession(std::string const& rx) {
    thread_ = std::thread([host = host_, rx] {
      host->made(session_of(rx));
      host->run();
    });
  }
  ~HostedSession() {
    host_->stop();
    thread_.join();
  }
  HostedSession(HostedSession const&) = delete;
  HostedSession& operator=(HostedSession const&) = delete;

  SessionHost* operator->() { return host_.get(); }
  std::shared_ptr<SessionHost> const& shared() const { return host_; }

 private:
  std::shared_ptr<SessionHost> host_ = std::make_shared<SessionHost>("wire");
  std::thread thread_;
};

TEST(SessionHost, a_session_waits_for_its_start_and_leaves_its_results) {
  HostedSession host("{generator: {count: 100}}");
  ASSERT_EQ(host->wait_until_made(), absl::OkStatus());
  EXPECT_FALSE(host->wait(50ms));
  EXPECT_EQ(host->state(), ChainState::kStarting);
  ASSERT_EQ(host->start(), absl::OkStatus());
  ASSERT_TRUE(host->wait(kHostPatience));
  EXPECT_EQ(host->state(), ChainState::kFinished);
  EXPECT_EQ(host->error(), "");
  EXPECT_EQ(host->report().rx.received, 100U);
  EXPECT_EQ(host->counts().sum("catena_tx_packets_total"), 100U);
  EXPECT_FALSE(host->abandoned_device());
}

TEST(SessionHost, a_guest_keeps_a_session_from_ending) {
  HostedSession host("{generator: {}}");
  ASSERT_EQ(host->wait_until_made(), absl::OkStatus());
  EXPECT_EQ(SessionHost::Guest(host.shared()).session(), nullptr) << "it does not run yet";
  ASSERT_EQ(host->start(), absl::OkStatus());
  std::optional<SessionHost::Guest> guest(std::in_place, host.shared());
  ASSERT_NE(guest->session(), nullptr);
  host->stop();
  EXPECT_TRUE(host->give_up().stop_requested()) << "so that the guest need not wait";
  EXPECT_FALSE(host->wait(100ms));
  EXPECT_EQ(SessionHost::Guest(host.shared()).session(), nullptr) << "no more guests come";
  guest->session()->progress();
  guest.reset();
  ASSERT_TRUE(host->wait(kHostPatience));
  EXPECT_EQ(host->state(), ChainState::kStopped);
  EXPECT_TRUE(host->report().accounted());
}

TEST(SessionHost, says_why_there_is_no_session) {
  HostedSession host("{no_such_port: {}}");
  EXPECT_EQ(host->wait_until_made().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(host->wait(kHostPatience));
  EXPECT_EQ(host->state(), ChainState::kFailed);
  EXPECT_THAT(host->error(), ::testing::HasSubstr("no_such_port"));
}

TEST(SessionHost, one_that_was_stopped_does_not_start) {
  HostedSession host("{generator: {}}");
  ASSERT_EQ(host->wait_until_made(), absl::OkStatus());
  host->stop();
  EXPECT_EQ(host->wait_until_made().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(host->start().code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(host->wait(kHostPatience));
  EXPECT_EQ(host->state(), ChainState::kStopped);
}

}  // namespace
}  // namespace catena::service
