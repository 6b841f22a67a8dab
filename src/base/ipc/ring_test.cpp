// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/ring.hpp"

#include "base/ipc/socket_pair.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::ipc {
namespace {

struct Entry {
  std::uint64_t number;
  std::uint32_t again;
};

constexpr RingShape kShape{4, 8};

bool is_readable(int socket) {
  pollfd poll{socket, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

class RingTest : public ::testing::Test {
 protected:
  RingMessages<Entry> messages() { return {memory_, kShape}; }

  std::unique_ptr<RingHead> head_ = std::make_unique<RingHead>();
  std::vector<std::byte> memory_ = std::vector<std::byte>(RingMessages<Entry>::bytes(kShape));
  std::pair<FileDescriptor, FileDescriptor> sockets_ = make_socket_pair().value();
  RingWriter<Entry> writer_{*head_, messages(), sockets_.first.get()};
  RingReader<Entry> reader_{*head_, messages(), sockets_.second.get()};
};

TEST_F(RingTest, messages_come_in_order_with_their_entries) {
  std::uint64_t number = 0;
  for (std::uint32_t round = 0; round < 3 * kShape.depth; ++round) {
    const std::uint32_t entries = round % (kShape.max_entries + 1);
    for (std::uint32_t i = 0; i < entries; ++i) {
      writer_.next()[i] = {number + i, round};
    }
    writer_.push(entries);
    const auto message = reader_.poll().value();
    ASSERT_TRUE(message.has_value());
    ASSERT_EQ(message->size(), entries);
    for (Entry const& entry : *message) {
      EXPECT_EQ(entry.number, number++);
      EXPECT_EQ(entry.again, round);
    }
    reader_.take();
    EXPECT_FALSE(reader_.poll().value().has_value());
  }
}

TEST_F(RingTest, a_waiting_reader_is_woken_once) {
  writer_.push(1);
  writer_.wake();
  EXPECT_FALSE(is_readable(sockets_.second.get())) << "the reader does not wait";
  ASSERT_TRUE(reader_.poll().value().has_value());
  reader_.take();
  ASSERT_FALSE(reader_.poll().value().has_value());
  writer_.push(1);
  EXPECT_FALSE(is_readable(sockets_.second.get())) << "push() alone wakes no reader";
  writer_.wake();
  EXPECT_TRUE(is_readable(sockets_.second.get()));
  clear_wake_ups(sockets_.second.get());
  writer_.push(1);
  writer_.wake();
  EXPECT_FALSE(is_readable(sockets_.second.get())) << "it is awake";
}

TEST_F(RingTest, close_wakes_the_reader_and_gives_the_reason) {
  ASSERT_FALSE(reader_.poll().value().has_value());
  EXPECT_EQ(reader_.closed(), 0U);
  writer_.push(2);
  writer_.close(7);
  EXPECT_TRUE(is_readable(sockets_.second.get()));
  EXPECT_EQ(reader_.closed(), 7U);
  EXPECT_EQ(reader_.poll().value()->size(), 2U) << "messages are left";
}

TEST_F(RingTest, impossible_numbers_are_data_loss) {
  writer_.push(kShape.max_entries + 1);
  EXPECT_TRUE(absl::IsDataLoss(reader_.poll().status()));
  head_->pushed = kShape.depth + 1;
  EXPECT_TRUE(absl::IsDataLoss(reader_.poll().status()));
  head_->pushed = 0U - 1;
  EXPECT_TRUE(absl::IsDataLoss(reader_.poll().status()));
}

TEST_F(RingTest, threads_that_wait_for_each_other_lose_no_message) {
  constexpr std::uint64_t kMessages = 20'000;
  std::atomic<std::uint64_t> taken{0};
  std::thread writer([&] {
    for (std::uint64_t number = 0; number < kMessages; ++number) {
      while (number - taken.load() >= kShape.depth) {
        std::this_thread::yield();
      }
      writer_.next()[0] = {number, 0};
      writer_.push(1);
      writer_.wake();
    }
    writer_.close(1);
  });
  std::uint64_t number = 0;
  for (bool has_ended = false; !has_ended;) {
    has_ended = reader_.closed() != 0;
    while (const auto message = reader_.poll().value()) {
      has_ended = false;
      EXPECT_EQ(message->front().number, number++);
      reader_.take();
      taken = number;
    }
    if (!has_ended) {
      pollfd poll{sockets_.second.get(), POLLIN, 0};
      ::poll(&poll, 1,
             10);  // a limit, as workers have: poll() may have cleared the wake-up of a message written meanwhile
    }
  }
  writer.join();
  EXPECT_EQ(number, kMessages);
}

TEST(ClearWakeUps, clears_several) {
  const auto sockets = make_socket_pair().value();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::send(sockets.second.get(), "", 1, MSG_DONTWAIT), 1);
  }
  EXPECT_TRUE(is_readable(sockets.first.get()));
  clear_wake_ups(sockets.first.get());
  EXPECT_FALSE(is_readable(sockets.first.get()));
  clear_wake_ups(sockets.first.get());
}

// a reader that clears all of them may never come to an end if the other end writes as fast
TEST(ClearWakeUps, clears_a_part_of_wake_ups_without_end) {
  const auto sockets = make_socket_pair().value();
  const std::string much(1 << 16, 'x');
  std::size_t sent = 0;
  for (ssize_t bytes = 0; bytes >= 0; sent += static_cast<std::size_t>(bytes < 0 ? 0 : bytes)) {
    bytes = ::send(sockets.second.get(), much.data(), much.size(), MSG_DONTWAIT);
  }
  ASSERT_GE(sent, much.size());
  clear_wake_ups(sockets.first.get());
  EXPECT_TRUE(is_readable(sockets.first.get()));
}

}  // namespace
}  // namespace catena::ipc
