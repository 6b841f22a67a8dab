// SPDX-License-Identifier: Apache-2.0
#include "bench/simmer/simmer.hpp"

#include "bench/chains/records.hpp"
#include "bench/common/results.hpp"
#include "bench/common/spread.hpp"
#include "bench/simmer/run.hpp"
#include "io/eal/eal.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace catena::bench {
namespace {

using chain::FlowMode;

constexpr const char* kAlone = "alone";
constexpr const char* kLong = "long";
constexpr std::uint32_t kLongestOverloaded = 1472;
/// Of chains that the paper only says the same of.
constexpr std::array<double, 3> kFewQts{2, 2.8, 4};
constexpr double kChosenQt = 2.8;
constexpr const char* kHeterogeneous = "heterogeneous";
constexpr const char* kThreeIpsec = "3 ipsec";
/// That of a chain file without one, but for packet memory.
constexpr const char* kOwnTuning = "pool_slots: 65536";
/// A long run is so many runs long.
constexpr double kLongRuns = 8;
constexpr double kQuickLongRuns = 2;
/// The two that are compared.
constexpr std::array<FlowMode, 2> kFlowModes{FlowMode::kVanilla, FlowMode::kBackpressure};
constexpr const char* kFirstNf = "first NF";  ///< a load: what the first NF does alone
constexpr const char* kTwice = "twice";       ///< twice what the chain does with back-pressure

/// As results call it.
const char* name_of_flow(FlowMode mode) { return mode == FlowMode::kVanilla ? "vanilla" : "back-pressure"; }

/// A chain at a load: both ways, in turn within each repeat.
struct OverloadCell {
  std::string group;
  std::string chain;
  GpuSharedAs shared_as = GpuSharedAs::kProcess;
  std::uint32_t wire_bytes = 128;  ///< of a frame with FCS
  double qt = kChosenQt;
  const char* load = kFirstNf;
  std::string tuning;

  Json key() const {
    return {{"group", group},           {"chain", chain}, {"shared_as", to_string(shared_as)},
            {"wire_bytes", wire_bytes}, {"qt", qt},       {"load", load},
            {"tuning", tuning}};
  }
};

Json nfs_json(std::vector<NfWindow> const& nfs) {
  Json json = Json::array();
  for (NfWindow const& nf : nfs) {
    json.push_back({{"name", nf.name},
                    {"packets_per_s", nf.packets_per_s},
                    {"drops_per_s", nf.drops_per_s},
                    {"launches_per_s", nf.launches_per_s}});
  }
  return json;
}

double median_of(Json const& cell, std::string const& path) { return spread_of(values_of(cell, path)).median; }

/// The whole benchmark under way.
class SimmerBench {
 public:
  SimmerBench(Request const& request, SimmerRunner& runner, Results& results)
      : request_(request), runner_(runner), results_(results) {}
  Status run();

 private:
  bool wants(const char* group) const { return request_.wants("groups", group); }
  std::uint32_t largest() const { return std::ranges::max(request_.counts("sizes")); }
  OverloadCell cell_of(const char* group, const char* chain) const;
  SimmerSpec spec_for(OverloadCell const& cell) const;
  Result<SimmerRun> run_once(SimmerSpec const& spec);
  Result<double> alone(std::string_view nf, GpuSharedAs shared_as, std::uint32_t bytes, std::string const& tuning);
  Status measure_alone(SimmerSpec spec, Json& json);
  Result<double> offered(OverloadCell const& cell);
  Status measure_flow(OverloadCell const& cell, FlowMode mode, double offered_per_s, Json& repeat, Json& json);
  Status measure(OverloadCell const& cell, Json& json);
  void list_sizes(std::vector<OverloadCell>& cells) const;
  void list_sharing(std::vector<OverloadCell>& cells) const;
  void list_thresholds(std::vector<OverloadCell>& cells) const;
  std::vector<OverloadCell> list_cells() const;
  Status measure_long(Json& json);
  Status run_long();

