// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_nfs.hpp"

#include "pipeline/test_support.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace catena::runtime {
namespace {

using nf_process::GpuPart;

nf::Instance idle_instance(std::string const& name) {
  return {name, testing::kIdle, std::make_shared<testing::IdleNf>(), nf::OnUnsupported::kPass, false};
}

class ProcessNfsTest : public ::testing::Test {
 protected:
  nf_process::Channel channel_ = nf_process::Channel::create(nf_process::ChannelShape::of(1024)).value();
  nf::Instance first_ = idle_instance("first");
  nf::Instance second_ = idle_instance("second");
  ProcessNfs nfs_{{&first_, &second_}};
};

TEST_F(ProcessNfsTest, nfs_are_in_order) {
  EXPECT_EQ(nfs_.size(), 2U);
  EXPECT_EQ(&nfs_.first(), &first_);
  EXPECT_EQ(&nfs_[1], &second_);
  EXPECT_EQ(&nfs_.last(), &second_);
}

TEST_F(ProcessNfsTest, parts_go_to_each_incarnation_and_are_reported_by_it) {
  constexpr GpuPart kGiven{2, 4, 8};
  nfs_.part_of(1).give(kGiven);
  nfs_.begin();
  nfs_.exchange_parts(channel_);
  EXPECT_EQ(channel_.given_part(1), kGiven);
  EXPECT_EQ(channel_.given_part(0), GpuPart());
  EXPECT_EQ(nfs_.part_of(1).taken(), GpuPart());
  channel_.take_part(1, kGiven);
  channel_.give_part(1, {});  // as the process cannot do, to see whether it is written again
  nfs_.exchange_parts(channel_);
  EXPECT_EQ(nfs_.part_of(1).taken(), kGiven);
  EXPECT_EQ(channel_.given_part(1), GpuPart()) << "it did not change";

  const nf_process::Channel next = nf_process::Channel::create(nf_process::ChannelShape::of(1024)).value();
  nfs_.begin();
  nfs_.exchange_parts(next);
  EXPECT_EQ(next.given_part(1), kGiven);
  EXPECT_EQ(nfs_.part_of(1).taken(), GpuPart());
}

TEST_F(ProcessNfsTest, counts_of_the_process_are_added_once_to_those_of_its_nfs) {
  nfs_.begin();
  channel_.counts(0).processed = 5;
  channel_.counts(1).launches = 3;
  nfs_.take_counts(channel_);
  nfs_.take_counts(channel_);
  EXPECT_EQ(first_.counters().processed, 5U);
  EXPECT_EQ(second_.counters().launches, 3U);
  EXPECT_EQ(second_.counters().processed, 0U);
  nfs_.begin();  // its counts start at 0
  nfs_.take_counts(channel_);
  EXPECT_EQ(first_.counters().processed, 10U);
}

TEST_F(ProcessNfsTest, those_of_another_chain_continue_with_parts_and_counts) {
  constexpr GpuPart kGiven{0, 4, 8};
  nfs_.begin();
  nfs_.part_of(0).give(kGiven);
  nfs_.exchange_parts(channel_);
  channel_.counts(0).processed = 5;
  nfs_.take_counts(channel_);

  nf::Instance other_first = idle_instance("first");
  nf::Instance other_second = idle_instance("second");
  ProcessNfs next({&other_first, &other_second});
  next.continue_from(nfs_);
  channel_.counts(0).processed = 7;
  next.take_counts(channel_);
  EXPECT_EQ(other_first.counters().processed, 2U);
  next.exchange_parts(channel_);
  EXPECT_EQ(channel_.given_part(0), GpuPart()) << "the part of the chain before is taken back";
}

}  // namespace
}  // namespace catena::runtime
