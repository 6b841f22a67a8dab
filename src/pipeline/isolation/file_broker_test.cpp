// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/file_broker.hpp"

#include "base/ipc/frames.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <span>
#include <string>

namespace catena::nf_process {
namespace {

using ipc::Frame;
using ::testing::HasSubstr;
using Kind = nf::NamedOutput::Kind;

class Broker : public ::testing::Test {
 protected:
  Broker() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    here_ = FileDescriptor(ends[0]);
    there_ = FileDescriptor(ends[1]);
    rights_.nf = "x";
    rights_.outputs = {{Kind::kFile, folder_.path("flows")}, {Kind::kFolder, folder_.path("state")}};
  }

  struct Said {
    Status status;
    Answer answer;
    std::string kept;
  };
  Said ask(FileBroker& broker, Call call, std::span<const std::byte> body) {
    Frame frame;
    frame.call = static_cast<std::uint32_t>(call);
    frame.body.assign(body.begin(), body.end());
    Said said{broker.serve(here_.get(), frame), {}, {}};
    if (said.status.ok()) {
      auto answer = ipc::receive_frame(there_.get(), kMaxFrameBytes);
      EXPECT_TRUE(answer.ok()) << answer.status();
      said.answer = *read_answer(text_of(answer->body));
      if (said.answer.is_kept) {
        said.kept = std::string(text_of(ipc::receive_frame(there_.get(), kMaxFrameBytes)->body));
      }
    }
    return said;
  }
  Said ask(FileBroker& broker, Call call, std::string_view text) {
    return ask(broker, call, std::as_bytes(std::span(text.data(), text.size())));
  }
  Said open(FileBroker& broker, std::uint32_t output, std::string const& name = "") {
    return ask(broker, Call::kOpenOutput, to_json(OpenOutput{output, name}));
  }
  Said write(FileBroker& broker, std::uint32_t handle, std::string_view text) {
    return ask(broker, Call::kWriteOutput, with_handle(handle, std::as_bytes(std::span(text.data(), text.size()))));
  }

  ScratchFolder folder_;
  OutputRights rights_;
  FileDescriptor here_;
  FileDescriptor there_;
};

TEST_F(Broker, each_incarnation_appends_to_what_is_there) {
  folder_.write("flows", "of an earlier run, ");
  {
    FileBroker first(rights_);
    const std::uint32_t handle = open(first, 0).answer.handle;
    EXPECT_TRUE(write(first, handle, "a").answer.status.ok());
  }
  FileBroker second(rights_);
  const std::uint32_t handle = open(second, 0).answer.handle;
  EXPECT_TRUE(write(second, handle, "b").answer.status.ok());
  EXPECT_EQ(folder_.read("flows"), "of an earlier run, ab");
  EXPECT_EQ(rights_.refusals, 0U);
}

TEST_F(Broker, a_kept_file_belongs_to_one_incarnation_and_has_the_content_of_the_previous_one) {
  FileBroker second(rights_);
  {
    FileBroker first(rights_);
    const Said opened = open(first, 1, "key-1");
    EXPECT_TRUE(opened.answer.status.ok()) << opened.answer.status;
    EXPECT_FALSE(opened.answer.is_kept);
    EXPECT_TRUE(write(first, opened.answer.handle, "seven").answer.status.ok());
    EXPECT_TRUE(write(first, opened.answer.handle, "eight").answer.status.ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(open(second, 1, "key-1").answer.status)) << "the first one has it";
    EXPECT_TRUE(absl::IsInvalidArgument(
        write(first, opened.answer.handle, std::string(nf::kMaxKeptBytes + 1, 'x')).answer.status));
  }
  EXPECT_EQ(open(second, 1, "key-1").kept, "eight");
  EXPECT_EQ(rights_.refusals, 0U);
}

TEST_F(Broker, what_is_not_named_is_refused_and_counted) {
  FileBroker broker(rights_);
  std::uint64_t expected = 0;
  for (auto const& [output, name] : {std::pair(2U, ""), std::pair(0xffffffffU, ""), std::pair(0U, "other"),
                                     std::pair(1U, ""), std::pair(1U, "../flows"), std::pair(1U, "a/b"),
                                     std::pair(1U, ".."), std::pair(1U, "x.new"), std::pair(1U, "x\n")}) {
    const Said said = open(broker, output, name);
    EXPECT_TRUE(said.status.ok()) << said.status;
    EXPECT_TRUE(absl::IsPermissionDenied(said.answer.status)) << output << " " << name << ": " << said.answer.status;
    EXPECT_EQ(rights_.refusals, ++expected);
  }
  EXPECT_TRUE(absl::IsPermissionDenied(write(broker, 1, "x").answer.status)) << "nothing is open";
  EXPECT_FALSE(std::filesystem::exists(folder_.path("flows")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("state")));
}

TEST_F(Broker, who_is_refused_again_and_again_or_says_nothing_that_can_be_read_ends) {
  FileBroker broker(rights_);
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = open(broker, 9).status;
  }
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  FileBroker other(rights_);
  EXPECT_TRUE(absl::IsDataLoss(ask(other, Call::kOpenOutput, "{\"output\":-1").status));
  EXPECT_TRUE(absl::IsDataLoss(ask(other, Call::kWriteOutput, "abc").status));
}

TEST_F(Broker, opens_no_more_than_a_process_may_have) {
  FileBroker broker(rights_);
  Status status;
  int opened = 0;
  while (opened < 1000 && status.ok()) {
    status = open(broker, 1, concat("key-", opened)).answer.status;
    opened += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(opened, 256);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("isolation: none"));
}

TEST_F(Broker, neither_waits_for_the_reader_of_a_fifo_nor_writes_one) {
  ASSERT_EQ(::mkfifo(folder_.path("flows").c_str(), 0600), 0);
  FileBroker broker(rights_);
  EXPECT_THAT(std::string(open(broker, 0).answer.status.message()), HasSubstr("is no regular file"));
}

TEST_F(Broker, a_trial_touches_nothing) {
  rights_.is_trial = true;
  FileBroker broker(rights_);
  EXPECT_TRUE(write(broker, open(broker, 0).answer.handle, "x").answer.status.ok());
  EXPECT_TRUE(write(broker, open(broker, 1, "key").answer.handle, "x").answer.status.ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.path("flows")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("state")));
}

TEST_F(Broker, a_run_that_keeps_nothing_has_nothing_to_go_on_with) {
  rights_.keeps_files = false;
  FileBroker broker(rights_);
  EXPECT_TRUE(absl::IsUnavailable(open(broker, 1, "key").answer.status));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("state")));
}

}  // namespace
}  // namespace catena::nf_process
