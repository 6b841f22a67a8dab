// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/channel.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <type_traits>

namespace catena::nf_process {
namespace {

bool rings(int bell) {
  pollfd poll{bell, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

// between its members there would be bytes of whatever was in memory before
static_assert(std::has_unique_object_representations_v<PacketEntry>);

TEST(Bell, that_rang_is_silenced) {
  const auto bell = make_bell().value();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::send(bell.second.get(), "", 1, MSG_DONTWAIT), 1);
  }
  EXPECT_TRUE(rings(bell.first.get()));
  silence(bell.first.get());
  EXPECT_FALSE(rings(bell.first.get()));
  silence(bell.first.get());
}

// who takes all of it may never come to an end, where the other end writes as fast
TEST(Bell, that_rings_without_end_goes_on_when_a_part_of_it_was_taken) {
  const auto bell = make_bell().value();
  const std::string much(1 << 16, 'x');
  std::size_t sent = 0;
  for (ssize_t bytes = 0; bytes >= 0; sent += static_cast<std::size_t>(bytes < 0 ? 0 : bytes)) {
    bytes = ::send(bell.second.get(), much.data(), much.size(), MSG_DONTWAIT);
  }
  ASSERT_GE(sent, much.size());
  silence(bell.first.get());
  EXPECT_TRUE(rings(bell.first.get()));
}

}  // namespace
}  // namespace catena::nf_process
