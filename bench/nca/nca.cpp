// SPDX-License-Identifier: Apache-2.0
#include "bench/nca/nca.hpp"

#include "bench/common/copy_rate.hpp"
#include "bench/common/data.hpp"
#include "bench/common/machine.hpp"
#include "bench/common/results.hpp"
#include "bench/common/spread.hpp"
#include "bench/nca/run.hpp"
#include "bench/nca/times.hpp"
#include "bench/nca/traffic.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

namespace catena::bench {
namespace {

constexpr const char* kDraftGroup = "draft";
constexpr const char* kStreamGroup = "streams";
constexpr const char* kQueueGroup = "queues";
constexpr const char* kKernelGroup = "kernel";
constexpr std::array<std::uint32_t, 4> kPacketBytes{0, 64, 583, 1450};  // 0: sizes vary
constexpr std::array<std::uint32_t, 3> kStreamCounts{1, 2, 4};
constexpr std::array<std::uint32_t, 2> kMatchingPercent{0, 35};
constexpr std::uint32_t kMaxQueues = 4;
constexpr std::uint32_t kTimelineQueues = 3;
/// So many packets are different: more than the caches of a core hold.
constexpr std::uint32_t kPacketsOfTraffic = 65536;
constexpr double kBatchShare = 0.3;  ///< of a run's length
constexpr double kBareCopySeconds = 0.5;
constexpr double kHyperscanSeconds = 1;
constexpr double kGbpsPerByte = 8e-9;

/// One measurement.
struct NcaCell {
  std::string group;
  std::uint32_t strings = 0;
  std::uint32_t bytes = 0;  ///< of each packet; 0: variable
  std::uint32_t matching_percent = 0;
  std::uint32_t streams = 1;
  std::uint32_t threads = 1;  ///< a stream
  std::uint32_t queues = 3;

  Json key() const {
    return {{"group", group},     {"strings", strings}, {"packet_bytes", bytes}, {"matching_percent", matching_percent},
            {"streams", streams}, {"threads", threads}, {"queues", queues}};
  }
};

/// Everything that is asked for.
class NcaCells {
 public:
  NcaCells(Request const& request, std::string const& device)
      : request_(request), max_strings_(std::ranges::max(request.counts("strings"))) {
    const bool is_gpu = device.starts_with("cuda");
    const auto or_usual = [&](const char* name, std::uint32_t on_gpu) {
      const std::uint32_t count = request.count(name);
      return count != 0 ? count : is_gpu ? on_gpu : 1;
    };
    usual_.streams = or_usual("streams", 4);
    usual_.threads = or_usual("threads", 2);
    usual_.queues = request.count("queues");
  }
  std::vector<NcaCell> list(bool has_kernels);

 private:
  NcaCell& add(const char* group, std::uint32_t strings, std::uint32_t bytes, std::uint32_t percent) {
    NcaCell& cell = cells_.emplace_back(usual_);
    cell.group = group;
    cell.strings = strings;
    cell.bytes = bytes;
    cell.matching_percent = percent;
    return cell;
  }
  void draft();
  void streams();
  void queues();

