// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/adaptchain.hpp"

#include "bench/adaptchain/cells.hpp"
#include "bench/adaptchain/modes.hpp"
#include "bench/adaptchain/page.hpp"
#include "bench/adaptchain/resume.hpp"
#include "bench/chains/measure.hpp"
#include "bench/common/copy_rate.hpp"
#include "bench/common/data.hpp"
#include "bench/common/machine.hpp"
#include "device/subprocess.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/slot.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <utility>

namespace catena::bench {
namespace {

constexpr const char* kTuning = "pool_slots: 65536, units_per_launch: 16";
constexpr const char* kQuickTuning = "pool_slots: 16384, units_per_launch: 8";
constexpr std::uint32_t kSampleEvery = 1024;
constexpr std::uint32_t kQuickSampleEvery = 16;
constexpr std::uint64_t kSampleRuns = 4;
constexpr double kQuickSeconds = 0.4;
constexpr double kTraceSeconds = 0.4;
constexpr double kCopySeconds = 0.5;
constexpr double kGiga = 1e9;
constexpr std::uint32_t kMaxFillers = 4;
constexpr double kTrialShare = 0.3;  ///< of a run's length
constexpr std::uint32_t kTrials = 3;
constexpr double kNsPerUs = 1000.0;

/// The whole benchmark under way.
class Paper {
 public:
  Paper(PaperOptions const& options, Workplace workplace, std::function<void(std::string const&)> const& progress)
      : options_(options),
        workplace_(std::move(workplace)),
        progress_(progress),
        references_(workplace_, options.quick ? kQuickSampleEvery : kSampleEvery) {
    if (options_.quick) {
      options_.seconds = std::min(options_.seconds, kQuickSeconds);
      options_.repeats = 1;
    }
    if (options_.wire_bytes.empty()) {
      options_.wire_bytes = options_.quick
                                ? std::vector<std::uint32_t>{kPaperWireBytes[0], kPaperWireBytes[5]}
                                : std::vector<std::uint32_t>(std::begin(kPaperWireBytes), std::end(kPaperWireBytes));
    }
    if (options_.tuning.empty()) {
      options_.tuning = options_.quick ? kQuickTuning : kTuning;
    }
  }

  Result<Results> run();

 private:
  void measure(Cell& cell);
  /// The number of copies with which a short run of the cell is fastest.
  Result<std::uint32_t> best_replicas(Cell& cell);
  Status measure_once(Cell& cell);
  Status trace(Cell& cell);
  Result<RunSpec> spec_for(Cell& cell);
  Status write_output() const;
  std::string line_for(std::size_t done, Cell const& cell, double seconds_so_far) const;
  std::uint32_t sample_every() const { return options_.quick ? kQuickSampleEvery : kSampleEvery; }