  Request const& request_;
  SimmerRunner& runner_;
  Results& results_;
  std::map<std::string, Result<double>> alone_;  ///< by key: what alone() has found
};

OverloadCell SimmerBench::cell_of(const char* group, const char* chain) const {
  OverloadCell cell;
  cell.group = group;
  cell.chain = chain;
  cell.wire_bytes = largest();
  cell.tuning = request_.text("tuning");
  return cell;
}

SimmerSpec SimmerBench::spec_for(OverloadCell const& cell) const {
  SimmerSpec spec;
  spec.chain = &simmer_chain(cell.chain);
  spec.shared_as = cell.shared_as;
  spec.qt = cell.qt;
  spec.wire_bytes = cell.wire_bytes;
  spec.tuning = cell.tuning;
  spec.compute_units = request_.count("compute_units");
  spec.seconds = request_.seconds();
  return spec;
}

Result<SimmerRun> SimmerBench::run_once(SimmerSpec const& spec) {
  Result<SimmerRun> run = runner_.run(spec);
  results_.abandon_if(runner_.abandoned());
  return run;
}

// ---- NFs alone, which loads are chosen by

Status SimmerBench::measure_alone(SimmerSpec spec, Json& json) {
  spec.trace = spec.shared_as != GpuSharedAs::kProcess;  // what is in another process has no trace
  for (std::uint32_t i = 0; i < request_.repeats(); ++i) {
    CATENA_ASSIGN_OR_RETURN(const SimmerRun run, run_once(spec));
    Json repeat{{"packets_per_s", run.packets_per_s}, {"process_cores", run.process_cores}};
    if (run.kernel_us) {
      repeat["kernel_us"] = *run.kernel_us;  // a packet
    }
    json["repeats"].push_back(std::move(repeat));
    json["busy"] = to_json(run.busy);
  }
  return absl::OkStatus();
}

/// What the NF does on the whole device, as fast as it goes, measured where it was not yet. Packets a second.
Result<double> SimmerBench::alone(std::string_view nf, GpuSharedAs shared_as, std::uint32_t bytes,
                                  std::string const& tuning) {
  const Json key{
      {"group", kAlone}, {"nf", nf}, {"shared_as", to_string(shared_as)}, {"wire_bytes", bytes}, {"tuning", tuning}};
  if (const auto known = alone_.find(key.dump()); known != alone_.end()) {
    return known->second;
  }
  OverloadCell cell;
  cell.chain = nf;
  cell.shared_as = shared_as;
  cell.wire_bytes = bytes;
  cell.tuning = tuning;
  Status error;
  Work work;
  work.measure = [&](std::size_t, Json& json) { return error = measure_alone(spec_for(cell), json); };
  work.summary = [](Json const& json) { return fmt::format("{:.3f} Mpps", median_of(json, "/packets_per_s") / 1e6); };
  CATENA_RETURN_IF_ERROR(results_.measure(std::vector<Json>{key}, work));
  Json const* const found = results_.find(key);
  Result<double> speed =
      found != nullptr
          ? Result<double>(median_of(*found, "/packets_per_s"))
          : absl::UnavailableError(concat("what its first NF does alone is not known: ", std::string(error.message())));
  alone_.emplace(key.dump(), speed);
  return speed;
}

Result<double> SimmerBench::offered(OverloadCell const& cell) {
  if (std::string_view(cell.load) == kFirstNf) {
    // of parts nobody has the whole device alone
    const GpuSharedAs shared_as =
        cell.shared_as == GpuSharedAs::kProcess ? GpuSharedAs::kProcess : GpuSharedAs::kOneContext;
    return alone(simmer_chain(cell.chain).nfs.front().type, shared_as, cell.wire_bytes, cell.tuning);
  }
  OverloadCell first = cell;
  first.load = kFirstNf;
  Json const* const known = results_.find(first.key());
  if (known == nullptr) {
    return absl::UnavailableError("what the chain does with back-pressure is not known");
  }
  return 2 * median_of(*known, "/back-pressure/packets_per_s");
}

// ---- chains

Status SimmerBench::measure_flow(OverloadCell const& cell, FlowMode mode, double offered_per_s, Json& repeat,
                                 Json& json) {
  SimmerSpec spec = spec_for(cell);
  spec.mode = mode;
  spec.packets_per_s = static_cast<std::uint64_t>(offered_per_s);
  CATENA_ASSIGN_OR_RETURN(const SimmerRun run, run_once(spec));
  if (mode == FlowMode::kBackpressure && run.dropped_inside > 0) {
    return absl::DataLossError(concat(run.dropped_inside, " packets were dropped inside, with back-pressure"));
  }
  repeat[name_of_flow(mode)] = {{"packets_per_s", run.packets_per_s},
                                {"received_per_s", run.received_per_s},
                                {"process_cores", run.process_cores},
                                {"nfs", nfs_json(run.nfs)}};
  json["busy"][name_of_flow(mode)] = to_json(run.busy);  // in the last run
  return absl::OkStatus();
}

Status SimmerBench::measure(OverloadCell const& cell, Json& json) {
  CATENA_ASSIGN_OR_RETURN(const double offered_per_s, offered(cell));
  json["offered_per_s"] = offered_per_s;
  for (std::uint32_t number = 0; number < request_.repeats(); ++number) {
    Json repeat;
    for (std::size_t i = 0; i < kFlowModes.size(); ++i) {
      const FlowMode mode = kFlowModes[(i + number) % kFlowModes.size()];
      CATENA_RETURN_IF_ERROR(measure_flow(cell, mode, offered_per_s, repeat, json));
    }
    json["repeats"].push_back(std::move(repeat));
  }
  SimmerChain const& chain = simmer_chain(cell.chain);
  results_.describe_chain(cell.chain, {{"title", chain.title()}});
  return absl::OkStatus();
}

void SimmerBench::list_sizes(std::vector<OverloadCell>& cells) const {
  for (const std::uint32_t bytes : wants("sizes") ? request_.counts("sizes") : std::vector<std::uint32_t>()) {
    for (const char* load : {kFirstNf, kTwice}) {
      OverloadCell& cell = cells.emplace_back(cell_of("sizes", kHeterogeneous));
      cell.wire_bytes = bytes;
      cell.load = load;
    }
  }
}

void SimmerBench::list_sharing(std::vector<OverloadCell>& cells) const {
  for (SimmerChain const& chain : simmer_chains()) {
    for (const char* load : {kFirstNf, kTwice}) {
      if (wants("dynamic") && chain.has_two_flows) {
        cells.emplace_back(cell_of("dynamic", chain.name)).load = load;
      }
    }
  }
  for (const GpuSharedAs shared_as : {GpuSharedAs::kProcess, GpuSharedAs::kPartitioned, GpuSharedAs::kOneContext}) {
    for (const char* load : {kFirstNf, kTwice}) {
      // parts are of the whole device
      if (wants("sharing") && (shared_as != GpuSharedAs::kPartitioned || request_.count("compute_units") == 0)) {
        OverloadCell& cell = cells.emplace_back(cell_of("sharing", kHeterogeneous));
        cell.shared_as = shared_as;
        cell.load = load;
      }
    }
  }
}

void SimmerBench::list_thresholds(std::vector<OverloadCell>& cells) const {
  for (SimmerChain const& chain : simmer_chains()) {
    const bool has_all = std::string_view(chain.name) == kHeterogeneous || std::string_view(chain.name) == kThreeIpsec;
    for (const double qt : request_.numbers("qt")) {
      if (wants("qt") && !chain.has_two_flows && (has_all || std::ranges::find(kFewQts, qt) != kFewQts.end())) {
        cells.emplace_back(cell_of("qt", chain.name)).qt = qt;
      }
    }
  }
}

std::vector<OverloadCell> SimmerBench::list_cells() const {
  std::vector<OverloadCell> cells;
  list_sizes(cells);
  list_sharing(cells);
  list_thresholds(cells);
  for (const GpuSharedAs shared_as : {GpuSharedAs::kProcess, GpuSharedAs::kOneContext}) {
    for (const char* chain : {kHeterogeneous, kThreeIpsec}) {
      if (wants("own")) {
        OverloadCell& cell = cells.emplace_back(cell_of("own", chain));
        cell.shared_as = shared_as;
        cell.tuning = kOwnTuning;
      }
    }
  }
  return cells;
}

// ---- overload for long

/// As long as the overload is to last.
Status SimmerBench::measure_long(Json& json) {
  const OverloadCell cell = cell_of(kLong, kHeterogeneous);
  CATENA_ASSIGN_OR_RETURN(const double offered_per_s, offered(cell));
  SimmerSpec spec = spec_for(cell);
  spec.mode = FlowMode::kBackpressure;
  spec.packets_per_s = static_cast<std::uint64_t>(offered_per_s);
  spec.seconds = request_.seconds() * (request_.quick() ? kQuickLongRuns : kLongRuns);
  json["offered_per_s"] = offered_per_s;
  json["seconds"] = spec.seconds;
  CATENA_ASSIGN_OR_RETURN(const SimmerRun run, run_once(spec));
  json["repeats"].push_back({{"packets_per_s", run.packets_per_s},
                             {"dropped_inside", run.dropped_inside},
                             {"memory_mb", run.memory_mb},
                             {"slots_in_use", run.slots_in_use}});
  return absl::OkStatus();
}

Status SimmerBench::run_long() {
  Work work;
  work.repeats = 1;
  work.measure = [this](std::size_t, Json& json) { return measure_long(json); };
  work.summary = [](Json const& cell) {
    return fmt::format("{:.3f} Mpps, {} dropped inside", median_of(cell, "/packets_per_s") / 1e6,
                       median_of(cell, "/dropped_inside"));
  };
  const Json key{{"group", kLong}, {"chain", kHeterogeneous}, {"wire_bytes", largest()}};
  return results_.measure(std::vector<Json>{key}, work);
}

// ---- all

std::string overload_words(Json const& cell) {
  std::string words;
  for (const FlowMode mode : kFlowModes) {
    const std::string name = name_of_flow(mode);
    std::vector<double> dropped;
    for (Json const& repeat : cell.at("repeats")) {
      double sum = 0;
      for (Json const& nf : repeat.at(name).at("nfs")) {
        sum += nf.at("drops_per_s").get<double>();
      }
      dropped.push_back(sum);
    }
    words += fmt::format("{}{} {:.3f} Mpps, {:.3f} dropped inside", words.empty() ? "" : "; ", name,
                         median_of(cell, concat("/", name, "/packets_per_s")) / 1e6, spread_of(dropped).median / 1e6);
  }
  return words;
}

Status SimmerBench::run() {
  for (SimmerChain const& nf : single_nfs()) {
    for (const GpuSharedAs shared_as : {GpuSharedAs::kProcess, GpuSharedAs::kOneContext}) {
      if (wants(kAlone)) {
        (void)alone(nf.name, shared_as, largest(), request_.text("tuning"));  // its error is in the cell
      }
    }
  }
  const std::vector<OverloadCell> cells = list_cells();
  std::vector<Json> keys;
  for (OverloadCell const& cell : cells) {
    keys.push_back(cell.key());
  }
  Work work;
  work.measure = [&](std::size_t number, Json& json) { return measure(cells[number], json); };
  work.summary = overload_words;
  CATENA_RETURN_IF_ERROR(results_.measure(keys, work));
  return wants(kLong) ? run_long() : absl::OkStatus();
}

Result<Results> run_simmer(Request const& request, nf::Registry const& registry, Progress const& progress) {
  CATENA_ASSIGN_OR_RETURN(const auto workplace, OpenWorkplace::create(request, registry));
  CATENA_RETURN_IF_ERROR(eal::start());
  CATENA_ASSIGN_OR_RETURN(const auto runner, SimmerRunner::create(device_preference(request), workplace->get()));
  device::DeviceInfo const& info = runner->device();
  const std::uint32_t asked = request.count("compute_units");
  CATENA_ASSIGN_OR_RETURN(Results results,
                          Results::begin(request, progress,
                                         {{"device", concat(info.name, " (", info.backend, ")")},
                                          {"compute_units", asked == 0 ? info.compute_units : asked}}));
  CATENA_RETURN_IF_ERROR(SimmerBench(request, *runner, results).run());
  return results;
}

}  // namespace

Part simmer_part() {
  return {.name = "simmer",
          .help = "Back-pressure beside rings that drop, in chains that share a GPU, as the Simmer paper measures it",
          .seconds = 3,
          .quick_seconds = 0.7,
          .settings = {groups_setting({kAlone, "sizes", "qt", "dynamic", "sharing", "own", kLong}),
                       device_setting(),
                       sizes_setting("128,256,512,1024,1472", "128", kLongestOverloaded),
                       {.name = "qt",
                        .help = "Batches that may wait for an NF, in the group qt",
                        .usual = "1.5,2,2.4,2.8,3.2,3.6,4",
                        .quick = "2.8",
                        .least = 1,
                        .most = 1024,
                        .is_list = true,
                        .chooses = true},
                       {.name = "compute_units",
                        .help = "That NFs without parts share, 0 for all",
                        .usual = "0",
                        .quick = nullptr,
                        .least = 0,
                        .most = 65536},
                       // as the paper's NFs: a batch a launch, and the next one when it has ended
                       tuning_setting("pool_slots: 65536, units_per_launch: 8, launches_in_flight: 1",
                                      "pool_slots: 16384, units_per_launch: 2, launches_in_flight: 1")},
          .run = run_simmer};
}

}  // namespace catena::bench
