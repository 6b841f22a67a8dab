// SPDX-License-Identifier: Apache-2.0
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"

#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::memory {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<PacketPool> make_pool(std::uint32_t slots) { return PacketPool::create(slots).value(); }

std::vector<std::uint32_t> run_from(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> run(count);
  std::iota(run.begin(), run.end(), first);
  return run;
}

std::vector<std::uint32_t> acquired_slots(Unit const& unit, std::uint32_t count) {
  return {unit.slots(), unit.slots() + count};
}

TEST(PacketPool, other_numbers_of_slots_are_refused) {
  for (const std::uint32_t slots : {0U, 1U, 256U, 511U, 1000U, (1U << 20) + 1, 1U << 21, 0xFFFFFFFFU}) {
    const auto pool = PacketPool::create(slots);
    EXPECT_EQ(pool.status().code(), absl::StatusCode::kInvalidArgument) << slots;
    EXPECT_THAT(std::string(pool.status().message()), HasSubstr(std::to_string(slots)));
  }
}

TEST(PacketPool, what_is_quarantined_never_comes_back_and_is_missed_once_a_unit_cannot_be_filled) {
  const auto pool = make_pool(512);
  const auto quarantine = [&pool](std::uint32_t slots) {
    Unit* unit = pool->acquire_unit();
    ASSERT_TRUE(pool->acquire_slots(*unit, slots));
    unit->count = slots;
    pool->quarantine(*unit);
  };
  quarantine(256);
  EXPECT_EQ(pool->quarantined_slots(), 256U);
  EXPECT_EQ(pool->free_slots(), 256U);
  EXPECT_FALSE(pool->exhausted()) << "one more full unit";
  quarantine(1);
  EXPECT_TRUE(pool->exhausted());
}

TEST(PacketPool, a_pool_whose_units_are_all_quarantined_is_exhausted) {
  const auto pool = make_pool(1024);
  const std::uint32_t units = pool->free_units();
  for (std::uint32_t i = 0; i < units; ++i) {
    EXPECT_FALSE(pool->exhausted());
    EXPECT_FALSE(pool->exhausted(units - i));
    EXPECT_TRUE(pool->exhausted(units - i + 1)) << "so many are never there again";
    Unit* unit = pool->acquire_unit();
    ASSERT_TRUE(pool->acquire_slots(*unit, 1));
    unit->count = 1;
    pool->quarantine(*unit);
  }
  EXPECT_EQ(pool->acquire_unit(), nullptr);
  EXPECT_TRUE(pool->exhausted());
}

TEST(PacketPool, slots_are_handed_out_as_runs_lap_after_lap) {
  const auto pool = make_pool(1024);
  for (std::uint32_t lap = 0; lap < 5; ++lap) {
    for (std::uint32_t first = 0; first < 1024; first += 128) {
      Unit* unit = pool->acquire_unit();
      ASSERT_TRUE(pool->acquire_slots(*unit, 128));
      EXPECT_EQ(acquired_slots(*unit, 128), run_from(first, 128)) << "lap " << lap;
      pool->release_slots(*unit, 0, 128);
      pool->release_unit(unit);
    }
  }
}

TEST(PacketPool, units_are_runs_again_after_their_packets_went_different_ways) {
  const auto pool = make_pool(1024);
  const auto take = [&pool] {
    Unit* unit = pool->acquire_unit();
    EXPECT_TRUE(pool->acquire_slots(*unit, 128));
    return unit;
  };
  // of every unit each second packet overtakes the others by one unit
  std::vector<std::uint32_t> behind;
  for (std::uint32_t i = 0; i < 64; ++i) {
    Unit* unit = take();
    const std::vector<std::uint32_t> slots = acquired_slots(*unit, 128);
    EXPECT_EQ(slots, run_from(slots.front(), 128)) << "unit " << i;
    pool->release_slots(behind);
    behind.clear();
    for (const std::uint32_t slot : slots) {
      if (slot % 2 == 0) {
        pool->release_slots(std::span(&slot, 1));
      } else {
        behind.push_back(slot);
      }
    }
    pool->release_unit(unit);
  }
}

