// SPDX-License-Identifier: Apache-2.0
#include "bench/gnet/gnet.hpp"

#include "bench/chains/measure.hpp"
#include "bench/common/data.hpp"
#include "bench/common/forwarding_device.hpp"
#include "bench/common/machine.hpp"
#include "bench/common/wanted.hpp"
#include "bench/gnet/page.hpp"
#include "bench/gnet/resume.hpp"
#include "core/histogram.hpp"
#include "device/subprocess.hpp"
#include "eal/eal.hpp"
#include "profile/nf_measure.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

namespace catena::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kThroughput = "throughput";
constexpr const char* kLatency = "latency";
constexpr const char* kGrowing = "growing";
constexpr std::array<std::uint32_t, 6> kWireBytes{64, 128, 256, 512, 1024, 1518};
/// What latency is measured with, where it is among the sizes.
constexpr std::uint32_t kMiddleBytes = 512;
constexpr std::uint32_t kFewUnits = 32;
constexpr const char* kTuning = "pool_slots: 65536, units_per_launch: 16";
constexpr const char* kQuickTuning = "pool_slots: 16384, units_per_launch: 8";
constexpr double kQuickSeconds = 0.2;
constexpr double kQuickProfileSeconds = 3;
constexpr std::uint32_t kSampleEvery = 1024;
constexpr std::uint32_t kQuickSampleEvery = 16;
/// Latency is measured at so much of what the slowest mode does.
constexpr double kLoad = 0.7;
constexpr double kNsPerUs = 1000;
constexpr double kMedian = 50;
constexpr double kTail = 95;
constexpr std::array<double, 13> kCdfPercents{1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99};

/// The whole benchmark under way.
class GnetBench {
 public:
  GnetBench(GnetOptions options, Workplace workplace, std::function<void(std::string const&)> const& progress)
      : options_(std::move(options)),
        workplace_(std::move(workplace)),
        progress_(progress),
        references_(workplace_, options_.quick ? kQuickSampleEvery : kSampleEvery) {}
  Result<GnetResults> run();

 private:
  void fill_in_options();
  Status open_device();
  Status measure_nfs();
  Status measure(GnetCell& cell);
  Status run_mode(RunSpec const& spec, GnetCell& cell, ModeRuns* runs);
  RunSpec spec_for(GnetCell const& cell) const;
  Status measure_all(std::vector<GnetCell>& cells, std::vector<GnetCell> const& earlier, std::string_view what);
  std::uint32_t middle_size() const;
  void list_latency();
  void list_growing();
  Status write_output() const { return bench::write_output(options_.output, to_json(results_), gnet_page(results_)); }

  GnetOptions options_;
  Workplace workplace_;
  std::function<void(std::string const&)> const& progress_;
  References references_;
  std::unique_ptr<device::Device> real_;
  chain::CostProfile profile_ = chain::CostProfile::built_in();
  share::Parts parts_ = share::Parts::kBlocks;
  std::map<share::Mode, Histogram> latencies_;  ///< of the cell at hand
  GnetResults results_;
};

GnetCell cell_of(std::string chain, std::uint32_t wire_bytes, std::uint32_t units, double offered_per_s,
                 std::span<const share::Mode> modes) {
  GnetCell cell;
  cell.chain = std::move(chain);
  cell.wire_bytes = wire_bytes;
  cell.units = units;
  cell.offered_per_s = offered_per_s;
  for (const share::Mode mode : modes) {
    cell.modes.emplace_back().mode = mode;
  }
  return cell;
}

void GnetBench::fill_in_options() {
  if (options_.quick) {
    options_.seconds = std::min(options_.seconds, kQuickSeconds);
    options_.profile_seconds = std::min(options_.profile_seconds, kQuickProfileSeconds);
    options_.repeats = 1;
  }
  if (options_.wire_bytes.empty()) {
    options_.wire_bytes.assign(kWireBytes.begin(), options_.quick ? kWireBytes.begin() + 1 : kWireBytes.end());
  }
  if (options_.tuning.empty()) {
    options_.tuning = options_.quick ? kQuickTuning : kTuning;
  }
}

