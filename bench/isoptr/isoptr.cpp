// SPDX-License-Identifier: Apache-2.0
#include "bench/isoptr/isoptr.hpp"

#include "bench/chains/measure.hpp"
#include "bench/common/data.hpp"
#include "bench/common/kernel_alone.hpp"
#include "bench/common/machine.hpp"
#include "bench/common/wanted.hpp"
#include "bench/isoptr/checks_device.hpp"
#include "bench/isoptr/page.hpp"
#include "device/subprocess.hpp"
#include "eal/eal.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

namespace catena::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<IsoPtrPart, 2> kParts{IsoPtrPart::kKernels, IsoPtrPart::kChains};
constexpr std::array<std::uint32_t, 3> kWireBytes{64, 512, 1518};
constexpr std::array<std::uint32_t, 2> kPackets{4096, 65536};
constexpr std::uint32_t kQuickPackets = 512;
constexpr std::uint32_t kMaxPackets = 1U << 20;
constexpr const char* kTuning = "pool_slots: 65536, units_per_launch: 16";
constexpr const char* kQuickTuning = "pool_slots: 16384, units_per_launch: 8";
constexpr double kQuickSeconds = 0.2;
constexpr double kQuickKernelSeconds = 0.005;
constexpr std::uint32_t kSampleEvery = 1024;
constexpr std::uint32_t kQuickSampleEvery = 16;
constexpr std::uint32_t kFillers = 4;
constexpr std::uint32_t kEmptyLaunches = 1000;
constexpr double kNsPerSecond = 1e9;
constexpr double kUsPerSecond = 1e6;

std::vector<PaperChain> const& chains_of(IsoPtrPart part) {
  return part == IsoPtrPart::kKernels ? kernel_chains() : gnet_chains();
}

void add(SampleCheck const& more, SampleCheck& sum) {
  sum.compared += more.compared;
  sum.different += more.different;
  sum.first_difference = sum.first_difference.empty() ? more.first_difference : sum.first_difference;
}

/// What left an NF, as what leaves a chain.
std::vector<Sample> samples_of(std::vector<nf::testing::PacketResult> const& packets) {
  std::vector<Sample> samples;
  for (nf::testing::PacketResult const& packet : packets) {
    Sample& sample = samples.emplace_back(Sample{samples.size(), packet.verdict, packet.port, {}});
    if (packet.verdict != packet::Verdict::kDrop) {
      sample.bytes = packet.frame;
    }
  }
  return samples;
}

Result<double> seconds_of(KernelAlone& kernel, std::uint32_t launches) {
  const Clock::time_point from = Clock::now();
  CATENA_RETURN_IF_ERROR(kernel.run(launches));
  return std::chrono::duration<double>(Clock::now() - from).count();
}

/// The whole benchmark under way.
class IsoPtrBench {
 public:
  IsoPtrBench(IsoPtrOptions options, Workplace workplace, std::function<void(std::string const&)> const& progress)
      : options_(std::move(options)),
        workplace_(std::move(workplace)),
        progress_(progress),
        references_(workplace_, sample_every()) {}
  Result<IsoPtrResults> run();

 private:
  bool wants(IsoPtrPart part, std::string_view name) const {
    return is_wanted(options_.parts, to_string(part)) && is_wanted(options_.names, name);
  }
  void fill_in_options();
  void list_cells();
  void measure(IsoPtrCell& cell);
  Result<std::unique_ptr<nf::Nf>> make_nf(PaperChain const& chain) const;
  Result<std::vector<Frame>> frames_of(PaperChain const& chain, std::uint32_t wire_bytes);
  Result<std::unique_ptr<KernelAlone>> kernel_of(PaperChain const& chain, std::vector<Frame> const& frames,
                                                 Checks checks);
  Status check_outputs(IsoPtrCell& cell, PaperChain const& chain, std::vector<Frame> const& frames);
  Status measure_kernel(IsoPtrCell& cell, PaperChain const& chain);
  Status measure_empty_launch();
  RunSpec spec_for(PaperChain const& chain, std::vector<std::vector<Frame>> const& frames) const;
  Result<double> run_chain(RunSpec spec, Checks checks, IsoPtrCell& cell);
  Status measure_chain(IsoPtrCell& cell, PaperChain const& chain);
  std::string line_for(std::size_t done, double seconds_so_far) const;
  Status write_output() const;
  std::uint32_t sample_every() const { return options_.quick ? kQuickSampleEvery : kSampleEvery; }
  device::Device& device(Checks checks) { return checks == Checks::kOn ? *checked_ : *unchecked_; }

