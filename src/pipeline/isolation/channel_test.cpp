// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/channel.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <type_traits>

namespace catena::nf_process {
namespace {

bool rings(int notifier) {
  pollfd poll{notifier, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

// between its members there would be bytes of whatever was in memory before
static_assert(std::has_unique_object_representations_v<PacketEntry>);

TEST(EventNotifier, that_rang_is_silenced) {
  const auto notifier = make_notifier().value();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::send(notifier.second.get(), "", 1, MSG_DONTWAIT), 1);
  }
  EXPECT_TRUE(rings(notifier.first.get()));
  clear(notifier.first.get());
  EXPECT_FALSE(rings(notifier.first.get()));
  clear(notifier.first.get());
}

// who takes all of it may never come to an end, where the other end writes as fast
TEST(EventNotifier, that_rings_without_end_goes_on_when_a_part_of_it_was_taken) {
  const auto notifier = make_notifier().value();
  const std::string much(1 << 16, 'x');
  std::size_t sent = 0;
  for (ssize_t bytes = 0; bytes >= 0; sent += static_cast<std::size_t>(bytes < 0 ? 0 : bytes)) {
    bytes = ::send(notifier.second.get(), much.data(), much.size(), MSG_DONTWAIT);
  }
  ASSERT_GE(sent, much.size());
  clear(notifier.first.get());
  EXPECT_TRUE(rings(notifier.first.get()));
}

}  // namespace
}  // namespace catena::nf_process
