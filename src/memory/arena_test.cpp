// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.hpp"
#include "memory/packet_pool.hpp"
#include "memory/testing/arena_text.hpp"
#include "memory/unit_queue.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace catena::memory {
namespace {

using ::testing::HasSubstr;
using testing::line;

constexpr ArenaShape kShape{512, 8, 3, 192};

std::unique_ptr<PacketPool> make_pool() {
  return PacketPool::create(kShape.slots, kShape.unit_packets, kShape.queues).value();
}

struct Ran {
  int status;
  std::string output;
};

/// The reader in a process of its own, with the arena as a file descriptor.
Ran read_elsewhere(std::string const& command, int fd, std::string const& rest = "") {
  const int inherited = dup(fd);  // is not closed by exec
  std::FILE* reader = popen(concat(CATENA_ARENA_READER, " ", command, " ", inherited, rest, " 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> part{};
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), reader)) {
    output.append(part.data(), bytes);
  }
  const int status = pclose(reader);
  close(inherited);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, std::move(output)};
}

Ran walk(Arena const& arena) {
  const auto begin = reinterpret_cast<std::uintptr_t>(arena.slot(0)) - arena.slot_offset();
  return read_elsewhere("walk", arena.fd(), concat(" ", begin, " ", begin + (std::size_t{1} << 30)));
}

std::string list(std::string_view name, std::uint32_t first, std::uint32_t end) {
  std::string text(name);
  for (std::uint32_t i = first; i < end; ++i) {
    text += concat(" ", i);
  }
  return text + "\n";
}

/// The same for every packet number everywhere, so that the test knows what the reader must see.
struct PacketFacts {
  explicit PacketFacts(std::uint32_t which) : number(which), bytes(60 + which % 7) {
    for (std::uint32_t i = 0; i < bytes; ++i) {
      frame.push_back(static_cast<std::uint8_t>(number * 31 + i));
    }
  }
  std::uint32_t number;
  std::uint32_t bytes;
  std::vector<std::uint8_t> frame;
  packet::Layers layers{14, 34, 42, packet::kIpv4 | packet::kUdp | packet::kPorts, 18, 46};

  void enter(PacketPool& pool, std::uint32_t slot) const {
    std::copy(frame.begin(), frame.end(), pool.slot(slot) + packet::kSlotHeadroom);
    pool.set_arrived(slot, bytes, layers, 1000 + number, 0x1122334455660000 + number);
    pool.meta().verdict[slot] = static_cast<std::uint8_t>(number % 4);
    pool.meta().port[slot] = static_cast<std::uint16_t>(100 + number);
    pool.meta().rewritten[slot] = static_cast<std::uint8_t>(number % 2);
    pool.meta().ingress[slot] = static_cast<std::uint16_t>(200 + number);
    pool.meta().mtu[slot] = static_cast<std::uint16_t>(300 + number);
  }
  std::string text(std::uint32_t slot) const {
    return line("packet", slot, 128, bytes, number % 4, 100 + number, 1000 + number, 0x1122334455660000 + number,
                number % 2, 200 + number, 300 + number, 14, 34, 42, 1 + 4 + 16, 18, 46, testing::digest(frame));
  }
};

TEST(Arena, a_new_one_has_all_its_slots_and_units_free_and_in_order) {
  const auto arena = Arena::create(kShape).value();
  const Ran ran = walk(*arena);
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, line("arena", 512, 8, 3, 192) + list("free slots", 0, 512) + list("free units", 0, 192) +
                            line("queue", 0, 0, 0) + line("queue", 1, 0, 0) + line("queue", 2, 0, 0));
}

TEST(Arena, another_process_sees_every_structure_as_it_is) {
  const auto pool = make_pool();
  std::string units;
  std::uint32_t number = 0;
  UnitQueue queue(pool->arena(), 1);
  for (std::uint32_t count = 1; count <= 8; ++count) {
    Unit* unit = pool->acquire_unit();
    ASSERT_TRUE(pool->acquire_slots(*unit, count));
    unit->count = count;
    unit->first_index = 10 * count;
    unit->end_index = 10 * count + 9;
    unit->arrival_ns = 0xABCDEF0123456789 + count;
    unit->host_fallback = count == 3;
    unit->quarantined = count == 5;
    units +=
        line("unit", count - 1, count, count == 3, count == 5, 10 * count, 10 * count + 9, 0xABCDEF0123456789 + count);
    for (const std::uint32_t slot : unit->used_slots()) {
      const PacketFacts facts(number++);
      facts.enter(*pool, slot);
      units += facts.text(slot);
    }
    queue.push(unit);
  }
  UnitQueue(pool->arena(), 2).close();
  const Ran ran = walk(pool->arena());
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, line("arena", 512, 8, 3, 192) + list("free slots", 36, 512) + list("free units", 8, 192) +
                            line("queue", 0, 0, 0) + line("queue", 1, 8, 0) + units + line("queue", 2, 0, 1));
}

