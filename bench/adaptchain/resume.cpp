// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/resume.hpp"

#include "bench/common/results_file.hpp"

#include <catena/core/text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace catena::bench {
namespace {

using Json = nlohmann::ordered_json;

PhaseTimes phases_of(Json const& json) {
  PhaseTimes us{};
  for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
    us[phase] = json.at(std::string(kPhases[phase]));
  }
  return us;
}

LaunchTimes launches_of(Json const& json) {
  LaunchTimes times;
  times.nf = json.at("nf");
  times.launches = json.at("launches");
  times.packets = json.at("packets");
  times.median_us = phases_of(json.at("median_us"));
  times.total_us = phases_of(json.at("total_us"));
  return times;
}

Repeat repeat_of(Json const& json) {
  Repeat repeat;
  repeat.packets_per_s = json.at("packets_per_second");
  repeat.bytes_to_device = json.at("host_to_device_bytes_per_packet");
  repeat.bytes_to_host = json.at("device_to_host_bytes_per_packet");
  repeat.p50_us = json.at("latency_us").at("p50");
  repeat.p95_us = json.at("latency_us").at("p95");
  repeat.p99_us = json.at("latency_us").at("p99");
  repeat.received = json.at("received_packets");
  repeat.sent = json.at("sent_packets");
  repeat.dropped = json.at("dropped_packets");
  repeat.workers = json.at("workers");
  for (Json const& stage : json.at("stages")) {
    repeat.stage_seconds.emplace_back(stage.at("name"), stage.at("busy_seconds"));
  }
  for (Json const& nf : json.at("nfs")) {
    repeat.nf_bytes.push_back(
        {nf.at("name"), nf.at("host_to_device_bytes_per_packet"), nf.at("device_to_host_bytes_per_packet")});
  }
  for (Json const& launches : json.value("launches", Json::array())) {
    repeat.launches.push_back(launches_of(launches));
  }
  return repeat;
}

Cell cell_of(Json const& json) {
  Cell cell;
  cell.part = part_of(json.at("part").get<std::string>());
  cell.chain = json.at("chain");
  cell.mode = json.at("mode");
  cell.wire_bytes = json.at("wire_bytes");
  cell.unit_packets = json.value("unit_packets", 0U);
  cell.offered_gbps = json.value("offered_gbps", 0.0);
  cell.run = json.at("run");
  cell.replicas = json.at("replicas");
  cell.planned_ns = json.at("planned_ns_per_packet");
  cell.error = json.value("error", std::string());
  cell.samples.compared = json.at("samples").at("compared");
  cell.samples.different = json.at("samples").at("different");
  cell.samples.first_difference = json.at("samples").value("first_difference", std::string());
  for (Json const& repeat : json.at("repeats")) {
    cell.repeats.push_back(repeat_of(repeat));
  }
  for (Json const& point : json.value("latency_cdf", Json::array())) {
    cell.cdf_us.emplace_back(point.at("us"), point.at("percent"));
  }
  return cell;
}

Results results_of(Json const& json) {
  Results results;
  results.commit = json.at("commit");
  results.device = json.at("device");
  results.costs_from = json.at("cost_profile");
  results.seconds = json.at("seconds");
  results.tuning = json.at("tuning");
  for (Json const& run : json.at("runs")) {
    results.runs.push_back({run.at("machine"), run.at("device"), run.at("copy_gb_per_s"), run.at("command")});
  }
  for (Json const& cell : json.at("cells")) {
    results.cells.push_back(cell_of(cell));
  }
  return results;
}

bool is_same(Cell const& a, Cell const& b) {
  return a.part == b.part && a.chain == b.chain && a.mode == b.mode && a.wire_bytes == b.wire_bytes &&
         a.unit_packets == b.unit_packets && a.offered_gbps == b.offered_gbps &&
         (a.part != Part::kSource || a.replicas == b.replicas);
}

bool is_of_table(Cell const& cell, Cell const& other) { return cell.part == other.part && cell.chain == other.chain; }

}  // namespace

Result<Results> read_results(std::string const& path) { return read_results_file(path, "adaptchain", &results_of); }

Result<std::size_t> take_over(Results&& earlier, std::size_t repeats, Results& now) {
  if (earlier.commit != now.commit || earlier.seconds != now.seconds || earlier.tuning != now.tuning) {
    return absl::FailedPreconditionError(
        concat("the results to resume are of commit ", earlier.commit, ", runs of ", earlier.seconds, " s and tuning '",
               earlier.tuning, "'; this run is of ", now.commit, ", ", now.seconds, " s and '", now.tuning, "'"));
  }
  const auto found = [&earlier, repeats](Cell const& wanted) {
    return std::find_if(earlier.cells.begin(), earlier.cells.end(), [&](Cell const& cell) {
      return is_same(cell, wanted) && cell.error.empty() && cell.repeats.size() == repeats;
    });
  };
  std::size_t taken = 0;
  std::vector<Cell> cells;
  for (Cell const& wanted : now.cells) {
    const bool has_all =
        wanted.part != Part::kAnchor && std::all_of(now.cells.begin(), now.cells.end(), [&](Cell const& cell) {
          return !is_of_table(cell, wanted) || found(cell) != earlier.cells.end();
        });
    cells.push_back(has_all ? *found(wanted) : wanted);
    taken += has_all ? 1 : 0;
  }
  std::vector<Cell> anchors;
  std::copy_if(earlier.cells.begin(), earlier.cells.end(), std::back_inserter(anchors),
               [](Cell const& cell) { return cell.part == Part::kAnchor; });
  cells.insert(cells.begin(), anchors.begin(), anchors.end());
  now.cells = std::move(cells);
  now.runs.insert(now.runs.begin(), earlier.runs.begin(), earlier.runs.end());
  return taken;
}

}  // namespace catena::bench
