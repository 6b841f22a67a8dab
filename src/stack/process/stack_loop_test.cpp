// SPDX-License-Identifier: Apache-2.0
#include "stack/process/stack_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hostcopy/testing/faulty_engine.hpp"
#include "base/ipc/message.hpp"
#include "base/ipc/socket_pair.hpp"
#include "stack/process/settings.hpp"
#include "stack/segment/attachment.hpp"

namespace catena::stack {
namespace {

/// A port without peers.
class SilentPort final : public Port {
 public:
  bool send(OutgoingFrame const& /*frame*/) override { return true; }
  std::optional<std::span<const std::byte>> receive() override { return std::nullopt; }
  int descriptor() const override { return never_.get(); }

 private:
  FileDescriptor never_{::eventfd(0, EFD_CLOEXEC)};
};

bool has_room(int socket) {
  pollfd room{.fd = socket, .events = POLLOUT, .revents = 0};
  return ::poll(&room, 1, 0) == 1;
}

class StackLoopTest : public ::testing::Test {
 protected:
  StackLoopTest() {
    settings_.tcp.ipv4 = TcpOptions::Network{packet::Address::of_v4(0x0A000002), 24, std::nullopt};
    settings_.shape = {.sessions = 4, .rx_bytes = 65536, .tx_bytes = 4096};
    settings_.tx_buffer_bytes = std::uint64_t{1} << 20U;
  }
  ~StackLoopTest() override {
    ::shutdown(control_.first.get(), SHUT_RDWR);
    serves_.join();
  }
  void start() {
    loop_ =
        *StackLoop::create(settings_, std::make_unique<SilentPort>(), std::move(engines_), std::move(control_.second));
    serves_ = std::thread([this] { loop_->run(); });
  }
  int attach(pid_t process, std::unique_ptr<Attachment>& attachment) {
    auto ends = *ipc::make_socket_pair();
    EXPECT_TRUE(send_application(control_.first.get(), settings_.shape, ends.first.get(), process).ok());
    ends.first.close();
    return Attachment::attach(std::move(ends.second), attachment);
  }

  StackSettings settings_;
  hostcopy::testing::FaultyEngineScript script_;
  std::vector<std::unique_ptr<hostcopy::Engine>> engines_;
  std::pair<FileDescriptor, FileDescriptor> control_ = *ipc::make_socket_pair();
  std::unique_ptr<StackLoop> loop_;
  std::thread serves_;
};

/// It may be stopped, and reads no reports.
TEST_F(StackLoopTest, serves_while_its_supervisor_reads_nothing) {
  const int few_bytes = 1;
  ::setsockopt(control_.second.get(), SOL_SOCKET, SO_SNDBUF, &few_bytes, sizeof few_bytes);
  const FileDescriptor its(::dup(control_.second.get()));
  start();
  while (has_room(its.get())) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // more reports are due
  std::unique_ptr<Attachment> attachment;
  EXPECT_EQ(attach(7, attachment), 0);
}

TEST_F(StackLoopTest, refuses_one_process_before_it_refuses_all) {
  settings_.max_applications = 4;
  settings_.max_of_process = 2;
  start();
  std::array<std::unique_ptr<Attachment>, 4> attached;
  std::unique_ptr<Attachment> refused;
  EXPECT_EQ(attach(7, attached[0]), 0);
  EXPECT_EQ(attach(7, attached[1]), 0);
  EXPECT_EQ(attach(7, refused), -EMFILE);
  EXPECT_EQ(attach(8, attached[2]), 0);
  attached[0].reset();
  while (attach(7, attached[0]) == -EMFILE) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it looks at times for those that have ended
  }
  EXPECT_NE(attached[0], nullptr);
  EXPECT_EQ(attach(9, attached[3]), 0);
  EXPECT_EQ(attach(9, refused), -EUSERS);
}

/// The engine would reach no segment after the first ones, and no memory would be freed.
TEST_F(StackLoopTest, engines_reach_no_segment_of_an_application_that_has_ended) {
  script_.max_memories = 3;  // the stack's buffers and two segments
  engines_.push_back(std::make_unique<hostcopy::testing::FaultyEngine>(script_));
  settings_.max_applications = 2;
  start();
  std::array<std::unique_ptr<Attachment>, 2> attached;
  for (std::size_t i = 0; i < 12; ++i) {
    attached[i % 2].reset();
    while (attach(7, attached[i % 2]) == -EUSERS) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_NE(attached[i % 2], nullptr);
  }
  ::shutdown(control_.first.get(), SHUT_RDWR);
  serves_.join();
  serves_ = std::thread([] {});
  EXPECT_LE(script_.memories, 3U);
  EXPECT_EQ(script_.refused_memories, 0U);
}

TEST(StackSettings, arrive_as_they_were_sent) {
  StackSettings sent;
  sent.engines = {"cuda", "cpu-stream"};
  sent.max_of_process = 5;
  ipc::Writer writer;
  put(writer, sent);
  const Result<StackSettings> arrived = take_settings(writer.bytes());
  ASSERT_EQ(arrived.status(), absl::OkStatus());
  EXPECT_EQ(arrived->engines, sent.engines);
  EXPECT_EQ(arrived->max_of_process, 5U);
  EXPECT_FALSE(take_settings(writer.bytes().first(writer.bytes().size() - 1)).ok());
}

}  // namespace
}  // namespace catena::stack
