// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/results.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace catena::bench {
namespace {

nlohmann::ordered_json to_json(PhaseTimes const& us) {
  nlohmann::ordered_json json;
  for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
    json[std::string(kPhases[phase])] = us[phase];
  }
  return json;
}

nlohmann::ordered_json nfs_of(Repeat const& repeat) {
  nlohmann::ordered_json nfs = nlohmann::ordered_json::array();
  for (NfBytes const& bytes : repeat.nf_bytes) {
    nfs.push_back({{"name", bytes.nf},
                   {"host_to_device_bytes_per_packet", bytes.to_device},
                   {"device_to_host_bytes_per_packet", bytes.to_host}});
  }
  return nfs;
}

nlohmann::ordered_json traced_of(Repeat const& repeat) {
  nlohmann::ordered_json launches = nlohmann::ordered_json::array();
  for (LaunchTimes const& times : repeat.launches) {
    launches.push_back({{"nf", times.nf},
                        {"launches", times.launches},
                        {"packets", times.packets},
                        {"median_us", to_json(times.median_us)},
                        {"total_us", to_json(times.total_us)}});
  }
  return launches;
}

nlohmann::ordered_json to_json(Repeat const& repeat) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (auto const& [name, seconds] : repeat.stage_seconds) {
    stages.push_back({{"name", name}, {"busy_seconds", seconds}});
  }
  nlohmann::ordered_json json{{"packets_per_second", repeat.packets_per_s},
                              {"host_to_device_bytes_per_packet", repeat.bytes_to_device},
                              {"device_to_host_bytes_per_packet", repeat.bytes_to_host},
                              {"latency_us", {{"p50", repeat.p50_us}, {"p95", repeat.p95_us}, {"p99", repeat.p99_us}}},
                              {"received_packets", repeat.received},
                              {"sent_packets", repeat.sent},
                              {"dropped_packets", repeat.dropped},
                              {"workers", repeat.workers},
                              {"stages", std::move(stages)},
                              {"nfs", nfs_of(repeat)}};
  if (!repeat.launches.empty()) {
    json["launches"] = traced_of(repeat);
  }
  return json;
}

nlohmann::ordered_json to_json(Cell const& cell) {
  nlohmann::ordered_json json{{"part", to_string(cell.part)},
                              {"chain", cell.chain},
                              {"mode", cell.mode},
                              {"wire_bytes", cell.wire_bytes},
                              {"run", cell.run},
                              {"replicas", cell.replicas},
                              {"planned_ns_per_packet", cell.planned_ns}};
  if (cell.unit_packets != 0) {
    json["unit_packets"] = cell.unit_packets;
  }
  if (cell.offered_gbps != 0) {
    json["offered_gbps"] = cell.offered_gbps;
  }
  if (!cell.error.empty()) {
    json["error"] = cell.error;
  }
  json["packets_per_second"] = to_json(packets_per_s(cell));
  json["gbps"] = to_json(gbps(cell));
  json["samples"] = {{"compared", cell.samples.compared}, {"different", cell.samples.different}};
  if (cell.samples.different > 0) {
    json["samples"]["first_difference"] = cell.samples.first_difference;
  }
  json["repeats"] = nlohmann::ordered_json::array();
  for (Repeat const& repeat : cell.repeats) {
    json["repeats"].push_back(to_json(repeat));
  }
  if (!cell.cdf_us.empty()) {
    json["latency_cdf"] = nlohmann::ordered_json::array();
    for (auto const& [us, percent] : cell.cdf_us) {
      json["latency_cdf"].push_back({{"us", us}, {"percent", percent}});
    }
  }
  return json;
}

}  // namespace

std::string_view to_string(Part part) {
  switch (part) {
    case Part::kAnchor:
      return "anchor";
    case Part::kSource:
      return "source";
    case Part::kThroughput:
      return "throughput";
    case Part::kDecrypt:
      return "decrypt";
    case Part::kUnits:
      return "units";
    case Part::kLatency:
      return "latency";
    case Part::kStages:
      return "stages";
    case Part::kBatch:
      return "batch";
    case Part::kConflicts:
      return "conflicts";
  }
  return {};
}

