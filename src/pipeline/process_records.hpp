// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/unit_queue.hpp"
#include "pipeline/isolation/lines.hpp"
#include "pipeline/unit_records.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace catena::runtime {

/// Lines of an NF process about packets, for `--record` and `--eve`. They come before their units return. One thread at
/// a time.
class ProcessRecords {
 public:
  /// A packet of a unit, and the NF of the process that the line is about.
  using HadPacket = std::function<bool(std::uint32_t nf, std::uint64_t packet)>;
  using IsReason = std::function<bool(std::uint32_t nf, std::int32_t reason)>;

  explicit ProcessRecords(nf_process::LineReader reader) : reader_(reader), queue_(1) {}
  /// Reads the lines that have come. `units`: number of units in the process. DataLoss for more records than packets of
  /// these units may have, or a malformed line.
  Status gather(std::size_t units);
  /// Moves the lines about the next unit to `to`, as lines of NFs from `position` on. DataLoss if not all of them have
  /// come, or if one is about a packet that the NF did not have, or has an unknown reason; as gather().
  Status take(std::size_t units, HadPacket const& had_packet, IsReason const& is_reason, std::uint32_t position,
              UnitRecords& to);

 private:
  struct OfUnit {
    std::vector<nf_process::RecordOf> records;
    std::vector<nf_process::AlertOf> alerts;
    std::size_t bytes = 0;  ///< approximate size in memory
  };

  nf_process::LineReader reader_;
  std::deque<OfUnit> queue_;  ///< for units that have not returned; the last one is incomplete
  std::size_t bytes_ = 0;
};

}  // namespace catena::runtime
