// SPDX-License-Identifier: Apache-2.0
#include "io/dpdk/mbuf_pool.hpp"

#include "io/eal/eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace catena::io {
namespace {

constexpr std::size_t kPageBytes = 4096;
/// Entries that a mempool hands over at once.
constexpr std::size_t kChunk = 256;

/// What stands behind each other in an entry of the mempool.
struct Entry {
  rte_mbuf mbuf;
  rte_mbuf_ext_shared_info shared;
};

/// DPDK's names are global to the process.
std::uint32_t next_number() {
  static std::atomic<std::uint32_t> number{0};
  return number.fetch_add(1);
}

}  // namespace

/// What DPDK calls for a mempool of this kind.
struct MbufPool::Operations {
  static MbufPool& pool_of(rte_mempool const* mempool) { return *static_cast<MbufPool*>(mempool->pool_data); }
  static int alloc(rte_mempool* mempool) {
    mempool->pool_data = mempool->pool_config;
    return 0;
  }
  static void free(rte_mempool* /*mempool*/) {}
  static int enqueue(rte_mempool* mempool, void* const* entries, unsigned int count) {
    MbufPool& pool = pool_of(mempool);
    if (!pool.is_made_) {  // DPDK puts each new entry in; all slots are where they belong already
      return 0;
    }
    std::array<std::uint32_t, kChunk> slots;
    for (unsigned int done = 0; done < count;) {
      const std::size_t part = std::min<std::size_t>(count - done, kChunk);
      for (std::size_t i = 0; i < part; ++i) {
        slots[i] = pool.slot_of(*static_cast<rte_mbuf*>(entries[done + i]));
      }
      pool.slots_->release_slots(std::span(slots).first(part));
      done += static_cast<unsigned int>(part);
    }
    return 0;
  }
  static int dequeue(rte_mempool* mempool, void** entries, unsigned int count) {
    MbufPool& pool = pool_of(mempool);
    if (!pool.is_made_) {  // DPDK takes every entry out when it frees them
      return 0;
    }
    std::array<std::uint32_t, kChunk> few;
    std::vector<std::uint32_t> many(count > kChunk ? count : 0);
    const std::span<std::uint32_t> slots = count > kChunk ? std::span(many) : std::span(few).first(count);
    if (!pool.slots_->acquire_slots(slots)) {
      return -ENOBUFS;
    }
    std::transform(slots.begin(), slots.end(), entries, [&pool](std::uint32_t slot) { return pool.mbuf(slot); });
    return 0;
  }
  static unsigned int count(rte_mempool const* mempool) { return pool_of(mempool).slots_->free_slots(); }

  /// Makes them known to DPDK, once.
  static constexpr const char* kName = "catena_slots";
  static int known() {
    static const int kIndex = [] {
      rte_mempool_ops operations{};
      std::snprintf(operations.name, sizeof operations.name, "%s", kName);
      operations.alloc = alloc;
      operations.free = free;
      operations.enqueue = enqueue;
      operations.dequeue = dequeue;
      operations.get_count = count;
      return rte_mempool_register_ops(&operations);
    }();
    return kIndex;
  }
};

Result<std::shared_ptr<MbufPool>> MbufPool::of(memory::PacketPool& slots) {
  static std::mutex mutex;
  static std::map<memory::PacketPool const*, std::weak_ptr<MbufPool>> pools;
  const std::scoped_lock lock(mutex);
  std::erase_if(pools, [](auto const& entry) { return entry.second.expired(); });
  std::weak_ptr<MbufPool>& known = pools[&slots];
  if (std::shared_ptr<MbufPool> pool = known.lock()) {
    return pool;
  }
  CATENA_RETURN_IF_ERROR(eal::start());
  std::shared_ptr<MbufPool> pool(new MbufPool(slots));
  CATENA_RETURN_IF_ERROR(pool->set_up());
  known = pool;
  return pool;
}

Status MbufPool::set_up() {
  const std::span<std::byte> memory = slots_->arena().slot_bytes();
  if (rte_extmem_register(memory.data(), memory.size(), nullptr, 0, kPageBytes) != 0) {
    return absl::ResourceExhaustedError(
        concat("DPDK cannot register the packet pool's ", memory.size() >> 20, " MiB: ", rte_strerror(rte_errno)));
  }
  is_registered_ = true;
  const auto refused = [this](int code) {
    return absl::ResourceExhaustedError(
        concat("DPDK has no memory for ", slots_->slots(), " mbufs: ", rte_strerror(std::abs(code))));
  };
  if (const int index = Operations::known(); index < 0) {
    return refused(index);
  }
  mempool_ = rte_mempool_create_empty(concat("catena_mbufs_", next_number()).c_str(), slots_->slots(), sizeof(Entry), 0,
                                      sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, 0);
  if (mempool_ == nullptr) {
    return refused(rte_errno);
  }
  if (const int code = rte_mempool_set_ops_byname(mempool_, Operations::kName, this); code != 0) {
    return refused(code);
  }
  rte_pktmbuf_pool_private traits{};
  traits.mbuf_data_room_size = packet::kSlotBytes;
  traits.flags = RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF;
  rte_pktmbuf_pool_init(mempool_, &traits);
  if (const int made = rte_mempool_populate_default(mempool_); made != static_cast<int>(slots_->slots())) {
    return refused(made < 0 ? made : ENOMEM);
  }
  mbufs_.reserve(slots_->slots());
  rte_mempool_obj_iter(
      mempool_,
      [](rte_mempool* /*mempool*/, void* self, void* entry, unsigned int /*number*/) {
        MbufPool& pool = *static_cast<MbufPool*>(self);
        pool.mbufs_.push_back(&static_cast<Entry*>(entry)->mbuf);
        pool.make(*pool.mbufs_.back(), static_cast<std::uint32_t>(pool.mbufs_.size() - 1));
      },
      this);
  is_made_ = true;
  return absl::OkStatus();
}

/// As rte_pktmbuf_pool_create_extbuf() does it, with the slot as the pinned external buffer.
void MbufPool::make(rte_mbuf& mbuf, std::uint32_t slot) {
  Entry& entry = reinterpret_cast<Entry&>(mbuf);
  rte_pktmbuf_init(mempool_, nullptr, &mbuf, slot);
  entry.shared.free_cb = [](void* /*buffer*/, void* /*argument*/) {};  // never called: the slot stays with its mbuf
  rte_mbuf_ext_refcnt_set(&entry.shared, 1);
  mbuf.buf_addr = slots_->slot(slot);
  // pages of ordinary memory have no fixed physical address: only where I/O addresses are virtual can a NIC use them
  mbuf.buf_iova = rte_eal_iova_mode() == RTE_IOVA_VA ? reinterpret_cast<rte_iova_t>(slots_->slot(slot)) : RTE_BAD_IOVA;
  mbuf.buf_len = packet::kSlotBytes;
  mbuf.data_off = packet::kSlotHeadroom;
  mbuf.shinfo = &entry.shared;
  mbuf.ol_flags = RTE_MBUF_F_EXTERNAL;
}

std::uint32_t MbufPool::slot_of(rte_mbuf const& mbuf) const {
  return static_cast<std::uint32_t>(
      static_cast<std::size_t>(static_cast<std::uint8_t const*>(mbuf.buf_addr) - slots_->slot(0)) / packet::kSlotBytes);
}

MbufPool::~MbufPool() {
  is_made_ = false;
  rte_mempool_free(mempool_);
  if (is_registered_) {
    const std::span<std::byte> memory = slots_->arena().slot_bytes();
    rte_extmem_unregister(memory.data(), memory.size());
  }
}

}  // namespace catena::io
