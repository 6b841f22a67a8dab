// SPDX-License-Identifier: Apache-2.0
#include "dataplane/recorder.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace catena::dataplane {

void take_records(nf::Instance& instance, std::uint32_t position, Unit& unit) {
  std::vector<nf::RecordLine>& lines = instance.outcome().lines();
  const std::uint64_t end = unit.first_index + unit.count;
  const auto own = std::stable_partition(lines.begin(), lines.end(), [&](nf::RecordLine const& line) {
    return line.packet < unit.first_index || line.packet >= end;
  });
  for (auto line = own; line != lines.end(); ++line) {
    unit.records.push_back({position, std::move(*line)});
  }
  lines.erase(own, lines.end());
}

Result<std::unique_ptr<Recorder>> Recorder::open(std::string const& path, std::vector<nf::Instance const*> nfs) {
  std::unique_ptr<Recorder> recorder(new Recorder());
  recorder->path_ = path;
  recorder->nfs_ = std::move(nfs);
  recorder->file_.reset(std::fopen(path.c_str(), "wb"));
  if (!recorder->file_) {
    return absl::ErrnoToStatus(errno, concat(path, ": the record file cannot be created"));
  }
  return recorder;
}

Status Recorder::write(Unit& unit) {
  std::stable_sort(unit.records.begin(), unit.records.end(),
                   [](UnitRecord const& a, UnitRecord const& b) { return a.line.packet < b.line.packet; });
  auto arrival = unit.arrivals.begin();
  for (UnitRecord const& record : unit.records) {
    while (arrival != unit.arrivals.end() && arrival->packet < record.line.packet) {
      ++arrival;
    }
    const bool known = arrival != unit.arrivals.end() && arrival->packet == record.line.packet;
    std::string line = nf::format_record(*nfs_[record.nf], record.line, known ? &*arrival : nullptr);
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size()) {
      return absl::DataLossError(concat(path_, ": ", std::strerror(errno)));
    }
  }
  unit.records.clear();
  return absl::OkStatus();
}

Status Recorder::finish() {
  return std::fflush(file_.get()) == 0 ? absl::OkStatus()
                                       : absl::DataLossError(concat(path_, ": ", std::strerror(errno)));
}

}  // namespace catena::dataplane
