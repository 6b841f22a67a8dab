// SPDX-License-Identifier: Apache-2.0
#include "pipeline/takeover.hpp"

#include "pipeline/isolation.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/shard_map.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace catena::runtime {
namespace {

/// Time between two checks when there is nothing to do.
constexpr std::chrono::microseconds kRest{20};
/// Of the slots, a part that the running chain may still need for fragments, and a port for what arrives.
constexpr std::uint32_t kPartForPrevious = 4;
/// More than rx takes in one poll.
constexpr std::uint32_t kPacketsOfPoll = 8 * kPacketsAtOnce;

/// NF number `nf` of a chain in each shard.
std::vector<nf::Instance*> instances_of(Pipeline const& pipeline, std::size_t nf) {
  std::vector<nf::Instance*> instances;
  std::ranges::transform(pipeline.entries()[nf], std::back_inserter(instances),
                         [](NfEntry* entry) { return entry->instance.get(); });
  return instances;
}

}  // namespace

Takeover::Takeover(TakeoverParts before, TakeoverParts next, std::shared_ptr<void> hold)
    : before_(before), next_(next), hold_(std::move(hold)) {}

/// The NF called `name` in the running chain.
std::optional<std::size_t> Takeover::position_before(std::string_view name) const {
  const auto entries = before_.pipeline->entries();
  const auto found = std::ranges::find_if(
      entries, [name](std::vector<NfEntry*> const& of_nf) { return of_nf.front()->config.name == name; });
  return found == entries.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - entries.begin()));
}

Replan& Takeover::plan(RunOptions const& options, bool is_shared) {
  return replan_.emplace(*before_.config, *before_.pipeline, *next_.config, options, is_shared);
}

Status Takeover::pair(nf::RunContext const& context) {
  for (std::size_t nf = 0; nf < next_.pipeline->entries().size(); ++nf) {
    NfEntry const& mine = next_.pipeline->first_of(nf);
    if (mine.is_kept) {
      continue;
    }
    if (mine.isolated != nullptr && mine.isolated->number() == 0) {
      pair_processes(nf);
    }
    CATENA_RETURN_IF_ERROR(pair_nf(nf, context));
  }
  return absl::OkStatus();
}

/// Pairs an NF in this process with its namesake of the same type.
Status Takeover::pair_nf(std::size_t nf, nf::RunContext const& context) {
  NfEntry const& mine = next_.pipeline->first_of(nf);
  const std::optional<std::size_t> theirs = position_before(mine.config.name);
  if (!theirs || mine.instance->descriptor().sharding == nf::Sharding::kPacket) {
    return absl::OkStatus();
  }
  NfEntry const& now = before_.pipeline->first_of(*theirs);
  const bool is_isolated = mine.isolated != nullptr || now.isolated != nullptr;
  if (is_isolated && is_paired_process(mine)) {
    return absl::OkStatus();
  }
  if (is_isolated || now.config.type != mine.config.type) {
    restarted_.push_back(mine.config.name);
    return absl::OkStatus();
  }
  NfPair pair{instances_of(*next_.pipeline, nf), instances_of(*before_.pipeline, *theirs)};
  std::vector<nf::Nf const*> before;
  std::ranges::transform(pair.before, std::back_inserter(before), [](nf::Instance* each) { return &each->nf(); });
  for (nf::Instance* const next : pair.next) {
    if (auto* persistent = dynamic_cast<nf::Persistent*>(&next->nf()); persistent != nullptr) {
      persistent->join(context);
    }
    if (const Status status = as_not_beside(next->nf().prepare_migration(before)); !status.ok()) {
      return Status(status.code(),
                    concat(mine.config.position, ": NF '", mine.config.name, "': ", std::string(status.message())));
    }
  }
  nfs_.push_back(std::move(pair));
  return absl::OkStatus();
}

