// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/packet_pool.hpp"

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace catena::runtime {

/// The empty units of a pool, for the splitters of a chain. Each needs an empty part for each of its shards before it
/// takes its next unit. It gets them only if those behind it still find theirs: so the last one can always go on, and
/// the units of what it passed come back for the one in front of it. Any thread.
class UnitReserve {
 public:
  explicit UnitReserve(memory::PacketPool& pool) : pool_(&pool) {}

  /// A splitter behind those that were added. Its number. Before packets run.
  std::uint32_t add(std::uint32_t parts);
  /// All that splitter `number` and those behind it may want at once.
  std::uint32_t wanted_from(std::uint32_t number) const;

  /// Fills what is null in the parts of a splitter. False: there are too few units now.
  bool take(std::uint32_t number, std::span<memory::Unit*> parts);
  /// The splitter is about to hand on so many of its parts. To be said in front of that: they come back.
  void used(std::uint32_t number, std::uint32_t parts);
  /// One for the source, which is in front of all splitters; null: not now.
  memory::Unit* take_one();

 private:
  std::uint32_t missing_from(std::uint32_t number) const;

  memory::PacketPool* pool_;
  std::vector<std::uint32_t> parts_;  ///< of each splitter
  std::mutex mutex_;
  std::vector<std::uint32_t> missing_;  ///< parts that each has not taken; of the mutex
};

}  // namespace catena::runtime
