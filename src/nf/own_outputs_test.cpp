// SPDX-License-Identifier: Apache-2.0
#include "nf/own_outputs.hpp"

#include "base/core/file_descriptor.hpp"

#include <catena/core/testing/scratch_folder.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace catena::nf {
namespace {

/// Another thread may have forked a child whose exec() is still to come.
TEST(KeptFile, is_free_when_it_is_closed_whatever_children_there_are) {
  const ScratchFolder folder;
  Result<KeptFile> first = open_kept_file(folder.path("state"), "name");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(open_kept_file(folder.path("state"), "name").status().code(), absl::StatusCode::kFailedPrecondition);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  FileDescriptor to_child(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(to_child.get());
    char none = 0;
    static_cast<void>(::read(ends[0], &none, 1));  // until the parent has closed its end
    ::_exit(0);
  }
  ::close(ends[0]);
  first->output.reset();
  EXPECT_TRUE(open_kept_file(folder.path("state"), "name").ok());
  to_child.close();
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace catena::nf