Status GnetBench::open_device() {
  std::string why_not;
  CATENA_ASSIGN_OR_RETURN(real_, device::open(options_.device, &why_not));
  if (!real_) {
    return absl::UnavailableError(concat("there is no device that kernels could run on: ", why_not));
  }
  results_.device = concat(real_->info().name, " (", real_->info().backend, ")");
  results_.all_units = real_->info().compute_units;
  const auto part = real_->divide(std::array{1U});
  if (part.ok()) {
    parts_ = share::Parts::kGreen;
    results_.unit_step = part->front()->compute_units();
  } else if (!absl::IsUnimplemented(part.status())) {
    return part.status();
  }
  results_.parts = to_string(parts_);
  if (options_.units.empty()) {
    // without parts of the device, fewer units than all are nothing that could be measured
    options_.units =
        parts_ == share::Parts::kGreen ? std::vector<std::uint32_t>{kFewUnits, 0} : std::vector<std::uint32_t>{0};
  }
  return absl::OkStatus();
}

/// Of the chain that has all of them: what they cost is the same in the others.
Status GnetBench::measure_nfs() {
  PaperChain const& chain = sharing_chains().back();
  ChainText text;
  text.device = device::to_string(options_.device);
  text.tuning = options_.tuning;
  CATENA_ASSIGN_OR_RETURN(text.sa_file, write_sa(workplace_.data, workplace_.folder, spi_of(0), 1));
  CATENA_ASSIGN_OR_RETURN(const chain::ChainConfig config,
                          chain::parse_chain(chain_text(chain, text), (workplace_.data / "gnet.yaml").string()));
  profile_ = chain::ProfileStore::from_environment().find(real_->info());
  profile_.nfs.clear();
  profile::NfMeasureOptions options;
  options.packet_bytes.clear();
  for (const std::uint32_t bytes : options_.wire_bytes) {
    options.packet_bytes.push_back(bytes - kFcsBytes);
  }
  options.limit =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options_.profile_seconds));
  chain::SyncOptions sync;
  sync.profile = profile_;
  CATENA_ASSIGN_OR_RETURN(const profile::NfMeasurements measured,
                          profile::measure_nfs(*real_, config, *workplace_.registry, sync, options,
                                               [](profile::MeasureProgress const&) {}));
  for (profile::NfMeasurement const& nf : measured.nfs) {
    GnetNf& row = results_.nfs.emplace_back();
    row.name = nf.name;
    row.wire_bytes = nf.packet_bytes + kFcsBytes;
    row.times = nf.times;
    row.why_not = nf.why_not;
    if (nf.why_not.empty()) {
      row.model = profile::model_of(nf.times);
      chain::keep(profile_.nfs,
                  {nf.key, nf.packet_bytes, chain::now_as_text(), row.model.cost,
                   std::max(0.0, row.model.kernel.fit.r_squared), std::max(0.0, row.model.transfer.fit.r_squared)});
    }
    progress_(fmt::format("{} {} B: {}", row.name, row.wire_bytes,
                          nf.why_not.empty()
                              ? fmt::format("kernel {:.1f} + {:.3f} B ns, transfers {:.1f} + {:.3f} B ns",
                                            row.model.cost.kernel.intercept, row.model.cost.kernel.slope,
                                            row.model.cost.transfer.intercept, row.model.cost.transfer.slope)
                              : concat("not measured: ", nf.why_not)));
  }
  return absl::OkStatus();
}

RunSpec GnetBench::spec_for(GnetCell const& cell) const {
  RunSpec spec;
  for (auto const* const chains : {&growing_chains(), &sharing_chains()}) {
    for (PaperChain const& chain : *chains) {
      spec.chain = chain.name == cell.chain ? &chain : spec.chain;
    }
  }
  spec.text.frame_bytes = cell.wire_bytes - kFcsBytes;
  spec.text.packets_per_s = static_cast<std::uint64_t>(cell.offered_per_s);
  spec.text.device = device::to_string(options_.device);
  spec.text.tuning = options_.tuning;
  spec.sync.profile = profile_;
  spec.seconds = options_.seconds;
  spec.sample_every = options_.quick ? kQuickSampleEvery : kSampleEvery;
  spec.sharing =
      chain::SharingOptions{share::Mode::kScheduled, parts_, cell.units == results_.all_units ? 0 : cell.units};
  spec.open_device = [this](device::DevicePreference const&, std::string*) -> Result<std::unique_ptr<device::Device>> {
    return std::make_unique<ForwardingDevice>(*real_);
  };
  return spec;
}

