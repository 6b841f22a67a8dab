// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/frames.hpp"

#include "base/ipc/message.hpp"
#include "base/ipc/socket_pair.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

namespace catena::ipc {
namespace {

constexpr std::uint32_t kMaxBytes = 4U << 20;

class FramesTest : public ::testing::Test {
 protected:
  int ours() const { return sockets_.first.get(); }
  int theirs() const { return sockets_.second.get(); }

  std::pair<FileDescriptor, FileDescriptor> sockets_ = make_socket_pair().value();
};

TEST_F(FramesTest, come_whole_and_in_order) {
  ASSERT_TRUE(send_frame(ours(), 3, Writer().put(std::uint64_t{5}).put_text("five").bytes()).ok());
  ASSERT_TRUE(send_frame(ours(), 4, {}).ok());
  const Frame first = receive_frame(theirs(), kMaxBytes).value();
  EXPECT_EQ(first.call, 3U);
  Reader body(first.body);
  EXPECT_EQ(body.take<std::uint64_t>(), 5U);
  EXPECT_EQ(body.take_text(), "five");
  EXPECT_TRUE(body.ok());
  EXPECT_EQ(body.left(), 0U);
  EXPECT_FALSE(first.fd);
  const Frame second = receive_frame(theirs(), kMaxBytes).value();
  EXPECT_EQ(second.call, 4U);
  EXPECT_TRUE(second.body.empty());
}

TEST_F(FramesTest, bring_a_descriptor_of_the_same_file) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  ASSERT_TRUE(send_frame(ours(), 1, Writer().put(1).bytes(), write_end.get()).ok());
  ASSERT_TRUE(send_frame(ours(), 2, {}).ok());
  const Frame frame = receive_frame(theirs(), kMaxBytes).value();
  ASSERT_TRUE(frame.fd);
  EXPECT_NE(frame.fd.get(), write_end.get());
  ASSERT_TRUE(write_end.close());
  ASSERT_EQ(::write(frame.fd.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_FALSE(receive_frame(theirs(), kMaxBytes).value().fd) << "it belongs to the first frame";
}

TEST_F(FramesTest, are_polled_in_parts) {
  FrameReader reader;
  EXPECT_FALSE(reader.poll(theirs(), kMaxBytes).value().has_value());
  const FrameHeader header{9, 4};
  ASSERT_EQ(::write(ours(), &header, 6), 6);
  EXPECT_FALSE(reader.poll(theirs(), kMaxBytes).value().has_value());
  ASSERT_EQ(::write(ours(), reinterpret_cast<char const*>(&header) + 6, 2), 2);
  ASSERT_EQ(::write(ours(), "ab", 2), 2);
  EXPECT_FALSE(reader.poll(theirs(), kMaxBytes).value().has_value());
  ASSERT_EQ(::write(ours(), "cd", 2), 2);
  const auto frame = reader.poll(theirs(), kMaxBytes).value();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->call, 9U);
  EXPECT_EQ(frame->body.size(), 4U);
}

TEST_F(FramesTest, have_a_limit) {
  const std::vector<std::byte> body(100);
  ASSERT_TRUE(send_frame(ours(), 1, body).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(receive_frame(theirs(), 99).status()));
}

TEST_F(FramesTest, may_be_longer_than_the_buffer_of_the_socket) {
  std::vector<std::byte> body(kMaxBytes);
  body.back() = std::byte{7};
  std::thread sender([&] { EXPECT_TRUE(send_frame(ours(), 1, body).ok()); });
  EXPECT_EQ(receive_frame(theirs(), kMaxBytes).value().body, body);
  sender.join();
}

TEST_F(FramesTest, are_given_up_with_the_connection_where_the_other_end_does_not_read) {
  const std::vector<std::byte> body(kMaxBytes);
  constexpr std::chrono::milliseconds kLimit{10};
  EXPECT_TRUE(absl::IsUnavailable(send_frame(ours(), 1, body, -1, kLimit)));
  EXPECT_TRUE(absl::IsUnavailable(send_frame(ours(), 2, {}))) << "the first one is not whole";
  EXPECT_TRUE(absl::IsUnavailable(receive_frame(theirs(), kMaxBytes).status()));
}

TEST_F(FramesTest, a_closed_connection_is_unavailable) {
  sockets_.second.close();
  EXPECT_TRUE(absl::IsUnavailable(send_frame(ours(), 1, {})));
  EXPECT_TRUE(absl::IsUnavailable(receive_frame(ours(), kMaxBytes).status()));
  FrameReader reader;
  EXPECT_TRUE(absl::IsUnavailable(reader.poll(ours(), kMaxBytes).status()));
}

TEST(Reader, beyond_the_end_is_empty_and_not_ok) {
  const Writer whole = Writer().put_status(absl::NotFoundError("gone")).put_text("text");
  EXPECT_EQ(Reader(whole.bytes()).take_status(), absl::NotFoundError("gone"));
  for (std::size_t bytes = 0; bytes < whole.bytes().size(); ++bytes) {
    Reader cut(whole.bytes().first(bytes));
    static_cast<void>(cut.take_status());
    EXPECT_EQ(cut.take_text(), "");
    EXPECT_EQ(cut.take<std::uint32_t>(), 0U);
    EXPECT_FALSE(cut.ok());
  }
}

}  // namespace
}  // namespace catena::ipc
