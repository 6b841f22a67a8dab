// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/hostcopy/engine.hpp"

namespace catena::hostcopy {

/// The real engines of a machine, by NUMA node, for the Accelerators of all threads. An engine serves one Accelerator
/// at a time. Engines are started by the constructor, so a change of engine needs no start. Any thread.
class AcceleratorPool {
 public:
  struct Member {
    std::unique_ptr<Engine> engine;
    int node;  ///< the NUMA node at which the engine is; -1: at no node
  };
  struct Census {
    std::uint32_t idle = 0;
    std::uint32_t in_use = 0;
    std::uint32_t lost = 0;
  };

  /// A memory within reach of the engines, until the last copy of the pointer ends.
  using Reach = std::shared_ptr<const void>;

  /// Configures each engine for `limits`. A failing one counts as lost, with a warning in the log.
  AcceleratorPool(std::vector<Member> members, Engine::Limits const& limits);
  AcceleratorPool(AcceleratorPool const&) = delete;
  AcceleratorPool& operator=(AcceleratorPool const&) = delete;

  /// The idle engine at `node` that is longest idle; without one, that of any node. Null: no engine is idle. Owned by
  /// the pool.
  Engine* take(int node);
  /// Precondition: take() returned `engine`, and no job of it is in flight.
  void give_back(Engine* engine);
  /// Stops `engine`, which take() returned, for good: no Accelerator gets it again. Returns Engine::stop().
  bool lose(Engine* engine);
  /// Lets all engines that are not lost reach `memory`. `owner` keeps it until the result ends, and longer where an
  /// engine may still access it: as long as the pool. Preconditions: the caller's thread is the only one with engines
  /// of this pool; the pool outlives the result, which ends after the last job with the memory. Errors: of
  /// Engine::register_memory(), of the first engine that refuses: then no engine reaches it.
  Result<Reach> register_memory(std::span<std::byte> memory, std::shared_ptr<const void> owner);
  Census census() const;

 private:
  enum class Use : std::uint8_t { kIdle, kInUse, kLost };
  struct Slot {
    std::unique_ptr<Engine> engine;
    int node;
    Use use;
    std::uint64_t idle_since;  ///< by turns_
    bool is_runaway = false;   ///< lost, and it did not stop
  };
  Slot& slot_of(Engine const* engine);
  void unregister(std::span<std::byte> memory, std::shared_ptr<const void> owner);

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> kept_;  ///< memory that an engine may access
  std::vector<Slot> slots_;
  std::uint64_t turns_ = 0;
};

}  // namespace catena::hostcopy
