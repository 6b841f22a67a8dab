// SPDX-License-Identifier: Apache-2.0
#include "bench/gnet/gnet.hpp"

#include "base/core/histogram.hpp"
#include "bench/chains/costs.hpp"
#include "bench/chains/measure.hpp"
#include "bench/chains/records.hpp"
#include "bench/common/forwarding_device.hpp"
#include "bench/common/results.hpp"
#include "bench/common/spread.hpp"
#include "io/eal/eal.hpp"
#include "profile/nf_measure.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace catena::bench {
namespace {

constexpr const char* kAsFastAsTheyGo = "throughput";
constexpr const char* kAtOneRate = "latency";
constexpr const char* kGrowing = "growing";
constexpr std::uint32_t kLongestShared = 1518;
/// What latency is measured with, where it is among the sizes.
constexpr std::uint32_t kMiddleBytes = 512;
constexpr std::uint32_t kSharingSampleEvery = 1024;
constexpr std::uint32_t kQuickSharingSampleEvery = 16;
/// Latency is measured at so much of what the slowest mode does.
constexpr double kRateShare = 0.7;
constexpr std::array<double, 13> kCdfPercents{1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99};

constexpr std::array<share::Mode, 4> kShareModes{share::Mode::kScheduled, share::Mode::kFair,
                                                 share::Mode::kUncoordinated, share::Mode::kTemporal};

/// A chain with packets of one size on a part of the GPU: every mode, in turn within each repeat.
struct SharingCell {
  const char* group = kAsFastAsTheyGo;
  PaperChain const* chain = nullptr;
  std::uint32_t wire_bytes = 64;  ///< of a frame with FCS
  std::uint32_t units = 0;        ///< compute units that the NFs share
  double offered_per_s = 0;       ///< packets; 0: as fast as the chain takes them
  std::vector<share::Mode> modes{kShareModes.begin(), kShareModes.end()};

  Json key() const {
    return {{"group", group}, {"chain", chain->name}, {"wire_bytes", wire_bytes}, {"compute_units", units}};
  }
};

double percentile_us(Histogram const& latency, double percent) {
  return static_cast<double>(latency.percentile(percent)) / kNsPerUs;
}

std::string path_of(share::Mode mode, const char* value) { return concat("/", to_string(mode), "/", value); }

/// What of the device NFs can share, and how.
struct Shared {
  std::unique_ptr<device::Device> device;
  share::Parts parts = share::Parts::kBlocks;
  std::uint32_t unit_step = 1;
};

Result<Shared> open_shared(Request const& request) {
  Shared shared;
  CATENA_ASSIGN_OR_RETURN(shared.device, open_device(request));
  const auto part = shared.device->divide(std::array{1U});
  if (part.ok()) {
    shared.parts = share::Parts::kGreen;
    shared.unit_step = part->front()->compute_units();
  } else if (!absl::IsUnimplemented(part.status())) {
    return part.status();
  }
  return shared;
}

/// The whole benchmark under way.
class GnetBench {
 public:
  GnetBench(Request const& request, Workplace const& workplace, Shared const& shared, Results& results)
      : request_(request),
        workplace_(workplace),
        shared_(shared),
        results_(results),
        sample_every_(request.quick() ? kQuickSharingSampleEvery : kSharingSampleEvery),
        references_(workplace, sample_every_) {}
  Status run(Progress const& progress);

 private:
  std::uint32_t all_units() const { return shared_.device->info().compute_units; }
  std::vector<std::uint32_t> unit_counts() const;
  std::uint32_t middle_size() const;
  Result<profile::NfMeasurements> profile_nfs(Progress const& progress);
  Status measure_nfs(Progress const& progress);
  Status describe(profile::NfMeasurement const& nf, Json& json) const;
  Status measure(SharingCell const& cell, Json& json);
  Result<RunResult> run_mode(RunSpec const& spec, Json& json);
  RunSpec spec_for(SharingCell const& cell) const;
  Json parts_json(std::vector<runtime::PartReport> const& parts, std::uint32_t wire_bytes) const;
  Status measure_list(std::vector<SharingCell> const& cells);
  std::vector<SharingCell> list_throughput() const;
  std::vector<SharingCell> list_latency(std::vector<SharingCell> const& measured) const;
  std::vector<SharingCell> list_growing() const;

