// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/measure.hpp"

#include "bench/chains/filled_ahead.hpp"
#include "bench/chains/unit_source.hpp"
#include "bench/common/machine.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>
#include <utility>

namespace catena::bench {
namespace {

/// A copy of the chain and the thread that runs it.
struct Copy {
  std::unique_ptr<runtime::Session> chain;
  SampleSink* sink = nullptr;   ///< the chain's
  std::future<Status> outcome;  ///< of its run; the last member, as its destructor waits for the thread

  Copy() = default;
  Copy(Copy&&) = default;
  Copy& operator=(Copy&&) = default;
  ~Copy() {
    if (chain != nullptr) {
      chain->stop();
    }
  }
};

/// A replay that brings full units.
Result<std::unique_ptr<io::Source>> make_units(io::ReplayConfig replay, Arrival arrival) {
  const std::uint64_t packets_per_s = std::exchange(replay.packets_per_s, 0);
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<io::Source> source, io::make_replay(replay));
  return arrival == Arrival::kOneUnit ? make_one_at_a_time(std::move(source))
                                      : make_whole_units(std::move(source), packets_per_s);
}

Result<Copy> make_copy(RunSpec const& spec, std::uint32_t replica, std::uint32_t workers, Workplace const& workplace) {
  ChainText text = spec.text;
  text.packets_per_s = spec.text.packets_per_s / spec.replicas;
  CATENA_ASSIGN_OR_RETURN(text.sa_file, write_sa(workplace.data, workplace.folder, spi_of(replica), 1));
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config,
                          chain::parse_chain(chain_text(*spec.chain, text), (workplace.data / "paper.yaml").string()));
  config.rx.as<io::ReplayConfig>().sample_every = spec.sample_every;
  Copy copy;
  auto sink = std::make_unique<SampleSink>(spec.sample_every, replica == 0 ? spec.sample_runs : 0);
  copy.sink = sink.get();
  runtime::RunOptions options;
  options.workers = workers;
  options.sync = spec.sync;
  options.sharing = spec.sharing;
  if (!spec.sharing && !spec.has_costs) {
    options.profiles = chain::ProfileStore::from_environment();
  }
  options.trace = spec.trace && replica == 0;
  options.open_device = spec.open_device;
  options.make_sink = [&sink]() -> Result<std::unique_ptr<io::Sink>> { return std::move(sink); };
  if (spec.chain->esp_input) {
    options.make_source = [&] { return make_filled_ahead((*spec.esp_frames)[replica], spec.fillers, 0); };
  } else if (spec.arrival != Arrival::kEvenly) {
    options.make_source = [replay = config.rx.as<io::ReplayConfig>(), arrival = spec.arrival] {
      return make_units(replay, arrival);
    };
  }
  CATENA_ASSIGN_OR_RETURN(copy.chain, runtime::Session::create(std::move(config), options, *workplace.registry));
  return copy;
}

using Clock = std::chrono::steady_clock;

/// How far all copies have come.
struct Moment {
  Clock::time_point at;
  double processor_seconds = 0;
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  Histogram latency;
  std::vector<StageTime> stages;
};

Moment now(std::vector<Copy> const& copies) {
  Moment moment;
  for (Copy const& copy : copies) {
    const runtime::Report report = copy.chain->report();
    moment.received += report.rx.received;
    moment.sent += report.tx.sent;
    moment.latency.merge(report.tx.latency);
    moment.stages.resize(report.work.stages.size());
    for (std::size_t i = 0; i < report.work.stages.size(); ++i) {
      moment.stages[i].name = report.work.stages[i].name;
      moment.stages[i].busy_seconds += report.work.stages[i].busy_seconds;
    }
  }
  moment.processor_seconds = processor_seconds();
  moment.at = Clock::now();
  return moment;
}

void count_window(Moment const& from, Moment&& to, RunResult& result) {
  result.seconds = std::chrono::duration<double>(to.at - from.at).count();
  result.received = to.received - from.received;
  result.sent = to.sent - from.sent;
  result.packets_per_s = static_cast<double>(result.sent) / result.seconds;
  result.process_cores = (to.processor_seconds - from.processor_seconds) / result.seconds;
  if (result.offered_per_s > 0) {
    // what waits inside was taken, and has not left: either number can hide that the chain falls behind
    const auto taken = [&result](std::uint64_t packets) {
      return static_cast<double>(packets) / result.seconds / result.offered_per_s;
    };
    result.taken = std::abs(taken(result.sent) - 1) > std::abs(taken(result.received) - 1) ? taken(result.sent)
                                                                                           : taken(result.received);
  }
  result.latency = to.latency;
  result.latency.remove(from.latency);
  result.stages = std::move(to.stages);
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    result.stages[i].busy_seconds -= from.stages[i].busy_seconds;
    result.cores += result.stages[i].busy_seconds / result.seconds;
  }
}

