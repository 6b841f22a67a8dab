// SPDX-License-Identifier: Apache-2.0
#include "bench/nca/nca.hpp"

#include "bench/common/copy_rate.hpp"
#include "bench/common/data.hpp"
#include "bench/common/machine.hpp"
#include "bench/common/wanted.hpp"
#include "bench/nca/page.hpp"
#include "bench/nca/run.hpp"
#include "bench/nca/traffic.hpp"
#include "device/subprocess.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

namespace catena::bench {
namespace {

constexpr std::array<const char*, 4> kParts{"draft", "streams", "queues", "kernel"};
constexpr std::array<std::uint32_t, 3> kStrings{1000, 2500, 5000};
constexpr std::array<std::uint32_t, 4> kBytes{0, 64, 583, 1450};  // 0: sizes vary
constexpr std::array<std::uint32_t, 3> kStreams{1, 2, 4};
constexpr std::array<std::uint32_t, 2> kMatchingPercent{0, 35};
constexpr std::uint32_t kMaxQueues = 4;
constexpr std::uint32_t kTimelineQueues = 3;
constexpr std::uint32_t kQuickBufferPackets = 512;
/// So many packets are different: more than the caches of a core hold.
constexpr std::uint32_t kPacketsOfTraffic = 65536;
constexpr double kQuickSeconds = 0.05;
constexpr double kBatchShare = 0.3;  ///< of a run's length
constexpr double kCopySeconds = 0.5;
constexpr double kNsPerUs = 1000;
constexpr double kHyperscanSeconds = 0.5;
constexpr double kGbpsPerByte = 8e-9;
constexpr double kMega = 1e6;
constexpr std::uint32_t kMaxStreams = 64;
constexpr std::uint32_t kMaxThreads = 64;
constexpr std::uint32_t kMostQueues = 62;

/// The whole benchmark under way.
class NcaBench {
 public:
  NcaBench(NcaOptions const& options, std::function<void(std::string const&)> const& progress)
      : options_(options), progress_(progress) {}
  Result<NcaResults> run();

 private:
  bool wants(const char* part) const { return is_wanted(options_.parts, part); }
  void list_cells();
  void add(const char* part, std::uint32_t strings, std::uint32_t bytes, std::uint32_t percent);
  void add_queues(std::uint32_t queues);
  void measure(NcaCell& cell);
  Status measure_all(NcaCell& cell);
  Status measure_once(NcaCell& cell, NcaLoad const& load);
  Status measure_batch(NcaCell& cell, NcaLoad load);
  Status measure_copies();
  Status prepare_strings(std::uint32_t count);
  Status prepare_traffic(NcaCell const& cell);
  std::string line_for(NcaCell const& cell) const;
  Status write_output() const;

