// SPDX-License-Identifier: Apache-2.0
#include "pipeline/recorder.hpp"

#include <algorithm>
#include <tuple>

namespace catena::runtime {
namespace {

/// Moves the lines that are about packets of `unit` from `lines` to `taken`.
template <typename Line, typename UnitLine>
void take(std::vector<Line>& lines, std::uint32_t position, packet::Batch const& unit, std::vector<UnitLine>& taken) {
  const auto is_of_other = [&unit](Line const& line) { return !has_packet(unit, line.packet); };
  const auto own = std::stable_partition(lines.begin(), lines.end(), is_of_other);
  for (auto line = own; line != lines.end(); ++line) {
    taken.push_back({position, std::move(*line)});
  }
  lines.erase(own, lines.end());
}

/// Puts format(line, arrival) of each line, in packet order, into `text`; `arrival` is null where rx noted none.
template <typename UnitLine, typename Format>
void put_in_order(std::vector<UnitLine>& lines, std::vector<nf::Arrival> const& arrivals, std::string& text,
                  Format format) {
  std::stable_sort(lines.begin(), lines.end(), [](UnitLine const& a, UnitLine const& b) {
    return std::tie(a.line.packet, a.nf) < std::tie(b.line.packet, b.nf);
  });
  text.clear();
  auto arrival = arrivals.begin();
  for (UnitLine const& line : lines) {
    while (arrival != arrivals.end() && arrival->packet < line.line.packet) {
      ++arrival;
    }
    const bool known = arrival != arrivals.end() && arrival->packet == line.line.packet;
    text += format(line, known ? &*arrival : nullptr);
    text += '\n';
  }
}

}  // namespace

void take_lines(nf::Instance& instance, std::uint32_t position, packet::Batch const& unit, UnitRecords& lines) {
  take(instance.outcome().lines(), position, unit, lines.records);
  if (auto* alerting = dynamic_cast<nf::Alerting*>(&instance.nf()); alerting != nullptr) {
    take(alerting->alerts(), position, unit, lines.alerts);
  }
}

Status Recorder::write(UnitRecords& lines) {
  Status status;
  if (record_ && !lines.records.empty()) {
    put_in_order(lines.records, lines.arrivals, text_, [this](UnitRecord const& record, nf::Arrival const* arrival) {
      return nf::format_record(*options_.nfs[record.nf], record.line, arrival);
    });
    status = record_->write(text_.data(), text_.size());
  }
  if (eve_ && !lines.alerts.empty()) {
    put_in_order(lines.alerts, lines.arrivals, text_, [this](UnitAlert const& alert, nf::Arrival const* arrival) {
      return nf::format_eve(options_.chain, *options_.nfs[alert.nf], alert.line, arrival, options_.numbers_frames);
    });
    status.Update(eve_->write(text_.data(), text_.size()));
  }
  lines.clear();
  return status;
}

Status Recorder::finish() {
  Status status = record_ ? record_->close() : absl::OkStatus();
  status.Update(eve_ ? eve_->close() : absl::OkStatus());
  return status;
}

}  // namespace catena::runtime