  PaperOptions options_;
  Workplace workplace_;
  std::function<void(std::string const&)> const& progress_;
  Results results_;
  References references_;
};

/// The run that a cell asks for; `cell` learns how many copies of the chain it has.
Result<RunSpec> Paper::spec_for(Cell& cell) {
  const bool alone = cell.part == Part::kSource;
  Result<PaperChain const*> found = alone ? &empty_chain(cell.chain == empty_chain(true).name) : find_chain(cell.chain);
  CATENA_RETURN_IF_ERROR(found.status());
  PaperChain const& chain = **found;
  const std::uint32_t frame_bytes = cell.wire_bytes - kFcsBytes;
  RunSpec spec;
  spec.chain = &chain;
  spec.text.frame_bytes = frame_bytes;
  spec.text.device = alone ? "none" : device::to_string(options_.device);
  spec.text.tuning = tuning_of(cell, options_.tuning);
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
  }
  spec.seconds = options_.seconds;
  spec.replicas = cell.replicas;
  spec.sample_every = sample_every();
  spec.sample_runs = kSampleRuns;
  spec.trace = is_traced(cell.part);
  spec.arrival = cell.part == Part::kStages ? Arrival::kOneUnit
                 : is_traced(cell.part)     ? Arrival::kFullUnits
                                            : Arrival::kEvenly;
  if (chain.esp_input) {
    CATENA_ASSIGN_OR_RETURN(spec.esp_frames, references_.esp(frame_bytes, cell.replicas));
    spec.text.frame_bytes = static_cast<std::uint32_t>(spec.esp_frames->front().front().size());
    spec.fillers = std::max(1U, kMaxFillers / cell.replicas);
  }
  return spec;
}

/// A short run beside those that are measured: for the picture of what a packet waits for.
Status Paper::trace(Cell& cell) {
  CATENA_ASSIGN_OR_RETURN(RunSpec spec, spec_for(cell));
  spec.seconds = std::min(spec.seconds, kTraceSeconds);
  spec.trace = true;
  RunResult run = run_for(spec, workplace_);
  results_.abandoned = results_.abandoned || run.abandoned;
  CATENA_RETURN_IF_ERROR(run.status);
  cell.timeline = std::move(run.timeline);
  return absl::OkStatus();
}

Status Paper::measure_once(Cell& cell) {
  CATENA_ASSIGN_OR_RETURN(RunSpec const spec, spec_for(cell));
  PaperChain const& chain = *spec.chain;
  const bool alone = cell.part == Part::kSource;
  RunResult run = run_for(spec, workplace_);
  results_.abandoned = results_.abandoned || run.abandoned;
  CATENA_RETURN_IF_ERROR(run.status);
  if (!alone) {
    results_.device = run.device;
    results_.costs_from = run.costs_from;
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<Sample> const* expected,
                          references_.samples(chain, cell.wire_bytes - kFcsBytes,
                                              (run.samples.size() + io::kReplaySampleRun - 1) / io::kReplaySampleRun));
  const SampleCheck check = compare(run.samples, *expected);
  cell.samples.compared += check.compared;
  cell.samples.different += check.different;
  if (cell.samples.first_difference.empty()) {
    cell.samples.first_difference = check.first_difference;
  }
  Repeat repeat;
  repeat.packets_per_s = run.packets_per_s;
  repeat.bytes_to_device = run.bytes_to_device;
  repeat.bytes_to_host = run.bytes_to_host;
  repeat.p50_us = static_cast<double>(run.latency.percentile(50)) / kNsPerUs;
  repeat.p95_us = static_cast<double>(run.latency.percentile(95)) / kNsPerUs;
  repeat.p99_us = static_cast<double>(run.latency.percentile(99)) / kNsPerUs;
  repeat.received = run.received;
  repeat.sent = run.sent;
  repeat.dropped = run.dropped;
  repeat.workers = run.workers;
  repeat.nf_bytes = std::move(run.nf_bytes);
  repeat.launches = std::move(run.launches);
  cell.planned_ns = run.planned_ns;
  for (StageTime const& stage : run.stages) {
    repeat.stage_seconds.emplace_back(stage.name, stage.busy_seconds);
  }
  cell.repeats.push_back(std::move(repeat));
  if (cell.part == Part::kLatency) {
    cell.cdf_us.clear();
    for (int percent = 0; percent <= 100; ++percent) {
      cell.cdf_us.emplace_back(static_cast<double>(run.latency.percentile(percent)) / kNsPerUs, percent);
    }
  }
  return absl::OkStatus();
}

/// The numbers take turns, and each counts by its median: a trial that something else disturbed decides nothing.
Result<std::uint32_t> Paper::best_replicas(Cell& cell) {
  std::array<std::vector<double>, kMaxTriedReplicas> speeds;
  for (std::uint32_t trial = 0; trial < (options_.quick ? 1 : kTrials); ++trial) {
    for (std::uint32_t replicas = 1; replicas <= kMaxTriedReplicas; ++replicas) {
      cell.replicas = replicas;
      CATENA_ASSIGN_OR_RETURN(RunSpec spec, spec_for(cell));
      spec.seconds *= kTrialShare;
      const RunResult run = run_for(spec, workplace_);
      results_.abandoned = results_.abandoned || run.abandoned;
      CATENA_RETURN_IF_ERROR(run.status);
      speeds[replicas - 1].push_back(run.packets_per_s);
    }
  }
  const auto best = std::max_element(speeds.begin(), speeds.end(), [](auto const& a, auto const& b) {
    return spread_of(a).median < spread_of(b).median;
  });
  return static_cast<std::uint32_t>(best - speeds.begin()) + 1;
}

void Paper::measure(Cell& cell) {
  if (cell.part != Part::kSource) {
    cell.replicas = options_.replicas == kBestReplicas || is_traced(cell.part) ? 1 : options_.replicas;
  }
  if (options_.replicas == kBestReplicas && (cell.part == Part::kThroughput || cell.part == Part::kDecrypt)) {
    if (const Result<std::uint32_t> best = best_replicas(cell); best.ok()) {
      cell.replicas = *best;
    } else {
      cell.error = std::string(best.status().message());
    }
  }
  for (std::uint32_t i = 0; i < options_.repeats && cell.error.empty(); ++i) {
    if (const Status status = measure_once(cell); !status.ok()) {
      cell.error = std::string(status.message());
    }
  }
  if (cell.error.empty() && cell.part == Part::kLatency && cell.chain == kTimelineChain && cell.mode == kTimelineMode) {
    if (const Status status = trace(cell); !status.ok()) {
      cell.error = concat("its time line: ", std::string(status.message()));
    }
  }
}

std::string Paper::line_for(std::size_t done, Cell const& cell, double seconds_so_far) const {
  const double left = seconds_so_far / static_cast<double>(done) * static_cast<double>(results_.cells.size() - done);
  constexpr double kMega = 1e6;
  std::string text =
      fmt::format("[{}/{}] {} {} {} B", done, results_.cells.size(), cell.chain, cell.mode, cell.wire_bytes);
  text += cell.unit_packets != 0 ? concat(", units of ", cell.unit_packets) : "";
  text += cell.offered_gbps != 0 ? concat(", ", cell.offered_gbps, " Gbps offered") : "";
  if (!cell.error.empty()) {
    text += concat(": FAILED: ", cell.error);
  } else {
    const Spread speed = gbps(cell);
    text +=
        fmt::format(": {:.3f} Mpps, {:.2f} Gbps ({:.2f} .. {:.2f}), p50 {:.0f} us", packets_per_s(cell).median / kMega,
                    speed.median, speed.low, speed.high, over(cell, &Repeat::p50_us).median);
  }
  if (cell.samples.different > 0) {
    text += concat("; DIFFERENT OUTPUT: ", cell.samples.first_difference);
  }
  return text + fmt::format("; about {:.0f} s left", left);
}

Status Paper::write_output() const {
  return bench::write_output(options_.output, to_json(results_), paper_page(results_, options_.wire_bytes));
}

Result<Results> Paper::run() {
  results_.seconds = options_.seconds;
  results_.tuning = options_.tuning;
  results_.sample_every = sample_every();
  results_.commit = source_commit(workplace_.folder);
  std::string why_not;
  CATENA_ASSIGN_OR_RETURN(const auto device, device::open(options_.device, &why_not));
  if (!device) {
    return absl::UnavailableError(concat("there is no device to compare ways to: ", why_not));
  }
  CATENA_ASSIGN_OR_RETURN(const double copy_rate, copy_bytes_per_s(*device, options_.quick ? 0 : kCopySeconds));
  results_.runs.push_back({describe_machine(), concat(device->info().name, ", ", device->info().driver),
                           copy_rate / kGiga, options_.command});
  list_cells(options_, results_);
  if (options_.resume) {
    CATENA_ASSIGN_OR_RETURN(Results earlier, read_results(concat(options_.output, "/results.json")));
    CATENA_ASSIGN_OR_RETURN(const std::size_t kept, take_over(std::move(earlier), options_.repeats, results_));
    progress_(concat("kept ", kept, " measurements of earlier runs"));
  }
  CATENA_RETURN_IF_ERROR(write_output());
  for (std::string const& note : results_.notes) {
    progress_(note);
  }
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < results_.cells.size(); ++i) {
    if (!results_.cells[i].repeats.empty()) {
      continue;
    }
    results_.cells[i].run = results_.runs.size() - 1;
    measure(results_.cells[i]);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    progress_(line_for(i + 1, results_.cells[i], passed.count()));
    CATENA_RETURN_IF_ERROR(write_output());
  }
  return std::move(results_);
}