/// `runs` null: the run does not count.
Status GnetBench::run_mode(RunSpec const& spec, GnetCell& cell, ModeRuns* runs) {
  RunResult run = run_for(spec, workplace_);
  results_.abandoned = results_.abandoned || run.abandoned;
  CATENA_RETURN_IF_ERROR(run.status);
  if (run.packets_per_s <= 0) {
    return absl::DataLossError("no packet left the chain");
  }
  const std::uint64_t sampled = (run.samples.size() + io::kReplaySampleRun - 1) / io::kReplaySampleRun;
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample>* const expected,
                          references_.samples(*spec.chain, spec.text.frame_bytes, sampled));
  const SampleCheck check = compare(run.samples, *expected);
  cell.outputs.compared += check.compared;
  cell.outputs.different += check.different;
  if (cell.outputs.first_difference.empty()) {
    cell.outputs.first_difference = check.first_difference;
  }
  if (runs == nullptr) {
    cell.busy = std::move(run.busy);
    cell.timeline = std::move(run.timeline);
    return absl::OkStatus();
  }
  runs->packets_per_s.push_back(run.packets_per_s);
  runs->p50_us.push_back(static_cast<double>(run.latency.percentile(kMedian)) / kNsPerUs);
  runs->p95_us.push_back(static_cast<double>(run.latency.percentile(kTail)) / kNsPerUs);
  latencies_[runs->mode].merge(run.latency);
  runs->parts = std::move(run.parts);
  runs->part_changes += run.part_changes;
  return absl::OkStatus();
}

Status GnetBench::measure(GnetCell& cell) {
  RunSpec spec = spec_for(cell);
  // first the run that does not count: what a device does for the first time it does there
  spec.trace = true;
  CATENA_RETURN_IF_ERROR(run_mode(spec, cell, nullptr));
  spec.trace = false;
  latencies_.clear();
  for (std::uint32_t repeat = 0; repeat < options_.repeats; ++repeat) {
    for (std::size_t i = 0; i < cell.modes.size(); ++i) {
      ModeRuns& runs = cell.modes[(i + repeat) % cell.modes.size()];
      spec.sharing->mode = runs.mode;
      CATENA_RETURN_IF_ERROR(run_mode(spec, cell, &runs));
    }
  }
  for (ModeRuns& runs : cell.modes) {
    for (const double percent : kCdfPercents) {
      runs.cdf_us.emplace_back(static_cast<double>(latencies_[runs.mode].percentile(percent)) / kNsPerUs, percent);
    }
  }
  return absl::OkStatus();
}

/// Those that are not among `earlier`.
Status GnetBench::measure_all(std::vector<GnetCell>& cells, std::vector<GnetCell> const& earlier,
                              std::string_view what) {
  const Clock::time_point start = Clock::now();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    GnetCell& cell = cells[i];
    if (take_over(earlier, options_.repeats, cell)) {
      continue;
    }
    if (const Status status = measure(cell); !status.ok()) {
      cell.error = std::string(status.message());
    }
    std::string line =
        fmt::format("[{}/{}] {} {} {} B, {} units", i + 1, cells.size(), what, cell.chain, cell.wire_bytes, cell.units);
    for (ModeRuns const& runs : cell.modes) {
      line += fmt::format("; {} {:.2f} Mpps, p50 {:.0f} us, p95 {:.0f} us", to_string(runs.mode),
                          spread_of(runs.packets_per_s).median / 1e6, spread_of(runs.p50_us).median,
                          spread_of(runs.p95_us).median);
    }
    line += cell.error.empty() ? "" : concat(": FAILED: ", cell.error);
    line += cell.outputs.different > 0 ? concat("; DIFFERENT OUTPUT: ", cell.outputs.first_difference) : "";
    const double spent = std::chrono::duration<double>(Clock::now() - start).count();
    progress_(line + fmt::format("; about {:.0f} s left",
                                 spent / static_cast<double>(i + 1) * static_cast<double>(cells.size() - i - 1)));
    CATENA_RETURN_IF_ERROR(write_output());
  }
  return absl::OkStatus();
}

std::uint32_t GnetBench::middle_size() const {
  std::vector<std::uint32_t> const& sizes = options_.wire_bytes;
  return std::ranges::find(sizes, kMiddleBytes) != sizes.end() ? kMiddleBytes : sizes[sizes.size() / 2];
}

/// Every chain on all of the GPU, with frames of the middle size, at a rate that every mode takes.
void GnetBench::list_latency() {
  const std::uint32_t middle = middle_size();
  for (GnetCell const& cell : results_.cells) {
    if (!is_measured(cell) || cell.units != results_.all_units || cell.wire_bytes != middle) {
      continue;
    }
    double slowest = 0;
    for (ModeRuns const& runs : cell.modes) {
      const double speed = spread_of(runs.packets_per_s).median;
      slowest = slowest == 0 ? speed : std::min(slowest, speed);
    }
    results_.latency.push_back(cell_of(cell.chain, cell.wire_bytes, cell.units, slowest * kLoad, kShareModes));
  }
}

