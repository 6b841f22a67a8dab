// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/supervisor_signal.hpp"

#include "pipeline/isolation/connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>

#include <chrono>
#include <string>
#include <thread>

namespace catena::nf_process {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kForever{600'000};

Connection make_connection() {
  return {*Channel::create(ChannelShape::of(1)), *ipc::Mapping::create("test", packet::kSlotBytes)};
}

class SupervisorSignalTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(signal_.open().ok()); }
  bool is_readable() const {
    pollfd poll{signal_.fd(), POLLIN, 0};
    return ::poll(&poll, 1, 0) == 1;
  }

  SupervisorSignal signal_;
  Connection one_ = make_connection();
  Connection other_ = make_connection();
};

TEST_F(SupervisorSignalTest, a_call_is_readable_until_it_is_acknowledged) {
  EXPECT_FALSE(is_readable());
  signal_.ring();
  EXPECT_TRUE(is_readable());
  EXPECT_TRUE(signal_.acknowledge().ok());
  EXPECT_FALSE(is_readable());
}

TEST_F(SupervisorSignalTest, a_stop_is_never_forgotten) {
  signal_.stop();
  EXPECT_TRUE(absl::IsCancelled(signal_.acknowledge()));
  signal_.forget();
  EXPECT_TRUE(is_readable()) << "whoever waits next has to see it, too";
  EXPECT_TRUE(absl::IsCancelled(signal_.acknowledge()));
}

TEST_F(SupervisorSignalTest, a_failure_is_of_one_incarnation) {
  signal_.fail(one_, "why");
  EXPECT_TRUE(is_readable());
  EXPECT_TRUE(signal_.acknowledge().ok());
  const Status status = signal_.failure_of(&one_);
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_EQ(status.message(), "why");
  EXPECT_TRUE(signal_.failure_of(&one_).ok()) << "twice";
  signal_.fail(one_, "why");
  EXPECT_TRUE(signal_.failure_of(&other_).ok()) << "of an incarnation that has ended";
  EXPECT_TRUE(signal_.failure_of(&one_).ok()) << "forgotten";
}

TEST_F(SupervisorSignalTest, a_wait_ends_with_a_stop_alone) {
  EXPECT_TRUE(signal_.wait(milliseconds(1)));
  std::thread caller([this] {
    signal_.ring();
    signal_.fail(one_, "of one that has ended");
    signal_.stop();
  });
  EXPECT_FALSE(signal_.wait(kForever));
  caller.join();
}

}  // namespace
}  // namespace catena::nf_process