  Request const& request_;
  Workplace const& workplace_;
  Shared const& shared_;
  Results& results_;
  std::uint32_t sample_every_;
  References references_;
  chain::CostProfile profile_ = chain::CostProfile::built_in();
  std::map<std::pair<std::string, std::uint32_t>, share::NfCost> costs_;  ///< by NF and frame, where it was measured
};

/// Without parts of the device, fewer units than all are nothing that could be measured.
std::vector<std::uint32_t> GnetBench::unit_counts() const {
  std::vector<std::uint32_t> counts = request_.counts("compute_units");
  const bool was_said = request_.told().settings.contains("compute_units");
  if (!was_said && shared_.parts != share::Parts::kGreen) {
    counts = {0};
  }
  std::ranges::replace(counts, 0U, all_units());
  return counts;
}

std::uint32_t GnetBench::middle_size() const {
  const std::vector<std::uint32_t> sizes = request_.counts("sizes");
  return std::ranges::find(sizes, kMiddleBytes) != sizes.end() ? kMiddleBytes : sizes[sizes.size() / 2];
}

/// Of the chain that has all of them: what they cost is the same in the others.
Result<profile::NfMeasurements> GnetBench::profile_nfs(Progress const& progress) {
  PaperChain const& chain = sharing_chains().back();
  ChainText text;
  text.device = request_.text("device");
  text.tuning = request_.text("tuning");
  profile_ = chain::ProfileStore::from_environment().find(shared_.device->info());
  profile_.nfs.clear();
  progress("what NFs cost");
  return measure_costs(chain, text, request_.counts("sizes"), request_.number("profile_seconds"), profile_,
                       *shared_.device, workplace_, 1);
}

/// What an NF costs, beside what was measured of it.
Status GnetBench::describe(profile::NfMeasurement const& nf, Json& json) const {
  if (!nf.why_not.empty()) {
    return absl::UnavailableError(nf.why_not);
  }
  const profile::NfModel model = profile::model_of(nf.times);
  share::NfCost const& cost = model.cost;
  json["model"] = {{"b1_ns", cost.kernel.intercept},          {"k1_ns", cost.kernel.slope},
                   {"b2_ns", cost.transfer.intercept},        {"k2_ns", cost.transfer.slope},
                   {"overhead_ns", cost.overhead_ns},         {"max_packets_per_unit", cost.max_packets_per_sm},
                   {"kernel_units", model.kernel_sms},        {"host_ns_per_packet", model.host_ns_per_packet},
                   {"kernel_r2", model.kernel.fit.r_squared}, {"transfer_r2", model.transfer.fit.r_squared}};
  Json& launches = json["launches"] = Json::array();
  for (profile::LaunchPoint const& point : nf.times.launches) {
    launches.push_back({{"packets", point.packets},
                        {"kernel_ns", point.kernel_ns},
                        {"transfer_ns", point.transfer_ns},
                        {"round_trip_ns", point.round_trip_ns}});
  }
  Json& kernels = json["kernels"] = Json::array();
  for (profile::KernelPoint const& point : nf.times.kernels) {
    kernels.push_back({{"units", point.sms}, {"packets", point.packets}, {"kernel_ns", point.kernel_ns}});
  }
  return absl::OkStatus();
}

Status GnetBench::measure_nfs(Progress const& progress) {
  CATENA_ASSIGN_OR_RETURN(const profile::NfMeasurements measured, profile_nfs(progress));
  profile::keep(measured, profile_);  // plans go by it from here on
  for (profile::NfMeasurement const& nf : measured.nfs) {
    if (nf.why_not.empty()) {
      costs_.emplace(std::pair(nf.name, nf.packet_bytes + kFcsBytes), profile::model_of(nf.times).cost);
    }
  }
  std::vector<Json> keys;
  for (profile::NfMeasurement const& nf : measured.nfs) {
    keys.push_back({{"group", "nfs"}, {"nf", nf.name}, {"wire_bytes", nf.packet_bytes + kFcsBytes}});
  }
  Work work;
  work.by_every_run = true;
  work.measure = [&](std::size_t number, Json& json) { return describe(measured.nfs[number], json); };
  work.summary = [](Json const& cell) {
    Json const& model = cell.at("model");
    return fmt::format("kernel {:.1f} + {:.3f} B ns, transfers {:.1f} + {:.3f} B ns", model.at("b1_ns").get<double>(),
                       model.at("k1_ns").get<double>(), model.at("b2_ns").get<double>(),
                       model.at("k2_ns").get<double>());
  };
  return results_.measure(keys, work);
}

RunSpec GnetBench::spec_for(SharingCell const& cell) const {
  RunSpec spec;
  spec.chain = cell.chain;
  spec.text.frame_bytes = cell.wire_bytes - kFcsBytes;
  spec.text.packets_per_s = static_cast<std::uint64_t>(cell.offered_per_s);
  spec.text.device = request_.text("device");
  spec.text.tuning = request_.text("tuning");
  spec.sync.profile = profile_;
  spec.seconds = request_.seconds();
  spec.sample_every = sample_every_;
  spec.sharing =
      chain::SharingOptions{share::Mode::kScheduled, shared_.parts, cell.units == all_units() ? 0 : cell.units};
  spec.open_device = [this](device::DevicePreference const&, std::string*) -> Result<std::unique_ptr<device::Device>> {
    return std::make_unique<ForwardingDevice>(*shared_.device);
  };
  return spec;
}

Result<RunResult> GnetBench::run_mode(RunSpec const& spec, Json& json) {
  RunResult run = run_for(spec, workplace_);
  results_.abandon_if(run.abandoned);
  CATENA_RETURN_IF_ERROR(run.status);
  if (run.packets_per_s <= 0) {
    return absl::DataLossError("no packet left the chain");
  }
  const std::uint64_t sampled = (run.samples.size() + io::kReplaySampleRun - 1) / io::kReplaySampleRun;
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample>* const expected,
                          references_.samples(*spec.chain, spec.text.frame_bytes, sampled));
  add_samples(compare(run.samples, *expected), json);
  return run;
}