  IsoPtrOptions options_;
  Workplace workplace_;
  std::function<void(std::string const&)> const& progress_;
  References references_;
  std::unique_ptr<device::Device> real_;
  std::unique_ptr<ChecksDevice> checked_;
  std::unique_ptr<ChecksDevice> unchecked_;
  IsoPtrResults results_;
  std::set<std::pair<std::string, std::uint32_t>> compared_;  ///< kernels and sizes of frames whose output was
};

void IsoPtrBench::fill_in_options() {
  if (options_.quick) {
    options_.seconds = std::min(options_.seconds, kQuickSeconds);
    options_.kernel_seconds = std::min(options_.kernel_seconds, kQuickKernelSeconds);
    options_.repeats = 1;
  }
  if (options_.wire_bytes.empty()) {
    options_.wire_bytes.assign(kWireBytes.begin(), kWireBytes.end());
  }
  if (options_.packets.empty()) {
    options_.packets = options_.quick ? std::vector<std::uint32_t>{kQuickPackets}
                                      : std::vector<std::uint32_t>(kPackets.begin(), kPackets.end());
  }
  if (options_.tuning.empty()) {
    options_.tuning = options_.quick ? kQuickTuning : kTuning;
  }
}

void IsoPtrBench::list_cells() {
  for (const IsoPtrPart part : kParts) {
    const std::vector<std::uint32_t> launches =
        part == IsoPtrPart::kKernels ? options_.packets : std::vector<std::uint32_t>{0};
    for (PaperChain const& chain : chains_of(part)) {
      for (const std::uint32_t bytes : wants(part, chain.name) ? options_.wire_bytes : std::vector<std::uint32_t>()) {
        for (const std::uint32_t packets : launches) {
          IsoPtrCell& cell = results_.cells.emplace_back();
          cell.part = part;
          cell.name = chain.name;
          cell.wire_bytes = bytes;
          cell.packets = packets;
        }
      }
    }
  }
}

// ---- kernels

Result<std::unique_ptr<nf::Nf>> IsoPtrBench::make_nf(PaperChain const& chain) const {
  PaperNf const& entry = chain.nfs.front();
  CATENA_ASSIGN_OR_RETURN(nf::Descriptor const* const descriptor, workplace_.registry->find(entry.type));
  CATENA_ASSIGN_OR_RETURN(const std::string sa, write_sa(workplace_.data, workplace_.folder, spi_of(0), 1));
  return nf::testing::make_nf(*descriptor, config_text(entry, sa), workplace_.data.string());
}

Result<std::vector<Frame>> IsoPtrBench::frames_of(PaperChain const& chain, std::uint32_t wire_bytes) {
  if (!chain.esp_input) {
    return busy_frames(wire_bytes - kFcsBytes, workplace_);
  }
  CATENA_ASSIGN_OR_RETURN(const auto* const copies, references_.esp(wire_bytes - kFcsBytes, 1));
  return copies->front();
}

Result<std::unique_ptr<KernelAlone>> IsoPtrBench::kernel_of(PaperChain const& chain, std::vector<Frame> const& frames,
                                                            Checks checks) {
  CATENA_ASSIGN_OR_RETURN(nf::Descriptor const* const descriptor, workplace_.registry->find(chain.nfs.front().type));
  CATENA_ASSIGN_OR_RETURN(auto nf, make_nf(chain));
  return KernelAlone::create(device(checks), *descriptor, std::move(nf), frames);
}

