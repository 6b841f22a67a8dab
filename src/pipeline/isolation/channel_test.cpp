// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/channel.hpp"

#include "base/ipc/socket_pair.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>

#include <type_traits>

namespace catena::nf_process {
namespace {

// between its members there would be bytes of whatever was in memory before
static_assert(std::has_unique_object_representations_v<PacketEntry>);

TEST(Channel, has_a_lane_each_way_and_the_counts_of_each_nf) {
  const ChannelShape shape = ChannelShape::of(16);
  const Channel ours = Channel::create(shape).value();
  const Channel theirs = Channel::map(FileDescriptor(::fcntl(ours.fd(), F_DUPFD_CLOEXEC, 0)), shape).value();
  const auto notifiers = ipc::make_socket_pair().value();
  RingWriter to_nf = ours.writer_to_nf(notifiers.first.get());
  RingReader of_host = theirs.reader_of_nf(notifiers.second.get());
  RingWriter to_host = theirs.writer_to_host(notifiers.second.get());
  RingReader of_nf = ours.reader_of_host(notifiers.first.get());

  to_nf.next()[15].slot = 3;
  to_nf.push(16);
  to_host.next()[0].slot = 4;
  to_host.push(1);
  EXPECT_EQ(of_host.poll().value()->back().slot, 3U);
  EXPECT_EQ(of_nf.poll().value()->front().slot, 4U);
  to_nf.close(kTransfersState);
  EXPECT_EQ(of_host.closed(), kTransfersState);
  EXPECT_EQ(of_nf.closed(), 0U);

  theirs.counts(1).processed = 5;
  EXPECT_EQ(ours.counts(1).processed.load(), 5U);
  EXPECT_EQ(ours.counts(0).processed.load(), 0U);
  ours.give_part(1, {2, 3, 4});
  EXPECT_EQ(theirs.given_part(1), (GpuPart{2, 3, 4}));
  EXPECT_EQ(theirs.taken_part(1), GpuPart());
}

}  // namespace
}  // namespace catena::nf_process