TEST(PacketPool, slots_can_be_added_to_a_unit) {
  const auto pool = make_pool(512);
  Unit* unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, 3));
  EXPECT_EQ(unit->count, 0U);
  unit->count = 3;
  ASSERT_TRUE(pool->acquire_slots(*unit, 4));
  EXPECT_EQ(acquired_slots(*unit, 7), run_from(0, 7));
  EXPECT_EQ(unit->count, 3U);
  EXPECT_EQ(pool->free_slots(), 505U);
}

TEST(PacketPool, an_exhausted_pool_changes_nothing_and_recovers) {
  const auto pool = make_pool(512);
  Unit* first = pool->acquire_unit();
  Unit* second = pool->acquire_unit();
  Unit* third = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*first, 256));
  ASSERT_TRUE(pool->acquire_slots(*second, 200));
  std::fill_n(third->slots(), kDefaultUnitPackets, 77U);
  EXPECT_FALSE(pool->acquire_slots(*third, 57));
  EXPECT_EQ(pool->free_slots(), 56U);
  EXPECT_TRUE(
      std::all_of(third->slots(), third->slots() + kDefaultUnitPackets, [](std::uint32_t slot) { return slot == 77; }));
  EXPECT_TRUE(pool->acquire_slots(*third, 56)) << "the last free slots can be had";
  EXPECT_EQ(pool->free_slots(), 0U);
  pool->release_slots(*first, 0, 256);
  first->count = 0;
  EXPECT_TRUE(pool->acquire_slots(*first, 256));
  EXPECT_EQ(acquired_slots(*first, 256), run_from(0, 256));
}

TEST(PacketPool, units_do_not_bound_what_is_in_flight_where_they_come_in_parts) {
  constexpr std::uint32_t kParts = 16;
  const auto pool = PacketPool::create(8192, kDefaultUnitPackets, PacketPool::kDefaultQueues, kParts).value();
  EXPECT_GE(pool->free_units(), 2 * 8192 / kDefaultUnitPackets * kParts + kParts);
  const auto ones = PacketPool::create(512, 1, PacketPool::kDefaultQueues, kParts).value();
  EXPECT_GE(ones->free_units(), 512U + kParts) << "each part has a packet";
  EXPECT_LE(ones->free_units(), 2048U + 64 * kParts) << "no more than can be there";
}

TEST(PacketPool, there_are_units_for_slots_in_half_empty_units_and_they_come_back_empty) {
  const auto pool = make_pool(1024);
  const std::uint32_t units = pool->free_units();
  EXPECT_GE(units, 2 * 1024 / kDefaultUnitPackets + 64);
  std::vector<Unit*> taken;
  while (Unit* unit = pool->acquire_unit()) {
    taken.push_back(unit);
  }
  EXPECT_EQ(taken.size(), units);
  EXPECT_EQ(std::set<Unit*>(taken.begin(), taken.end()).size(), units) << "each unit once";
  for (Unit* unit : taken) {
    unit->count = 9;
    unit->host_fallback = true;
    pool->release_unit(unit);
  }
  EXPECT_EQ(pool->free_units(), units);
  Unit* again = pool->acquire_unit();
  EXPECT_EQ(again->count, 0U);
  EXPECT_FALSE(again->host_fallback);
}

