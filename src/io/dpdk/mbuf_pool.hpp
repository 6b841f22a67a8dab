// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace catena::io {

/// The slots of a packet pool as DPDK's drivers want them: an mbuf for each. A mempool that has no free list of its
/// own but asks the packet pool, so a slot has one owner, whoever takes and frees it.
///
/// Thread rule: any thread.
class MbufPool {
 public:
  /// That of `slots`, which must outlive it: there is one for all ports.
  ///   Unavailable         the EAL does not start
  ///   ResourceExhausted   DPDK has no memory for so many mbufs, or cannot register the slots
  static Result<std::shared_ptr<MbufPool>> of(memory::PacketPool& slots);
  ~MbufPool();
  MbufPool(MbufPool const&) = delete;
  MbufPool& operator=(MbufPool const&) = delete;

  /// For receive queues.
  rte_mempool* mempool() const { return mempool_; }
  /// Of a slot that is the caller's, as the pool hands it out: one segment, one holder.
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
  bool is_made_ = false;          ///< and not about to go: what is put in and taken out are slots
  std::vector<rte_mbuf*> mbufs_;  ///< by slot
};

}  // namespace catena::io
