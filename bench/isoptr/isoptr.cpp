// SPDX-License-Identifier: Apache-2.0
#include "bench/isoptr/isoptr.hpp"

#include "bench/chains/measure.hpp"
#include "bench/chains/records.hpp"
#include "bench/common/kernel_alone.hpp"
#include "bench/common/results.hpp"
#include "bench/common/spread.hpp"
#include "bench/isoptr/checks_device.hpp"
#include "io/eal/eal.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

namespace catena::bench {
namespace {

constexpr const char* kAloneGroup = "kernels";
constexpr const char* kChainGroup = "chains";
constexpr std::uint32_t kLongestInside = 1518;  // what arrives grows by a tunnel before it is decrypted
constexpr std::uint32_t kMaxLaunchPackets = 1U << 20;
constexpr std::uint32_t kCheckedSampleEvery = 1024;
constexpr std::uint32_t kQuickCheckedSampleEvery = 16;
constexpr std::uint32_t kEspFillers = 4;
constexpr std::uint32_t kEmptyLaunches = 1000;
constexpr double kNsOfSecond = 1e9;

/// A kernel by itself, or one of S_a to S_d as fast as it can.
struct CheckedCell {
  const char* group = kAloneGroup;
  PaperChain const* chain = nullptr;
  std::uint32_t wire_bytes = 64;  ///< of a frame with FCS; where ESP is decrypted, of what is inside
  std::uint32_t packets = 0;      ///< of a launch; 0 for a chain, which decides itself

  Json key() const {
    return {{"group", group}, {"chain", chain->name}, {"wire_bytes", wire_bytes}, {"packets", packets}};
  }
};

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
  using Clock = std::chrono::steady_clock;
  const Clock::time_point from = Clock::now();
  CATENA_RETURN_IF_ERROR(kernel.run(launches));
  return std::chrono::duration<double>(Clock::now() - from).count();
}

void add_repeat(double checked_ns, double unchecked_ns, Json& json) {
  json["repeats"].push_back({{"checked_ns", checked_ns}, {"unchecked_ns", unchecked_ns}});
}

/// The whole benchmark under way.
class IsoPtrBench {
 public:
  IsoPtrBench(Request const& request, Workplace const& workplace, device::Device& real, Results& results)
      : request_(request),
        workplace_(workplace),
        results_(results),
        sample_every_(request.quick() ? kQuickCheckedSampleEvery : kCheckedSampleEvery),
        references_(workplace, sample_every_),
        real_(real),
        checked_(real, Checks::kOn),
        unchecked_(real, Checks::kOff) {}
  Status run();

 private:
  std::vector<CheckedCell> list_cells() const;
  Result<std::unique_ptr<nf::Nf>> make_nf(PaperChain const& chain) const;
  Result<std::vector<Frame>> frames_of(PaperChain const& chain, std::uint32_t wire_bytes);
  Result<std::unique_ptr<KernelAlone>> kernel_of(PaperChain const& chain, std::vector<Frame> const& frames,
                                                 Checks checks);
  Status check_outputs(CheckedCell const& cell, std::vector<Frame> const& frames, Json& json);
  Status measure_kernel(CheckedCell const& cell, Json& json);
  Status measure_empty_launch();
  RunSpec spec_for(PaperChain const& chain, std::vector<std::vector<Frame>> const& frames) const;
  Result<double> run_chain(RunSpec spec, Checks checks, CheckedCell const& cell, Json& json);
  Status measure_chain(CheckedCell const& cell, Json& json);

  Request const& request_;
  Workplace const& workplace_;
  Results& results_;
  std::uint32_t sample_every_;
  References references_;
  device::Device& real_;
  ChecksDevice checked_;
  ChecksDevice unchecked_;
  std::set<std::pair<std::string, std::uint32_t>> compared_;  ///< kernels and sizes of frames whose output was
};

std::vector<CheckedCell> IsoPtrBench::list_cells() const {
  std::vector<CheckedCell> cells;
  const auto add = [&](const char* group, std::vector<PaperChain> const& chains,
                       std::vector<std::uint32_t> const& launches) {
    for (PaperChain const& chain : chains) {
      const bool is_wanted = request_.wants("groups", group) && request_.wants("chains", chain.name);
      for (const std::uint32_t bytes : is_wanted ? request_.counts("sizes") : std::vector<std::uint32_t>()) {
        for (const std::uint32_t packets : launches) {
          cells.push_back({group, &chain, bytes, packets});
        }
      }
    }
  };
  add(kAloneGroup, kernel_chains(), request_.counts("packets"));
  add(kChainGroup, gnet_chains(), {0});
  return cells;
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
  return KernelAlone::create(checks == Checks::kOn ? checked_ : unchecked_, *descriptor, std::move(nf), frames);
}

/// A packet of each flow through both kernels, against the CPU.
Status IsoPtrBench::check_outputs(CheckedCell const& cell, std::vector<Frame> const& frames, Json& json) {
  if (!compared_.emplace(cell.chain->name, cell.wire_bytes).second) {
    return absl::OkStatus();  // counted in the cell with another size of launches
  }
  PaperChain const& chain = *cell.chain;
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
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample> checked, run_on(&checked_));
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample> unchecked, run_on(&unchecked_));
  add_samples(compare(checked, expected), json);
  add_samples(compare(unchecked, expected), json);
  return absl::OkStatus();
}