/// A packet of each flow through both kernels, against the CPU.
Status IsoPtrBench::check_outputs(IsoPtrCell& cell, PaperChain const& chain, std::vector<Frame> const& frames) {
  if (!compared_.emplace(cell.name, cell.wire_bytes).second) {
    return absl::OkStatus();  // counted in the cell with another size of launches
  }
  CATENA_ASSIGN_OR_RETURN(nf::Descriptor const* const descriptor, workplace_.registry->find(chain.nfs.front().type));
  const auto run_on = [&](device::Device* where) -> Result<std::vector<Sample>> {
    CATENA_ASSIGN_OR_RETURN(auto nf, make_nf(chain));
    CATENA_ASSIGN_OR_RETURN(const auto result, nf::testing::run(*descriptor, std::move(nf), frames, where));
    if (result.counters.kernel_faults > 0) {
      return absl::DataLossError("the kernel read or wrote out of bounds");
    }
    return samples_of(result.packets);
  };
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample> expected, run_on(nullptr));
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample> checked, run_on(checked_.get()));
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample> unchecked, run_on(unchecked_.get()));
  cell.checked = compare(checked, expected);
  cell.unchecked = compare(unchecked, expected);
  return absl::OkStatus();
}

Status IsoPtrBench::measure_kernel(IsoPtrCell& cell, PaperChain const& chain) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<Frame> flows, frames_of(chain, cell.wire_bytes));
  CATENA_RETURN_IF_ERROR(check_outputs(cell, chain, flows));
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < cell.packets; ++i) {
    frames.push_back(flows[i % flows.size()]);
  }
  CATENA_ASSIGN_OR_RETURN(const auto checked, kernel_of(chain, frames, Checks::kOn));
  CATENA_ASSIGN_OR_RETURN(const auto unchecked, kernel_of(chain, frames, Checks::kOff));
  CATENA_RETURN_IF_ERROR(unchecked->run(1));
  CATENA_ASSIGN_OR_RETURN(const double once, seconds_of(*checked, 1));
  const auto launches = static_cast<std::uint32_t>(std::ceil(options_.kernel_seconds / std::max(once, 1e-9)));
  const double to_ns = kNsPerSecond / launches / static_cast<double>(checked->packets());
  for (std::uint32_t i = 0; i < options_.repeats; ++i) {
    CATENA_ASSIGN_OR_RETURN(const double with, seconds_of(*checked, launches));
    CATENA_ASSIGN_OR_RETURN(const double without, seconds_of(*unchecked, launches));
    cell.repeats.push_back({with * to_ns, without * to_ns});
  }
  cell.us_per_launch = over(cell, &IsoPtrRepeat::checked_ns).median * static_cast<double>(checked->packets()) / 1000;
  return absl::OkStatus();
}

/// What a launch takes that has next to nothing to do.
Status IsoPtrBench::measure_empty_launch() {
  PaperChain const& chain = kernel_chains().back();
  CATENA_ASSIGN_OR_RETURN(std::vector<Frame> frames, frames_of(chain, options_.wire_bytes.front()));
  frames.resize(1);
  CATENA_ASSIGN_OR_RETURN(const auto kernel, kernel_of(chain, frames, Checks::kOn));
  CATENA_ASSIGN_OR_RETURN(const double seconds, seconds_of(*kernel, kEmptyLaunches));
  results_.us_per_empty_launch = seconds * kUsPerSecond / kEmptyLaunches;
  return absl::OkStatus();
}

// ---- chains

RunSpec IsoPtrBench::spec_for(PaperChain const& chain, std::vector<std::vector<Frame>> const& frames) const {
  RunSpec spec;
  spec.chain = &chain;
  spec.text.frame_bytes = static_cast<std::uint32_t>(frames.front().front().size());
  spec.text.device = device::to_string(options_.device);
  spec.text.tuning = options_.tuning;
  spec.seconds = options_.seconds;
  spec.sample_every = sample_every();
  spec.esp_frames = &frames;
  spec.fillers = options_.quick ? 1 : kFillers;
  return spec;
}