/// Until each of `copies` is done with its first packet, or its run ended, or that takes too long. Threads and devices
/// need a moment to begin, which is no part of a speed; and of a short run it can be all.
void wait_for_first_packets(std::vector<Copy> const& copies) {
  constexpr std::chrono::microseconds kPeriod{100};
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (Copy const& copy : copies) {
    const auto has_begun = [&copy] {
      const runtime::RunProgress progress = copy.chain->progress();
      return progress.sent + progress.dropped > 0;
    };
    while (!has_begun() && std::chrono::steady_clock::now() < until &&
           copy.outcome.wait_for(kPeriod) != std::future_status::ready) {
    }
  }
}

void add(runtime::Report const& report, RunResult& result) {
  result.dropped += report.dropped();
  result.device = report.device.name;
  result.costs_from = report.device.costs_from;
  if (!result.nf_bytes.empty() || result.bytes_to_device > 0 || result.bytes_to_host > 0) {
    return;  // copies have one plan, which run_for() sees to: the first one speaks for all
  }
  for (runtime::NfReport const& nf : report.nfs) {
    result.bytes_to_device += nf.device.bytes_to_device_per_packet;
    result.bytes_to_host += nf.device.bytes_to_host_per_packet;
    if (nf.device.bytes_to_device_per_packet > 0 || nf.device.bytes_to_host_per_packet > 0) {
      result.nf_bytes.push_back({nf.name, nf.device.bytes_to_device_per_packet, nf.device.bytes_to_host_per_packet});
    }
  }
}

}  // namespace

std::string why_void(RunResult const& run) {
  return std::abs(run.taken - 1) <= kMaxOff ? std::string()
                                            : fmt::format("took {:.1f} % of what was offered", 100 * run.taken);
}

double score_of(RunResult const& run) {
  if (run.offered_per_s == 0 || !why_void(run).empty()) {
    return run.packets_per_s;
  }
  constexpr double kAboveAnySpeed = 1e20;  // over nanoseconds: a median of 100 s still scores 1e9
  return kAboveAnySpeed / static_cast<double>(std::max<std::uint64_t>(run.latency.percentile(50), 1));
}

Status check_report(runtime::Report const& report) {
  if (report.device.cpu_instead_of_gpu) {
    return absl::UnavailableError(concat("there is no device: ", report.device.note));
  }
  if (!report.accounted()) {
    return absl::DataLossError(
        concat(report.rx.seen, " packets in, but ", report.tx.sent, " out and ", report.dropped(), " dropped"));
  }
  for (runtime::NfReport const& nf : report.nfs) {
    if (!nf.device.error.empty() || nf.device.kernel_faults > 0) {
      return absl::DataLossError(concat("NF ", nf.name, ": ", nf.device.error,
                                        nf.device.kernel_faults > 0 ? " its kernel read or wrote out of bounds" : ""));
    }
  }
  return absl::OkStatus();
}

RunResult run_for(RunSpec const& spec, Workplace const& workplace) {
  RunResult result;
  result.offered_per_s = static_cast<double>(spec.text.packets_per_s);
  const auto stages = static_cast<std::uint32_t>(spec.chain->nfs.size() + 2);
  result.workers = std::clamp(usable_cores() / spec.replicas, 1U, stages);
  std::vector<Copy> copies;
  for (std::uint32_t replica = 0; replica < spec.replicas; ++replica) {
    Result<Copy> copy = make_copy(spec, replica, result.workers, workplace);
    if (!copy.ok()) {
      result.status = copy.status();
      return result;
    }
    copies.push_back(*std::move(copy));
  }
  for (Copy& copy : copies) {
    copy.outcome = std::async(std::launch::async, [chain = copy.chain.get()] { return chain->run(); });
  }
  wait_for_first_packets(copies);
  std::this_thread::sleep_for(std::chrono::duration<double>(spec.seconds * kWarmUpShare));
  const Moment from = now(copies);
  std::this_thread::sleep_for(std::chrono::duration<double>(spec.seconds * (1 - kWarmUpShare)));
  count_window(from, now(copies), result);
  for (Copy const& copy : copies) {
    copy.chain->stop();
  }
  for (Copy& copy : copies) {
    result.status.Update(copy.outcome.get());
  }
  for (Copy const& copy : copies) {
    const runtime::Report report = copy.chain->report();
    result.status.Update(check_report(report));
    result.abandoned = result.abandoned || copy.chain->abandoned_device();
    add(report, result);
  }
  const runtime::Report first = copies.front().chain->report();
  result.parts = first.sharing.parts;
  result.part_changes = first.sharing.changes;
  for (Copy const& copy : copies) {
    const std::optional<plan::Plan> plan = copy.chain->plan();
    const double planned_ns = plan ? plan->cost_ns : 0;
    result.planned_ns = &copy == &copies.front() ? planned_ns : result.planned_ns;
    if (planned_ns != result.planned_ns) {
      result.status.Update(absl::InternalError(concat("copies of the chain have different plans: their costs are ",
                                                      result.planned_ns, " and ", planned_ns, " ns a packet")));
    }
  }
  const std::vector<runtime::StageTrace> traces = copies.front().chain->traces();
  result.timeline = timeline_rows(traces);
  result.busy = busy_shares(traces);
  result.launches = launch_times(traces);
  result.samples = copies.front().sink->samples();
  return result;
}

}  // namespace catena::bench
