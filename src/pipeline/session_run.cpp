// SPDX-License-Identifier: Apache-2.0
// A session at work, and what it says of itself. How it is made: session.cpp, session_processes.cpp.
#include "base/sched/workers.hpp"
#include "chain/instances.hpp"
#include "pipeline/counts.hpp"
#include "pipeline/device_monitor.hpp"
#include "pipeline/ends.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <future>
#include <iterator>
#include <system_error>
#include <utility>

namespace catena::runtime {
namespace {

constexpr double kNsPerSecond = 1e9;

std::string describe(device::DeviceInfo const& info) { return concat(info.name, " (", info.backend, ")"); }

}  // namespace

CountedParts Session::counted_parts() const {
  CountedParts parts{.rx = {rx_.begin(), rx_.end()},
                     .tx = {tx_.begin(), tx_.end()},
                     .branches = classifiers_,
                     .reshards = {reshard_stages_.begin(), reshard_stages_.end()},
                     .flow = flow_.get(),
                     .recovery = devices_.recovery()};
  for (auto const& pool : ends_.pools()) {
    parts.pools.push_back(pool.get());
  }
  std::ranges::transform(config_.nfs, std::back_inserter(parts.names), &chain::NfConfig::name);
  for_each_entry([&parts](std::size_t shard, Entry const& entry) {
    parts.nfs.push_back({shard, entry.instance.get(), entry.stage});
  });
  return parts;
}

Status Session::start() {
  if (is_started_.exchange(true)) {
    return absl::OkStatus();
  }
  if (before_) {
    std::vector<nf::Instance const*> migrated;
    std::ranges::transform(next_nfs_, std::back_inserter(migrated), &NextNf::before);
    std::vector<nf_process::NfProcess*> processes;
    std::ranges::transform(next_processes_, std::back_inserter(processes), &NextProcess::before);
    return before_->session->transfer_ports(std::move(migrated), processes)
               ? absl::OkStatus()
               : absl::FailedPreconditionError("the chain to be replaced has ended");
  }
  ends_.start();
  return absl::OkStatus();
}

Status Session::run() {
  telemetry_.begin();
  CATENA_RETURN_IF_ERROR(start());
  try {
    outcome_ = run_to_end();
  } catch (std::exception const& error) {  // out of memory, or of threads; who comes next must not wait for ever
    outcome_ = absl::ResourceExhaustedError(error.what());
    ends_.stop();
  }
  flow_->end(is_followed());
  telemetry_.end();
  has_ended_ = true;
  return outcome_;
}

Status Session::run_to_end() {
  Status status = before_ ? take_over() : absl::OkStatus();
  if (status.ok()) {
    const DeviceMonitor device_monitor(
        devices_.recovery(), devices_.sharing(), [this] { return traffic(); }, [this] { return admit_recovery(); });
    status = work();
  }
  End open = End::kOpen;
  const bool is_passed_on = !end_.compare_exchange_strong(open, End::kByItself);
  is_empty_ = status.ok();
  if (is_empty_) {
    finish_nfs(status, is_passed_on);
  }
  for_each_entry([](std::size_t /*shard*/, Entry const& entry) { entry.instance->board().end(entry.instance->nf()); });
  for (RxStage const* rx : rx_) {
    status.Update(rx->error());
  }
  ends_.stop();  // where another stage's error ended the run
  status.Update(ends_.finish(telemetry_.traces(), is_passed_on));
  return status;
}

/// Stages and workers of group number `group` of `groups`: whole shards. As sched::run_stages().
Status Session::work_on(std::size_t group, std::size_t groups) {
  const auto begin_of = [groups](std::size_t of, std::size_t all) { return of * all / groups; };
  const std::size_t stages_of_source = stages_.size() / ends_.sources().size();
  std::vector<sched::Stage*> stages;
  const std::size_t end = begin_of(group + 1, ends_.sources().size()) * stages_of_source;
  for (std::size_t i = begin_of(group, ends_.sources().size()) * stages_of_source; i < end; ++i) {
    stages.push_back(stages_[i].get());
  }
  const std::size_t first_worker = begin_of(group, workers_);
  const std::size_t workers = begin_of(group + 1, workers_) - first_worker;
  std::vector<std::uint32_t> cores;
  for (std::size_t i = 0; i < workers && !cores_.empty(); ++i) {
    cores.push_back(cores_[(first_worker + i) % cores_.size()]);
  }
  Status status = sched::run_stages(stages, static_cast<std::uint32_t>(workers), cores);
  if (!status.ok()) {
    stop();  // the other groups need not go on
  }
  return status;
}

/// Lets workers poll the stages to their end. Where shards have nothing in common each has workers of its own, so that
/// its packets stay near them.
Status Session::work() {
  const std::size_t groups = ends_.are_divided() ? std::min<std::size_t>(workers_, ends_.sources().size()) : 1;
  std::vector<std::future<Status>> others;
  Status status;
  for (std::size_t group = 1; group < groups && status.ok(); ++group) {
    try {
      others.push_back(std::async(std::launch::async, [this, group, groups] { return work_on(group, groups); }));
    } catch (std::system_error const& error) {
      stop();
      status = absl::ResourceExhaustedError(concat("no thread for the workers of a shard: ", error.what()));
    }
  }
  status.Update(work_on(0, groups));
  for (std::future<Status>& group : others) {
    status.Update(group.get());
  }
  return status;
}

/// All are asked: one that cannot write its state is no reason to lose those of others.
void Session::finish_nfs(Status& status, bool is_passed_on) {
  for_each_entry([&](std::size_t /*shard*/, Entry const& entry) {
    if (is_passed_on && std::ranges::find(migrated_, entry.instance.get()) != migrated_.end()) {
      return;
    }
    if (const Status end = entry.instance->nf().finish(); !end.ok()) {
      const std::string who = concat("NF '", entry.config.name, "': ");
      const std::string what(end.message());
      // the session in an NF's own process has said whose it is
      status.Update(Status(end.code(), what.starts_with(who) ? what : who + what));
    }
  });
}

std::optional<plan::Plan> Session::plan() const {
  return devices_.side_of(0) == nullptr ? std::nullopt : std::optional(devices_.side_of(0)->plan());
}

/// "2: fw and ids by flow, nat in one, rt by flow".
std::string Session::describe_shards() const {
  std::vector<std::string> parts;
  for (Segment const& segment : segments_) {
    std::vector<std::string> names;
    for (Entry const& entry : segment.shards.front().nfs) {
      names.push_back(entry.config.name);
    }
    const std::string how = segment.part.shards == 1 ? "in one"
                            : segment.part.divided_by
                                ? concat("as ", first_of(*segment.part.divided_by).config.name, " says")
                                : "by flow";
    parts.push_back(fmt::format("{} {}", fmt::join(names, " and "), how));
  }
  return fmt::format("{}: {}{}", config_.shards, fmt::join(parts, ", "),
                     ends_.are_divided() ? ", each with its part of rx and a tx of its own" : "");
}

std::vector<std::string> Session::start_report() const {
  std::vector<std::string> lines;
  for (std::string const& warning : chain::flow_warnings(config_)) {
    lines.push_back(concat(nf::kWarning, warning));
  }
  for (std::string const& nf : restarted_nfs_) {
    lines.push_back(concat(nf::kWarning, "NF '", nf, "' restarts without its previous state"));
  }
  for (nf::Instance const* nf : first_instances()) {
    for (std::string const& warning : chain::warnings_of(*nf)) {
      lines.push_back(concat(nf::kWarning, warning));
    }
  }
  for (auto const& device : devices_.opened()) {
    lines.push_back(concat("device   ", describe(device->info())));
  }
  std::string const& why_not = devices_.why_not();
  if (DeviceSide const* const first = devices_.side_of(0); first != nullptr) {
    if (!why_not.empty()) {
      lines.push_back(concat("         not used: ", why_not));
    }
    lines.push_back(concat("sync     ", plan::to_string(first->plan().mode), ", by ", first->costs_from()));
    if (has_chosen_units_) {
      lines.push_back(concat("         in units of ", config_.tuning.unit_packets, " packets"));
    }
    if (GpuSharing const* const sharing = devices_.sharing(); sharing != nullptr) {
      std::string line = concat("share    ", sharing->describe());
      for (GpuSharing::Allocation const& part : sharing->allocations()) {
        line += concat("\n         ", sharing->describe(part));
      }
      lines.push_back(std::move(line));
    }
    if (chain::is_mix_assumed(config_.rx)) {
      lines.emplace_back("         for a simple IMIX: the traffic of rx is unknown before the run");
    }
  } else if (wants_device()) {
    lines.push_back(concat("device   not used: NFs placed `on: gpu` run on the CPU", indented(why_not, 9)));
  } else if (placement_ && placement_->device.empty()) {
    lines.push_back(concat("device   not used: NFs placed `on: auto` are on the CPU", indented(why_not, 9)));
  } else {
    lines.push_back(concat("device   not used (", why_not, ")"));
  }
  lines.push_back(concat("rx       ", ends_.sources().front()->describe()));
  if (config_.shards > 1) {
    lines.push_back(concat("shards   ", describe_shards()));
  }
  if (placement_) {
    lines.push_back(concat("auto     ", fmt::format("{}", fmt::join(chain::describe(*placement_), "\n         "))));
  }
  for (std::vector<Entry*> const& entries : entries_) {
    Entry const& entry = *entries.front();
    std::string line = fmt::format("nf       {} ({}) on {}", entry.config.name, entry.config.type, placement_of(entry));
    for (std::string const& detail : entry.instance->nf().start_report()) {
      line += detail.starts_with(nf::kWarning) ? std::string() : concat("\n           ", detail);
    }
    for (std::size_t shard = 1; shard < entries.size(); ++shard) {
      if (auto const* isolated = as_isolated(*entries[shard]->instance); isolated != nullptr) {
        line += concat("\n           ", isolated->where(), " for shard ", shard);
      }
    }
    if (const std::string unseen = entry.instance->passes_unseen(); !unseen.empty()) {
      line += concat("\n           ", unseen);
    }
    lines.push_back(std::move(line));
  }
  lines.push_back(concat("tx       ", ends_.outputs().sink()->describe()));
  if (std::string const* path = ends_.outputs().trace_path(); path != nullptr) {
    lines.push_back(concat("trace    ", *path));
  }
  return lines;
}

Report Session::report() const {
  const metrics::Snapshot counts = telemetry_.counts();
  Report report = runtime::report_of(counts);
  report.chain = config_.name;
  report.device_note = devices_.why_not();
  report.device = "none";
  DeviceSide const* const side = devices_.side_of(0);
  report.cpu_instead_of_gpu = side == nullptr && wants_device();
  if (side != nullptr) {
    std::vector<std::string> names;
    for (auto const& device : devices_.opened()) {
      names.push_back(describe(device->info()));
    }
    report.device = fmt::format("{}", fmt::join(names, " + "));
    report.sync = plan::to_string(side->plan().mode);
    report.costs_from = side->costs_from();
  }
  report.has_flow = !config_.flow.position.empty();
  report.rx = config_.rx.kind->describe(config_.rx);
  report.tx = config_.tx.kind->describe(config_.tx);
  report.workers = workers_;
  report.seconds = telemetry_.seconds();
  if (GpuSharing const* const sharing = devices_.sharing(); sharing != nullptr) {
    report.sharing = concat(sharing->describe(), sharing->is_over() ? ", until the device was lost" : "");
    report.sharing_changes = sharing->changes();
    for (GpuSharing::Allocation const& part :
         sharing->is_over() ? std::vector<GpuSharing::Allocation>() : sharing->allocations()) {
      report.parts.push_back({part.nf, part.units, part.launch_packets, sharing->describe(part), part.is_taken});
    }
  }
  double offered_per_second = 0;
  for (auto const& source : ends_.sources()) {
    offered_per_second += source->offered_per_second();
  }
  report.offered_per_second = static_cast<std::uint64_t>(std::llround(offered_per_second));
  for (std::size_t nf = 0; nf < config_.nfs.size(); ++nf) {
    report.nfs.push_back(report_of(nf, counts));
  }
  for (CountedParts::Branch const& branch : classifiers_) {
    if (branch.shard == 0) {
      report.classifiers.push_back(report_of_classifier(branch.stage->from(), counts));
    }
  }
  const auto divided =
      std::find_if(segments_.begin(), segments_.end(), [](Segment const& segment) { return segment.part.shards > 1; });
  for (std::size_t i = 0; divided != segments_.end() && i < config_.shards; ++i) {
    const metrics::Label shard{"shard", std::to_string(i)};
    std::string const& first = divided->shards.front().nfs.front().config.name;
    report.shards.push_back({counts.sum(counts::kIn, {shard, {"nf", first}}),
                             static_cast<double>(counts.sum(counts::kBusy, {shard})) / kNsPerSecond});
  }
  return report;
}

std::string_view Session::placement_of(Entry const& entry) {
  if (entry.config.isolation == chain::Isolation::kProcess) {
    return "process";
  }
  return entry.device_stage != nullptr ? "gpu" : "cpu";
}

NfReport Session::report_of(std::size_t nf, metrics::Snapshot const& counts) const {
  Entry const& first = first_of(nf);
  NfReport row = runtime::report_of(first.config.name, counts);
  row.type = first.config.type;
  for (io::NamedCount const& drop : row.drops) {
    row.drop_help.emplace_back(first.instance->reason_help(drop.name));
  }
  row.placement = placement_of(first);
  for (Entry const* entry : entries_[nf]) {
    if (entry->device_stage != nullptr && !entry->device_stage->device_status().ok()) {
      row.placement = "gpu -> cpu";
      row.device_error = entry->device_stage->device_status().ToString();
    }
  }
  if (has_ended_) {
    for (Entry const* entry : entries_[nf]) {
      const std::vector<std::string> lines = entry->instance->nf().end_report();
      row.lines.insert(row.lines.end(), lines.begin(), lines.end());
    }
    if (auto* isolated = as_isolated(*first.instance); isolated != nullptr) {
      for (auto const& [reason, count] : isolated->process().refused_rules(isolated->number())) {
        row.refused_rules.push_back({reason, count});
      }
    }
    for (auto const& [reason, count] : nf::count_by_reason(chain::refusals_of(*first.instance))) {
      row.refused_rules.push_back({reason, count});
    }
  }
  return row;
}

}  // namespace catena::runtime
