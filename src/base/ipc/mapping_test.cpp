// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/mapping.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <limits>

namespace catena::ipc {
namespace {

constexpr std::size_t kPage = 4096;

FileDescriptor copy_of(Mapping const& mapping) { return FileDescriptor(::fcntl(mapping.fd(), F_DUPFD_CLOEXEC, 0)); }

TEST(Mapping, both_ends_see_the_same_zeroed_memory) {
  const Mapping ours = Mapping::create("test", 2 * kPage).value();
  EXPECT_TRUE(std::ranges::all_of(ours.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
  const Mapping theirs = Mapping::map(copy_of(ours), 2 * kPage).value();
  const Mapping second_page = Mapping::map(copy_of(ours), kPage, kPage).value();
  ours.as<int>() = 5;
  EXPECT_EQ(theirs.as<int>(), 5);
  theirs.bytes()[kPage] = std::byte{6};
  EXPECT_EQ(second_page.bytes().front(), std::byte{6});
}

TEST(Mapping, memory_stays_mapped_without_its_descriptor_and_when_it_is_moved) {
  Mapping first = Mapping::create("test", kPage).value();
  const FileDescriptor descriptor = first.take_fd();
  EXPECT_TRUE(descriptor);
  EXPECT_LT(first.fd(), 0);
  first.as<int>() = 5;
  Mapping second = std::move(first);
  EXPECT_EQ(second.as<int>(), 5);
  Mapping third;
  EXPECT_TRUE(third.bytes().empty());
  third = std::move(second);
  EXPECT_EQ(third.as<int>(), 5);
}

TEST(Mapping, of_no_bytes_is_empty) { EXPECT_TRUE(Mapping::create("test", 0).value().bytes().empty()); }

TEST(Mapping, beyond_the_memory_is_refused) {
  const Mapping mapping = Mapping::create("test", 2 * kPage).value();
  const auto map = [&mapping](std::size_t bytes, std::uint64_t offset) {
    return Mapping::map(copy_of(mapping), bytes, offset).status();
  };
  EXPECT_TRUE(map(2 * kPage, 0).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(map(0, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(map(2 * kPage + 1, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(map(kPage + 1, kPage)));
  EXPECT_TRUE(absl::IsInvalidArgument(map(1, 3 * kPage)));
  EXPECT_TRUE(absl::IsInvalidArgument(map(1, 1))) << "no page begins there";
  EXPECT_TRUE(absl::IsInvalidArgument(map(kPage, std::numeric_limits<std::uint64_t>::max() - kPage + 1)));
}

TEST(Mapping, memory_that_its_owner_can_shrink_is_refused) {
  FileDescriptor loose(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(loose.get(), kPage), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(Mapping::map(std::move(loose), kPage).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Mapping::map(FileDescriptor(), kPage).status()));
}

TEST(Mapping, the_error_for_more_memory_than_exists_gives_its_size) {
  const Status status = Mapping::create("test", std::numeric_limits<std::size_t>::max()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("18446744073709551615 bytes of shared memory: "));
}

}  // namespace
}  // namespace catena::ipc