/// Nanoseconds a packet.
Result<double> IsoPtrBench::run_chain(RunSpec spec, Checks checks, IsoPtrCell& cell) {
  spec.open_device = [this, checks](device::DevicePreference const&,
                                    std::string*) -> Result<std::unique_ptr<device::Device>> {
    return std::make_unique<ChecksDevice>(*real_, checks);
  };
  RunResult run = run_for(spec, workplace_);
  results_.abandoned = results_.abandoned || run.abandoned;
  CATENA_RETURN_IF_ERROR(run.status);
  if (run.packets_per_s <= 0) {
    return absl::DataLossError("no packet left the chain");
  }
  results_.costs_from = run.costs_from;
  const std::uint64_t runs = (run.samples.size() + io::kReplaySampleRun - 1) / io::kReplaySampleRun;
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample>* const expected,
                          references_.samples(*spec.chain, cell.wire_bytes - kFcsBytes, runs));
  add(compare(run.samples, *expected), checks == Checks::kOn ? cell.checked : cell.unchecked);
  if (spec.trace) {
    cell.busy = std::move(run.busy);
  }
  return kNsPerSecond / run.packets_per_s;
}

Status IsoPtrBench::measure_chain(IsoPtrCell& cell, PaperChain const& chain) {
  CATENA_ASSIGN_OR_RETURN(const auto* const frames, references_.esp(cell.wire_bytes - kFcsBytes, 1));
  RunSpec spec = spec_for(chain, *frames);
  // first the run that does not count: what a device does for the first time it does there
  spec.trace = true;
  CATENA_RETURN_IF_ERROR(run_chain(spec, Checks::kOn, cell).status());
  spec.trace = false;
  for (std::uint32_t i = 0; i < options_.repeats; ++i) {
    CATENA_ASSIGN_OR_RETURN(const double with, run_chain(spec, Checks::kOn, cell));
    CATENA_ASSIGN_OR_RETURN(const double without, run_chain(spec, Checks::kOff, cell));
    cell.repeats.push_back({with, without});
  }
  return absl::OkStatus();
}

// ---- all

void IsoPtrBench::measure(IsoPtrCell& cell) {
  std::vector<PaperChain> const& chains = chains_of(cell.part);
  const auto chain =
      std::find_if(chains.begin(), chains.end(), [&cell](PaperChain const& entry) { return entry.name == cell.name; });
  const Status status = cell.part == IsoPtrPart::kKernels ? measure_kernel(cell, *chain) : measure_chain(cell, *chain);
  if (!status.ok()) {
    cell.error = std::string(status.message());
  }
}

std::string IsoPtrBench::line_for(std::size_t done, double seconds_so_far) const {
  IsoPtrCell const& cell = results_.cells[done - 1];
  std::string text =
      fmt::format("[{}/{}] {} {} {} B", done, results_.cells.size(), to_string(cell.part), cell.name, cell.wire_bytes);
  text += cell.packets != 0 ? concat(", ", cell.packets, " packets") : "";
  if (!cell.error.empty()) {
    text += concat(": FAILED: ", cell.error);
  } else {
    const Spread overhead = overhead_percent(cell);
    text += fmt::format(": {:.3f} ns a packet with checks, {:.3f} without: {:+.2f} % ({:+.2f} .. {:+.2f}); {}",
                        over(cell, &IsoPtrRepeat::checked_ns).median, over(cell, &IsoPtrRepeat::unchecked_ns).median,
                        overhead.median, overhead.low, overhead.high, limit_of(results_, cell));
  }
  for (SampleCheck const* check : {&cell.checked, &cell.unchecked}) {
    text += check->different > 0 ? concat("; DIFFERENT OUTPUT: ", check->first_difference) : "";
  }
  const double left = seconds_so_far / static_cast<double>(done) * static_cast<double>(results_.cells.size() - done);
  return text + fmt::format("; about {:.0f} s left", left);
}

Status IsoPtrBench::write_output() const {
  return bench::write_output(options_.output, to_json(results_), isoptr_page(results_));
}