  Request const& request_;
  std::uint32_t max_strings_;
  NcaCell usual_;
  std::vector<NcaCell> cells_;
};

void NcaCells::draft() {
  for (const std::uint32_t strings : request_.counts("strings")) {
    for (const std::uint32_t bytes : kPacketBytes) {
      for (const std::uint32_t percent : kMatchingPercent) {
        if (!request_.quick() || bytes <= kPacketBytes[1]) {
          add(kDraftGroup, strings, bytes, percent);
        }
      }
    }
  }
}

void NcaCells::streams() {
  for (const std::uint32_t streams : kStreamCounts) {
    for (const std::uint32_t percent : kMatchingPercent) {
      if (!request_.quick() || streams == 1) {
        // as many threads in all as the other groups have
        NcaCell& cell = add(kStreamGroup, max_strings_, 0, percent);
        cell.threads = std::max(1U, usual_.streams * usual_.threads / streams);
        cell.streams = streams;
      }
    }
  }
}

void NcaCells::queues() {
  for (std::uint32_t queues = 1; queues <= kMaxQueues; ++queues) {
    // the threads of all streams for the one
    NcaCell& cell = add(kQueueGroup, max_strings_, 0, kMatchingPercent.back());
    cell.threads = usual_.streams * usual_.threads;
    cell.streams = 1;
    cell.queues = queues;
  }
}

std::vector<NcaCell> NcaCells::list(bool has_kernels) {
  if (request_.wants("groups", kDraftGroup)) {
    draft();
  }
  if (request_.wants("groups", kStreamGroup)) {
    streams();
  }
  if (request_.wants("groups", kQueueGroup)) {
    queues();
  }
  for (const std::uint32_t percent : kMatchingPercent) {
    if (request_.wants("groups", kKernelGroup) && has_kernels) {
      add(kKernelGroup, max_strings_, 0, percent);
    }
  }
  return std::move(cells_);
}

/// The whole benchmark under way.
class NcaBench {
 public:
  NcaBench(Request const& request, NcaContext context, std::vector<std::string> strings, Results& results)
      : request_(request), context_(std::move(context)), all_strings_(std::move(strings)), results_(results) {}
  Status run();

 private:
  bool has_kernels() const { return nca_device_name(context_.get()) != std::string_view("cpu"); }
  Status measure(NcaCell const& cell, Json& json);
  Status measure_once(NcaCell const& cell, NcaLoad const& load, Json& json);
  Status measure_batch(NcaLoad load, Json& json);
  Status prepare_strings(std::uint32_t count);
  Status prepare_traffic(NcaCell const& cell);

