// SPDX-License-Identifier: Apache-2.0
#include "bench/isoptr/results.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace catena::bench {
namespace {

constexpr double kPercent = 100;
/// A launch that takes less than so many times an empty one is mostly the launch.
constexpr double kShortLaunch = 1.5;

nlohmann::ordered_json to_json(SampleCheck const& check) {
  nlohmann::ordered_json json{{"compared", check.compared}, {"different", check.different}};
  if (check.different > 0) {
    json["first_difference"] = check.first_difference;
  }
  return json;
}

nlohmann::ordered_json to_json(IsoPtrResults const& results, IsoPtrCell const& cell) {
  nlohmann::ordered_json json{
      {"part", to_string(cell.part)}, {"name", cell.name}, {"wire_bytes", cell.wire_bytes}, {"packets", cell.packets}};
  if (!cell.error.empty()) {
    json["error"] = cell.error;
  }
  json["overhead_percent"] = to_json(overhead_percent(cell));
  json["checked_ns_per_packet"] = to_json(over(cell, &IsoPtrRepeat::checked_ns));
  json["unchecked_ns_per_packet"] = to_json(over(cell, &IsoPtrRepeat::unchecked_ns));
  json["limit"] = limit_of(results, cell);
  if (cell.part == IsoPtrPart::kKernels) {
    json["us_per_launch"] = cell.us_per_launch;
  } else {
    json["busy"] = nlohmann::ordered_json::object();
    for (BusyShare const& share : cell.busy) {
      json["busy"][share.what] = share.share;
    }
  }
  json["samples"] = {{"checked", to_json(cell.checked)}, {"unchecked", to_json(cell.unchecked)}};
  json["repeats"] = nlohmann::ordered_json::array();
  for (IsoPtrRepeat const& repeat : cell.repeats) {
    json["repeats"].push_back(
        {{"checked_ns_per_packet", repeat.checked_ns}, {"unchecked_ns_per_packet", repeat.unchecked_ns}});
  }
  return json;
}

}  // namespace

std::string_view to_string(IsoPtrPart part) { return part == IsoPtrPart::kKernels ? "kernels" : "chains"; }

Spread over(IsoPtrCell const& cell, double IsoPtrRepeat::*value) {
  std::vector<double> values;
  for (IsoPtrRepeat const& repeat : cell.repeats) {
    values.push_back(repeat.*value);
  }
  return spread_of(std::move(values));
}

Spread overhead_percent(IsoPtrCell const& cell) {
  std::vector<double> values;
  for (IsoPtrRepeat const& repeat : cell.repeats) {
    values.push_back(kPercent * (repeat.checked_ns / repeat.unchecked_ns - 1));
  }
  return spread_of(std::move(values));
}

std::uint64_t IsoPtrResults::samples_compared() const {
  std::uint64_t sum = 0;
  for (IsoPtrCell const& cell : cells) {
    sum += cell.checked.compared + cell.unchecked.compared;
  }
  return sum;
}

std::uint64_t IsoPtrResults::samples_different() const {
  std::uint64_t sum = 0;
  for (IsoPtrCell const& cell : cells) {
    sum += cell.checked.different + cell.unchecked.different;
  }
  return sum;
}

std::uint64_t IsoPtrResults::failed_cells() const {
  return static_cast<std::uint64_t>(
      std::count_if(cells.begin(), cells.end(), [](IsoPtrCell const& cell) { return !cell.error.empty(); }));
}

std::string limit_of(IsoPtrResults const& results, IsoPtrCell const& cell) {
  if (cell.part == IsoPtrPart::kKernels) {
    const bool is_short = cell.us_per_launch < kShortLaunch * results.us_per_empty_launch;
    return fmt::format("{}, {:.1f} us a launch", is_short ? "launches" : "kernel", cell.us_per_launch);
  }
  BusyShare const* first = busiest(cell.busy);
  return first == nullptr ? "-" : fmt::format("{}, busy {:.0f} %", first->what, kPercent * first->share);
}

std::string to_json(IsoPtrResults const& results) {
  nlohmann::ordered_json json{
      {"benchmark", "isoptr"},
      {"machine", results.machine},
      {"device", results.device},
      {"cost_profile", results.costs_from},
      {"commit", results.commit},
      {"command", results.command},
      {"seconds", results.seconds},
      {"kernel_seconds", results.kernel_seconds},
      {"tuning", results.tuning},
      {"us_per_empty_launch", results.us_per_empty_launch},
      {"samples", {{"compared", results.samples_compared()}, {"different", results.samples_different()}}},
      {"failed_cells", results.failed_cells()}};
  json["cells"] = nlohmann::ordered_json::array();
  for (IsoPtrCell const& cell : results.cells) {
    json["cells"].push_back(to_json(results, cell));
  }
  return json.dump(1);
}

}  // namespace catena::bench
