// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/state_transfer.hpp"

#include "base/ipc/shared_memory.hpp"
#include "pipeline/isolation/connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::nf_process {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Connection make_connection() {
  return {*Channel::create(ChannelShape::of(1)), *ipc::Mapping::create("test", packet::kSlotBytes)};
}

Result<int> leave(StateTransfer& of, std::size_t nf, std::uint64_t bytes, bool is_last = true) {
  const StateOf said{.nf = nf, .bytes = bytes};
  return of.leave(said, *ipc::make_peer_memory("state", 1), is_last);
}

class StateTransferTest : public testing::Test {
 protected:
  StateTransfer old_;
  StateTransfer new_;
  Connection waiting_ = make_connection();
  Connection other_ = make_connection();
};

TEST_F(StateTransferTest, crosses_once) {
  new_.expect();
  new_.set_waiting(&waiting_);
  old_.let_leave();
  ASSERT_TRUE(leave(old_, 1, 8).ok());
  EXPECT_EQ(new_.states_for(&waiting_), std::nullopt) << "before the old process has ended";
  new_.take(old_, 2);
  Connection const* late = nullptr;
  EXPECT_FALSE(new_.has_begun(late));
  EXPECT_EQ(new_.states_for(&other_), std::nullopt) << "another incarnation";
  const auto states = new_.states_for(&waiting_);
  ASSERT_TRUE(states.has_value());
  ASSERT_THAT(*states, SizeIs(1));
  EXPECT_EQ(states->front().of.nf, 1U);
  EXPECT_EQ(new_.states_for(&waiting_), std::nullopt) << "twice";
  EXPECT_FALSE(new_.has_begun(late));
  ASSERT_TRUE(new_.set_begun(&waiting_, {absl::OkStatus(), absl::OkStatus()}).ok());
  EXPECT_TRUE(new_.has_begun(late));
  EXPECT_EQ(late, nullptr);
  const std::vector<Status> results = new_.results({true, true});
  EXPECT_THAT(std::string(results[0].message()), HasSubstr("left no state"));
  EXPECT_TRUE(results[1].ok());
  EXPECT_TRUE(new_.results({false, true})[0].ok()) << "an NF that has no state has lost none";
}

TEST_F(StateTransferTest, refuses_state_that_was_not_asked_for) {
  EXPECT_FALSE(leave(old_, 0, 8).ok()) << "it is not to leave any";
  old_.let_leave();
  EXPECT_FALSE(leave(old_, 0, 8, false).ok()) << "packets follow";
  EXPECT_TRUE(leave(old_, 0, 8).ok());
  EXPECT_FALSE(leave(old_, 0, 8).ok()) << "twice";
  EXPECT_FALSE(leave(old_, 1, kMaxStateBytes - 7).ok()) << "too much of all NFs";
  EXPECT_TRUE(leave(old_, 1, kMaxStateBytes - 8).ok());
}

TEST_F(StateTransferTest, an_incarnation_that_was_given_no_state_may_not_begin) {
  EXPECT_FALSE(new_.set_begun(&waiting_, {}).ok()) << "it does not wait";
  new_.set_waiting(&waiting_);
  EXPECT_FALSE(new_.set_begun(&waiting_, {}).ok()) << "it was given nothing";
  new_.take(old_, 1);
  ASSERT_TRUE(new_.states_for(&waiting_).has_value());
  EXPECT_FALSE(new_.set_begun(&other_, {}).ok());
  EXPECT_TRUE(new_.set_begun(&waiting_, {absl::OkStatus()}).ok());
}

TEST_F(StateTransferTest, an_incarnation_that_ends_before_it_has_begun_delays_no_packets) {
  new_.set_waiting(&waiting_);
  old_.let_leave();
  ASSERT_TRUE(leave(old_, 0, 8).ok());
  new_.take(old_, 1);
  new_.set_waiting(nullptr);  // it has ended
  Connection const* late = nullptr;
  EXPECT_TRUE(new_.has_begun(late));
  EXPECT_EQ(late, nullptr);
  EXPECT_TRUE(absl::IsUnavailable(new_.results({true})[0]));
  new_.set_waiting(&waiting_);
  EXPECT_EQ(new_.states_for(&waiting_), std::nullopt) << "packets have gone on without the state";
}

TEST_F(StateTransferTest, a_process_that_did_not_end_properly_leaves_nothing) {
  old_.let_leave();
  ASSERT_TRUE(leave(old_, 0, 8).ok());
  old_.forget_left();
  new_.set_waiting(&waiting_);
  new_.take(old_, 1);
  const auto states = new_.states_for(&waiting_);
  ASSERT_TRUE(states.has_value());
  EXPECT_THAT(*states, IsEmpty());
}

}  // namespace
}  // namespace catena::nf_process
