// SPDX-License-Identifier: Apache-2.0
#include "dataplane/recorder.hpp"

#include <catena/nf/record.hpp>

#include <algorithm>

namespace catena::dataplane {

void take_records(nf::Instance& instance, std::uint32_t position, Unit& unit) {
  std::vector<nf::RecordLine>& lines = instance.outcome().lines();
  const auto own = std::stable_partition(lines.begin(), lines.end(), [&](nf::RecordLine const& line) {
    return line.packet < unit.first_index || line.packet >= unit.end_index;
  });
  for (auto line = own; line != lines.end(); ++line) {
    unit.records.push_back({position, std::move(*line)});
  }
  lines.erase(own, lines.end());
}

Status Recorder::write(Unit& unit) {
  std::stable_sort(unit.records.begin(), unit.records.end(),
                   [](UnitRecord const& a, UnitRecord const& b) { return a.line.packet < b.line.packet; });
  for (UnitRecord const& record : unit.records) {
    text_ += nf::format_record(*nfs_[record.nf], record.line);
    text_ += '\n';
  }
  unit.records.clear();
  return text_.size() < kBufferBytes ? absl::OkStatus() : flush();
}

Status Recorder::flush() {
  const Status status = file_.write(text_.data(), text_.size());
  text_.clear();
  return status;
}

Status Recorder::finish() {
  Status status = flush();
  status.Update(file_.close());
  return status;
}

}  // namespace catena::dataplane
