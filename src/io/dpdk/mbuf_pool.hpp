// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace catena::io {

/// The slots of a packet pool for DPDK's drivers, with one mbuf per slot. Its mempool has no free list of its own but
/// uses the packet pool, so a slot has one owner, no matter which side takes and frees it.
///
/// Thread rule: any thread.
class MbufPool {
 public:
  /// The pool of `slots`, shared by all ports. `slots` must outlive it.
  ///   Unavailable         the EAL does not start
  ///   ResourceExhausted   DPDK has no memory for as many mbufs, or cannot register the slots
  static Result<std::shared_ptr<MbufPool>> of(memory::PacketPool& slots);
  ~MbufPool();
  MbufPool(MbufPool const&) = delete;
  MbufPool& operator=(MbufPool const&) = delete;

  /// For receive queues.
  rte_mempool* mempool() const { return mempool_; }
  /// The mbuf of a slot owned by the caller, as the pool hands it out: one segment, reference count 1.
  rte_mbuf* mbuf(std::uint32_t slot) const { return mbufs_[slot]; }
  std::uint32_t slot_of(rte_mbuf const& mbuf) const;

 private:
  struct Operations;
  explicit MbufPool(memory::PacketPool& slots) : slots_(&slots) {}
  Status set_up();
  void make(rte_mbuf& mbuf, std::uint32_t slot);

  memory::PacketPool* slots_;
  bool is_registered_ = false;
  rte_mempool* mempool_ = nullptr;
  bool is_made_ = false;          ///< from set-up to destruction: mempool gets and puts are then of slots
  std::vector<rte_mbuf*> mbufs_;  ///< by slot
};

}  // namespace catena::io
