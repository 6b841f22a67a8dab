// SPDX-License-Identifier: Apache-2.0
#include "io/dpdk/mbuf_pool.hpp"

#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include <array>
#include <set>
#include <vector>

#include "io/test_support.hpp"

namespace catena::io {
namespace {

using testing::make_pool;

TEST(MbufPool, each_mbuf_points_at_its_slot_in_registered_memory) {
  const auto pool = make_pool(512);
  const auto mbufs = MbufPool::of(*pool).value();
  std::set<rte_mbuf*> all;
  for (std::uint32_t slot = 0; slot < pool->slots(); ++slot) {
    rte_mbuf* mbuf = mbufs->mbuf(slot);
    EXPECT_EQ(mbuf->buf_addr, pool->slot(slot));
    EXPECT_EQ(mbuf->buf_len, packet::kSlotBytes);
    EXPECT_EQ(mbufs->slot_of(*mbuf), slot);
    all.insert(mbuf);
  }
  EXPECT_EQ(all.size(), 512U);
  const rte_memseg_list* first = rte_mem_virt2memseg_list(pool->slot(0));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->external, 1U);
  EXPECT_EQ(rte_mem_virt2memseg_list(pool->slot(511) + packet::kSlotBytes - 1), first);
}

TEST(MbufPool, what_a_driver_takes_and_frees_are_slots_of_the_pool) {
  const auto pool = make_pool(1024);
  const auto mbufs = MbufPool::of(*pool).value();
  EXPECT_EQ(pool->free_slots(), 1024U);
  EXPECT_EQ(rte_mempool_avail_count(mbufs->mempool()), 1024U);
  std::vector<rte_mbuf*> taken(600);
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(mbufs->mempool(), taken.data(), 600), 0);
  EXPECT_EQ(pool->free_slots(), 424U);
  for (std::uint32_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(mbufs->slot_of(*taken[i]), i) << "in order, as other sources get them";
    EXPECT_EQ(rte_mbuf_refcnt_read(taken[i]), 1);
    EXPECT_EQ(taken[i]->nb_segs, 1);
    EXPECT_EQ(taken[i]->data_off, packet::kSlotHeadroom);
  }
  std::vector<rte_mbuf*> more(425);
  EXPECT_NE(rte_pktmbuf_alloc_bulk(mbufs->mempool(), more.data(), 425), 0);
  EXPECT_EQ(pool->free_slots(), 424U) << "all or none";
  memory::Unit* unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, 1));
  EXPECT_EQ(unit->slots()[0], 600U);
  rte_pktmbuf_free_bulk(taken.data(), 600);
  pool->release_slots(*unit, 0, 1);
  EXPECT_EQ(pool->free_slots(), 1024U);
}

TEST(MbufPool, a_slot_may_come_in_by_a_driver_and_go_back_without_it_lap_after_lap) {
  const auto pool = make_pool(512);
  const auto mbufs = MbufPool::of(*pool).value();
  for (int lap = 0; lap < 5; ++lap) {
    std::array<rte_mbuf*, 512> taken{};
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(mbufs->mempool(), taken.data(), 512), 0);
    std::vector<std::uint32_t> slots;
    for (rte_mbuf const* mbuf : taken) {
      slots.push_back(mbufs->slot_of(*mbuf));
    }
    EXPECT_EQ(std::set<std::uint32_t>(slots.begin(), slots.end()).size(), 512U);
    pool->release_slots(slots);
  }
  EXPECT_EQ(pool->free_slots(), 512U);
}

TEST(MbufPool, there_is_one_for_a_pool_as_long_as_somebody_has_it) {
  const auto pool = make_pool(512);
  const auto other = make_pool(512);
  auto first = MbufPool::of(*pool).value();
  EXPECT_EQ(MbufPool::of(*pool).value(), first);
  EXPECT_NE(MbufPool::of(*other).value(), first);
  first.reset();
  EXPECT_TRUE(MbufPool::of(*pool).ok()) << "nothing of the first one is left registered";
}

}  // namespace
}  // namespace catena::io
