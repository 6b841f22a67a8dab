// SPDX-License-Identifier: Apache-2.0
#include "bench/simmer/simmer.hpp"

#include "bench/chains/chains.hpp"
#include "bench/common/data.hpp"
#include "bench/common/machine.hpp"
#include "bench/common/wanted.hpp"
#include "bench/simmer/page.hpp"
#include "device/subprocess.hpp"
#include "eal/eal.hpp"
#include "io/source.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <utility>

namespace catena::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 7> kParts{"alone", "sizes", "qt", "dynamic", "sharing", "own", "long"};
constexpr std::array<std::uint32_t, 5> kWireBytes{128, 256, 512, 1024, 1472};
constexpr std::array<double, 7> kQts{1.5, 2, 2.4, 2.8, 3.2, 3.6, 4};
/// Of chains that the paper only says the same of.
constexpr std::array<double, 3> kFewQts{2, 2.8, 4};
constexpr double kChosenQt = 2.8;
constexpr const char* kHeterogeneous = "heterogeneous";
/// As the paper's NFs: a batch a launch, and the next one when it has ended.
constexpr const char* kTuning = "pool_slots: 65536, units_per_launch: 8, launches_in_flight: 1";
constexpr const char* kQuickTuning = "pool_slots: 16384, units_per_launch: 2, launches_in_flight: 1";
/// That of a chain file without one, but for packet memory.
constexpr const char* kOwnTuning = "pool_slots: 65536";
constexpr double kQuickSeconds = 0.7;
/// A long run is so many runs long.
constexpr double kLongRuns = 40;
constexpr double kQuickLongRuns = 2;

/// The whole benchmark under way.
class SimmerBench {
 public:
  SimmerBench(SimmerOptions options, Workplace workplace, std::function<void(std::string const&)> const& progress)
      : options_(std::move(options)), workplace_(std::move(workplace)), progress_(progress) {}
  Result<SimmerResults> run();

 private:
  void fill_in_options();
  bool wants(std::string_view part) const { return is_wanted(options_.parts, part); }
  std::uint32_t largest() const { return *std::ranges::max_element(options_.wire_bytes); }
  AloneCell const& alone(std::string_view nf, GpuSharedAs shared_as, std::uint32_t bytes, std::string const& tuning);
  void measure_alone(SimmerChain const& chain, AloneCell& cell);
  Status add(SimmerCell cell);
  /// At both loads.
  Status add_both(SimmerCell const& cell);
  Result<double> offered(SimmerCell const& cell);
  Status measure(SimmerCell& cell);
  Status run_once(SimmerCell const& cell, FlowRuns& runs);
  Status run_parts();
  Result<SimmerRun> run_overloaded(LongRun& result);
  Status run_long();
  SimmerCell cell_of(const char* part, const char* chain) const;
  Status write_output() const { return bench::write_output(options_.output, to_json(results_), simmer_page(results_)); }

  SimmerOptions options_;
  Workplace workplace_;
  std::function<void(std::string const&)> const& progress_;
  std::unique_ptr<SimmerRunner> runner_;
  Clock::time_point start_ = Clock::now();
  SimmerResults results_;
};

void SimmerBench::fill_in_options() {
  if (options_.quick) {
    options_.seconds = std::min(options_.seconds, kQuickSeconds);
    options_.repeats = 1;
  }
  if (options_.wire_bytes.empty()) {
    options_.wire_bytes.assign(kWireBytes.begin(), options_.quick ? kWireBytes.begin() + 1 : kWireBytes.end());
  }
  if (options_.qts.empty()) {
    options_.qts = options_.quick ? std::vector<double>{kChosenQt} : std::vector<double>(kQts.begin(), kQts.end());
  }
  if (options_.tuning.empty()) {
    options_.tuning = options_.quick ? kQuickTuning : kTuning;
  }
}

void SimmerBench::measure_alone(SimmerChain const& chain, AloneCell& cell) {
  SimmerSpec spec;
  spec.chain = &chain;
  spec.shared_as = cell.shared_as;
  spec.wire_bytes = cell.wire_bytes;
  spec.tuning = cell.tuning;
  spec.compute_units = options_.compute_units;
  spec.seconds = options_.seconds;
  spec.trace = cell.shared_as != GpuSharedAs::kProcess;  // what is in another process has no trace
  for (std::uint32_t repeat = 0; repeat < options_.repeats; ++repeat) {
    Result<SimmerRun> run = runner_->run(spec);
    if (!run.ok()) {
      cell.error = std::string(run.status().message());
      return;
    }
    cell.packets_per_s.push_back(run->packets_per_s);
    if (run->kernel_us) {
      cell.kernel_us.push_back(*run->kernel_us);
    }
    cell.busy = std::move(run->busy);
  }
}

