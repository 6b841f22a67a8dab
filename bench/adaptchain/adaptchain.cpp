// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/adaptchain.hpp"

#include "bench/adaptchain/cells.hpp"
#include "bench/adaptchain/search.hpp"
#include "bench/chains/costs.hpp"
#include "bench/chains/measure.hpp"
#include "bench/chains/records.hpp"
#include "bench/common/copy_rate.hpp"
#include "bench/common/results.hpp"
#include "bench/common/spread.hpp"
#include "profile/transfer_meter.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace catena::bench {
namespace {

constexpr std::uint32_t kLongestFrame = 1518;  // what arrives grows by a tunnel before it is decrypted
constexpr std::uint32_t kAnchorSampleEvery = 1024;
constexpr std::uint32_t kQuickAnchorSampleEvery = 16;
constexpr std::uint64_t kSampleRuns = 4;
constexpr double kTraceSeconds = 0.4;
constexpr double kAnchorCopySeconds = 0.5;
constexpr std::uint32_t kMaxFillers = 4;
constexpr double kTrialShare = 0.3;  ///< of a run's length
/// Tried beside the tuning that was asked for: packet memory that caches hold.
constexpr const char* kCpuTuning = "pool_slots: 4096";
constexpr const char* kSmallerTuning = "pool_slots: 16384";
constexpr double kCostSeconds = 10;  ///< about how long the NFs of a chain are measured for `on: auto`
constexpr double kQuickCostSeconds = 1;
/// Of the latency runs, those that a time line is drawn of.
constexpr const char* kTimelineChain = "C4";
constexpr const char* kTimelineMode = kAdaptive;

double in_us(std::uint64_t ns) { return static_cast<double>(ns) / kNsPerUs; }

Json repeat_of(RunResult const& run) {
  Json stages = Json::array();
  for (StageTime const& stage : run.stages) {
    stages.push_back({{"name", stage.name}, {"busy_s", stage.busy_seconds}});
  }
  Json repeat{{"packets_per_s", run.packets_per_s},
              {"offered_per_s", run.offered_per_s},
              {"taken", run.taken},
              {"seconds", run.seconds},
              {"cores", run.cores},
              {"process_cores", run.process_cores},
              {"bytes_to_device", run.bytes_to_device},
              {"bytes_to_host", run.bytes_to_host},
              {"latency_us",
               {{"p50", in_us(run.latency.percentile(50))},
                {"p95", in_us(run.latency.percentile(95))},
                {"p99", in_us(run.latency.percentile(99))}}},
              {"received", run.received},
              {"sent", run.sent},
              {"dropped", run.dropped},
              {"workers", run.workers},
              {"stages", std::move(stages)},
              {"nfs", to_json(run.nf_bytes)}};
  if (!run.launches.empty()) {
    repeat["launches"] = to_json(run.launches);
  }
  return repeat;
}

/// The whole benchmark under way.
class AdaptChain {
 public:
  AdaptChain(Request const& request, Workplace const& workplace, device::Device& device, Results& results)
      : request_(request),
        device_(&device),
        workplace_(workplace),
        results_(results),
        sample_every_(request.quick() ? kQuickAnchorSampleEvery : kAnchorSampleEvery),
        references_(workplace, sample_every_) {}

  Status run();

 private:
  bool tries_replicas(Cell const& cell) const {
    return cell.replicas == 0 ||
           (request_.text("replicas") == kBestReplicas &&
            (cell.group == Group::kThroughput || cell.group == Group::kDecrypt || cell.group == Group::kLatency));
  }
  /// Finds out how many copies of the chain there are to be, and what `on: auto` has to know.
  Status prepare(Cell& cell, Json& json);
  /// The score of a short run.
  Result<double> try_out(Cell const& cell);
  /// The number of copies, and the packet memory, with which short runs of the cell score best.
  Status find_best(Cell& cell, Json& json);
  Status measure_once(Cell const& cell, Json& json);
  Status trace(Cell const& cell, Json& json);
  Result<RunResult> run_cell(RunSpec const& spec);
  Result<RunSpec> spec_for(Cell const& cell);
  Status measure_list(std::vector<Cell> cells, Work work);
  Status learn_costs(Cell const& cell);
  Result<Json> bare_copies(std::uint32_t bytes);
  Status add_bare_copies(RunResult const& run, Json& repeat);
  Status finish(Cell const& cell, Json& json);