/// What stood in the slot before must not show, whether the frame is parsed here or was before.
void expect_fresh_metadata(bool parsed_before) {
  const auto pool = make_pool(512);
  Unit* unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, 1));
  unit->count = 1;
  const packet::Packet before = pool->batch(*unit)[0];
  before.set_verdict(packet::Verdict::kDrop);
  before.set_port(4);
  before.set_extent(5, 6);
  before.mark_rewritten();
  before.set_mtu(576);
  pool->meta().ingress[unit->slots()[0]] = 3;
  std::vector<std::uint8_t> frame(14 + 20 + 8 + 7);  // UDP in IPv4, 7 bytes of payload
  packet::store_be16(frame.data() + 12, 0x0800);
  frame[14] = 0x45;
  packet::store_be16(frame.data() + 16, 20 + 8 + 7);
  frame[23] = packet::kProtocolUdp;
  packet::store_be16(frame.data() + 38, 8 + 7);
  std::copy(frame.begin(), frame.end(), pool->slot(unit->slots()[0]) + packet::kSlotHeadroom);
  const auto length = static_cast<std::uint32_t>(frame.size());
  if (parsed_before) {
    pool->set_arrived(unit->slots()[0], length, packet::parse(frame.data(), length), 0x1234567890, 0x9876543210);
  } else {
    pool->set_arrived(unit->slots()[0], length, 0x1234567890, 0x9876543210);
  }

  const packet::Packet packet = pool->batch(*unit)[0];
  EXPECT_EQ(std::vector<std::uint8_t>(packet.frame(), packet.frame() + packet.length()), frame);
  EXPECT_EQ(packet.headroom(), packet::kSlotHeadroom);
  EXPECT_EQ(packet.verdict(), packet::Verdict::kPass);
  EXPECT_EQ(packet.port(), 0U);
  EXPECT_FALSE(packet.is_rewritten());
  EXPECT_EQ(packet.ingress(), 0U);
  EXPECT_EQ(packet.mtu(), 0U);
  EXPECT_EQ(packet.index(), 0x1234567890U);
  EXPECT_EQ(packet.arrival_ns(), 0x9876543210U);
  EXPECT_TRUE(packet.is(packet::kIpv4 | packet::kUdp));
  EXPECT_EQ(packet.payload().size(), 7U);
}

TEST(PacketPool, an_arrived_frame_has_fresh_metadata) { expect_fresh_metadata(false); }

TEST(PacketPool, a_frame_that_was_parsed_before_has_fresh_metadata) { expect_fresh_metadata(true); }

/// Mapped packet pools and open files of this process.
std::pair<std::ptrdiff_t, std::ptrdiff_t> pools_and_files() {
  std::ifstream maps("/proc/self/maps");
  std::ptrdiff_t pools = 0;
  for (std::string line; std::getline(maps, line);) {
    pools += line.find("catena_packets") != std::string::npos ? 1 : 0;
  }
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return {pools, std::distance(begin(files), end(files))};
}

TEST(PacketPool, pools_live_side_by_side_and_give_their_memory_back) {
  const auto lasting = make_pool(512);
  const auto before = pools_and_files();
  EXPECT_EQ(before.first, 1);
  for (int i = 0; i < 5; ++i) {
    const auto pool = make_pool(4096);
    EXPECT_EQ(pools_and_files().first, 2);
    Unit* unit = pool->acquire_unit();
    ASSERT_TRUE(pool->acquire_slots(*unit, kDefaultUnitPackets));
    EXPECT_EQ(unit->slots()[255], 255U);
  }
  EXPECT_EQ(pools_and_files(), before);
  Unit* unit = lasting->acquire_unit();
  EXPECT_TRUE(lasting->acquire_slots(*unit, 256));
}