  Request const& request_;
  NcaContext context_;
  std::vector<std::string> all_strings_;
  Results& results_;
  // of the cell that is measured, and often of the next one
  std::uint32_t strings_ = 0;
  std::optional<Hyperscan> hyperscan_;
  nca_function* function_ = nullptr;
  std::optional<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> traffic_is_;  ///< strings, bytes, percent
  Traffic traffic_;
  std::uint32_t hyperscan_cores_ = 1;
  std::array<std::vector<double>, 2> hyperscan_gbps_;  ///< of one core, and of as many as there are adding threads
};

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
  const std::uint32_t cores = std::min(cell.streams * cell.threads, usable_cores());
  if (traffic_is_ == wanted && hyperscan_cores_ == cores) {
    return absl::OkStatus();
  }
  hyperscan_cores_ = cores;
  traffic_is_.reset();
  hyperscan_gbps_ = {};
  const std::uint32_t packets = request_.quick() ? 4 * request_.count("packets") : kPacketsOfTraffic;
  const TrafficSpec spec{packets, cell.bytes, cell.matching_percent};
  CATENA_ASSIGN_OR_RETURN(traffic_, make_traffic(spec, std::span(all_strings_).first(cell.strings), *hyperscan_));
  const double seconds = std::min(kHyperscanSeconds, request_.seconds());
  for (std::uint32_t i = 0; i < request_.repeats(); ++i) {
    for (const bool is_one : {true, false}) {
      CATENA_ASSIGN_OR_RETURN(const double bytes_per_s,
                              hyperscan_->bytes_per_s(traffic_.packets, seconds, is_one ? 1 : cores));
      hyperscan_gbps_[is_one ? 0 : 1].push_back(bytes_per_s * kGbpsPerByte);
    }
  }
  traffic_is_ = wanted;
  return absl::OkStatus();
}

Status NcaBench::measure_once(NcaCell const& cell, NcaLoad const& load, Json& json) {
  CATENA_ASSIGN_OR_RETURN(const NcaSpeed speed, run_nca(*context_, *function_, load));
  Json repeat{{"gbps", speed.bytes_per_s * kGbpsPerByte},
              {"mpps", speed.packets_per_s / 1e6},
              {"buffers", speed.buffers},
              {"packets", speed.packets},
              {"matches", speed.matches}};
  if (load.times) {
    const Overlap overlap = overlap_of(speed.times, speed.from_ns, speed.to_ns);
    repeat["copy_share"] = overlap.copy;
    repeat["kernel_share"] = overlap.kernel;
    repeat["hidden_share"] = overlap.hidden();
    repeat["kernel_hidden_share"] = overlap.kernel_hidden();
    if (cell.queues == kTimelineQueues) {
      const auto [rows, length_us] = nca_timeline(speed.times, speed.from_ns / 2 + speed.to_ns / 2);
      json["timeline"] = to_json(rows, nca_timeline_kinds(), length_us);
    }
  }
  if (cell.group == kKernelGroup) {
    CATENA_ASSIGN_OR_RETURN(const double plain, plain_kernel_bytes_per_s(*function_, load));
    repeat["kernel_gbps"] = plain * kGbpsPerByte;
  }
  json["repeats"].push_back(std::move(repeat));
  return absl::OkStatus();
}

/// Buffers one at a time, for what each part of the work takes by itself; medians of all of them.
Status NcaBench::measure_batch(NcaLoad load, Json& json) {
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
  json["batch_us"] = {{"copy_in", median_us(&nca_times::begin_ns, &nca_times::moved_in_ns)},
                      {"kernel", median_us(&nca_times::moved_in_ns, &nca_times::computed_ns)},
                      {"copy_back", median_us(&nca_times::computed_ns, &nca_times::moved_back_ns)}};
  return absl::OkStatus();
}

Status NcaBench::measure(NcaCell const& cell, Json& json) {
  CATENA_RETURN_IF_ERROR(prepare_traffic(cell));
  json["hyperscan_core_gbps"] = hyperscan_gbps_[0];  // the same packets
  json["hyperscan_cores_gbps"] = hyperscan_gbps_[1];
  json["hyperscan_cores"] = hyperscan_cores_;
  NcaLoad load;
  load.traffic = &traffic_;
  load.bytes = cell.bytes;
  load.buffer_packets = request_.count("packets");
  load.streams = cell.streams;
  load.threads = cell.threads;
  load.queues = cell.queues;
  load.seconds = request_.seconds();
  load.times = cell.group == kQueueGroup;
  for (std::uint32_t i = 0; i < request_.repeats(); ++i) {
    CATENA_RETURN_IF_ERROR(measure_once(cell, load, json));
  }
  // "cpu" copies nothing
  return cell.group == kDraftGroup && has_kernels() ? measure_batch(load, json) : absl::OkStatus();
}

std::string nca_words(Json const& cell) {
  const auto median = [&cell](const char* path) { return spread_of(values_of(cell, path)).median; };
  std::string words = fmt::format("{} Gbps, one Hyperscan core {:.2f}", text_of(spread_of(values_of(cell, "/gbps"))),
                                  spread_of(cell.at("hyperscan_core_gbps").get<std::vector<double>>()).median);
  if (median("/copy_share") > 0) {
    words += fmt::format(", {:.1f} % of the copy time hidden", 100 * median("/hidden_share"));
  }
  if (median("/kernel_gbps") > 0) {
    words += fmt::format(", the kernel by itself {:.2f}", median("/kernel_gbps"));
  }
  return words;
}

Status NcaBench::run() {
  if (!has_kernels() && request_.wants("groups", kKernelGroup)) {
    results_.add_note("The group kernel is left out: the device cpu has no kernels.");
  }
  const std::vector<NcaCell> cells = NcaCells(request_, nca_device_name(context_.get())).list(has_kernels());
  std::vector<Json> keys;
  for (NcaCell const& cell : cells) {
    keys.push_back(cell.key());
  }
  Work work;
  work.measure = [&](std::size_t number, Json& json) { return measure(cells[number], json); };
  work.summary = nca_words;
  return results_.measure(keys, work);
}

/// What bare copies of as many bytes as a buffer of packets of 583 bytes do, one after another, to the device; 0 on
/// "cpu".
Result<Json> measure_copies(Request const& request, std::string const& opened) {
  std::string const& told = request.text("device");
  const std::string name = told == "auto" ? opened.substr(0, opened.find(':')) : told;
  if (name == "cpu") {
    return Json{{"pinned", 0.0}, {"pageable", 0.0}};
  }
  CATENA_ASSIGN_OR_RETURN(const device::DevicePreference preference, device::parse_preference(name));
  std::string why_not;
  CATENA_ASSIGN_OR_RETURN(const auto device, device::open(preference, &why_not));
  if (!device) {
    return absl::UnavailableError(why_not);
  }
  const std::size_t bytes = std::size_t{request.count("packets")} * kAverageBytes;
  const double seconds = std::min(kBareCopySeconds, request.seconds());
  CATENA_ASSIGN_OR_RETURN(const double pinned, copy_in_bytes_per_s(*device, bytes, true, seconds));
  CATENA_ASSIGN_OR_RETURN(const double pageable, copy_in_bytes_per_s(*device, bytes, false, seconds));
  return Json{{"pinned", pinned * kGbpsPerByte}, {"pageable", pageable * kGbpsPerByte}};
}

Result<Results> run_nca_part(Request const& request, nf::Registry const& /*registry*/, Progress const& progress) {
  constexpr std::array<std::string_view, 1> kFiles{"strings.txt"};
  CATENA_ASSIGN_OR_RETURN(const std::filesystem::path folder, find_data(request.told().data, "nca", kFiles));
  CATENA_ASSIGN_OR_RETURN(std::vector<std::string> strings, read_strings((folder / kFiles.front()).string(),
                                                                         std::ranges::max(request.counts("strings"))));
  std::string tried;
  CATENA_ASSIGN_OR_RETURN(NcaContext context, open_nca(request.text("device"), tried));
  const std::string device = nca_device_name(context.get());
  CATENA_ASSIGN_OR_RETURN(Json copies, measure_copies(request, device));
  CATENA_ASSIGN_OR_RETURN(Results results,
                          Results::begin(request, progress, {{"device", device}, {"copies_gbps", std::move(copies)}}));
  if (!tried.empty()) {
    results.add_note(concat("Devices that did not serve: ", tried));
  }
  CATENA_RETURN_IF_ERROR(NcaBench(request, std::move(context), std::move(strings), results).run());
  return results;
}

Setting count_setting(const char* name, const char* help, const char* usual, double least, double most) {
  return {.name = name, .help = help, .usual = usual, .quick = nullptr, .least = least, .most = most, .chooses = true};
}

}  // namespace

Part nca_part() {
  return {
      .name = "nca",
      .help = "The C library, as the NFV Compute Acceleration draft measures it",
      .seconds = 3,
      .quick_seconds = 0.05,
      .settings = {groups_setting({kDraftGroup, kStreamGroup, kQueueGroup, kKernelGroup}),
                   device_setting({"cpu"}),
                   {.name = "strings",
                    .help = "Strings to search for, in the group draft; the other groups have the most of them",
                    .usual = "1000,2500,5000",
                    .quick = "1000",
                    .least = 1,
                    .most = 5000,
                    .is_list = true,
                    .chooses = true},
                   count_setting("streams", "Streams of the application; 0: 4 with CUDA, else 1", "0", 0, 64),
                   count_setting("threads", "Threads that add packets, a stream; 0: 2 with CUDA, else 1", "0", 0, 64),
                   count_setting("queues", "Queues of a stream", "3", 1, 62),
                   {.name = "packets",
                    .help = "Packets of a buffer",
                    .usual = "16384",
                    .quick = "512",
                    .least = 64,
                    .most = 65536}},
      .run = run_nca_part};
}

}  // namespace catena::bench
