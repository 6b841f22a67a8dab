// SPDX-License-Identifier: Apache-2.0
#include "packet/memory/arena.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace catena::memory {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr ArenaShape kShape{512, 8, 3, 192};

/// All that are free, in order.
std::vector<std::uint32_t> take_all(FreeSlots& free) {
  std::vector<std::uint32_t> numbers(free.count());
  EXPECT_TRUE(free.acquire(numbers));
  return numbers;
}

std::vector<std::uint32_t> take_all(IndexRing& free) {
  std::vector<std::uint32_t> numbers(free.size());
  EXPECT_TRUE(free.pop(numbers));
  return numbers;
}

std::vector<std::uint32_t> numbers_to(std::uint32_t end) {
  std::vector<std::uint32_t> numbers(end);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

TEST(Arena, a_new_one_has_all_its_slots_and_units_free_and_in_order) {
  const auto arena = Arena::create(kShape).value();
  EXPECT_EQ(arena->shape(), kShape);
  EXPECT_THAT(take_all(arena->free_slots()), ElementsAreArray(numbers_to(512)));
  EXPECT_THAT(take_all(arena->free_units()), ElementsAreArray(numbers_to(192)));
  for (std::uint32_t queue = 0; queue < 3; ++queue) {
    EXPECT_TRUE(UnitQueue(*arena, queue).empty());
  }
}

TEST(Arena, its_packets_are_for_no_other_user_and_keep_their_memory) {
  const auto arena = Arena::create(kShape).value();
  struct stat status {};
  ASSERT_EQ(fstat(arena->fd(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_GE(status.st_blocks * 512, status.st_size) << "all pages are there";
  EXPECT_EQ(fcntl(arena->fd(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

TEST(Arena, one_over_the_slots_of_another_has_units_and_no_slots_of_its_own) {
  const auto arena = Arena::create(kShape).value();
  const auto over = Arena::create_over({512, 4, 1, 10}, arena->fd()).value();
  EXPECT_EQ(over->free_slots().count(), 0U);
  EXPECT_THAT(take_all(over->free_units()), ElementsAreArray(numbers_to(10)));
  EXPECT_EQ(arena->free_slots().count(), 512U) << "whose they are stays the same";
}

TEST(Arena, frames_are_the_same_in_every_process_and_the_rest_is_each_ones_own) {
  const auto arena = Arena::create(kShape).value();
  arena->meta().length[5] = 60;
  for (std::uint32_t slot = 0; slot < 512; ++slot) {
    std::fill_n(arena->slot(slot), packet::kSlotBytes, static_cast<std::uint8_t>(slot * 7));
  }
  const pid_t child = fork();
  if (child == 0) {
    const auto over = Arena::create_over(kShape, arena->fd());
    bool is_same = over.ok() && (*over)->meta().length[5] == 0 && (*over)->slot(0) != arena->slot(0);
    for (std::uint32_t slot = 0; is_same && slot < 512; ++slot) {
      is_same = std::all_of((*over)->slot(slot), (*over)->slot(slot) + packet::kSlotBytes,
                            [slot](std::uint8_t byte) { return byte == static_cast<std::uint8_t>(slot * 7); });
      (*over)->slot(slot)[slot] = 0xEE;
      (*over)->meta().length[slot] = 1;
    }
    _exit(is_same ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (std::uint32_t slot = 0; slot < 512; ++slot) {
    EXPECT_EQ(arena->slot(slot)[slot], 0xEE) << slot;
    EXPECT_EQ(arena->meta().length[slot], slot == 5 ? 60 : 0) << slot;
  }
}

TEST(Arena, its_slots_outlive_who_made_them) {
  auto arena = Arena::create(kShape).value();
  const auto over = Arena::create_over(kShape, arena->fd()).value();
  arena->slot(5)[77] = 99;
  arena.reset();
  EXPECT_EQ(over->slot(5)[77], 99);
}

TEST(Arena, nobody_can_take_its_pages_away) {
  const auto arena = Arena::create(kShape).value();
  EXPECT_NE(ftruncate(arena->fd(), 4096), 0);
  EXPECT_EQ(errno, EPERM);
}

TEST(Arena, nothing_but_frames_is_behind_its_descriptor) {
  const auto arena = Arena::create(kShape).value();
  EXPECT_EQ(lseek(arena->fd(), 0, SEEK_END), static_cast<off_t>(512 * packet::kSlotBytes));
  EXPECT_EQ(arena->slot_bytes().size(), 512 * packet::kSlotBytes);
}

TEST(Arena, what_has_no_such_slots_is_refused) {
  const auto refused = [](int fd, ArenaShape const& shape, std::string const& why) {
    const Status status = Arena::create_over(shape, fd).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  const auto arena = Arena::create(kShape).value();
  refused(arena->fd(), {1024, 8, 3, 192}, "not the packet memory of 1024 slots");
  refused(arena->fd(), {512, 0, 3, 192}, "units of 0 packets");
  refused(arena->fd(), {512, 8, 1025, 192}, "1025 queues");
  refused(arena->fd(), {512, 8, 3, 0}, "0 units");
  refused(-1, kShape, "not the packet memory");
  const int loose = memfd_create("loose", MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(loose, 512 * packet::kSlotBytes), 0);
  refused(loose, kShape, "F_SEAL_SHRINK");
  close(loose);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  refused(ends[0], kShape, "not the packet memory");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace catena::memory