  Request const& request_;
  device::Device* device_;
  Workplace const& workplace_;
  Results& results_;
  std::uint32_t sample_every_;
  References references_;
  std::unique_ptr<profile::TransferMeter> meter_;                              ///< none before it is needed
  std::map<std::pair<std::string, std::uint32_t>, chain::CostProfile> costs_;  ///< by chain and frame, for kAuto
};

/// The run that a cell asks for.
Result<RunSpec> AdaptChain::spec_for(Cell const& cell) {
  const bool alone = cell.group == Group::kSource;
  Result<PaperChain const*> found = alone ? &empty_chain(cell.chain == empty_chain(true).name) : find_chain(cell.chain);
  CATENA_RETURN_IF_ERROR(found.status());
  PaperChain const& chain = **found;
  const std::uint32_t frame_bytes = cell.wire_bytes - kFcsBytes;
  RunSpec spec;
  spec.chain = &chain;
  spec.text.frame_bytes = frame_bytes;
  spec.text.device = alone ? "none" : request_.text("device");
  spec.text.tuning = tuning_of(cell, request_.text("tuning"));
  if (cell.offered_gbps != 0) {
    constexpr double kBitsPerGigabitByte = 1e9 / 8;
    spec.text.packets_per_s =
        static_cast<std::uint64_t>(std::llround(cell.offered_gbps * kBitsPerGigabitByte / cell.wire_bytes));
  }
  if (!alone) {
    SyncMode const& mode = *find_mode(cell.mode);
    spec.sync.mode = mode.mode;
    spec.sync.pushdown = mode.pushdown;
    spec.sync.methods = mode.methods;
    spec.text.placed = mode.placed;
    spec.text.device = mode.placed == Placed::kCpu ? "none" : spec.text.device;
  }
  if (const auto costs = costs_.find({cell.chain, cell.wire_bytes}); cell.mode == kAuto && costs != costs_.end()) {
    spec.sync.profile = costs->second;
    spec.has_costs = true;
  }
  spec.seconds = request_.seconds();
  spec.replicas = cell.replicas;
  spec.sample_every = sample_every_;
  spec.sample_runs = kSampleRuns;
  spec.trace = is_traced(cell.group);
  spec.arrival = cell.group == Group::kStages ? Arrival::kOneUnit
                 : is_traced(cell.group)      ? Arrival::kFullUnits
                                              : Arrival::kEvenly;
  if (chain.esp_input) {
    CATENA_ASSIGN_OR_RETURN(spec.esp_frames, references_.esp(frame_bytes, cell.replicas));
    spec.text.frame_bytes = static_cast<std::uint32_t>(spec.esp_frames->front().front().size());
    spec.fillers = std::max(1U, kMaxFillers / cell.replicas);
  }
  return spec;
}

Result<RunResult> AdaptChain::run_cell(RunSpec const& spec) {
  RunResult run = run_for(spec, workplace_);
  results_.abandon_if(run.abandoned);
  CATENA_RETURN_IF_ERROR(run.status);
  return run;
}

/// A short run beside those that are measured: for the picture of what a packet waits for.
Status AdaptChain::trace(Cell const& cell, Json& json) {
  CATENA_ASSIGN_OR_RETURN(RunSpec spec, spec_for(cell));
  spec.seconds = std::min(spec.seconds, kTraceSeconds);
  spec.trace = true;
  CATENA_ASSIGN_OR_RETURN(const RunResult run, run_cell(spec));
  json["timeline"] = to_json(run.timeline, timeline_kinds(), kTimelineUs);
  return absl::OkStatus();
}

Status AdaptChain::measure_once(Cell const& cell, Json& json) {
  CATENA_ASSIGN_OR_RETURN(RunSpec const spec, spec_for(cell));
  CATENA_ASSIGN_OR_RETURN(const RunResult run, run_cell(spec));
  if (cell.group != Group::kSource) {
    results_.add_to_run("cost_profile", run.costs_from);
    results_.describe_chain(cell.chain, to_json(*spec.chain));
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<Sample> const* expected,
                          references_.samples(*spec.chain, cell.wire_bytes - kFcsBytes,
                                              (run.samples.size() + io::kReplaySampleRun - 1) / io::kReplaySampleRun));
  add_samples(compare(run.samples, *expected), json);
  json["planned_ns"] = run.planned_ns;
  Json& repeat = json["repeats"].emplace_back(repeat_of(run));
  if (!is_traced(cell.group)) {
    CATENA_RETURN_IF_ERROR(add_bare_copies(run, repeat));
  }
  if (const std::string why = why_void(run); !why.empty()) {
    json["void"] = concat(json.contains("void") ? json["void"].get<std::string>() + ", " : "", "repeat ",
                          json["repeats"].size(), " ", why);
  }
  if (cell.group == Group::kLatency) {
    Json& cdf = json["latency_cdf"] = Json::array();  // of the last repeat
    for (int percent = 0; percent <= 100; ++percent) {
      cdf.push_back({in_us(run.latency.percentile(percent)), percent});
    }
  }
  return absl::OkStatus();
}

Result<double> AdaptChain::try_out(Cell const& cell) {
  CATENA_ASSIGN_OR_RETURN(RunSpec spec, spec_for(cell));
  spec.seconds *= kTrialShare;
  CATENA_ASSIGN_OR_RETURN(const RunResult run, run_cell(spec));
  return score_of(run);
}

/// On the CPU the packet memory decides which numbers of copies are fast, so each is tried with both. For latency more
/// copies than carry the load may be better still. All trials are in `json`.
Status AdaptChain::find_best(Cell& cell, Json& json) {
  SearchSpace space{tried_replicas(), {""}, {kSmallerTuning}, cell.group == Group::kLatency};
  if (cell.mode == kCpu) {
    space.tunings = {"", kCpuTuning};
    space.more.clear();
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<Trial> trials, search_copies(space, [&](Trial const& trial) {
                            Cell tried = cell;
                            tried.replicas = trial.replicas;
                            tried.tuning = trial.tuning;
                            return try_out(tried);
                          }));
  cell.replicas = best_of(trials).replicas;
  cell.tuning = best_of(trials).tuning;
  for (Trial const& trial : trials) {
    json["trials"].push_back({{"replicas", trial.replicas}, {"tuning", trial.tuning}, {"scores", trial.scores}});
  }
  return absl::OkStatus();
}

Status AdaptChain::prepare(Cell& cell, Json& json) {
  if (cell.mode == kAuto) {
    CATENA_RETURN_IF_ERROR(learn_costs(cell));
  }
  if (tries_replicas(cell)) {
    CATENA_RETURN_IF_ERROR(find_best(cell, json));
  } else if (cell.group != Group::kSource && cell.group != Group::kPlaces && !is_traced(cell.group) &&
             request_.text("replicas") != kBestReplicas) {
    cell.replicas = request_.count("replicas");
  }
  json["replicas"] = cell.replicas;
  if (!cell.tuning.empty()) {
    json["tuning"] = cell.tuning;
  }
  return absl::OkStatus();
}

/// What the chain's NFs cost on the CPU and on the device with frames of that size: by that `on: auto` decides.
Status AdaptChain::learn_costs(Cell const& cell) {
  CATENA_ASSIGN_OR_RETURN(PaperChain const* const chain, find_chain(cell.chain));
  CATENA_ASSIGN_OR_RETURN(const RunSpec spec, spec_for(cell));
  chain::CostProfile profile = chain::ProfileStore::from_environment().find(device_->info());
  CATENA_ASSIGN_OR_RETURN(
      const profile::NfMeasurements measured,
      measure_costs(*chain, spec.text, {cell.wire_bytes}, request_.quick() ? kQuickCostSeconds : kCostSeconds, profile,
                    *device_, workplace_, std::max(cell.replicas, std::ranges::max(tried_replicas()))));
  profile::keep(measured, profile);
  costs_.insert_or_assign(std::pair(cell.chain, cell.wire_bytes), std::move(profile));
  return absl::OkStatus();
}

/// By method, GB/s each way of copies of so many bytes a packet and nothing else, while both ways are busy.
Result<Json> AdaptChain::bare_copies(std::uint32_t bytes) {
  if (!meter_) {
    CATENA_ASSIGN_OR_RETURN(meter_, profile::TransferMeter::create(*device_));
  }
  Json found;
  for (const TransferMethod method : kTransferMethods) {
    if (uses_staging(method) || !meter_->can_time(method)) {
      continue;
    }
    profile::Transfer in;
    in.method = method;
    in.packets = profile::TransferMeter::kMaxPackets;
    in.bytes = bytes;
    profile::Transfer out = in;
    out.direction = Direction::kToHost;
    CATENA_ASSIGN_OR_RETURN(const std::vector<double> ns, meter_->time(std::array{in, out}));
    const double moved = static_cast<double>(in.packets) * in.bytes;
    found[std::string(to_string(method))] = {{"to_device", moved / ns[0]}, {"to_host", moved / ns[1]}};
  }
  return found;
}

/// Beside what the repeat has moved each way: copies of as many bytes a packet, right after it.
Status AdaptChain::add_bare_copies(RunResult const& run, Json& repeat) {
  for (auto const& [way, moved] : {std::pair("to_device", run.bytes_to_device), {"to_host", run.bytes_to_host}}) {
    const auto bytes = static_cast<std::uint32_t>(std::llround(moved));
    if (bytes == 0) {
      continue;
    }
    CATENA_ASSIGN_OR_RETURN(const Json bare, bare_copies(std::min(bytes, profile::TransferMeter::kMaxBytes)));
    for (auto const& [method, ways] : bare.items()) {
      repeat["bare_copies"][method][way] = ways.at(way);
    }
  }
  return absl::OkStatus();
}

Status AdaptChain::finish(Cell const& cell, Json& json) {
  if (cell.group == Group::kLatency && cell.chain == kTimelineChain && cell.mode == kTimelineMode) {
    if (const Status status = trace(cell, json); !status.ok()) {
      return {status.code(), concat("its time line: ", std::string(status.message()))};
    }
  }
  return absl::OkStatus();
}

std::string summary_of(Json const& cell) {
  constexpr double kBitsPerByte = 8;
  const Spread speed = spread_of(values_of(cell, "/packets_per_s"));
  return fmt::format("{:.3f} Mpps, {} Gbps, p50 {:.0f} us", speed.median / 1e6,
                     text_of(speed, kBitsPerByte * cell.at("wire_bytes").get<double>() / 1e9),
                     spread_of(values_of(cell, "/latency_us/p50")).median);
}

Status AdaptChain::measure_list(std::vector<Cell> cells, Work work) {
  std::vector<Json> keys;
  for (Cell const& cell : cells) {
    keys.push_back(cell.key());
  }
  work.measure = [&](std::size_t number, Json& json) { return prepare(cells[number], json); };
  work.repeat = [&](std::size_t number, Json& json) { return measure_once(cells[number], json); };
  work.finish = [&](std::size_t number, Json& json) { return finish(cells[number], json); };
  work.summary = summary_of;
  return results_.measure(keys, work);
}

Status AdaptChain::run() {
  Work anchors;
  anchors.by_every_run = true;
  CATENA_RETURN_IF_ERROR(measure_list(anchor_cells(request_), anchors));
  Work tables;
  tables.table = {"group", "chain", "wire_bytes"};
  return measure_list(list_cells(request_), tables);
}

Result<Results> run_adaptchain(Request const& request, nf::Registry const& registry, Progress const& progress) {
  CATENA_ASSIGN_OR_RETURN(const auto workplace, OpenWorkplace::create(request, registry));
  CATENA_ASSIGN_OR_RETURN(const auto device, open_device(request));
  CATENA_ASSIGN_OR_RETURN(const double copy_rate, copy_bytes_per_s(*device, request.quick() ? 0 : kAnchorCopySeconds));
  CATENA_ASSIGN_OR_RETURN(Results results,
                          Results::begin(request, progress,
                                         {{"device", concat(device->info().name, ", ", device->info().driver)},
                                          {"copy_gb_per_s", copy_rate / 1e9}}));
  CATENA_RETURN_IF_ERROR(AdaptChain(request, workplace->get(), *device, results).run());
  return results;
}

std::vector<std::string> all_chain_names() {
  std::vector<std::string> names = names_of(paper_chains());
  for (auto const* const more : {&figure_chains(), &placed_chains()}) {
    std::ranges::move(names_of(*more), std::back_inserter(names));
  }
  return names;
}

std::vector<std::string> mode_names() {
  std::vector<std::string> names;
  for (SyncMode const& mode : kModes) {
    names.emplace_back(mode.name);
  }
  return names;
}

Setting adaptchain_sizes() {
  Setting sizes = sizes_setting("64,128,256,512,1024,1518", "64,1518", kLongestFrame);
  sizes.help = "Frames in bytes with FCS; the groups latency and conflicts always have 1024";
  static_assert(kLatencyWireBytes == 1024, "as the help says");
  return sizes;
}

}  // namespace

Part adaptchain_part() {
  return {
      .name = "adaptchain",
      .help = "The comparisons of the AdaptChain paper",
      .seconds = 3,
      .quick_seconds = 0.4,
      .settings = {groups_setting({kGroupNames.begin() + 1, kGroupNames.end()}),
                   device_setting(),
                   chains_setting(all_chain_names()),
                   {.name = "modes",
                    .help = "Ways to synchronize; default: all",
                    .usual = "",
                    .quick = nullptr,
                    .names = mode_names(),
                    .is_list = true,
                    .chooses = true},
                   adaptchain_sizes(),
                   {.name = "replicas",
                    .help =
                        "Copies of the chain side by side, or best: as many as are fastest, or have the lowest latency",
                    .usual = kBestReplicas,
                    .quick = nullptr,
                    .names = {kBestReplicas},
                    .least = 1,
                    .most = 64},
                   tuning_setting("pool_slots: 65536, units_per_launch: 16", "pool_slots: 16384, units_per_launch: 8")},
      .run = run_adaptchain};
}

}  // namespace catena::bench