/// What the NF does on the whole device, measured where it was not yet.
AloneCell const& SimmerBench::alone(std::string_view nf, GpuSharedAs shared_as, std::uint32_t bytes,
                                    std::string const& tuning) {
  for (AloneCell const& cell : results_.alone) {
    if (cell.nf == nf && cell.shared_as == shared_as && cell.wire_bytes == bytes && cell.tuning == tuning) {
      return cell;
    }
  }
  AloneCell& cell = results_.alone.emplace_back();
  cell.nf = nf;
  cell.shared_as = shared_as;
  cell.wire_bytes = bytes;
  cell.tuning = tuning;
  measure_alone(simmer_chain(nf), cell);
  progress_(fmt::format("{:5.0f} s: {} alone, {}, {} B: {:.3f} Mpps{}",
                        std::chrono::duration<double>(Clock::now() - start_).count(), nf, to_string(shared_as), bytes,
                        spread_of(cell.packets_per_s).median / 1e6,
                        cell.error.empty() ? "" : concat(": FAILED: ", cell.error)));
  return cell;
}

Result<double> SimmerBench::offered(SimmerCell const& cell) {
  if (cell.load == Load::kFirstNf) {
    // of parts nobody has the whole device alone
    const GpuSharedAs shared_as =
        cell.shared_as == GpuSharedAs::kProcess ? GpuSharedAs::kProcess : GpuSharedAs::kOneContext;
    AloneCell const& first = alone(simmer_chain(cell.chain).nfs.front().type, shared_as, cell.wire_bytes, cell.tuning);
    if (!is_measured(first)) {
      return absl::UnavailableError(concat("what its first NF does alone is not known: ", first.error));
    }
    return spread_of(first.packets_per_s).median;
  }
  const auto known = std::ranges::find_if(results_.cells, [&cell](SimmerCell const& other) {
    return other.load == Load::kFirstNf && other.part == cell.part && other.chain == cell.chain &&
           other.shared_as == cell.shared_as && other.wire_bytes == cell.wire_bytes && other.qt == cell.qt &&
           other.tuning == cell.tuning;
  });
  if (known == results_.cells.end() || !is_measured(*known)) {
    return absl::UnavailableError("what the chain does with back-pressure is not known");
  }
  return 2 * spread_of(find(*known, chain::FlowMode::kBackpressure).packets_per_s).median;
}

Status SimmerBench::run_once(SimmerCell const& cell, FlowRuns& runs) {
  SimmerSpec spec;
  spec.chain = &simmer_chain(cell.chain);
  spec.shared_as = cell.shared_as;
  spec.mode = runs.mode;
  spec.qt = cell.qt;
  spec.wire_bytes = cell.wire_bytes;
  spec.packets_per_s = static_cast<std::uint64_t>(cell.offered_per_s);
  spec.tuning = cell.tuning;
  spec.compute_units = options_.compute_units;
  spec.seconds = options_.seconds;
  CATENA_ASSIGN_OR_RETURN(SimmerRun run, runner_->run(spec));
  if (runs.mode == chain::FlowMode::kBackpressure && run.dropped_inside > 0) {
    return absl::DataLossError(concat(run.dropped_inside, " packets were dropped inside, with back-pressure"));
  }
  runs.packets_per_s.push_back(run.packets_per_s);
  runs.received_per_s.push_back(run.received_per_s);
  runs.nfs.resize(run.nfs.size());
  for (std::size_t i = 0; i < run.nfs.size(); ++i) {
    runs.nfs[i].name = run.nfs[i].name;
    runs.nfs[i].packets_per_s.push_back(run.nfs[i].packets_per_s);
    runs.nfs[i].drops_per_s.push_back(run.nfs[i].drops_per_s);
    runs.nfs[i].launches_per_s.push_back(run.nfs[i].launches_per_s);
  }
  runs.busy = std::move(run.busy);
  return absl::OkStatus();
}