TEST(Arena, the_reader_finds_what_is_lost_what_is_twice_and_addresses) {
  const auto pool = make_pool();
  Unit* unit = pool->acquire_unit();
  EXPECT_EQ(walk(pool->arena()).status, 1) << "the unit is nowhere";
  UnitQueue(pool->arena(), 0).push(unit);
  EXPECT_EQ(walk(pool->arena()).status, 0);
  ASSERT_TRUE(pool->acquire_slots(*unit, 1));
  EXPECT_THAT(walk(pool->arena()).output, HasSubstr("slot 0 is in 0 places"));
  unit->count = 1;
  EXPECT_EQ(walk(pool->arena()).status, 0);
  pool->release_slots(*unit, 0, 1);
  EXPECT_THAT(walk(pool->arena()).output, HasSubstr("slot 0 is in 2 places"));
  unit->count = 0;
  EXPECT_EQ(walk(pool->arena()).status, 0);
  unit->end_index = reinterpret_cast<std::uintptr_t>(pool->slot(7));
  EXPECT_THAT(walk(pool->arena()).output, HasSubstr("an address at byte "));
}

TEST(Arena, another_process_can_be_a_stage) {
  const auto pool = make_pool();
  UnitQueue to(pool->arena(), 0);
  UnitQueue from(pool->arena(), 1);
  std::vector<Unit*> sent;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Unit* unit = pool->acquire_unit();
    ASSERT_TRUE(pool->acquire_slots(*unit, 8));
    unit->count = 8;
    for (std::uint32_t k = 0; k < 8; ++k) {
      PacketFacts(4 * k).enter(*pool, unit->slots()[k]);
    }
    sent.push_back(unit);
  }
  to.push(sent);
  const Ran ran = read_elsewhere("forward", pool->arena().fd());
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(to.empty());
  EXPECT_FALSE(from.drained());
  for (Unit* unit : sent) {
    ASSERT_EQ(from.pop(), unit);
    const packet::Batch batch = pool->batch(*unit);
    for (std::uint32_t k = 0; k < batch.size(); ++k) {
      EXPECT_EQ(batch[k].verdict(), packet::Verdict::kDrop);
      EXPECT_TRUE(std::equal(batch[k].frame(), batch[k].frame() + batch[k].length(), PacketFacts(4 * k).frame.begin()));
    }
  }
  EXPECT_TRUE(from.drained());
}

TEST(Arena, it_can_be_mapped_twice_and_outlives_who_made_it) {
  auto arena = Arena::create(kShape).value();
  const auto again = Arena::map(arena->fd()).value();
  EXPECT_EQ(again->shape(), kShape);
  EXPECT_NE(again->slot(0), arena->slot(0));
  arena->slot(5)[77] = 99;
  arena.reset();
  EXPECT_EQ(again->slot(5)[77], 99);
  std::uint32_t slot = 1;
  ASSERT_TRUE(again->free_slots().pop(std::span(&slot, 1)));
  EXPECT_EQ(slot, 0U);
}

TEST(Arena, nobody_can_take_its_pages_away) {
  const auto arena = Arena::create(kShape).value();
  EXPECT_NE(ftruncate(arena->fd(), 4096), 0);
  EXPECT_EQ(errno, EPERM);
}

/// What map() says of a copy of an arena that `change` was done to.
template <typename Change>
Status map_changed(Change change, int seals = F_SEAL_SHRINK) {
  const auto arena = Arena::create(kShape).value();
  const std::size_t size = arena->slot_offset() + 1024;
  std::vector<char> front(size);
  EXPECT_EQ(pread(arena->fd(), front.data(), size, 0), static_cast<ssize_t>(size));
  const int fd = memfd_create("copy", MFD_ALLOW_SEALING);
  const off_t bytes = lseek(arena->fd(), 0, SEEK_END);
  EXPECT_EQ(ftruncate(fd, bytes), 0);
  change(front, fd);
  EXPECT_EQ(pwrite(fd, front.data(), size, 0), static_cast<ssize_t>(size));
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
  const Status status = Arena::map(fd).status();
  close(fd);
  return status;
}

TEST(Arena, what_is_none_is_refused) {
  EXPECT_TRUE(map_changed([](auto& /*front*/, int /*fd*/) {}).ok()) << "a copy is as good";
  const auto refused = [](Status const& status, std::string const& why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  const auto with_number = [](std::size_t at, std::uint32_t number) {
    return map_changed([=](auto& front, int /*fd*/) { std::memcpy(front.data() + at, &number, sizeof number); });
  };
  refused(map_changed([](auto& front, int /*fd*/) { front[0] = 'C'; }), "no packet memory");
  refused(with_number(8, 1), "version 1; this program has 2");
  refused(with_number(12, 1000), "1000 slots");
  refused(with_number(12, 1024), "says that it has");
  refused(with_number(16, 0), "units of 0 packets");
  refused(with_number(16, 257), "units of 257 packets");
  refused(with_number(20, 1025), "1025 queues");
  refused(with_number(20, 0xFFFFFFFF), "queues");
  refused(with_number(24, 0), "0 units");
  refused(with_number(24, 0xFFFFFFFF), "units");
  refused(map_changed([](auto& /*front*/, int fd) { EXPECT_EQ(ftruncate(fd, 8192), 0); }), "says that it has");
  refused(map_changed([](auto& /*front*/, int /*fd*/) {}, F_SEAL_GROW), "F_SEAL_SHRINK");
  refused(Arena::map(-1).status(), "no packet memory");
  const int empty = memfd_create("empty", 0);
  refused(Arena::map(empty).status(), "no packet memory");
  close(empty);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  refused(Arena::map(ends[0]).status(), "no packet memory");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace catena::memory
