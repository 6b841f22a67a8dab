// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

struct rte_ring;

namespace catena::dataplane {

struct Unit;

/// A queue of units between two stages (rte_ring): one thread pushes, one thread pops. It is made large enough for
/// every unit of the pool, so a push never fails.
class Ring {
 public:
  /// `units`: the most that will ever be inside.
  static Result<std::unique_ptr<Ring>> create(std::uint32_t units);

  void push(Unit* unit);
  /// All at once: the other side sees them together.
  void push(std::span<Unit* const> units);
  /// Null when empty.
  Unit* pop();
  bool empty() const;
  /// The pushing side is done: nothing comes after what is inside.
  void close() { closed_.store(true, std::memory_order_release); }
  /// True when closed and everything has been popped.
  bool drained() const { return closed_.load(std::memory_order_acquire) && empty(); }

 private:
  struct Free {
    void operator()(rte_ring* ring) const;
  };
  Ring() = default;
  std::unique_ptr<rte_ring, Free> ring_;
  std::atomic<bool> closed_{false};
};

}  // namespace catena::dataplane
