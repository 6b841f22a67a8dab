// SPDX-License-Identifier: Apache-2.0
#include "bench/gnet/results.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace catena::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercent = 100;

Json to_json(ModeRuns const& runs) {
  Json parts = Json::array();
  for (runtime::PartReport const& part : runs.parts) {
    parts.push_back({{"nf", part.nf}, {"units", part.units}, {"launch_packets", part.launch_packets}});
  }
  return {{"mode", to_string(runs.mode)},
          {"packets_per_s", runs.packets_per_s},
          {"p50_us", runs.p50_us},
          {"p95_us", runs.p95_us},
          {"latency_cdf", runs.cdf_us},
          {"parts", std::move(parts)},
          {"part_changes", runs.part_changes}};
}

Json to_json(GnetCell const& cell) {
  Json json{{"chain", cell.chain},
            {"wire_bytes", cell.wire_bytes},
            {"compute_units", cell.units},
            {"offered_per_s", cell.offered_per_s},
            {"error", cell.error}};
  json["modes"] = Json::array();
  for (ModeRuns const& runs : cell.modes) {
    json["modes"].push_back(to_json(runs));
  }
  json["busy"] = Json::array();
  for (BusyShare const& busy : cell.busy) {
    json["busy"].push_back({{"what", busy.what}, {"share", busy.share}});
  }
  json["samples"] = {{"compared", cell.outputs.compared}, {"different", cell.outputs.different}};
  return json;
}

Json to_json(GnetNf const& nf) {
  Json json{{"name", nf.name}, {"wire_bytes", nf.wire_bytes}, {"why_not", nf.why_not}};
  share::NfCost const& cost = nf.model.cost;
  json["model"] = {{"b1_ns", cost.kernel.intercept},
                   {"k1_ns", cost.kernel.slope},
                   {"b2_ns", cost.transfer.intercept},
                   {"k2_ns", cost.transfer.slope},
                   {"overhead_ns", cost.overhead_ns},
                   {"max_packets_per_unit", cost.max_packets_per_sm},
                   {"kernel_units", nf.model.kernel_sms},
                   {"kernel_r2", nf.model.kernel.fit.r_squared},
                   {"transfer_r2", nf.model.transfer.fit.r_squared}};
  json["launches"] = Json::array();
  for (profile::LaunchPoint const& point : nf.times.launches) {
    json["launches"].push_back({{"packets", point.packets},
                                {"kernel_ns", point.kernel_ns},
                                {"transfer_ns", point.transfer_ns},
                                {"round_trip_ns", point.round_trip_ns}});
  }
  json["kernels"] = Json::array();
  for (profile::KernelPoint const& point : nf.times.kernels) {
    json["kernels"].push_back({{"units", point.sms}, {"packets", point.packets}, {"kernel_ns", point.kernel_ns}});
  }
  return json;
}

template <typename Count>
std::uint64_t sum_over(GnetResults const& results, Count count) {
  std::uint64_t sum = 0;
  for (auto const& [name, cells] : results.lists()) {
    for (GnetCell const& cell : *cells) {
      sum += count(cell);
    }
  }
  return sum;
}

}  // namespace

std::uint64_t GnetResults::samples_compared() const {
  return sum_over(*this, [](GnetCell const& cell) { return cell.outputs.compared; });
}
std::uint64_t GnetResults::samples_different() const {
  return sum_over(*this, [](GnetCell const& cell) { return cell.outputs.different; });
}
std::uint64_t GnetResults::failed_cells() const {
  return sum_over(*this, [](GnetCell const& cell) { return cell.error.empty() ? 0U : 1U; });
}

bool is_measured(GnetCell const& cell) {
  return cell.error.empty() && !cell.modes.empty() &&
         std::ranges::none_of(cell.modes, [](ModeRuns const& runs) { return runs.packets_per_s.empty(); });
}

ModeRuns const* find(GnetCell const& cell, share::Mode mode) {
  const auto found =
      std::find_if(cell.modes.begin(), cell.modes.end(), [mode](ModeRuns const& runs) { return runs.mode == mode; });
  return found == cell.modes.end() ? nullptr : &*found;
}

Spread above_percent(GnetCell const& cell, share::Mode mode, share::Mode other, std::vector<double> ModeRuns::*value) {
  ModeRuns const* const a = find(cell, mode);
  ModeRuns const* const b = find(cell, other);
  std::vector<double> values;
  for (std::size_t i = 0; a != nullptr && b != nullptr && i < std::min((a->*value).size(), (b->*value).size()); ++i) {
    values.push_back(kPercent * ((a->*value)[i] / (b->*value)[i] - 1));
  }
  return spread_of(std::move(values));
}

std::string to_json(GnetResults const& results) {
  Json json{{"benchmark", "gnet"},
            {"machine", results.machine},
            {"device", results.device},
            {"compute_units", results.all_units},
            {"compute_unit_step", results.unit_step},
            {"parts", results.parts},
            {"commit", results.commit},
            {"command", results.command},
            {"seconds", results.seconds},
            {"repeats", results.repeats},
            {"tuning", results.tuning},
            {"samples", {{"compared", results.samples_compared()}, {"different", results.samples_different()}}},
            {"failed_cells", results.failed_cells()}};
  for (auto const& [name, cells] : results.lists()) {
    json[name] = Json::array();
    for (GnetCell const& cell : *cells) {
      json[name].push_back(to_json(cell));
    }
  }
  json["nfs"] = Json::array();
  for (GnetNf const& nf : results.nfs) {
    json["nfs"].push_back(to_json(nf));
  }
  return json.dump(1);
}

}  // namespace catena::bench