Result<IsoPtrResults> IsoPtrBench::run() {
  fill_in_options();
  results_.command = options_.command;
  results_.seconds = options_.seconds;
  results_.kernel_seconds = options_.kernel_seconds;
  results_.tuning = options_.tuning;
  results_.machine = describe_machine();
  results_.commit = source_commit(workplace_.folder);
  CATENA_RETURN_IF_ERROR(eal::start());
  std::string why_not;
  CATENA_ASSIGN_OR_RETURN(real_, device::open(options_.device, &why_not));
  if (!real_) {
    return absl::UnavailableError(concat("there is no device that kernels could run on: ", why_not));
  }
  checked_ = std::make_unique<ChecksDevice>(*real_, Checks::kOn);
  unchecked_ = std::make_unique<ChecksDevice>(*real_, Checks::kOff);
  results_.device = concat(real_->info().name, " (", real_->info().backend, ")");
  list_cells();
  CATENA_RETURN_IF_ERROR(measure_empty_launch());
  CATENA_RETURN_IF_ERROR(write_output());
  const Clock::time_point start = Clock::now();
  for (std::size_t i = 0; i < results_.cells.size(); ++i) {
    measure(results_.cells[i]);
    progress_(line_for(i + 1, std::chrono::duration<double>(Clock::now() - start).count()));
    CATENA_RETURN_IF_ERROR(write_output());
  }
  return std::move(results_);
}

Status check_names(IsoPtrOptions const& options) {
  std::vector<std::string_view> parts;
  std::vector<std::string_view> names;
  for (const IsoPtrPart part : kParts) {
    parts.push_back(to_string(part));
    for (PaperChain const& chain : chains_of(part)) {
      names.emplace_back(chain.name);
    }
  }
  const auto check = [](std::vector<std::string> const& given, std::vector<std::string_view> const& known,
                        std::string_view what) -> Status {
    for (std::string const& name : given) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        return absl::InvalidArgumentError(
            fmt::format("there is no {} '{}'; allowed: {}", what, name, fmt::join(known, ", ")));
      }
    }
    return absl::OkStatus();
  };
  CATENA_RETURN_IF_ERROR(check(options.parts, parts, "part"));
  return check(options.names, names, "kernel or chain");
}

Status check(IsoPtrOptions const& options) {
  CATENA_RETURN_IF_ERROR(check_names(options));
  for (const std::uint32_t bytes : options.wire_bytes) {
    // what arrives grows by a tunnel before it is decrypted
    if (bytes < io::kMinGeneratedBytes + kFcsBytes || bytes > kWireBytes.back()) {
      return absl::InvalidArgumentError(
          concat("frames of ", bytes, " bytes: write ", io::kMinGeneratedBytes + kFcsBytes, " to ", kWireBytes.back()));
    }
  }
  for (const std::uint32_t packets : options.packets) {
    if (packets == 0 || packets > kMaxPackets) {
      return absl::InvalidArgumentError(concat("launches of ", packets, " packets: write 1 to ", kMaxPackets));
    }
  }
  if (!(options.seconds > 0) || !(options.kernel_seconds > 0) || options.repeats == 0) {
    return absl::InvalidArgumentError("seconds and repeats must be above 0");
  }
  if (options.output.empty()) {
    return absl::InvalidArgumentError("the output folder has no name");
  }
  if (options.device.kind == device::DevicePreference::Kind::kNone) {
    return absl::InvalidArgumentError("the device is none: the benchmark measures kernels");
  }
  return absl::OkStatus();
}

}  // namespace

Result<IsoPtrResults> run_isoptr(IsoPtrOptions const& options, nf::Registry const& registry,
                                 std::function<void(std::string const&)> const& progress) {
  CATENA_RETURN_IF_ERROR(check(options));
  CATENA_ASSIGN_OR_RETURN(std::filesystem::path data, find_data(options.data, "chains", kPaperFiles));
  CATENA_ASSIGN_OR_RETURN(const device::TemporaryFolder folder, device::TemporaryFolder::create());
  return IsoPtrBench(options, {std::move(data), folder.path(), &registry}, progress).run();
}

}  // namespace catena::bench
