// SPDX-License-Identifier: Apache-2.0
// How a session goes on for another one, whose ends and packet memory it takes over. What a session can change in
// itself: session_change.cpp.
#include "chain/change.hpp"
#include "runtime/isolation.hpp"
#include "runtime/session.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/persistent.hpp>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace catena::runtime {
namespace {

/// How long nothing is to be done before it is looked again.
constexpr std::chrono::microseconds kRest{20};
/// Of the slots, what those that are inside the session before may still need: for copies, fragments, the port.
constexpr std::uint32_t kPartForThoseBefore = 4;

}  // namespace

Status Session::can_be_followed_by(chain::ChainConfig next) {
  CATENA_RETURN_IF_ERROR(chain::apply(options_, next));
  return chain::has_same_ends(config_, next);
}

/// With its change_mutex_. The rest shows when this one is made.
Status Session::check_before() const {
  Session const& before = *before_->session;
  CATENA_RETURN_IF_ERROR(chain::has_same_ends(before.config_, config_));
  if (before.is_traced_ || is_traced_) {
    return absl::FailedPreconditionError("its launches are traced, and a trace is of one chain");
  }
  if (before.waiting_successors() > 0) {
    return absl::FailedPreconditionError("no packets have come since its last change");
  }
  return absl::OkStatus();
}

/// NFs of which there is one with the same name and type in the session before, and which keep what packets leave in
/// them. FailedPrecondition where one of them cannot go on for the other.
Status Session::find_heirs() {
  std::vector<std::string> writers;  // that are not heirs
  for (std::size_t nf = 0; nf < entries_.size(); ++nf) {
    Entry const& mine = first_of(nf);
    const auto with_my_name = [&mine](std::vector<Entry*> const& entries) {
      return entries.front()->config.name == mine.config.name;
    };
    if (mine.instance->descriptor().name_outputs != nullptr) {
      writers.push_back(mine.config.name);
    }
    auto const& all = before_->session->entries_;
    const auto found = std::ranges::find_if(all, with_my_name);
    if (found == all.end() || mine.instance->descriptor().sharding == nf::Sharding::kPacket) {
      continue;
    }
    Entry const& theirs = *found->front();
    const bool is_isolated = as_isolated(*mine.instance) != nullptr || as_isolated(*theirs.instance) != nullptr;
    if (is_isolated || theirs.config.type != mine.config.type || found->size() != entries_[nf].size() ||
        (found->size() > 1 && mine.instance->descriptor().sharding == nf::Sharding::kOwn)) {
      begins_anew_.push_back(mine.config.name);
      continue;
    }
    for (std::size_t shard = 0; shard < found->size(); ++shard) {
      nf::Instance& next = *entries_[nf][shard]->instance;
      nf::Instance& now = *(*found)[shard]->instance;
      if (auto* persistent = dynamic_cast<nf::Persistent*>(&next.nf()); persistent != nullptr) {
        persistent->join(run_context());
      }
      if (const Status status = next.nf().prepare_to_adopt(now.nf()); !status.ok()) {
        return absl::FailedPreconditionError(
            concat(mine.config.position, ": NF '", mine.config.name, "': ", std::string(status.message())));
      }
      heirs_.push_back({&next, &now});
    }
    std::erase(writers, mine.config.name);
  }
  const bool wrote_before = std::ranges::any_of(before_->session->entries_, [](std::vector<Entry*> const& entries) {
    return entries.front()->instance->descriptor().name_outputs != nullptr;
  });
  if (wrote_before && !writers.empty()) {
    return absl::FailedPreconditionError(
        concat("NF '", writers.front(), "' writes files, as NFs do that it does not go on for"));
  }
  return absl::OkStatus();
}

/// Ends the session as stop() does, but for its ends. `adopted`: NFs that are gone on for. False: it ends or has ended
/// by itself.
bool Session::pass_on(std::vector<nf::Instance const*> adopted) {
  if (stop_ || has_ended_) {
    return false;
  }
  adopted_ = std::move(adopted);
  for (auto const& source : sources_) {
    source->pass_on();
  }
  for (auto const& sink : sinks_) {
    sink->pass_on();
  }
  is_passed_on_.store(true, std::memory_order_release);
  stop();
  return true;
}

/// Waits for the end of the session before. What arrives meanwhile is taken at once, so that no port has to keep it,
/// and waits in front of the first NF: none of it may overtake what is still inside there, nor find an NF that does not
/// know what came before.
void Session::take_over() {
  Session& before = *before_->session;
  take_ends_over(before);
  while (!before.has_ended_) {
    bool worked = false;
    for (std::size_t i = 0; i < rx_.size(); ++i) {
      const bool has_room = pool_of(i).free_slots() > pool_of(i).slots() / kPartForThoseBefore;
      if (has_room && !stop_ && !sources_[i]->finished()) {  // its end is for the run
        const Result<Progress> progress = rx_[i]->poll();
        worked = worked || (progress.ok() && *progress == Progress::kWorked);
      }
    }
    if (!worked) {
      std::this_thread::sleep_for(kRest);
    }
  }
  for (std::size_t i = 0; i < sinks_.size(); ++i) {
    sinks_[i]->take_over(*before.sinks_[i]);
  }
  if (Recorder* const recorder = outputs_->recorder(); recorder != nullptr) {
    std::vector<nf::Instance const*> nfs;
    for (nf::Instance* instance : first_instances()) {
      nfs.push_back(instance);
    }
    recorder->name_by(std::move(nfs));
  }
  for (Heir const& heir : heirs_) {
    heir.instance->nf().adopt(heir.before->nf());
  }
  heirs_.clear();
  before_.reset();
}

/// What comes after the last packet that rx of the session before takes.
void Session::take_ends_over(Session& before) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    while (!before.sources_[i]->has_ended()) {
      std::this_thread::sleep_for(kRest);
    }
    sources_[i]->take_over(*before.sources_[i]);
    rx_[i]->begin_at(before.rx_[i]->next_index());
  }
}

}  // namespace catena::runtime
