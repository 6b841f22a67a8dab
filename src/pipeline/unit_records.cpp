// SPDX-License-Identifier: Apache-2.0
#include "pipeline/unit_records.hpp"

#include <algorithm>
#include <utility>

namespace catena::runtime {
namespace {

UnitRecords& lines_about(std::uint64_t number, std::span<const PartLines> parts) {
  const auto part = std::ranges::find_if(
      parts, [number](PartLines const& of) { return !of.is_of_copies && has_packet(of.packets, number); });
  return part == parts.end() ? *parts.front().lines : *part->lines;
}

}  // namespace

bool has_packet(packet::Batch const& packets, std::uint64_t number) {
  std::uint64_t const* const index_of = packets.meta().index;
  return std::ranges::binary_search(packets.slots(), number, {},
                                    [index_of](std::uint32_t slot) { return index_of[slot]; });
}

void divide_lines(UnitRecords& unit, std::span<const PartLines> parts) {
  for (UnitRecord& record : unit.records) {
    lines_about(record.line.packet, parts).records.push_back(std::move(record));
  }
  for (UnitAlert& alert : unit.alerts) {
    lines_about(alert.line.packet, parts).alerts.push_back(std::move(alert));
  }
  for (nf::Arrival const& arrival : unit.arrivals) {
    for (PartLines const& part : parts) {
      if (has_packet(part.packets, arrival.packet)) {
        part.lines->arrivals.push_back(arrival);
      }
    }
  }
  unit.clear();
}

}  // namespace catena::runtime
