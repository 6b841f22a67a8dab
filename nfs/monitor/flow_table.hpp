// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace catena::monitor {

/// Counters of a flow in the table; one cache line.
struct alignas(64) Flow {
  packet::Ipv4FlowKey key;
  std::uint64_t packets;
  std::uint64_t bytes;
  std::uint64_t first_ns;
  std::uint64_t last_ns;
  std::uint64_t started_ns;  ///< the monitor's clock when counting started
  std::uint32_t next;        ///< in its hash chain, or in the list of free entries
  std::uint16_t tcp_flags;
  std::uint8_t tos;
};
static_assert(sizeof(Flow) == 64);

/// Unmaps memory of mmap().
struct Unmap {
  std::size_t bytes = 0;
  void operator()(void* memory) const;
};

/// A fixed number of flows, found by key and kept in order of use.
///
/// Theory of operation. Flows are in one array and never move. `heads_` holds, per hash value, the first flow of a
/// chain. There are twice as many heads as flows, so a chain seldom has a second flow. Order of use is a ring of
/// `order_` nodes, 16 bytes each, separate from the flows: moving a flow to the end touches three nodes instead of
/// three cache lines of counters. The last node is the anchor: after it comes the oldest, before it the newest flow.
/// Memory is reserved once, and the OS kernel allocates pages on first use.
///
/// No output of this class depends on the hash. Not thread safe.
class FlowTable {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::uint32_t kMaxCapacity = 100'000'000;

  /// `capacity`: 1 to kMaxCapacity. ResourceExhausted if the memory cannot be reserved.
  static Result<FlowTable> create(std::uint32_t capacity);

  std::uint64_t hash(packet::Ipv4FlowKey const& key) const { return hash_(key); }
  /// The three steps to prefetch the memory of find() and touch(), for several keys in parallel: each step loads the
  /// memory requested by the previous one.
  void prefetch_head(std::uint64_t hash) const { __builtin_prefetch(&heads_[hash & mask_]); }
  void prefetch_flow(std::uint64_t hash) const;
  void prefetch_order(packet::Ipv4FlowKey const& key, std::uint64_t hash) const;

  /// The flow's position, or kNone.
  std::uint32_t find(packet::Ipv4FlowKey const& key, std::uint64_t hash) const {
    std::uint32_t at = heads_[hash & mask_] - 1;
    while (at != kNone && flows_[at].key != key) {
      at = flows_[at].next;
    }
    return at;
  }
  /// Adds a flow with counters 0 as the newest. Preconditions: not full(), and the key is not in the table.
  std::uint32_t insert(packet::Ipv4FlowKey const& key, std::uint64_t hash, std::uint64_t clock_ns);
  /// Makes the flow the newest, used at `clock_ns`.
  void touch(std::uint32_t flow, std::uint64_t clock_ns) {
    order_[flow].used_ns = clock_ns;
    if (order_[anchor()].older != flow) {
      unlink(flow);
      link_newest(flow);
    }
  }
  void erase(std::uint32_t flow);
  /// Calls `visit(flow)` for each flow, least recently used first. The table must not change meanwhile.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t flow = order_[anchor()].newer, left = size_; left > 0; --left, flow = order_[flow].newer) {
      visit(flow);
    }
  }

  /// The least recently used flow (insert() or touch()); kNone in an empty table.
  std::uint32_t oldest() const { return size_ == 0 ? kNone : order_[anchor()].newer; }
  std::uint64_t used_ns(std::uint32_t flow) const { return order_[flow].used_ns; }
  Flow& operator[](std::uint32_t flow) { return flows_[flow]; }
  Flow const& operator[](std::uint32_t flow) const { return flows_[flow]; }

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t size() const { return size_; }
  bool full() const { return size_ == capacity_; }
  /// Reserved bytes, used or not.
  std::size_t memory_bytes() const;

 private:
  struct Order {
    std::uint64_t used_ns;
    std::uint32_t older;
    std::uint32_t newer;
  };
  template <typename T>
  using Array = std::unique_ptr<T[], Unmap>;

  FlowTable() = default;
  template <typename T>
  static Result<Array<T>> reserve(std::size_t count);

  std::uint32_t anchor() const { return capacity_; }
  void unlink(std::uint32_t flow) {
    order_[order_[flow].older].newer = order_[flow].newer;
    order_[order_[flow].newer].older = order_[flow].older;
  }
  void link_newest(std::uint32_t flow) {
    const std::uint32_t before = order_[anchor()].older;
    order_[flow].older = before;
    order_[flow].newer = anchor();
    order_[before].newer = flow;
    order_[anchor()].older = flow;
  }

  Array<Flow> flows_;           // [capacity_]
  Array<Order> order_;          // [capacity_ + 1]
  Array<std::uint32_t> heads_;  // [mask_ + 1] position + 1, so that fresh memory reads as kNone
  std::uint64_t mask_ = 0;
  FlowHash hash_;
  std::uint32_t capacity_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t free_ = kNone;    // used and erased entries, linked by Flow::next
  std::uint32_t never_used_ = 0;  // the first unused entry
};

}  // namespace catena::monitor
