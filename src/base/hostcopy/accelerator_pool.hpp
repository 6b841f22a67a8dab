// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
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
    int node;  ///< the NUMA node at which the engine is; -1 on a machine without nodes
  };
  struct Census {
    std::uint32_t idle = 0;
    std::uint32_t in_use = 0;
    std::uint32_t lost = 0;
  };

  /// Configures each engine for `limits`. A failing one counts as lost, with a warning in the log.
  AcceleratorPool(std::vector<Member> members, Engine::Limits const& limits);
  AcceleratorPool(AcceleratorPool const&) = delete;
  AcceleratorPool& operator=(AcceleratorPool const&) = delete;

  /// An idle engine at `node`, the one longest idle; null: no engine is idle. Owned by the pool.
  Engine* take(int node);
  /// Precondition: take() returned `engine`, and no job of it is in flight.
  void give_back(Engine* engine);
  /// Stops `engine`, which take() returned, for good: no Accelerator gets it again. Returns Engine::stop().
  bool lose(Engine* engine);
  Census census() const;

 private:
  enum class Use : std::uint8_t { kIdle, kInUse, kLost };
  struct Slot {
    std::unique_ptr<Engine> engine;
    int node;
    Use use;
    std::uint64_t idle_since;  ///< by turns_
  };
  Slot& slot_of(Engine const* engine);

  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::uint64_t turns_ = 0;
};

}  // namespace catena::hostcopy