/// On all of the GPU, with frames of the middle size, as fast as they go: as the paper measures its latency.
void GnetBench::list_growing() {
  for (PaperChain const& chain : growing_chains()) {
    results_.growing.push_back(
        cell_of(chain.name, middle_size(), results_.all_units, 0, std::array{share::Mode::kScheduled}));
  }
}

Result<GnetResults> GnetBench::run() {
  fill_in_options();
  CATENA_RETURN_IF_ERROR(eal::start());
  CATENA_RETURN_IF_ERROR(open_device());
  results_.command = options_.command;
  results_.seconds = options_.seconds;
  results_.repeats = options_.repeats;
  results_.tuning = options_.tuning;
  results_.machine = describe_machine();
  results_.commit = source_commit(workplace_.folder);
  GnetResults earlier;
  if (options_.resume) {
    CATENA_ASSIGN_OR_RETURN(earlier,
                            read_gnet_results((std::filesystem::path(options_.output) / "results.json").string()));
    CATENA_RETURN_IF_ERROR(check_same(earlier, results_));
  }
  CATENA_RETURN_IF_ERROR(measure_nfs());
  for (PaperChain const& chain : sharing_chains()) {
    for (const std::uint32_t units : options_.units) {
      for (const std::uint32_t bytes : options_.wire_bytes) {
        if (is_wanted(options_.chains, chain.name)) {
          results_.cells.push_back(cell_of(chain.name, bytes, units == 0 ? results_.all_units : units, 0, kShareModes));
        }
      }
    }
  }
  CATENA_RETURN_IF_ERROR(write_output());
  if (is_wanted(options_.parts, kThroughput) || is_wanted(options_.parts, kLatency)) {
    CATENA_RETURN_IF_ERROR(measure_all(results_.cells, earlier.cells, kThroughput));
  }
  if (is_wanted(options_.parts, kLatency)) {
    list_latency();
    CATENA_RETURN_IF_ERROR(measure_all(results_.latency, earlier.latency, kLatency));
  }
  if (is_wanted(options_.parts, kGrowing)) {
    list_growing();
    CATENA_RETURN_IF_ERROR(measure_all(results_.growing, earlier.growing, kGrowing));
  }
  return std::move(results_);
}

Status check(GnetOptions const& options) {
  for (std::string const& part : options.parts) {
    if (part != kThroughput && part != kLatency && part != kGrowing) {
      return absl::InvalidArgumentError(
          concat("there is no part '", part, "'; allowed: ", kThroughput, ", ", kLatency, ", ", kGrowing));
    }
  }
  for (std::string const& name : options.chains) {
    const bool is_known = std::any_of(sharing_chains().begin(), sharing_chains().end(),
                                      [&name](PaperChain const& chain) { return chain.name == name; });
    if (!is_known) {
      return absl::InvalidArgumentError(concat("there is no chain '", name, "'; allowed: S_a, S_b, S_c, S_d"));
    }
  }
  for (const std::uint32_t bytes : options.wire_bytes) {
    if (bytes < io::kMinGeneratedBytes + kFcsBytes || bytes > kWireBytes.back()) {
      return absl::InvalidArgumentError(
          concat("frames of ", bytes, " bytes: write ", io::kMinGeneratedBytes + kFcsBytes, " to ", kWireBytes.back()));
    }
  }
  if (!(options.seconds > 0) || !(options.profile_seconds > 0) || options.repeats == 0) {
    return absl::InvalidArgumentError("seconds and repeats must be above 0");
  }
  if (options.output.empty()) {
    return absl::InvalidArgumentError("the output folder has no name");
  }
  if (options.device.kind == device::DevicePreference::Kind::kNone) {
    return absl::InvalidArgumentError("the device is none: the benchmark measures how NFs share one");
  }
  return absl::OkStatus();
}

}  // namespace

Result<GnetResults> run_gnet(GnetOptions const& options, nf::Registry const& registry,
                             std::function<void(std::string const&)> const& progress) {
  CATENA_RETURN_IF_ERROR(check(options));
  CATENA_ASSIGN_OR_RETURN(std::filesystem::path data, find_data(options.data, "chains", kPaperFiles));
  CATENA_ASSIGN_OR_RETURN(const device::TemporaryFolder folder, device::TemporaryFolder::create());
  return GnetBench(options, {std::move(data), folder.path(), &registry}, progress).run();
}

}  // namespace catena::bench
