// SPDX-License-Identifier: Apache-2.0
#include "stack/port/ring_port.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/ipc/mapping.hpp"
#include "base/ipc/unix_address.hpp"

namespace catena::stack {
namespace {

constexpr std::uint32_t kGreeting = 0x52494E31;

class RingPorts : public ::testing::Test {
 protected:
  void SetUp() override {
    first_ = open();
    ASSERT_NE(first_, nullptr);
  }
  std::unique_ptr<RingPort> open() const {
    Result<std::unique_ptr<RingPort>> port = RingPort::open(path_);
    EXPECT_TRUE(port.ok()) << port.status();
    return port.ok() ? *std::move(port) : nullptr;
  }
  static bool send(RingPort& port, std::vector<std::byte> const& bytes) {
    const std::span<const std::byte> all(bytes);
    const std::size_t half = bytes.size() / 2;
    const std::array<std::span<const std::byte>, 2> parts = {all.first(half), all.subspan(half)};
    return port.send({.parts = parts, .bytes = static_cast<std::uint32_t>(bytes.size())});
  }
  /// A peer that is no RingPort.
  FileDescriptor connect() const {
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = *ipc::unix_address(path_);
    EXPECT_EQ(::connect(socket.get(), ipc::raw(address), sizeof address), 0);
    return socket;
  }
  void expect_service() {
    std::unique_ptr<RingPort> next = open();
    const std::vector<std::byte> frame(100, std::byte{7});
    EXPECT_TRUE(send(*next, frame));
    std::optional<std::span<const std::byte>> received;
    for (int polls = 0; polls < 200 && !received; ++polls) {  // it notices after some polls that the last one has left
      received = first_->receive();
    }
    ASSERT_TRUE(received);
    EXPECT_TRUE(std::ranges::equal(*received, frame));
  }
  static bool is_readable(RingPort const& port, int wait_ms) {
    pollfd readable{port.descriptor(), POLLIN, 0};
    return ::poll(&readable, 1, wait_ms) == 1;
  }

  std::string path_ = "ring_port_test." + std::to_string(::getpid());
  std::unique_ptr<RingPort> first_;
};

TEST_F(RingPorts, carry_frames_of_all_sizes_in_order) {
  const std::unique_ptr<RingPort> second = open();
  EXPECT_FALSE(first_->receive());  // meets the second one
  std::minstd_rand random(3);
  for (const bool back : {false, true}) {
    RingPort& from = back ? *first_ : *second;
    RingPort& to = back ? *second : *first_;
    for (const std::size_t bytes : {std::size_t{14}, std::size_t{60}, std::size_t{1514}, std::size_t{65'549}}) {
      std::vector<std::byte> frame(bytes);
      for (std::byte& byte : frame) {
        byte = static_cast<std::byte>(random());
      }
      ASSERT_TRUE(send(from, frame));
      const auto received = to.receive();
      ASSERT_TRUE(received) << bytes;
      EXPECT_TRUE(std::ranges::equal(*received, frame)) << bytes;
      EXPECT_FALSE(to.receive());
    }
    EXPECT_FALSE(send(from, std::vector<std::byte>(70'000)));
  }
}

TEST_F(RingPorts, drop_frames_while_they_are_full) {
  EXPECT_FALSE(send(*first_, std::vector<std::byte>(60)));
  const std::unique_ptr<RingPort> second = open();
  std::uint32_t sent = 0;
  while (send(*second, std::vector<std::byte>(60))) {
    ++sent;
  }
  EXPECT_EQ(sent, 256U);
  EXPECT_EQ(second->counters().no_room, 1U);
  std::uint32_t received = 0;
  while (first_->receive()) {
    ++received;
  }
  EXPECT_EQ(received, sent);
  EXPECT_TRUE(send(*second, std::vector<std::byte>(60)));
}

TEST_F(RingPorts, wake_who_waits) {
  EXPECT_FALSE(is_readable(*first_, 0));
  const std::unique_ptr<RingPort> second = open();
  EXPECT_TRUE(is_readable(*first_, 1000));  // a peer
  EXPECT_FALSE(first_->receive());
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(first_->receive());
    send(*second, std::vector<std::byte>(60));
    EXPECT_TRUE(is_readable(*first_, 1000));
    EXPECT_TRUE(first_->receive());
  }
}

TEST_F(RingPorts, serve_one_peer_after_the_other) {
  for (int round = 0; round < 3; ++round) {
    expect_service();
  }
}

TEST_F(RingPorts, survive_peers_that_greet_wrongly) {
  Result<ipc::Mapping> small = ipc::Mapping::create("small", 4096);
  ASSERT_TRUE(small.ok());
  {
    const FileDescriptor silent = connect();
    EXPECT_FALSE(first_->receive());
  }
  first_->receive();
  for (const int fd : {-1, small->fd(), STDIN_FILENO}) {
    for (const std::uint32_t call : {kGreeting, 1U}) {
      const FileDescriptor peer = connect();
      ASSERT_EQ(ipc::send_frame(peer.get(), call, {}, fd), absl::OkStatus());
      EXPECT_FALSE(first_->receive());
    }
  }
  const FileDescriptor peer = connect();
  const std::string noise(1000, '\xFF');
  ASSERT_GT(::send(peer.get(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
  EXPECT_FALSE(first_->receive());
  expect_service();
}

TEST_F(RingPorts, survive_any_content_of_the_memory) {
  // the state of a direction, and 256 messages of a length, a head of 16 bytes and up to 65,664 bytes
  constexpr std::size_t kState = 192;
  constexpr std::size_t kDirection = (kState + 256 * (4 + 16 + 65'664) + 4095) / 4096 * 4096;
  std::minstd_rand random(5);
  const auto poll = [&] {
    for (int polls = 0; polls < 100; ++polls) {
      first_->receive();
      send(*first_, std::vector<std::byte>(1000));
    }
  };
  for (int round = 0; round < 24; ++round) {
    Result<ipc::Mapping> memory = ipc::Mapping::create("hostile", 2 * kDirection);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const FileDescriptor peer = connect();
    ASSERT_EQ(ipc::send_frame(peer.get(), kGreeting, {}, memory->fd()), absl::OkStatus());
    first_->receive();
    const auto store = [&](std::size_t at, std::uint32_t value) {
      std::memcpy(&memory->bytes()[at], &value, sizeof value);
    };
    for (std::size_t at = kState; at < 8192; at += 4) {
      store(at, static_cast<std::uint32_t>(random()));
    }
    const std::uint32_t pushed = round % 3 == 0 ? static_cast<std::uint32_t>(random()) : 1U + round % 8;
    store(0, pushed);
    store(kState, round % 2 == 0 ? 1500 : static_cast<std::uint32_t>(random()));
    store(kDirection + 128, static_cast<std::uint32_t>(random()));  // frames that this end has taken
    poll();
    ::shutdown(peer.get(), SHUT_RDWR);
    poll();
  }
  expect_service();
}

}  // namespace
}  // namespace catena::stack
