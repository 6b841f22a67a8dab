// SPDX-License-Identifier: Apache-2.0
// How a session goes on for another one, whose ends and packet memory it takes over. What a session can change in
// itself: session_change.cpp.
#include "chain/change.hpp"
#include "chain/instances.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>
#include <catena/nf/portable.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace catena::runtime {
namespace {

/// How long nothing is to be done before it is looked again.
constexpr std::chrono::microseconds kRest{20};
/// Of the slots, a part that the session before may still need for fragments, and a port for what arrives.
constexpr std::uint32_t kPartForThoseBefore = 4;
/// More than rx takes in one poll.
constexpr std::uint32_t kPacketsOfPoll = 8 * kPacketsAtOnce;
/// How long a change waits for a session that is about to take over.
constexpr std::chrono::seconds kSettlingTime{2};

}  // namespace

Status Session::can_be_followed_by(chain::ChainConfig next) {
  CATENA_RETURN_IF_ERROR(chain::apply(options_, next));
  const std::lock_guard lock(change_mutex_);
  return chain::has_same_ends(config_, next);
}

/// With change_mutex_, where this session has all that the one before had. Unavailable: not yet.
Result<std::unique_lock<std::mutex>> Session::lock_settled() {
  std::unique_lock lock(change_mutex_);
  for (const auto end = std::chrono::steady_clock::now() + kSettlingTime; before_;) {
    lock.unlock();
    if (std::chrono::steady_clock::now() >= end) {
      return absl::UnavailableError("the chain before this one has not ended yet: try again");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  return lock;
}

/// Whether an NF says which shard a packet goes to.
bool Session::is_divided_by_nf() const {
  return std::ranges::any_of(segments_, [](Segment const& segment) { return segment.part.divided_by.has_value(); });
}

/// With its change_mutex_. The rest shows when this one is made.
Status Session::check_before() const {
  Session const& before = *before_->session;
  CATENA_RETURN_IF_ERROR(chain::has_same_ends(before.config_, config_));
  if (before.telemetry_.is_traced() || telemetry_.is_traced()) {
    return absl::FailedPreconditionError("its launches are traced, and a trace is of one chain");
  }
  if (before.waiting_replacements() > 0) {
    return absl::FailedPreconditionError("no packets have come since its last change");
  }
  return absl::OkStatus();
}

/// Lets an NF in a process go on with the files of the one of its name and type in the session before. False: it has
/// others, or there is none.
bool Session::reopen_files_of_previous(std::size_t nf) {
  Session const& before = *before_->session;
  Entry const& mine = first_of(nf);
  const auto found = std::ranges::find_if(before.entries_, [&mine](std::vector<Entry*> const& entries) {
    return entries.front()->config.name == mine.config.name;
  });
  if (found == before.entries_.end() || found->size() != entries_[nf].size() ||
      found->front()->config.type != mine.config.type) {
    return false;
  }
  bool all = true;
  for (std::size_t shard = 0; shard < found->size(); ++shard) {
    auto const* const next = as_isolated(*entries_[nf][shard]->instance);
    auto const* const now = as_isolated(*(*found)[shard]->instance);
    all = all && next != nullptr && now != nullptr &&
          next->process().reopen_files(next->number(), now->process(), now->number());
  }
  return all;
}

/// The NF that says which shard gets a packet for NF number `nf`; null: packets are divided by flow, or not at all.
Session::Entry const* Session::divider_of(std::size_t nf) const {
  auto const& segment = *std::ranges::find_if(segments_, [nf](Segment const& each) { return nf < each.part.end; });
  return segment.part.shards > 1 && segment.part.divided_by ? &first_of(*segment.part.divided_by) : nullptr;
}

/// Whether packets for NF number `nf` go to the same shards as those for number `theirs` of the session before. An NF
/// that divides them, and replaces one that did, divides them alike: see Nf::prepare_migration().
bool Session::is_divided_as_before(std::size_t nf, std::size_t theirs) const {
  Entry const* const next = divider_of(nf);
  Entry const* const now = before_->session->divider_of(theirs);
  if (next == nullptr || now == nullptr) {
    return next == now;
  }
  return next->config.name == now->config.name && next->config.type == now->config.type &&
         as_isolated(*next->instance) == nullptr && as_isolated(*now->instance) == nullptr;
}

/// NFs of which there is one with the same name and type in the session before, and which keep what packets leave in
/// them. FailedPrecondition where one of them cannot go on for the other.
Status Session::find_next_nfs(bool new_keys) {
  Session const& before = *before_->session;
  std::set<std::string> written;  // by the session before
  for (std::vector<Entry*> const& entries : before.entries_) {
    for (nf::NamedFile const& file : entries.front()->files) {
      if (file.is_written) {
        written.insert(file.path);
      }
    }
  }
  std::vector<std::string> writers;  // that replace no NF of the session before
  for (std::size_t nf = 0; nf < entries_.size(); ++nf) {
    Entry const& mine = first_of(nf);
    if (auto const* const isolated = as_isolated(*mine.instance); isolated != nullptr && isolated->number() == 0) {
      find_next_processes(nf);
    }
    const auto with_my_name = [&mine](std::vector<Entry*> const& entries) {
      return entries.front()->config.name == mine.config.name;
    };
    const bool writes_there = std::ranges::any_of(
        mine.files, [&written](nf::NamedFile const& file) { return file.is_written && written.contains(file.path); });
    if (writes_there && !reopen_files_of_previous(nf)) {
      writers.push_back(mine.config.name);
    }
    const auto found = std::ranges::find_if(before.entries_, with_my_name);
    if (found == before.entries_.end() || mine.instance->descriptor().sharding == nf::Sharding::kPacket) {
      continue;
    }
    Entry const& theirs = *found->front();
    const bool is_isolated = as_isolated(*mine.instance) != nullptr || as_isolated(*theirs.instance) != nullptr;
    if (is_isolated && continues_as_process(nf)) {
      continue;
    }
    if (is_isolated || theirs.config.type != mine.config.type || found->size() != entries_[nf].size() ||
        !is_divided_as_before(nf, static_cast<std::size_t>(found - before.entries_.begin()))) {
      restarted_nfs_.push_back(mine.config.name);
      continue;
    }
    for (std::size_t shard = 0; shard < found->size(); ++shard) {
      nf::Instance& next = *entries_[nf][shard]->instance;
      nf::Instance& now = *(*found)[shard]->instance;
      if (auto* persistent = dynamic_cast<nf::Persistent*>(&next.nf()); persistent != nullptr) {
        persistent->join(run_context(new_keys));
      }
      if (const Status status = as_not_beside(next.nf().prepare_migration(now.nf())); !status.ok()) {
        return {status.code(),
                concat(mine.config.position, ": NF '", mine.config.name, "': ", std::string(status.message()))};
      }
      next_nfs_.push_back({&next, &now});
    }
    std::erase(writers, mine.config.name);
  }
  if (!writers.empty()) {
    return absl::FailedPreconditionError(
        concat("NF '", writers.front(), "' writes files of another running NF, which it does not replace"));
  }
  return absl::OkStatus();
}

/// The processes of the NF at `first` and of those with it, one for each shard, go on for those of the session before
/// where these have the same NFs, all of which can transfer their state.
void Session::find_next_processes(std::size_t first) {
  Session const& before = *before_->session;
  const auto with_name = [&](std::string const& name) {
    return std::ranges::find_if(before.entries_,
                                [&name](auto const& entries) { return entries.front()->config.name == name; });
  };
  const auto found = with_name(first_of(first).config.name);
  auto const* const mine = as_isolated(*first_of(first).instance);
  if (mine == nullptr || found == before.entries_.end() || found->size() != entries_[first].size()) {
    return;
  }
  const auto theirs = static_cast<std::size_t>(found - before.entries_.begin());
  const std::size_t nfs = chain::group_of(config_, first).end - first;
  if (as_isolated(*before.first_of(theirs).instance) == nullptr ||
      chain::group_of(before.config_, theirs).first != theirs ||
      chain::group_of(before.config_, theirs).end - theirs != nfs) {
    return;
  }
  std::vector<bool> has_state;
  for (std::size_t i = 0; i < nfs; ++i) {
    Entry const& next = first_of(first + i);
    Entry const& now = before.first_of(theirs + i);
    if (next.config.name != now.config.name || next.config.type != now.config.type) {
      return;
    }
    has_state.push_back(as_isolated(*now.instance)->has_state());
  }
  if (std::ranges::find(has_state, true) == has_state.end() ||
      (found->size() > 1 && (is_divided_by_nf() || before.is_divided_by_nf()))) {
    return;
  }
  std::vector<NextProcess> next_nfs;
  for (std::size_t shard = 0; shard < found->size(); ++shard) {
    nf_process::NfProcess& now = as_isolated(*(*found)[shard]->instance)->process();
    if (!now.can_transfer_state(has_state)) {
      return;
    }
    next_nfs.push_back({&as_isolated(*entries_[first][shard]->instance)->process(), &now, first});
  }
  for (NextProcess const& next : next_nfs) {
    next.process->start_replacement();
    next_processes_.push_back(next);
  }
}

/// What the NFs of its process had goes along.
bool Session::continues_as_process(std::size_t nf) const {
  auto const* const isolated = as_isolated(*first_of(nf).instance);
  return isolated != nullptr &&
         std::ranges::find(next_processes_, &isolated->process(), &NextProcess::process) != next_processes_.end();
}

void Session::release_nfs() {
  for_each_entry([this](std::size_t /*shard*/, Entry const& entry) {
    if (dynamic_cast<nf::Portable const*>(&entry.instance->nf()) != nullptr) {
      migrated_.push_back(entry.instance.get());
    }
  });
  End open = End::kOpen;
  end_.compare_exchange_strong(open, End::kPassedOn);
}

/// Ends the session as stop() does, but for its ends. `migrated`: NFs whose state others take; `processes`: those of
/// which others go on for the NFs. False: it ends or has ended by itself.
bool Session::transfer_ports(std::vector<nf::Instance const*> migrated,
                             std::vector<nf_process::NfProcess*> const& processes) {
  if (stop_) {
    return false;
  }
  migrated_ = std::move(migrated);
  End open = End::kOpen;
  if (!ends_.pass_on_sources() || !end_.compare_exchange_strong(open, End::kPassedOn)) {
    return false;
  }
  ends_.pass_on_sinks();
  for (nf_process::NfProcess* const process : processes) {
    process->transfer_state();
  }
  stop();
  return true;
}

/// Slots of pool number `pool` that are not for packets which wait, so that the session before can end.
std::uint32_t Session::slots_for_previous(std::size_t pool) const {
  Session const& before = *before_->session;
  const std::uint32_t of_copies = before.ends_.reserve_of(pool).slots_wanted_from(0);
  memory::PacketPool const& own = ends_.pool_of(pool);
  return std::max(own.slots() / kPartForThoseBefore, 2 * of_copies) + kPacketsOfPoll + own.unit_packets();
}

/// Waits for the end of the session before, and until processes have what those before left. What arrives meanwhile is
/// taken at once, so that no port has to keep it, and waits in front of the first NF: none of it may overtake what is
/// still inside there, nor find an NF that does not know what came before.
Status Session::take_over() {
  Session& before = *before_->session;
  take_ports(before);
  bool waits = false;
  bool has_left = false;
  const auto is_done = [&] {
    if (!before.has_ended_) {
      return false;
    }
    if (!std::exchange(has_left, true)) {
      std::ranges::for_each(next_processes_, [](NextProcess const& next) { next.process->start_after(*next.before); });
    }
    return std::ranges::all_of(next_processes_, [](NextProcess const& next) { return next.process->has_started(); });
  };
  while (!is_done()) {
    bool worked = false;
    bool is_full = false;
    for (std::size_t i = 0; i < rx_.size(); ++i) {
      const bool has_room = ends_.pool_of(i).free_slots() > slots_for_previous(i);
      if (has_room && !stop_ && !ends_.sources()[i]->finished()) {  // its end is for the run
        const Result<Progress> progress = rx_[i]->poll();
        worked = worked || (progress.ok() && *progress == Progress::kWorked);
      }
      is_full = is_full || !has_room;
    }
    if (is_full != waits) {
      waits = is_full;
      waits ? flow_->pauses().begin() : flow_->pauses().end();
    }
    if (!worked) {
      std::this_thread::sleep_for(kRest);
    }
  }
  if (waits) {
    flow_->pauses().end();
  }
  for (std::size_t i = 0; i < rx_.size(); ++i) {
    ends_.sinks()[i]->take_over(*before.ends_.sinks()[i]);
    rx_[i]->begin_with_chain();
  }
  const std::lock_guard lock(change_mutex_);  // who comes next finds all that there is
  devices_.note_abandoned(before.devices_);
  if (!before.is_empty_) {
    // what is still inside has its slots for ever
    Status status(before.outcome_.code(),
                  concat("the replaced chain ended with an error: ", std::string(before.outcome_.message())));
    next_nfs_.clear();
    next_processes_.clear();
    before_.reset();
    return status;
  }
  if (Recorder* const recorder = ends_.outputs().recorder(); recorder != nullptr) {
    std::vector<nf::Instance const*> nfs;
    for (nf::Instance* instance : first_instances()) {
      nfs.push_back(instance);
    }
    recorder->name_by(std::move(nfs));
  }
  for (NextNf const& next : next_nfs_) {
    next.instance->nf().migrate_state(next.before->nf());
  }
  for (NextProcess const& next : next_processes_) {
    const std::vector<Status> said = next.process->start_status();
    for (std::size_t nf = 0; nf < said.size(); ++nf) {
      Entry const& entry = first_of(next.first + nf);
      if (!said[nf].ok() && as_isolated(*entry.instance)->has_state()) {
        spdlog::warn("{}: NF '{}' restarts without its previous state: {}", entry.config.position, entry.config.name,
                     std::string(said[nf].message()));
      }
    }
  }
  next_nfs_.clear();
  next_processes_.clear();
  before_.reset();
  return absl::OkStatus();
}

/// What comes after the last packet that rx of the session before takes.
void Session::take_ports(Session& before) {
  for (std::size_t i = 0; i < rx_.size(); ++i) {
    while (!before.ends_.sources()[i]->has_ended()) {
      std::this_thread::sleep_for(kRest);
    }
    ends_.sources()[i]->take_over(*before.ends_.sources()[i]);
    rx_[i]->start_receiving(before.rx_[i]->next_index());
  }
}

}  // namespace catena::runtime