Status check(PaperOptions const& options) {
  for (std::string const& chain : options.chains) {
    CATENA_RETURN_IF_ERROR(find_chain(chain).status());
  }
  for (std::string const& name : options.parts) {
    std::vector<std::string_view> names;
    std::transform(kParts.begin(), kParts.end(), std::back_inserter(names), [](Part part) { return to_string(part); });
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return absl::InvalidArgumentError(
          fmt::format("there is no part '{}'; allowed: {}", name, fmt::join(names, ", ")));
    }
  }
  for (const std::uint32_t bytes : options.wire_bytes) {
    // what arrives grows by a tunnel before it is decrypted
    constexpr std::uint32_t kLongest = 1518;
    if (bytes < io::kMinGeneratedBytes + kFcsBytes || bytes > kLongest) {
      return absl::InvalidArgumentError(
          concat("frames of ", bytes, " bytes: write ", io::kMinGeneratedBytes + kFcsBytes, " to ", kLongest));
    }
  }
  if (!(options.seconds > 0) || options.repeats == 0) {
    return absl::InvalidArgumentError("seconds and repeats must be above 0");
  }
  if (options.output.empty()) {
    return absl::InvalidArgumentError("the output folder has no name");
  }
  if (options.device.kind == device::DevicePreference::Kind::kNone) {
    return absl::InvalidArgumentError("the device is none: the benchmark compares ways to a device");
  }
  return absl::OkStatus();
}

}  // namespace

Result<Results> run_paper(PaperOptions const& options, nf::Registry const& registry,
                          std::function<void(std::string const&)> const& progress) {
  CATENA_RETURN_IF_ERROR(check(options));
  CATENA_ASSIGN_OR_RETURN(std::filesystem::path data, find_data(options.data, "chains", kPaperFiles));
  CATENA_ASSIGN_OR_RETURN(const device::TemporaryFolder folder, device::TemporaryFolder::create());
  return Paper(options, {std::move(data), folder.path(), &registry}, progress).run();
}

}  // namespace catena::bench
