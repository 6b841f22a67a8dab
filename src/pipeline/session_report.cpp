// SPDX-License-Identifier: Apache-2.0
// Reports of a session, before and after its run.
#include "chain/instances.hpp"
#include "pipeline/counts.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace catena::runtime {
namespace {

std::string describe(device::DeviceInfo const& info) { return concat(info.name, " (", info.backend, ")"); }

/// `entries`: an NF, in each shard.
std::vector<NfProcessReport> processes_of(std::span<NfEntry* const> entries) {
  std::vector<NfProcessReport> processes;
  for (std::size_t shard = 0; shard < entries.size(); ++shard) {
    if (nf_process::IsolatedNf const* isolated = entries[shard]->isolated; isolated != nullptr) {
      processes.push_back({static_cast<std::uint32_t>(shard), isolated->process().pid()});
    }
  }
  return processes;
}

SharingReport sharing_report(GpuSharing const& sharing) {
  SharingReport report{
      concat(sharing.describe(), sharing.is_over() ? ", until the device was lost" : ""), sharing.changes(), {}};
  for (GpuSharing::Allocation const& part :
       sharing.is_over() ? std::vector<GpuSharing::Allocation>() : sharing.allocations()) {
    report.parts.push_back({part.nf, part.units, part.launch_packets, sharing.describe(part), part.is_taken});
  }
  return report;
}

}  // namespace

std::optional<plan::Plan> Session::plan() const {
  return devices_.side_of(0) == nullptr ? std::nullopt : std::optional(devices_.side_of(0)->plan());
}

/// Of the processes of kept NFs, and of flow control that the chains share.
EarlierCounts::IsShared Session::shared_series(Session const& before) const {
  std::set<std::string> processes;
  pipeline_.for_each_entry([&processes](std::size_t /*shard*/, NfEntry const& entry) {
    if (entry.is_kept && entry.isolated != nullptr) {
      processes.insert(entry.config.name);
    }
  });
  return [processes = std::move(processes), has_pauses = flow_->has_pauses_of(*before.flow_),
          has_signals = flow_->has_signals_of(*before.flow_)](metrics::Sample const& sample) {
    if (sample.name == counts::kProcessRestarts || sample.name == counts::kProcessRefusals) {
      return std::ranges::any_of(sample.labels, [&processes](metrics::Label const& label) {
        return label.name == "nf" && processes.contains(label.value);
      });
    }
    return (has_pauses && (sample.name == counts::kRxPauses || sample.name == counts::kRxPausedTime)) ||
           (has_signals && sample.name == counts::kFlowSignals);
  };
}

std::vector<std::string> Session::describe_changes(bool with_reports) const {
  Replan const& replan = takeover_->replan();
  std::vector<std::string> lines;
  for (std::size_t nf = 0; nf < config_.nfs.size(); ++nf) {
    if (!replan.is_unchanged(nf)) {
      const std::vector<std::string> report =
          with_reports ? pipeline_.first_of(nf).instance->nf().start_report() : std::vector<std::string>();
      lines.push_back(
          concat(config_.nfs[nf].name, report.empty() ? "" : ": ", fmt::format("{}", fmt::join(report, "; "))));
    }
  }
  for (std::string const& name : replan.removed()) {
    lines.push_back(concat(name, ": removed"));
  }
  if (replan.has_moved_nfs()) {
    lines.emplace_back("the order of the NFs");
  }
  if (const std::vector<std::string> keys = replan.changed_keys(); !keys.empty()) {
    lines.push_back(fmt::format("{} of 'spec'", fmt::join(keys, ", ")));
  }
  return lines;
}