/// Pairs the processes of the NF at `first` and of the NFs with it, one for each shard, if the running chain has the
/// same NFs in a process, and all of them can transfer their state.
void Takeover::pair_processes(std::size_t first) {
  Pipeline const& running = *before_.pipeline;
  std::vector<NfEntry*> const& next = next_.pipeline->entries()[first];
  const std::optional<std::size_t> theirs = position_before(next.front()->config.name);
  if (!theirs || running.entries()[*theirs].size() != next.size()) {
    return;
  }
  std::vector<NfEntry*> const& before = running.entries()[*theirs];
  const std::size_t nfs = chain::group_of(*next_.config, first).end - first;
  const chain::NfGroup group = chain::group_of(*before_.config, *theirs);
  if (before.front()->isolated == nullptr || group.first != *theirs || group.end - *theirs != nfs) {
    return;
  }
  std::vector<bool> has_state;
  for (std::size_t i = 0; i < nfs; ++i) {
    NfEntry const& mine = next_.pipeline->first_of(first + i);
    NfEntry const& now = running.first_of(*theirs + i);
    if (mine.config.name != now.config.name || mine.config.type != now.config.type) {
      return;
    }
    has_state.push_back(now.isolated->has_state());
  }
  if (std::ranges::find(has_state, true) == has_state.end() ||
      (before.size() > 1 && (next_.pipeline->is_divided_by_nf() || running.is_divided_by_nf()))) {
    return;
  }
  std::vector<ProcessPair> pairs;
  for (std::size_t shard = 0; shard < next.size(); ++shard) {
    nf_process::NfProcess& now = before[shard]->isolated->process();
    if (!now.can_transfer_state(has_state)) {
      return;
    }
    pairs.push_back({&next[shard]->isolated->process(), &now, first});
  }
  for (ProcessPair const& each : pairs) {
    each.next->start_replacement();
    processes_.push_back(each);
  }
}

bool Takeover::is_paired_process(NfEntry const& next) const {
  return next.isolated != nullptr &&
         std::ranges::find(processes_, &next.isolated->process(), &ProcessPair::next) != processes_.end();
}

bool Takeover::is_paired(nf::Instance const& next) const {
  return std::ranges::any_of(
      nfs_, [&next](NfPair const& pair) { return std::ranges::find(pair.next, &next) != pair.next.end(); });
}

/// Calls `visit` with the stages of each process that goes on, in the running chain and in the next one.
template <typename Visit>
void Takeover::visit_kept_processes(Visit visit) const {
  for (std::size_t nf = 0; nf < next_.pipeline->entries().size(); ++nf) {
    std::vector<NfEntry*> const& next = next_.pipeline->entries()[nf];
    for (std::size_t shard = 0; shard < next.size() && next.front()->is_kept; ++shard) {
      if (next[shard]->process_stage != nullptr) {
        visit(*before_.pipeline->entries()[*replan_->kept(nf)][shard]->process_stage, *next[shard]->process_stage);
      }
    }
  }
}

Status Takeover::start() {
  std::vector<nf::Instance const*> migrated;
  for (NfPair const& each : nfs_) {
    migrated.insert(migrated.end(), each.before.begin(), each.before.end());
  }
  for (std::size_t nf = 0; nf < next_.pipeline->entries().size(); ++nf) {
    if (next_.pipeline->first_of(nf).is_kept) {
      std::ranges::copy(instances_of(*before_.pipeline, *replan_->kept(nf)), std::back_inserter(migrated));
    }
  }
  if (before_.end->is_stopped() || !before_.ends->pass_on_sources() || !before_.end->pass_on(std::move(migrated))) {
    return absl::FailedPreconditionError("the chain to be replaced has ended");
  }
  before_.ends->pass_on_sinks();
  for (ProcessPair const& each : processes_) {
    each.before->transfer_state();
  }
  visit_kept_processes([](ProcessStage& before, ProcessStage& /*next*/) { before.keep_process(); });
  before_.end->stop();
  return absl::OkStatus();
}

/// Packets after the last one of the running chain's rx.
void Takeover::take_ports() {
  for (std::size_t i = 0; i < next_.pipeline->rx().size(); ++i) {
    while (!before_.ends->sources()[i]->has_ended()) {
      std::this_thread::sleep_for(kRest);
    }
    next_.ends->sources()[i]->take_over(*before_.ends->sources()[i]);
    next_.pipeline->rx()[i]->start_receiving(before_.pipeline->rx()[i]->next_index());
  }
}

