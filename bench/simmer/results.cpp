// SPDX-License-Identifier: Apache-2.0
#include "bench/simmer/results.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace catena::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercent = 100;

Json to_json(std::vector<BusyShare> const& busy) {
  Json json = Json::array();
  for (BusyShare const& share : busy) {
    json.push_back({{"what", share.what}, {"share", share.share}});
  }
  return json;
}

Json to_json(FlowRuns const& runs) {
  Json nfs = Json::array();
  for (NfRuns const& nf : runs.nfs) {
    nfs.push_back({{"name", nf.name},
                   {"packets_per_s", nf.packets_per_s},
                   {"drops_per_s", nf.drops_per_s},
                   {"launches_per_s", nf.launches_per_s}});
  }
  return {{"mode", to_string(runs.mode)},
          {"packets_per_s", runs.packets_per_s},
          {"received_per_s", runs.received_per_s},
          {"nfs", std::move(nfs)},
          {"busy", to_json(runs.busy)}};
}

Json to_json(SimmerCell const& cell) {
  Json flows = Json::array();
  for (FlowRuns const& runs : cell.flows) {
    flows.push_back(to_json(runs));
  }
  return {{"part", cell.part},
          {"chain", cell.chain},
          {"shared_as", to_string(cell.shared_as)},
          {"wire_bytes", cell.wire_bytes},
          {"qt", cell.qt},
          {"load", to_string(cell.load)},
          {"offered_per_s", cell.offered_per_s},
          {"tuning", cell.tuning},
          {"flows", std::move(flows)},
          {"error", cell.error}};
}

Json to_json(AloneCell const& cell) {
  return {{"nf", cell.nf},
          {"shared_as", to_string(cell.shared_as)},
          {"wire_bytes", cell.wire_bytes},
          {"tuning", cell.tuning},
          {"packets_per_s", cell.packets_per_s},
          {"kernel_us", cell.kernel_us},
          {"busy", to_json(cell.busy)},
          {"error", cell.error}};
}

Json to_json(LongRun const& run) {
  return {{"chain", run.chain},
          {"wire_bytes", run.wire_bytes},
          {"seconds", run.seconds},
          {"offered_per_s", run.offered_per_s},
          {"packets_per_s", run.packets_per_s},
          {"dropped_inside", run.dropped_inside},
          {"memory_mb", run.memory_mb},
          {"slots_in_use", run.slots_in_use},
          {"error", run.error}};
}

template <typename Row>
Json list_of(std::vector<Row> const& rows) {
  Json json = Json::array();
  for (Row const& row : rows) {
    json.push_back(to_json(row));
  }
  return json;
}

template <typename Row>
std::uint64_t failed_of(std::vector<Row> const& rows) {
  return static_cast<std::uint64_t>(std::ranges::count_if(rows, [](Row const& row) { return !row.error.empty(); }));
}

/// The sum over NFs in each repeat.
std::vector<double> sums(FlowRuns const& runs, std::vector<double> NfRuns::*value) {
  std::vector<double> sums(runs.packets_per_s.size());
  for (NfRuns const& nf : runs.nfs) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += (nf.*value)[i];
    }
  }
  return sums;
}

}  // namespace

std::string_view to_string(chain::FlowMode mode) {
  switch (mode) {
    case chain::FlowMode::kPool:
      return "pool";
    case chain::FlowMode::kVanilla:
      return "vanilla";
    case chain::FlowMode::kBackpressure:
      return "back-pressure";
  }
  return "";
}

std::string_view to_string(Load load) { return load == Load::kFirstNf ? "first NF" : "twice"; }

std::uint64_t SimmerResults::failed_cells() const { return failed_of(alone) + failed_of(cells) + failed_of(long_runs); }

bool is_measured(AloneCell const& cell) { return cell.error.empty() && !cell.packets_per_s.empty(); }

bool is_measured(SimmerCell const& cell) {
  return cell.error.empty() && !cell.flows.empty() &&
         std::ranges::none_of(cell.flows, [](FlowRuns const& runs) { return runs.packets_per_s.empty(); });
}

FlowRuns const& find(SimmerCell const& cell, chain::FlowMode mode) {
  return *std::ranges::find(cell.flows, mode, &FlowRuns::mode);
}

NfRuns const* find(FlowRuns const& runs, std::string_view nf) {
  const auto found = std::ranges::find(runs.nfs, nf, &NfRuns::name);
  return found == runs.nfs.end() ? nullptr : &*found;
}

Spread above_vanilla(SimmerCell const& cell) {
  std::vector<double> const& ours = find(cell, chain::FlowMode::kBackpressure).packets_per_s;
  std::vector<double> const& others = find(cell, chain::FlowMode::kVanilla).packets_per_s;
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(ours.size(), others.size()); ++i) {
    values.push_back(kPercent * (ours[i] / others[i] - 1));
  }
  return spread_of(std::move(values));
}

Spread dropped_inside(FlowRuns const& runs) { return spread_of(sums(runs, &NfRuns::drops_per_s)); }

Spread drop_percent(NfRuns const& nf) {
  std::vector<double> values;
  for (std::size_t i = 0; i < nf.drops_per_s.size(); ++i) {
    const double came = nf.drops_per_s[i] + nf.packets_per_s[i];
    values.push_back(came > 0 ? kPercent * nf.drops_per_s[i] / came : 0);
  }
  return spread_of(std::move(values));
}

Spread launch_packets(NfRuns const& nf) {
  std::vector<double> values;
  for (std::size_t i = 0; i < nf.launches_per_s.size(); ++i) {
    values.push_back(nf.launches_per_s[i] > 0 ? nf.packets_per_s[i] / nf.launches_per_s[i] : 0);
  }
  return spread_of(std::move(values));
}

Spread launch_percent(FlowRuns const& runs, std::string_view nf) {
  NfRuns const* const of = find(runs, nf);
  std::vector<double> values = sums(runs, &NfRuns::launches_per_s);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = of != nullptr && values[i] > 0 ? kPercent * of->launches_per_s[i] / values[i] : 0;
  }
  return spread_of(std::move(values));
}

std::string to_json(SimmerResults const& results) {
  Json json{{"benchmark", "simmer"},
            {"machine", results.machine},
            {"device", results.device},
            {"compute_units", results.compute_units},
            {"commit", results.commit},
            {"command", results.command},
            {"seconds", results.seconds},
            {"repeats", results.repeats},
            {"failed_cells", results.failed_cells()},
            {"alone", list_of(results.alone)},
            {"cells", list_of(results.cells)},
            {"long_runs", list_of(results.long_runs)}};
  return json.dump(1);
}

}  // namespace catena::bench