Status SimmerBench::measure(SimmerCell& cell) {
  CATENA_ASSIGN_OR_RETURN(cell.offered_per_s, offered(cell));
  for (const chain::FlowMode mode : kFlowModes) {
    cell.flows.emplace_back().mode = mode;
  }
  for (std::uint32_t repeat = 0; repeat < options_.repeats; ++repeat) {
    for (std::size_t i = 0; i < cell.flows.size(); ++i) {
      CATENA_RETURN_IF_ERROR(run_once(cell, cell.flows[(i + repeat) % cell.flows.size()]));
    }
  }
  return absl::OkStatus();
}

Status SimmerBench::add(SimmerCell cell) {
  if (const Status status = measure(cell); !status.ok()) {
    cell.error = std::string(status.message());
  }
  std::string line = fmt::format("{:5.0f} s: {}: {}, {}, {} B, qt {}, load {}",
                                 std::chrono::duration<double>(Clock::now() - start_).count(), cell.part, cell.chain,
                                 to_string(cell.shared_as), cell.wire_bytes, cell.qt, to_string(cell.load));
  for (FlowRuns const& runs : cell.flows) {
    line += fmt::format("; {} {:.3f} Mpps, {:.3f} dropped inside", to_string(runs.mode),
                        spread_of(runs.packets_per_s).median / 1e6, dropped_inside(runs).median / 1e6);
  }
  progress_(line + (cell.error.empty() ? "" : concat(": FAILED: ", cell.error)));
  results_.cells.push_back(std::move(cell));
  results_.abandoned = runner_->abandoned();
  return write_output();
}

Status SimmerBench::add_both(SimmerCell const& cell) {
  for (const Load load : {Load::kFirstNf, Load::kTwice}) {
    SimmerCell at = cell;
    at.load = load;
    CATENA_RETURN_IF_ERROR(add(std::move(at)));
  }
  return absl::OkStatus();
}

SimmerCell SimmerBench::cell_of(const char* part, const char* chain) const {
  SimmerCell cell;
  cell.part = part;
  cell.chain = chain;
  cell.wire_bytes = largest();
  cell.qt = kChosenQt;
  cell.tuning = options_.tuning;
  return cell;
}

Status SimmerBench::run_parts() {
  if (wants("sizes")) {
    for (const std::uint32_t bytes : options_.wire_bytes) {
      SimmerCell cell = cell_of("sizes", kHeterogeneous);
      cell.wire_bytes = bytes;
      CATENA_RETURN_IF_ERROR(add_both(cell));
    }
  }
  if (wants("dynamic")) {
    for (SimmerChain const& chain : simmer_chains()) {
      if (chain.has_two_flows) {
        CATENA_RETURN_IF_ERROR(add_both(cell_of("dynamic", chain.name)));
      }
    }
  }
  if (wants("sharing")) {
    for (const GpuSharedAs shared_as : {GpuSharedAs::kProcess, GpuSharedAs::kPartitioned, GpuSharedAs::kOneContext}) {
      if (shared_as == GpuSharedAs::kPartitioned && options_.compute_units != 0) {
        continue;  // parts are of the whole device
      }
      SimmerCell cell = cell_of("sharing", kHeterogeneous);
      cell.shared_as = shared_as;
      CATENA_RETURN_IF_ERROR(add_both(cell));
    }
  }
  for (SimmerChain const& chain : simmer_chains()) {
    const bool has_all = std::string_view(chain.name) == kHeterogeneous || std::string_view(chain.name) == "3 ipsec";
    for (const double qt : options_.qts) {
      if (wants("qt") && !chain.has_two_flows && (has_all || std::ranges::find(kFewQts, qt) != kFewQts.end())) {
        SimmerCell cell = cell_of("qt", chain.name);
        cell.qt = qt;
        CATENA_RETURN_IF_ERROR(add(std::move(cell)));
      }
    }
  }
  if (wants("own")) {
    for (const GpuSharedAs shared_as : {GpuSharedAs::kProcess, GpuSharedAs::kOneContext}) {
      for (const char* chain : {kHeterogeneous, "3 ipsec"}) {
        SimmerCell cell = cell_of("own", chain);
        cell.shared_as = shared_as;
        cell.tuning = kOwnTuning;
        CATENA_RETURN_IF_ERROR(add(std::move(cell)));
      }
    }
  }
  return wants("long") ? run_long() : absl::OkStatus();
}