/// Slots of pool number `pool` that waiting packets may not have, so that the running chain can end.
std::uint32_t Takeover::slots_for_previous(std::size_t pool) const {
  const std::uint32_t of_copies = before_.ends->reserve_of(pool).slots_wanted_from(0);
  memory::PacketPool const& own = next_.ends->pool_of(pool);
  return std::max(own.slots() / kPartForPrevious, 2 * of_copies) + kPacketsOfPoll + own.unit_packets();
}

/// Receives from all ports at once. Returns whether packets came.
bool Takeover::poll_rx(bool& is_full) {
  bool worked = false;
  for (std::size_t i = 0; i < next_.pipeline->rx().size(); ++i) {
    const bool has_room = next_.ends->pool_of(i).free_slots() > slots_for_previous(i);
    if (has_room && !next_.end->is_stopped() && !next_.ends->sources()[i]->finished()) {  // its end is for the run
      const Result<Progress> progress = next_.pipeline->rx()[i]->poll();
      worked = worked || (progress.ok() && *progress == Progress::kWorked);
    }
    is_full = is_full || !has_room;
  }
  return worked;
}

/// Packets are received at once, so that no port has to keep them. None of them may overtake packets in the running
/// chain, nor reach an NF without the state of these.
void Takeover::wait(SourcePauses& pauses) {
  take_ports();
  bool waits = false;
  bool has_left = false;
  const auto is_done = [&] {
    if (!before_.end->has_ended()) {
      return false;
    }
    if (!std::exchange(has_left, true)) {
      std::ranges::for_each(processes_, [](ProcessPair const& each) { each.next->start_after(*each.before); });
    }
    return std::ranges::all_of(processes_, [](ProcessPair const& each) { return each.next->has_started(); });
  };
  while (!is_done()) {
    bool is_full = false;
    const bool worked = poll_rx(is_full);
    if (is_full != waits) {
      waits = is_full;
      waits ? pauses.begin() : pauses.end();
    }
    if (!worked) {
      std::this_thread::sleep_for(kRest);
    }
  }
  if (waits) {
    pauses.end();
  }
  for (std::size_t i = 0; i < next_.pipeline->rx().size(); ++i) {
    next_.ends->sinks()[i]->take_over(*before_.ends->sinks()[i]);
    next_.pipeline->rx()[i]->begin_with_chain();
  }
}

void Takeover::migrate_state() {
  if (Recorder* const recorder = next_.ends->outputs().recorder(); recorder != nullptr) {
    const std::vector<nf::Instance*> nfs = next_.pipeline->first_instances();
    recorder->name_by({nfs.begin(), nfs.end()});
  }
  for (NfPair const& each : nfs_) {
    std::vector<nf::Nf*> before;
    std::ranges::transform(each.before, std::back_inserter(before), [](nf::Instance* nf) { return &nf->nf(); });
    const ShardMap by_flow(static_cast<std::uint32_t>(each.next.size()), next_.pipeline->flow_key());
    for (std::uint32_t shard = 0; shard < each.next.size(); ++shard) {
      each.next[shard]->nf().migrate_state(
          before, [&by_flow, shard](packet::FlowKey const& flow) { return by_flow.shard_of(flow) == shard; });
    }
  }
  visit_kept_processes([](ProcessStage& before, ProcessStage& next) { next.continue_from(before); });
  for (ProcessPair const& each : processes_) {
    const std::vector<Status> said = each.next->start_status();
    for (std::size_t nf = 0; nf < said.size(); ++nf) {
      NfEntry const& entry = next_.pipeline->first_of(each.first + nf);
      if (!said[nf].ok() && entry.isolated->has_state()) {
        spdlog::warn("{}: NF '{}' restarts without its previous state: {}", entry.config.position, entry.config.name,
                     std::string(said[nf].message()));
      }
    }
  }
}

Status Takeover::finish() {
  next_.devices->note_abandoned(*before_.devices);
  Status status;
  if (before_.end->is_empty()) {
    migrate_state();
  } else {
    Status const& outcome = before_.end->outcome();
    status = Status(outcome.code(), concat("the replaced chain ended with an error: ", std::string(outcome.message())));
  }
  nfs_.clear();
  processes_.clear();
  replan_.reset();
  return status;
}

}  // namespace catena::runtime
