// SPDX-License-Identifier: Apache-2.0
#include "dataplane/recorder.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace catena::dataplane {
namespace {

/// Moves the lines that are about the packets of `unit` from `lines` to `taken`.
template <typename Line, typename UnitLine>
void take(std::vector<Line>& lines, std::uint32_t position, Unit const& unit, std::vector<UnitLine>& taken) {
  const std::uint64_t end = unit.first_index + unit.count;
  const auto own = std::stable_partition(lines.begin(), lines.end(), [&](Line const& line) {
    return line.packet < unit.first_index || line.packet >= end;
  });
  for (auto line = own; line != lines.end(); ++line) {
    taken.push_back({position, std::move(*line)});
  }
  lines.erase(own, lines.end());
}

/// Calls write(line, arrival) for each line in packet order; `arrival` is null where rx noted none. The first error
/// ends it.
template <typename UnitLine, typename Write>
Status for_each_in_order(std::vector<UnitLine>& lines, std::vector<nf::Arrival> const& arrivals, Write write) {
  std::stable_sort(lines.begin(), lines.end(),
                   [](UnitLine const& a, UnitLine const& b) { return a.line.packet < b.line.packet; });
  auto arrival = arrivals.begin();
  for (UnitLine const& line : lines) {
    while (arrival != arrivals.end() && arrival->packet < line.line.packet) {
      ++arrival;
    }
    const bool known = arrival != arrivals.end() && arrival->packet == line.line.packet;
    CATENA_RETURN_IF_ERROR(write(line, known ? &*arrival : nullptr));
  }
  lines.clear();
  return absl::OkStatus();
}

Status write_line(std::FILE* file, std::string const& path, std::string line) {
  line += '\n';
  return std::fwrite(line.data(), 1, line.size(), file) == line.size()
             ? absl::OkStatus()
             : absl::DataLossError(concat(path, ": ", std::strerror(errno)));
}

}  // namespace

bool has_lines(nf::Instance& instance, Unit const& unit) {
  return instance.outcome().recording() || !unit.arrivals.empty();
}

void take_records(nf::Instance& instance, std::uint32_t position, Unit& unit) {
  take(instance.outcome().lines(), position, unit, unit.records);
  if (auto* alerting = dynamic_cast<nf::Alerting*>(&instance.nf()); alerting != nullptr) {
    take(alerting->alerts(), position, unit, unit.alerts);
  }
}

Result<std::unique_ptr<Recorder>> Recorder::open(RecorderOptions options) {
  std::unique_ptr<Recorder> recorder(new Recorder(std::move(options)));
  const auto create = [](std::string const& path, std::string_view what, File& file) -> Status {
    if (path.empty()) {
      return absl::OkStatus();
    }
    file.reset(std::fopen(path.c_str(), "wb"));
    return file ? absl::OkStatus()
                : absl::ErrnoToStatus(errno, concat(path, ": the ", what, " file cannot be created"));
  };
  CATENA_RETURN_IF_ERROR(create(recorder->options_.record_path, "record", recorder->record_));
  CATENA_RETURN_IF_ERROR(create(recorder->options_.eve_path, "EVE", recorder->eve_));
  return recorder;
}

Status Recorder::write(Unit& unit) {
  CATENA_RETURN_IF_ERROR(write_records(unit));
  return write_alerts(unit);
}

Status Recorder::write_records(Unit& unit) {
  return for_each_in_order(unit.records, unit.arrivals, [this](UnitRecord const& record, nf::Arrival const* arrival) {
    return write_line(record_.get(), options_.record_path,
                      nf::format_record(*options_.nfs[record.nf], record.line, arrival));
  });
}

Status Recorder::write_alerts(Unit& unit) {
  return for_each_in_order(unit.alerts, unit.arrivals, [this](UnitAlert const& alert, nf::Arrival const* arrival) {
    return write_line(
        eve_.get(), options_.eve_path,
        nf::format_eve(options_.chain, *options_.nfs[alert.nf], alert.line, arrival, options_.numbers_frames));
  });
}

Status Recorder::finish() {
  const auto flush = [](File const& file, std::string const& path) {
    return !file || std::fflush(file.get()) == 0 ? absl::OkStatus()
                                                 : absl::DataLossError(concat(path, ": ", std::strerror(errno)));
  };
  Status status = flush(record_, options_.record_path);
  status.Update(flush(eve_, options_.eve_path));
  return status;
}

}  // namespace catena::dataplane