/// With what the model says of each NF on its part by itself, where it was measured.
Json GnetBench::parts_json(std::vector<runtime::PartReport> const& parts, std::uint32_t wire_bytes) const {
  Json json = Json::array();
  for (runtime::PartReport const& part : parts) {
    Json& one =
        json.emplace_back(Json{{"nf", part.nf}, {"units", part.units}, {"launch_packets", part.launch_packets}});
    if (const auto cost = costs_.find({part.nf, wire_bytes}); cost != costs_.end() && part.units > 0) {
      const share::Share share{part.units, std::max(1U, part.launch_packets / part.units)};
      one["predicted_per_s"] = share::packets_per_s(cost->second, share);
    }
  }
  return json;
}

Status GnetBench::measure(SharingCell const& cell, Json& json) {
  json["offered_per_s"] = cell.offered_per_s;
  RunSpec spec = spec_for(cell);
  // first the run that does not count: what a device does for the first time it does there
  spec.trace = true;
  CATENA_ASSIGN_OR_RETURN(const RunResult traced, run_mode(spec, json));
  json["busy"] = to_json(traced.busy);
  json["timeline"] = to_json(traced.timeline, timeline_kinds(), kTimelineUs);
  results_.describe_chain(cell.chain->name, to_json(*cell.chain));
  spec.trace = false;
  std::map<share::Mode, Histogram> latencies;
  std::map<share::Mode, std::uint64_t> part_changes;
  for (std::uint32_t number = 0; number < request_.repeats(); ++number) {
    Json repeat;
    for (std::size_t i = 0; i < cell.modes.size(); ++i) {
      const share::Mode mode = cell.modes[(i + number) % cell.modes.size()];
      spec.sharing->mode = mode;
      CATENA_ASSIGN_OR_RETURN(const RunResult run, run_mode(spec, json));
      repeat[std::string(to_string(mode))] = {{"packets_per_s", run.packets_per_s},
                                              {"p50_us", percentile_us(run.latency, 50)},
                                              {"p95_us", percentile_us(run.latency, 95)},
                                              {"cores", run.cores},
                                              {"process_cores", run.process_cores}};
      if (const std::string why = why_void(run); !why.empty()) {
        json["void"] = concat(json.contains("void") ? json["void"].get<std::string>() + ", " : "", "repeat ",
                              number + 1, ", ", to_string(mode), ", ", why);
      }
      latencies[mode].merge(run.latency);
      part_changes[mode] += run.part_changes;
      json["parts"][std::string(to_string(mode))] = parts_json(run.parts, cell.wire_bytes);
    }
    json["repeats"].push_back(std::move(repeat));
  }
  for (const share::Mode mode : cell.modes) {
    const std::string name(to_string(mode));
    json["part_changes"][name] = part_changes[mode];
    for (const double percent : kCdfPercents) {  // of all repeats together
      json["latency_cdf"][name].push_back({percentile_us(latencies[mode], percent), percent});
    }
  }
  return absl::OkStatus();
}

Status GnetBench::measure_list(std::vector<SharingCell> const& cells) {
  std::vector<Json> keys;
  for (SharingCell const& cell : cells) {
    keys.push_back(cell.key());
  }
  Work work;
  work.measure = [&](std::size_t number, Json& json) { return measure(cells[number], json); };
  work.summary = [](Json const& cell) {
    std::string words;
    for (auto const& item : cell.at("repeats").at(0).items()) {
      const std::string path = concat("/", item.key(), "/");
      words += fmt::format("{}{} {:.2f} Mpps, p50 {:.0f} us, p95 {:.0f} us", words.empty() ? "" : "; ", item.key(),
                           spread_of(values_of(cell, path + "packets_per_s")).median / 1e6,
                           spread_of(values_of(cell, path + "p50_us")).median,
                           spread_of(values_of(cell, path + "p95_us")).median);
    }
    return words;
  };
  return results_.measure(keys, work);
}