  NcaOptions options_;
  std::function<void(std::string const&)> const& progress_;
  NcaResults results_;
  NcaContext context_;
  std::vector<std::string> all_strings_;
  // of the cell that is measured, and often of the next one
  std::uint32_t strings_ = 0;
  std::optional<Hyperscan> hyperscan_;
  nca_function* function_ = nullptr;
  std::optional<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> traffic_is_;  ///< strings, bytes, percent
  Traffic traffic_;
  std::vector<double> hyperscan_gbps_;
};

void NcaBench::add(const char* part, std::uint32_t strings, std::uint32_t bytes, std::uint32_t percent) {
  NcaCell cell;
  cell.part = part;
  cell.strings = strings;
  cell.bytes = bytes;
  cell.matching_percent = percent;
  cell.streams = options_.streams;
  cell.threads = options_.threads;
  cell.queues = options_.queues;
  results_.cells.push_back(std::move(cell));
}

void NcaBench::add_queues(std::uint32_t queues) {
  add("queues", options_.quick ? kStrings.front() : kStrings.back(), 0, kMatchingPercent.back());
  NcaCell& cell = results_.cells.back();
  // the threads of all streams for the one
  cell.threads = cell.streams * cell.threads;
  cell.streams = 1;
  cell.queues = queues;
}

void NcaBench::list_cells() {
  const std::uint32_t max_strings = options_.quick ? kStrings.front() : kStrings.back();
  if (wants("draft")) {
    for (const std::uint32_t strings : kStrings) {
      for (const std::uint32_t bytes : kBytes) {
        for (const std::uint32_t percent : kMatchingPercent) {
          if (!options_.quick || (strings <= max_strings && bytes <= kBytes[1])) {
            add("draft", strings, bytes, percent);
          }
        }
      }
    }
  }
  for (const std::uint32_t streams : kStreams) {
    for (const std::uint32_t percent : kMatchingPercent) {
      if (wants("streams") && (!options_.quick || streams == 1)) {
        add("streams", max_strings, 0, percent);
        // as many threads in all as the other parts have
        NcaCell& cell = results_.cells.back();
        cell.threads = std::max(1U, options_.streams * options_.threads / streams);
        cell.streams = streams;
      }
    }
  }
  for (std::uint32_t queues = 1; wants("queues") && queues <= kMaxQueues; ++queues) {
    add_queues(queues);
  }
  if (wants("kernel") && results_.device == "cpu") {
    results_.notes.emplace_back("The part kernel is left out: the device cpu has no kernels.");
  } else if (wants("kernel")) {
    for (const std::uint32_t percent : kMatchingPercent) {
      add("kernel", max_strings, 0, percent);
    }
  }
}

Status NcaBench::prepare_strings(std::uint32_t count) {
  if (strings_ == count) {
    return absl::OkStatus();
  }
  strings_ = 0;
  if (function_ != nullptr) {
    nca_remove_network_function(function_);
    function_ = nullptr;
  }
  const auto strings = std::span(all_strings_).first(count);
  CATENA_ASSIGN_OR_RETURN(hyperscan_, Hyperscan::create(strings));
  CATENA_ASSIGN_OR_RETURN(function_, add_strings(*context_, strings));
  strings_ = count;
  return absl::OkStatus();
}

Status NcaBench::prepare_traffic(NcaCell const& cell) {
  CATENA_RETURN_IF_ERROR(prepare_strings(cell.strings));
  const std::tuple wanted{cell.strings, cell.bytes, cell.matching_percent};
  if (traffic_is_ == wanted) {
    return absl::OkStatus();
  }
  traffic_is_.reset();
  hyperscan_gbps_.clear();
  const TrafficSpec spec{options_.quick ? 4 * kQuickBufferPackets : kPacketsOfTraffic, cell.bytes,
                         cell.matching_percent};
  CATENA_ASSIGN_OR_RETURN(traffic_, make_traffic(spec, std::span(all_strings_).first(cell.strings), *hyperscan_));
  for (std::uint32_t i = 0; i < options_.repeats; ++i) {
    CATENA_ASSIGN_OR_RETURN(const double bytes_per_s,
                            hyperscan_->bytes_per_s(traffic_.packets, std::min(kHyperscanSeconds, options_.seconds)));
    hyperscan_gbps_.push_back(bytes_per_s * kGbpsPerByte);
  }
  traffic_is_ = wanted;
  return absl::OkStatus();
}

Status NcaBench::measure_once(NcaCell& cell, NcaLoad const& load) {
  CATENA_ASSIGN_OR_RETURN(const NcaSpeed speed, run_nca(*context_, *function_, load));
  NcaRepeat repeat;
  repeat.gbps = speed.bytes_per_s * kGbpsPerByte;
  repeat.mpps = speed.packets_per_s / kMega;
  repeat.buffers = speed.buffers;
  repeat.packets = speed.packets;
  repeat.matches = speed.matches;
  if (load.times) {
    const Overlap overlap = overlap_of(speed.times, speed.from_ns, speed.to_ns);
    repeat.copy = overlap.copy;
    repeat.kernel = overlap.kernel;
    repeat.hidden = overlap.hidden();
    repeat.kernel_hidden = overlap.kernel_hidden();
    if (cell.queues == kTimelineQueues) {
      std::tie(cell.timeline, cell.timeline_us) = nca_timeline(speed.times, speed.from_ns / 2 + speed.to_ns / 2);
    }
  }
  if (cell.part == "kernel") {
    CATENA_ASSIGN_OR_RETURN(const double plain, plain_kernel_bytes_per_s(*function_, load));
    repeat.plain_gbps = plain * kGbpsPerByte;
  }
  cell.repeats.push_back(repeat);
  return absl::OkStatus();
}

/// Buffers one at a time, for what each part of the work takes by itself.
Status NcaBench::measure_batch(NcaCell& cell, NcaLoad load) {
  if (results_.device == "cpu") {
    return absl::OkStatus();
  }
  load.streams = 1;
  load.queues = 1;
  load.seconds *= kBatchShare;
  load.times = true;
  CATENA_ASSIGN_OR_RETURN(const NcaSpeed speed, run_nca(*context_, *function_, load));
  const auto median_us = [&speed](std::int64_t nca_times::*from, std::int64_t nca_times::*to) {
    std::vector<double> us;
    for (nca_times const& buffer : speed.times) {
      us.push_back(static_cast<double>(buffer.*to - buffer.*from) / kNsPerUs);
    }
    return spread_of(std::move(us)).median;
  };
  cell.batch = {median_us(&nca_times::begin_ns, &nca_times::moved_in_ns),
                median_us(&nca_times::moved_in_ns, &nca_times::computed_ns),
                median_us(&nca_times::computed_ns, &nca_times::moved_back_ns)};
  return absl::OkStatus();
}

Status NcaBench::measure_copies() {
  const std::string name =
      options_.device == "auto" ? results_.device.substr(0, results_.device.find(':')) : options_.device;
  if (name == "cpu") {
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(const device::DevicePreference preference, device::parse_preference(name));
  std::string why_not;
  CATENA_ASSIGN_OR_RETURN(const auto device, device::open(preference, &why_not));
  if (!device) {
    return absl::UnavailableError(why_not);
  }
  const std::size_t bytes = std::size_t{results_.buffer_packets} * kAverageBytes;
  const double seconds = std::min(kCopySeconds, options_.seconds);
  CATENA_ASSIGN_OR_RETURN(const double pinned, copy_in_bytes_per_s(*device, bytes, true, seconds));
  CATENA_ASSIGN_OR_RETURN(const double pageable, copy_in_bytes_per_s(*device, bytes, false, seconds));
  results_.copies = {pinned * kGbpsPerByte, pageable * kGbpsPerByte};
  return absl::OkStatus();
}

Status NcaBench::measure_all(NcaCell& cell) {
  CATENA_RETURN_IF_ERROR(prepare_traffic(cell));
  cell.hyperscan_gbps = hyperscan_gbps_;
  NcaLoad load;
  load.traffic = &traffic_;
  load.bytes = cell.bytes;
  load.buffer_packets = results_.buffer_packets;
  load.streams = cell.streams;
  load.threads = cell.threads;
  load.queues = cell.queues;
  load.seconds = options_.seconds;
  load.times = cell.part == "queues";
  for (std::uint32_t i = 0; i < options_.repeats; ++i) {
    CATENA_RETURN_IF_ERROR(measure_once(cell, load));
  }
  if (cell.part == "draft") {
    CATENA_RETURN_IF_ERROR(measure_batch(cell, load));
  }
  return absl::OkStatus();
}

void NcaBench::measure(NcaCell& cell) {
  if (const Status status = measure_all(cell); !status.ok()) {
    cell.error = std::string(status.message());
  }
}

std::string NcaBench::line_for(NcaCell const& cell) const {
  std::string text = fmt::format("{}: {} strings, {}, {} % matching, {} streams, {} queues: ", cell.part, cell.strings,
                                 cell.bytes == 0 ? "variable size" : concat(cell.bytes, " B"), cell.matching_percent,
                                 cell.streams, cell.queues);
  if (!cell.error.empty()) {
    return text + "FAILED: " + cell.error;
  }
  const Spread speed = over(cell, &NcaRepeat::gbps);
  text += fmt::format("{:.2f} Gbps ({:.2f} .. {:.2f}), one Hyperscan core {:.2f}", speed.median, speed.low, speed.high,
                      spread_of(cell.hyperscan_gbps).median);
  if (over(cell, &NcaRepeat::copy).median > 0) {
    text += fmt::format(", {:.1f} % of the copy time hidden", 100 * over(cell, &NcaRepeat::hidden).median);
  } else if (cell.part == "kernel") {
    text += fmt::format(", the kernel by itself {:.2f}", over(cell, &NcaRepeat::plain_gbps).median);
  }
  return text;
}

Status NcaBench::write_output() const {
  return bench::write_output(options_.output, to_json(results_), nca_page(results_));
}

Result<NcaResults> NcaBench::run() {
  constexpr std::array<std::string_view, 1> kFiles{"strings.txt"};
  CATENA_ASSIGN_OR_RETURN(const std::filesystem::path folder, find_data(options_.data, "nca", kFiles));
  const std::uint32_t max_strings = options_.quick ? kStrings.front() : kStrings.back();
  CATENA_ASSIGN_OR_RETURN(all_strings_, read_strings((folder / kFiles.front()).string(), max_strings));
  std::string tried;
  CATENA_ASSIGN_OR_RETURN(context_, open_nca(options_.device, tried));
  if (!tried.empty()) {
    results_.notes.push_back(concat("Devices that did not serve: ", tried));
  }
  results_.device = nca_device_name(context_.get());
  const bool is_gpu = results_.device.starts_with("cuda");
  options_.streams = options_.streams != 0 ? options_.streams : is_gpu ? 4 : 1;
  options_.threads = options_.threads != 0 ? options_.threads : is_gpu ? 2 : 1;
  if (options_.quick) {
    options_.seconds = std::min(options_.seconds, kQuickSeconds);
    options_.repeats = 1;
  }
  results_.command = options_.command;
  results_.seconds = options_.seconds;
  results_.buffer_packets = options_.quick ? kQuickBufferPackets : options_.packets;
  results_.machine = describe_machine();
  {
    CATENA_ASSIGN_OR_RETURN(const device::TemporaryFolder temporary, device::TemporaryFolder::create());
    results_.commit = source_commit(temporary.path());
  }
  CATENA_RETURN_IF_ERROR(measure_copies());
  list_cells();
  CATENA_RETURN_IF_ERROR(write_output());
  for (std::string const& note : results_.notes) {
    progress_(note);
  }
  for (std::size_t i = 0; i < results_.cells.size(); ++i) {
    measure(results_.cells[i]);
    progress_(concat("[", i + 1, "/", results_.cells.size(), "] ", line_for(results_.cells[i])));
    CATENA_RETURN_IF_ERROR(write_output());
  }
  return std::move(results_);
}

Status check(NcaOptions const& options) {
  for (std::string const& name : options.parts) {
    if (std::find(kParts.begin(), kParts.end(), name) == kParts.end()) {
      return absl::InvalidArgumentError(
          concat("there is no part '", name, "'; allowed: draft, streams, queues, kernel"));
    }
  }
  if (!(options.seconds > 0) || options.repeats == 0) {
    return absl::InvalidArgumentError("seconds and repeats must be above 0");
  }
  if (options.queues == 0 || options.queues > kMostQueues || options.streams > kMaxStreams ||
      options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(concat(options.streams, " streams of ", options.threads, " threads and ",
                                             options.queues, " queues; there are at most ", kMaxStreams, ", ",
                                             kMaxThreads, ", and 1 to ", kMostQueues));
  }
  if (options.output.empty()) {
    return absl::InvalidArgumentError("the output folder has no name");
  }
  return absl::OkStatus();
}

}  // namespace

Spread over(NcaCell const& cell, double NcaRepeat::*value) {
  std::vector<double> values;
  for (NcaRepeat const& repeat : cell.repeats) {
    values.push_back(repeat.*value);
  }
  return spread_of(std::move(values));
}

std::uint64_t NcaResults::failed_cells() const {
  return static_cast<std::uint64_t>(
      std::count_if(cells.begin(), cells.end(), [](NcaCell const& cell) { return !cell.error.empty(); }));
}

Result<NcaResults> run_nca_bench(NcaOptions const& options, std::function<void(std::string const&)> const& progress) {
  CATENA_RETURN_IF_ERROR(check(options));
  return NcaBench(options, progress).run();
}

}  // namespace catena::bench
