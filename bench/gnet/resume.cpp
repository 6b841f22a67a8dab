// SPDX-License-Identifier: Apache-2.0
#include "bench/gnet/resume.hpp"

#include "bench/common/results_file.hpp"

#include <catena/core/text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace catena::bench {
namespace {

using Json = nlohmann::ordered_json;

ModeRuns runs_of(Json const& json) {
  ModeRuns runs;
  const std::string mode = json.at("mode");
  const auto* const found =
      std::ranges::find_if(kShareModes, [&mode](share::Mode known) { return to_string(known) == mode; });
  if (found == kShareModes.end()) {
    throw Json::other_error::create(501, concat("no mode '", mode, "'"), &json);
  }
  runs.mode = *found;
  runs.packets_per_s = json.at("packets_per_s").get<std::vector<double>>();
  runs.p50_us = json.at("p50_us").get<std::vector<double>>();
  runs.p95_us = json.at("p95_us").get<std::vector<double>>();
  runs.cdf_us = json.at("latency_cdf").get<std::vector<std::pair<double, double>>>();
  runs.part_changes = json.at("part_changes");
  for (Json const& part : json.at("parts")) {
    runtime::PartReport& report = runs.parts.emplace_back();
    report.nf = part.at("nf");
    report.units = part.at("units");
    report.launch_packets = part.at("launch_packets");
  }
  return runs;
}

GnetCell cell_of(Json const& json) {
  GnetCell cell;
  cell.chain = json.at("chain");
  cell.wire_bytes = json.at("wire_bytes");
  cell.units = json.at("compute_units");
  cell.offered_per_s = json.at("offered_per_s");
  cell.error = json.at("error");
  for (Json const& runs : json.at("modes")) {
    cell.modes.push_back(runs_of(runs));
  }
  for (Json const& busy : json.at("busy")) {
    cell.busy.push_back({busy.at("what"), busy.at("share")});
  }
  cell.outputs.compared = json.at("samples").at("compared");
  cell.outputs.different = json.at("samples").at("different");
  return cell;
}

GnetResults results_of(Json const& json) {
  GnetResults results;
  results.commit = json.at("commit");
  results.device = json.at("device");
  results.parts = json.at("parts");
  results.seconds = json.at("seconds");
  results.tuning = json.at("tuning");
  for (auto const& [name, cells] : results.lists()) {
    for (Json const& cell : json.at(name)) {
      cells->push_back(cell_of(cell));
    }
  }
  return results;
}

}  // namespace

Result<GnetResults> read_gnet_results(std::string const& path) { return read_results_file(path, "gnet", &results_of); }

bool take_over(std::vector<GnetCell> const& earlier, std::uint32_t repeats, GnetCell& wanted) {
  const auto found = std::ranges::find_if(earlier, [&](GnetCell const& cell) {
    return cell.chain == wanted.chain && cell.wire_bytes == wanted.wire_bytes && cell.units == wanted.units &&
           cell.error.empty() && cell.modes.size() == wanted.modes.size() &&
           std::ranges::all_of(cell.modes,
                               [repeats](ModeRuns const& runs) { return runs.packets_per_s.size() == repeats; });
  });
  if (found == earlier.end()) {
    return false;
  }
  wanted = *found;
  return true;
}

Status check_same(GnetResults const& earlier, GnetResults const& now) {
  const auto text = [](GnetResults const& of) {
    return concat("commit ", of.commit, ", ", of.device, ", parts ", of.parts, ", runs of ", of.seconds,
                  " s and tuning '", of.tuning, "'");
  };
  if (text(earlier) != text(now)) {
    return absl::FailedPreconditionError(
        concat("the results to resume are of ", text(earlier), "; this run is of ", text(now)));
  }
  return absl::OkStatus();
}

}  // namespace catena::bench