Status IsoPtrBench::measure_kernel(CheckedCell const& cell, Json& json) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<Frame> flows, frames_of(*cell.chain, cell.wire_bytes));
  CATENA_RETURN_IF_ERROR(check_outputs(cell, flows, json));
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < cell.packets; ++i) {
    frames.push_back(flows[i % flows.size()]);
  }
  CATENA_ASSIGN_OR_RETURN(const auto checked, kernel_of(*cell.chain, frames, Checks::kOn));
  CATENA_ASSIGN_OR_RETURN(const auto unchecked, kernel_of(*cell.chain, frames, Checks::kOff));
  CATENA_RETURN_IF_ERROR(unchecked->run(1));
  CATENA_ASSIGN_OR_RETURN(const double once, seconds_of(*checked, 1));
  const auto launches = static_cast<std::uint32_t>(std::ceil(request_.number("kernel_seconds") / std::max(once, 1e-9)));
  const auto packets = static_cast<double>(checked->packets());
  const double to_ns = kNsOfSecond / launches / packets;
  for (std::uint32_t i = 0; i < request_.repeats(); ++i) {
    CATENA_ASSIGN_OR_RETURN(const double with, seconds_of(*checked, launches));
    CATENA_ASSIGN_OR_RETURN(const double without, seconds_of(*unchecked, launches));
    add_repeat(with * to_ns, without * to_ns, json);
  }
  json["us_per_launch"] = spread_of(values_of(json, "/checked_ns")).median * packets / 1000;
  return absl::OkStatus();
}

/// What a launch takes that has next to nothing to do.
Status IsoPtrBench::measure_empty_launch() {
  PaperChain const& chain = kernel_chains().back();
  CATENA_ASSIGN_OR_RETURN(std::vector<Frame> frames, frames_of(chain, request_.counts("sizes").front()));
  frames.resize(1);
  CATENA_ASSIGN_OR_RETURN(const auto kernel, kernel_of(chain, frames, Checks::kOn));
  CATENA_ASSIGN_OR_RETURN(const double seconds, seconds_of(*kernel, kEmptyLaunches));
  results_.add_to_run("us_per_empty_launch", seconds * 1e6 / kEmptyLaunches);
  return absl::OkStatus();
}

// ---- chains

RunSpec IsoPtrBench::spec_for(PaperChain const& chain, std::vector<std::vector<Frame>> const& frames) const {
  RunSpec spec;
  spec.chain = &chain;
  spec.text.frame_bytes = static_cast<std::uint32_t>(frames.front().front().size());
  spec.text.device = request_.text("device");
  spec.text.tuning = request_.text("tuning");
  spec.seconds = request_.seconds();
  spec.sample_every = sample_every_;
  spec.esp_frames = &frames;
  spec.fillers = request_.quick() ? 1 : kEspFillers;
  return spec;
}

/// Nanoseconds a packet.
Result<double> IsoPtrBench::run_chain(RunSpec spec, Checks checks, CheckedCell const& cell, Json& json) {
  spec.open_device = [this, checks](device::DevicePreference const&,
                                    std::string*) -> Result<std::unique_ptr<device::Device>> {
    return std::make_unique<ChecksDevice>(real_, checks);
  };
  RunResult run = run_for(spec, workplace_);
  results_.abandon_if(run.abandoned);
  CATENA_RETURN_IF_ERROR(run.status);
  if (run.packets_per_s <= 0) {
    return absl::DataLossError("no packet left the chain");
  }
  results_.add_to_run("cost_profile", run.costs_from);
  const std::uint64_t runs = (run.samples.size() + io::kReplaySampleRun - 1) / io::kReplaySampleRun;
  CATENA_ASSIGN_OR_RETURN(const std::vector<Sample>* const expected,
                          references_.samples(*spec.chain, cell.wire_bytes - kFcsBytes, runs));
  add_samples(compare(run.samples, *expected), json);
  if (spec.trace) {
    json["busy"] = to_json(run.busy);
  }
  return kNsOfSecond / run.packets_per_s;
}