/// As long as the overload is to last.
Result<SimmerRun> SimmerBench::run_overloaded(LongRun& result) {
  SimmerCell cell = cell_of("long", kHeterogeneous);
  result.chain = cell.chain;
  result.wire_bytes = cell.wire_bytes;
  CATENA_ASSIGN_OR_RETURN(result.offered_per_s, offered(cell));
  result.seconds = options_.seconds * (options_.quick ? kQuickLongRuns : kLongRuns);
  SimmerSpec spec;
  spec.chain = &simmer_chain(cell.chain);
  spec.mode = chain::FlowMode::kBackpressure;
  spec.qt = cell.qt;
  spec.wire_bytes = cell.wire_bytes;
  spec.packets_per_s = static_cast<std::uint64_t>(result.offered_per_s);
  spec.tuning = cell.tuning;
  spec.compute_units = options_.compute_units;
  spec.seconds = result.seconds;
  return runner_->run(spec);
}

Status SimmerBench::run_long() {
  LongRun& result = results_.long_runs.emplace_back();
  if (Result<SimmerRun> run = run_overloaded(result); run.ok()) {
    result.packets_per_s = run->packets_per_s;
    result.dropped_inside = run->dropped_inside;
    result.memory_mb = std::move(run->memory_mb);
    result.slots_in_use = std::move(run->slots_in_use);
  } else {
    result.error = std::string(run.status().message());
  }
  progress_(fmt::format("long run: {:.3f} Mpps, {} dropped inside{}", result.packets_per_s / 1e6, result.dropped_inside,
                        result.error.empty() ? "" : concat(": FAILED: ", result.error)));
  return write_output();
}

Result<SimmerResults> SimmerBench::run() {
  fill_in_options();
  CATENA_RETURN_IF_ERROR(eal::start());
  CATENA_ASSIGN_OR_RETURN(runner_, SimmerRunner::create(options_.device, workplace_));
  results_.command = options_.command;
  results_.seconds = options_.seconds;
  results_.repeats = options_.repeats;
  results_.machine = describe_machine();
  results_.commit = source_commit(workplace_.folder);
  results_.device = concat(runner_->device().name, " (", runner_->device().backend, ")");
  results_.compute_units = options_.compute_units == 0 ? runner_->device().compute_units : options_.compute_units;
  if (wants("alone")) {
    for (SimmerChain const& nf : single_nfs()) {
      for (const GpuSharedAs shared_as : {GpuSharedAs::kProcess, GpuSharedAs::kOneContext}) {
        alone(nf.name, shared_as, largest(), options_.tuning);
      }
    }
  }
  CATENA_RETURN_IF_ERROR(write_output());
  CATENA_RETURN_IF_ERROR(run_parts());
  results_.abandoned = runner_->abandoned();
  return std::move(results_);
}

Status check(SimmerOptions const& options) {
  for (std::string const& part : options.parts) {
    if (std::ranges::find(kParts, part) == kParts.end()) {
      return absl::InvalidArgumentError(
          fmt::format("there is no part '{}'; allowed: {}", part, fmt::join(kParts, ", ")));
    }
  }
  for (const std::uint32_t bytes : options.wire_bytes) {
    if (bytes < io::kMinGeneratedBytes + kFcsBytes || bytes > kWireBytes.back()) {
      return absl::InvalidArgumentError(
          concat("frames of ", bytes, " bytes: write ", io::kMinGeneratedBytes + kFcsBytes, " to ", kWireBytes.back()));
    }
  }
  for (const double qt : options.qts) {
    if (!(qt >= 1)) {
      return absl::InvalidArgumentError(concat("qt is ", qt, ": write 1 or more"));
    }
  }
  if (!(options.seconds > 0) || options.repeats == 0) {
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

Result<SimmerResults> run_simmer(SimmerOptions const& options, nf::Registry const& registry,
                                 std::function<void(std::string const&)> const& progress) {
  CATENA_RETURN_IF_ERROR(check(options));
  CATENA_ASSIGN_OR_RETURN(std::filesystem::path data, find_data(options.data, "chains", kPaperFiles));
  CATENA_ASSIGN_OR_RETURN(const device::TemporaryFolder folder, device::TemporaryFolder::create());
  return SimmerBench(options, {std::move(data), folder.path(), &registry}, progress).run();
}

}  // namespace catena::bench
