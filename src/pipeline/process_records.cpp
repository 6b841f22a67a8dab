// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_records.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace catena::runtime {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  ///< more is no unit's

}  // namespace

/// Those about units that return later: of the next one all, as the process has no room for more; of others as much as
/// it has room for itself. So what is kept does not grow with the units that are on the way.
Status ProcessRecords::gather(std::size_t units) {
  const auto is_enough = [this] { return queue_.size() > 1 && bytes_ >= nf_process::kLineRingBytes; };
  while (!is_enough()) {
    CATENA_ASSIGN_OR_RETURN(auto line, reader_.next());
    if (!line) {
      break;
    }
    OfUnit& last = queue_.back();
    std::size_t bytes = 0;
    if (auto* record = std::get_if<nf_process::RecordOf>(&*line); record != nullptr) {
      bytes = sizeof *record + record->line.fields.size();
      last.records.push_back(std::move(*record));
    } else if (auto* alert = std::get_if<nf_process::AlertOf>(&*line); alert != nullptr) {
      bytes = sizeof *alert + alert->line.alert.size();
      last.alerts.push_back(std::move(*alert));
    } else {
      queue_.emplace_back();
    }
    last.bytes += bytes;
    bytes_ += bytes;
    if (bytes_ > kMaxBytes || queue_.size() > units + 1) {
      return absl::DataLossError("more records than packets");
    }
  }
  return absl::OkStatus();
}

Status ProcessRecords::take(std::size_t units, HadPacket const& had_packet, IsReason const& is_reason,
                            std::uint32_t position, UnitRecords& to) {
  CATENA_RETURN_IF_ERROR(gather(units));
  if (queue_.size() < 2) {
    return absl::DataLossError("a unit without the end of its records");
  }
  OfUnit lines = std::move(queue_.front());
  queue_.pop_front();
  bytes_ -= lines.bytes;
  const bool are_sound = std::ranges::all_of(lines.records,
                                             [&](nf_process::RecordOf const& record) {
                                               return had_packet(record.nf, record.line.packet) &&
                                                      is_reason(record.nf, record.line.reason);
                                             }) &&
                         std::ranges::all_of(lines.alerts, [&](nf_process::AlertOf const& alert) {
                           return had_packet(alert.nf, alert.line.packet);
                         });
  if (!are_sound) {
    return absl::DataLossError("a record about a packet it does not have");
  }
  for (nf_process::RecordOf& record : lines.records) {
    to.records.push_back({position + record.nf, std::move(record.line)});
  }
  for (nf_process::AlertOf& alert : lines.alerts) {
    to.alerts.push_back({position + alert.nf, std::move(alert.line)});
  }
  return absl::OkStatus();
}

}  // namespace catena::runtime