Status IsoPtrBench::measure_chain(CheckedCell const& cell, Json& json) {
  CATENA_ASSIGN_OR_RETURN(const auto* const frames, references_.esp(cell.wire_bytes - kFcsBytes, 1));
  RunSpec spec = spec_for(*cell.chain, *frames);
  // first the run that does not count: what a device does for the first time it does there
  spec.trace = true;
  CATENA_RETURN_IF_ERROR(run_chain(spec, Checks::kOn, cell, json).status());
  spec.trace = false;
  for (std::uint32_t i = 0; i < request_.repeats(); ++i) {
    CATENA_ASSIGN_OR_RETURN(const double with, run_chain(spec, Checks::kOn, cell, json));
    CATENA_ASSIGN_OR_RETURN(const double without, run_chain(spec, Checks::kOff, cell, json));
    add_repeat(with, without, json);
  }
  results_.describe_chain(cell.chain->name, to_json(*cell.chain));
  return absl::OkStatus();
}

// ---- all

std::string overhead_words(Json const& cell) {
  const std::vector<double> with = values_of(cell, "/checked_ns");
  const std::vector<double> without = values_of(cell, "/unchecked_ns");
  std::vector<double> percents;
  for (std::size_t i = 0; i < with.size(); ++i) {
    percents.push_back(100 * (with[i] / without[i] - 1));
  }
  const Spread percent = spread_of(percents);
  return fmt::format("{:.3f} ns a packet with checks, {:.3f} without: {:+.2f} % ({:+.2f} .. {:+.2f})",
                     spread_of(with).median, spread_of(without).median, percent.median, percent.low, percent.high);
}

Status IsoPtrBench::run() {
  CATENA_RETURN_IF_ERROR(measure_empty_launch());
  const std::vector<CheckedCell> cells = list_cells();
  std::vector<Json> keys;
  for (CheckedCell const& cell : cells) {
    keys.push_back(cell.key());
  }
  Work work;
  work.measure = [&](std::size_t number, Json& json) {
    CheckedCell const& cell = cells[number];
    return std::string_view(cell.group) == kAloneGroup ? measure_kernel(cell, json) : measure_chain(cell, json);
  };
  work.summary = overhead_words;
  return results_.measure(keys, work);
}

Result<Results> run_isoptr(Request const& request, nf::Registry const& registry, Progress const& progress) {
  CATENA_ASSIGN_OR_RETURN(const auto workplace, OpenWorkplace::create(request, registry));
  CATENA_RETURN_IF_ERROR(eal::start());
  CATENA_ASSIGN_OR_RETURN(const auto device, open_device(request));
  CATENA_ASSIGN_OR_RETURN(Results results,
                          Results::begin(request, progress,
                                         {{"device", concat(device->info().name, " (", device->info().backend, ")")},
                                          {"cost_profile", ""}}));
  CATENA_RETURN_IF_ERROR(IsoPtrBench(request, workplace->get(), *device, results).run());
  return results;
}

std::vector<std::string> checked_names() {
  std::vector<std::string> names = names_of(kernel_chains());
  for (std::string& name : names_of(gnet_chains())) {
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

Part isoptr_part() {
  return {
      .name = "isoptr",
      .help = "What the checks of pointers in kernels cost: kernels by themselves and chains of G-NET",
      .seconds = 3,
      .quick_seconds = 0.2,
      .settings = {groups_setting({kAloneGroup, kChainGroup}),
                   device_setting(),
                   chains_setting(checked_names()),
                   sizes_setting("64,512,1518", nullptr, kLongestInside),
                   {.name = "packets",
                    .help = "Of a kernel's launch",
                    .usual = "4096,65536",
                    .quick = "512",
                    .least = 1,
                    .most = kMaxLaunchPackets,
                    .is_list = true,
                    .chooses = true},
                   {.name = "kernel_seconds",
                    .help = "Length of a run of a kernel",
                    .usual = "0.03",
                    .quick = "0.005",
                    .least = 0.0001,
                    .most = 60},
                   tuning_setting("pool_slots: 65536, units_per_launch: 16", "pool_slots: 16384, units_per_launch: 8")},
      .run = run_isoptr};
}

}  // namespace catena::bench