std::vector<std::string> Session::start_report() const {
  std::vector<std::string> lines;
  for (std::string const& warning : chain::flow_warnings(config_)) {
    lines.push_back(concat(nf::kWarning, warning));
  }
  for (std::string const& nf : restarted_nfs()) {
    lines.push_back(concat(nf::kWarning, "NF '", nf, "' restarts without its previous state"));
  }
  for (std::size_t nf = 0; nf < config_.nfs.size(); ++nf) {
    NfEntry const& entry = pipeline_.first_of(nf);
    for (std::string const& warning :
         entry.is_kept ? std::vector<std::string>() : chain::warnings_of(*entry.instance)) {
      lines.push_back(concat(nf::kWarning, warning));
    }
  }
  for (auto const& device : devices_.opened()) {
    lines.push_back(concat("device   ", describe(device->info())));
  }
  std::string const& why_not = devices_.why_not();
  chain::Placement const* const placement = placement_.placement();
  if (DeviceSide const* const first = devices_.side_of(0); first != nullptr) {
    if (!why_not.empty()) {
      lines.push_back(concat("         not used: ", why_not));
    }
    lines.push_back(concat("sync     ", plan::to_string(first->plan().mode), ", by ", first->costs_from()));
    if (placement_.has_chosen_units()) {
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
  } else if (placement != nullptr && placement->device.empty()) {
    lines.push_back(concat("device   not used: NFs placed `on: auto` are on the CPU", indented(why_not, 9)));
  } else {
    lines.push_back(concat("device   not used (", why_not, ")"));
  }
  lines.push_back(concat("rx       ", ends_.sources().front()->describe()));
  if (config_.shards > 1) {
    lines.push_back(concat("shards   ", chain::describe(pipeline_.path(), config_)));
  }
  if (placement != nullptr) {
    lines.push_back(concat("auto     ", fmt::format("{}", fmt::join(chain::describe(*placement), "\n         "))));
  }
  for (std::vector<NfEntry*> const& entries : pipeline_.entries()) {
    NfEntry const& entry = *entries.front();
    if (entry.is_kept) {  // it processes packets of the chain before, and cannot be asked
      lines.push_back(concat("nf       ", entry.config.name, " as before"));
      continue;
    }
    std::string line = fmt::format("nf       {} ({}) on {}", entry.config.name, entry.config.type, placement_of(entry));
    for (std::string const& detail : entry.instance->nf().start_report()) {
      line += detail.starts_with(nf::kWarning) ? std::string() : concat("\n           ", detail);
    }
    for (std::size_t shard = 1; shard < entries.size(); ++shard) {
      if (nf_process::IsolatedNf const* isolated = entries[shard]->isolated; isolated != nullptr) {
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
  report.has_flow = !config_.flow.position.empty();
  report.seconds = telemetry_.seconds();
  describe_device(report.device);
  if (GpuSharing const* const sharing = devices_.sharing(); sharing != nullptr) {
    report.sharing = sharing_report(*sharing);
  }
  report.rx.port = config_.rx.kind->describe(config_.rx);
  report.tx.port = config_.tx.kind->describe(config_.tx);
  double offered_per_second = 0;
  for (auto const& source : ends_.sources()) {
    offered_per_second += source->offered_per_second();
  }
  report.rx.offered_per_second = static_cast<std::uint64_t>(std::llround(offered_per_second));
  for (std::size_t nf = 0; nf < config_.nfs.size(); ++nf) {
    report.nfs.push_back(report_of(nf, counts));
  }
  if (NfReport removed = runtime::report_of(EarlierCounts::kRemoved, counts);
      removed.packets.in + removed.queue.drops > 0) {
    removed.type = "several";
    removed.placement = "removed";
    removed.packets.drop_help.resize(removed.packets.drops.size());
    report.nfs.push_back(std::move(removed));
  }
  report.classifiers = classifier_reports(counts);
  report.work.workers = placement_.layout().workers;
  report.work.shards = shard_reports(counts);
  return report;
}

/// Adds what is not among the counts.
void Session::describe_device(DeviceReport& report) const {
  report.name = "none";
  report.note = devices_.why_not();
  DeviceSide const* const side = devices_.side_of(0);
  report.cpu_instead_of_gpu = side == nullptr && wants_device();
  if (side != nullptr) {
    std::vector<std::string> names;
    for (auto const& device : devices_.opened()) {
      names.push_back(describe(device->info()));
    }
    report.name = fmt::format("{}", fmt::join(names, " + "));
    report.sync = plan::to_string(side->plan().mode);
    report.costs_from = side->costs_from();
  }
}

std::vector<ClassifierReport> Session::classifier_reports(metrics::Snapshot const& counts) const {
  std::vector<ClassifierReport> reports;
  for (CountedBranch const& branch : pipeline_.classifiers()) {
    if (branch.shard == 0) {
      reports.push_back(report_of_classifier(branch.stage->from(), counts));
    }
  }
  for (auto const& [from, packets] : counts.sums(counts::kClassifierDrops, "from")) {
    if (std::ranges::find(reports, from, &ClassifierReport::from) == reports.end()) {
      reports.push_back(report_of_classifier(from, counts));  // of an earlier chain
    }
  }
  return reports;
}

std::vector<ShardReport> Session::shard_reports(metrics::Snapshot const& counts) const {
  constexpr double kNsPerSecond = 1e9;
  const auto segments = pipeline_.segments();
  const auto divided = std::ranges::find_if(segments, [](Segment const& segment) { return segment.part.shards > 1; });
  std::vector<ShardReport> reports;
  for (std::size_t i = 0; divided != segments.end() && i < config_.shards; ++i) {
    const metrics::Label shard{"shard", std::to_string(i)};
    std::string const& first = divided->shards.front().nfs.front().config.name;
    reports.push_back({counts.sum(counts::kIn, {shard, {"nf", first}}),
                       static_cast<double>(counts.sum(counts::kBusy, {shard})) / kNsPerSecond});
  }
  return reports;
}

std::string_view Session::placement_of(NfEntry const& entry) {
  if (entry.config.isolation == chain::Isolation::kProcess) {
    return "process";
  }
  return entry.device_stage != nullptr ? "gpu" : "cpu";
}

NfReport Session::report_of(std::size_t nf, metrics::Snapshot const& counts) const {
  NfEntry const& first = pipeline_.first_of(nf);
  NfReport row = runtime::report_of(first.config.name, counts);
  row.type = first.config.type;
  for (io::NamedCount const& drop : row.packets.drops) {
    row.packets.drop_help.emplace_back(first.instance->reason_help(drop.name));
  }
  row.placement = placement_of(first);
  for (NfEntry const* entry : pipeline_.entries()[nf]) {
    if (entry->device_stage != nullptr && !entry->device_stage->device_status().ok()) {
      row.placement = "gpu -> cpu";
      row.device.error = entry->device_stage->device_status().ToString();
    }
  }
  if (!end_.has_ended()) {
    row.isolation.processes = processes_of(pipeline_.entries()[nf]);
  }
  if (end_.has_ended() && !end_.is_migrated(*first.instance)) {
    for (NfEntry const* entry : pipeline_.entries()[nf]) {
      const std::vector<std::string> lines = entry->instance->nf().end_report();
      row.lines.insert(row.lines.end(), lines.begin(), lines.end());
    }
    if (nf_process::IsolatedNf const* isolated = first.isolated; isolated != nullptr) {
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