Part part_of(std::string_view name) {
  if (name == to_string(Part::kAnchor)) {
    return Part::kAnchor;
  }
  const auto* const found =
      std::find_if(kParts.begin(), kParts.end(), [name](Part part) { return to_string(part) == name; });
  return found == kParts.end() ? Part::kSource : *found;
}

bool is_traced(Part part) { return part == Part::kStages || part == Part::kBatch || part == Part::kConflicts; }

Spread over(Cell const& cell, std::function<double(Repeat const&)> const& value) {
  std::vector<double> values;
  for (Repeat const& repeat : cell.repeats) {
    values.push_back(value(repeat));
  }
  return spread_of(std::move(values));
}

NfBytes const* bytes_of(Repeat const& repeat, std::string_view nf) {
  const auto found = std::find_if(repeat.nf_bytes.begin(), repeat.nf_bytes.end(),
                                  [nf](NfBytes const& bytes) { return bytes.nf == nf; });
  return found == repeat.nf_bytes.end() ? nullptr : &*found;
}

LaunchTimes const* launches_of(Repeat const& repeat, std::string_view nf) {
  const auto found = std::find_if(repeat.launches.begin(), repeat.launches.end(),
                                  [nf](LaunchTimes const& times) { return times.nf == nf; });
  return found == repeat.launches.end() ? nullptr : &*found;
}

Spread packets_per_s(Cell const& cell) { return over(cell, &Repeat::packets_per_s); }

Spread gbps(Cell const& cell) {
  Spread spread = packets_per_s(cell);
  constexpr double kBitsPerByte = 8;
  constexpr double kGiga = 1e9;
  const double scale = kBitsPerByte * cell.wire_bytes / kGiga;
  return {spread.median * scale, spread.low * scale, spread.high * scale};
}

std::uint64_t Results::samples_compared() const {
  std::uint64_t sum = 0;
  for (Cell const& cell : cells) {
    sum += cell.samples.compared;
  }
  return sum;
}

std::uint64_t Results::samples_different() const {
  std::uint64_t sum = 0;
  for (Cell const& cell : cells) {
    sum += cell.samples.different;
  }
  return sum;
}

std::uint64_t Results::failed_cells() const {
  return static_cast<std::uint64_t>(
      std::count_if(cells.begin(), cells.end(), [](Cell const& cell) { return !cell.error.empty(); }));
}

Cell const* find(Results const& results, Part part, std::string_view chain, std::string_view mode,
                 std::uint32_t wire_bytes, std::uint32_t unit_packets, double offered_gbps) {
  for (Cell const& cell : results.cells) {
    if (cell.part == part && cell.chain == chain && cell.mode == mode && cell.wire_bytes == wire_bytes &&
        cell.unit_packets == unit_packets && cell.offered_gbps == offered_gbps && !cell.repeats.empty()) {
      return &cell;
    }
  }
  return nullptr;
}

bool is_measured(Results const& results, Part part, std::string_view chain) {
  return std::any_of(results.cells.begin(), results.cells.end(), [&](Cell const& cell) {
    return cell.part == part && (chain.empty() || cell.chain == chain) && !cell.repeats.empty();
  });
}

std::string to_json(Results const& results) {
  nlohmann::ordered_json json{
      {"benchmark", "adaptchain"},
      {"device", results.device},
      {"cost_profile", results.costs_from},
      {"commit", results.commit},
      {"seconds", results.seconds},
      {"tuning", results.tuning},
      {"sample_every_runs", results.sample_every},
      {"samples", {{"compared", results.samples_compared()}, {"different", results.samples_different()}}},
      {"failed_cells", results.failed_cells()},
      {"notes", results.notes}};
  json["runs"] = nlohmann::ordered_json::array();
  for (RunOrigin const& run : results.runs) {
    json["runs"].push_back({{"machine", run.machine},
                            {"device", run.device},
                            {"copy_gb_per_s", run.copy_gb_per_s},
                            {"command", run.command}});
  }
  json["cells"] = nlohmann::ordered_json::array();
  for (Cell const& cell : results.cells) {
    json["cells"].push_back(to_json(cell));
  }
  return json.dump(1);
}

}  // namespace catena::bench