TEST(PacketPool, one_beside_another_has_the_same_slots_and_units_of_its_own) {
  std::shared_ptr<PacketPool> first = PacketPool::create(1024, 64).value();
  Unit* const held = first->acquire_unit();
  ASSERT_TRUE(first->acquire_slots(*held, 64));
  held->count = 64;
  std::shared_ptr<PacketPool> second = PacketPool::create_beside(first, 256, 4).value();
  EXPECT_EQ(second->free_slots(), 1024U - 64U);
  EXPECT_EQ(second->unit_packets(), 256U);
  EXPECT_EQ(second->slot(7), first->slot(7));
  EXPECT_EQ(second->meta().length, first->meta().length);
  EXPECT_EQ(second->arena().fd(), first->arena().fd());
  Unit* const unit = second->acquire_unit();
  ASSERT_TRUE(second->acquire_slots(*unit, 256));
  EXPECT_EQ(first->free_slots(), 1024U - 64U - 256U);
  EXPECT_FALSE(std::ranges::find_first_of(unit->slots(), unit->slots() + 256, held->slots(), held->slots() + 64) !=
               unit->slots() + 256)
      << "a slot with two owners";
  second->quarantine(*unit);
  first->release_slots(*held, 0, 64);
  EXPECT_EQ(second->free_slots(), 1024U - 256U);
  EXPECT_EQ(first->quarantined_slots(), second->quarantined_slots()) << "what is out of use is so for both";

  const std::weak_ptr<PacketPool> between = second;
  const std::shared_ptr<PacketPool> third = PacketPool::create_beside(second, 64, 4).value();
  second.reset();
  EXPECT_TRUE(between.expired()) << "one after another, nothing of those between stays";
  EXPECT_EQ(PacketPool::create_beside(third, 1024, 4).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PacketPool, two_threads_under_load_lose_and_mix_nothing) {
  constexpr std::uint64_t kPackets = 1'000'000;
  const auto pool = make_pool(1024);
  const std::uint32_t units = pool->free_units();
  UnitQueue queue(pool->arena(), 0);
  std::uint64_t starved = 0;

  std::jthread receiving([&] {
    std::mt19937 random(3);
    std::uint64_t index = 0;
    while (index < kPackets) {
      Unit* unit = pool->acquire_unit();
      if (unit == nullptr) {
        std::this_thread::yield();
        continue;
      }
      const auto wanted = static_cast<std::uint32_t>(1 + random() % kDefaultUnitPackets);
      if (!pool->acquire_slots(*unit, wanted)) {
        ++starved;
        pool->release_unit(unit);  // as a receiving stage does: while the other thread releases, too
        std::this_thread::yield();
        continue;
      }
      const auto used = static_cast<std::uint32_t>(std::min<std::uint64_t>(1 + random() % wanted, kPackets - index));
      for (std::uint32_t i = 0; i < used; ++i, ++index) {
        std::memcpy(pool->slot(unit->slots()[i]) + packet::kSlotHeadroom, &index, sizeof index);
        pool->set_arrived(unit->slots()[i], sizeof index, index, 0);
      }
      pool->release_slots(*unit, used, wanted - used);
      unit->count = used;
      queue.push(unit);
    }
  });

  std::uint64_t expected = 0;
  std::uint64_t wrong = 0;
  while (expected < kPackets) {
    Unit* unit = queue.pop();
    if (unit == nullptr) {
      std::this_thread::yield();
      continue;
    }
    const packet::Batch batch = pool->batch(*unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i, ++expected) {
      std::uint64_t written = 0;
      std::memcpy(&written, batch[i].frame(), sizeof written);
      wrong += written != expected || batch[i].index() != expected ? 1 : 0;
    }
    pool->release_slots(*unit, 0, unit->count);
    pool->release_unit(unit);
  }
  receiving.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(pool->free_slots(), 1024U);
  EXPECT_EQ(pool->free_units(), units);
  RecordProperty("starved", static_cast<int>(starved));

  std::set<std::uint32_t> slots;
  std::vector<Unit*> all;
  for (int i = 0; i < 4; ++i) {
    Unit* unit = pool->acquire_unit();
    ASSERT_TRUE(pool->acquire_slots(*unit, 256));
    slots.insert(unit->slots(), unit->slots() + 256);
  }
  EXPECT_EQ(slots.size(), 1024U) << "each slot exists once";
}

}  // namespace
}  // namespace catena::memory
