// SPDX-License-Identifier: Apache-2.0
#include "service/hang_up_watch.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <future>

namespace catena::service {
namespace {

struct Connected {
  FileDescriptor client;
  FileDescriptor server;
};

Connected connected() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// Whether `token` is asked to stop before the test is over.
bool is_stopped(std::stop_token const& token) {
  std::promise<void> stopped;
  const std::stop_callback<std::function<void()>> on_stop(token, [&stopped] { stopped.set_value(); });
  return stopped.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready;
}

TEST(HangUpWatch, says_that_a_client_has_gone) {
  auto watch = HangUpWatch::start().value();
  Connected connection = connected();
  const HangUpWatch::Watched watched = watch->watch(connection.server.get());
  EXPECT_FALSE(watched.gone().stop_requested());
  connection.client.close();
  EXPECT_TRUE(is_stopped(watched.gone()));
}

TEST(HangUpWatch, says_so_of_one_that_has_gone_before) {
  auto watch = HangUpWatch::start().value();
  Connected connection = connected();
  connection.client.close();
  const HangUpWatch::Watched watched = watch->watch(connection.server.get());
  EXPECT_TRUE(is_stopped(watched.gone()));
}

TEST(HangUpWatch, one_that_only_sends_no_more_waits_for_its_answer) {
  auto watch = HangUpWatch::start().value();
  Connected half = connected();
  Connected whole = connected();
  const HangUpWatch::Watched watched = watch->watch(half.server.get());
  const HangUpWatch::Watched other = watch->watch(whole.server.get());
  ASSERT_EQ(::shutdown(half.client.get(), SHUT_WR), 0);
  whole.client.close();
  EXPECT_TRUE(is_stopped(other.gone()));
  EXPECT_FALSE(watched.gone().stop_requested()) << "it was the first to do something";
  half.client.close();
  EXPECT_TRUE(is_stopped(watched.gone()));
}

TEST(HangUpWatch, a_connection_that_is_watched_again_is_another_request) {
  auto watch = HangUpWatch::start().value();
  Connected connection = connected();
  std::stop_token first;
  {
    const HangUpWatch::Watched watched = watch->watch(connection.server.get());
    first = watched.gone();
  }
  const HangUpWatch::Watched watched = watch->watch(connection.server.get());
  connection.client.close();
  EXPECT_TRUE(is_stopped(watched.gone()));
  EXPECT_FALSE(first.stop_requested());
}

}  // namespace
}  // namespace catena::service