std::vector<SharingCell> GnetBench::list_throughput() const {
  std::vector<SharingCell> cells;
  for (PaperChain const& chain : sharing_chains()) {
    for (const std::uint32_t units :
         request_.wants("chains", chain.name) ? unit_counts() : std::vector<std::uint32_t>()) {
      for (const std::uint32_t bytes : request_.counts("sizes")) {
        cells.push_back({kAsFastAsTheyGo, &chain, bytes, units});
      }
    }
  }
  return cells;
}

/// Every chain on all of the GPU, with frames of the middle size, at a rate that every mode takes.
std::vector<SharingCell> GnetBench::list_latency(std::vector<SharingCell> const& measured) const {
  std::vector<SharingCell> cells;
  for (SharingCell const& cell : measured) {
    Json const* const json = results_.find(cell.key());
    if (json == nullptr || cell.units != all_units() || cell.wire_bytes != middle_size()) {
      continue;
    }
    std::vector<double> speeds;
    for (const share::Mode mode : cell.modes) {
      speeds.push_back(spread_of(values_of(*json, path_of(mode, "packets_per_s"))).median);
    }
    cells.push_back({kAtOneRate, cell.chain, cell.wire_bytes, cell.units, spread_of(speeds).low * kRateShare});
  }
  return cells;
}

/// On all of the GPU, with frames of the middle size, as fast as they go: as the paper measures its latency.
std::vector<SharingCell> GnetBench::list_growing() const {
  std::vector<SharingCell> cells;
  for (PaperChain const& chain : growing_chains()) {
    cells.push_back({kGrowing, &chain, middle_size(), all_units(), 0, {share::Mode::kScheduled}});
  }
  return cells;
}

Status GnetBench::run(Progress const& progress) {
  CATENA_RETURN_IF_ERROR(measure_nfs(progress));
  const bool wants_latency = request_.wants("groups", kAtOneRate);
  if (wants_latency || request_.wants("groups", kAsFastAsTheyGo)) {
    const std::vector<SharingCell> throughput = list_throughput();
    CATENA_RETURN_IF_ERROR(measure_list(throughput));
    CATENA_RETURN_IF_ERROR(wants_latency ? measure_list(list_latency(throughput)) : absl::OkStatus());
  }
  return request_.wants("groups", kGrowing) ? measure_list(list_growing()) : absl::OkStatus();
}

Result<Results> run_gnet(Request const& request, nf::Registry const& registry, Progress const& progress) {
  CATENA_ASSIGN_OR_RETURN(const auto workplace, OpenWorkplace::create(request, registry));
  CATENA_RETURN_IF_ERROR(eal::start());
  CATENA_ASSIGN_OR_RETURN(const Shared shared, open_shared(request));
  device::DeviceInfo const& info = shared.device->info();
  const std::string name = concat(info.name, " (", info.backend, ")");
  CATENA_ASSIGN_OR_RETURN(
      Results results,
      Results::begin(request, progress,
                     {{"device", name}, {"compute_units", info.compute_units}, {"compute_unit_step", shared.unit_step}},
                     {{"device", name}, {"parts", std::string(to_string(shared.parts))}}));
  CATENA_RETURN_IF_ERROR(GnetBench(request, workplace->get(), shared, results).run(progress));
  return results;
}

}  // namespace

Part gnet_part() {
  return {
      .name = "gnet",
      .help = "How the NFs of a chain share a GPU, as the G-NET paper measures it",
      .seconds = 4,
      .quick_seconds = 0.5,
      .settings = {groups_setting({kAsFastAsTheyGo, kAtOneRate, kGrowing}),
                   device_setting(),
                   chains_setting(names_of(sharing_chains())),
                   sizes_setting("64,128,256,512,1024,1518", "64", kLongestShared),
                   {.name = "compute_units",
                    .help = "That are shared, 0 for all",
                    .usual = "32,0",
                    .quick = nullptr,
                    .least = 0,
                    .most = 65536,
                    .is_list = true,
                    .chooses = true},
                   {.name = "profile_seconds",
                    .help = "About how long the NFs are measured first",
                    .usual = "45",
                    .quick = "3",
                    .least = 0.1,
                    .most = 3600},
                   tuning_setting("pool_slots: 65536, units_per_launch: 16", "pool_slots: 16384, units_per_launch: 8")},
      .run = run_gnet};
}

}  // namespace catena::bench
