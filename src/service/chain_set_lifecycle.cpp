// SPDX-License-Identifier: Apache-2.0
// The chains of a service when it starts and ends. What users do with them: chain_set.cpp.
#include "base/core/log_context.hpp"
#include "pipeline/session.hpp"
#include "service/chain_lock.hpp"
#include "service/chain_set.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace catena::service {

ChainSet::~ChainSet() {
  watch_pause_.end();
  if (watch_.joinable()) {
    watch_.join();
  }
  for (auto& [name, starting] : starting_) {
    starting.join();
  }
}

/// With the mutex. Precondition: `starting_` has no thread of this chain.
void ChainSet::work_in_thread(std::string const& name, ChainLock chain_lock, std::function<void()> work) {
  try {
    starting_[name] = std::thread([work = std::move(work), chain_lock = std::move(chain_lock)] { work(); });
  } catch (std::system_error const& error) {
    spdlog::error("{}: no thread for its start: {}", name, error.what());
    starting_.erase(name);
    if (Entry& entry = chains_[name]; entry.run == nullptr) {
      entry.error = concat("no thread for its start: ", error.what());  // so it is tried again
    }
  }
}

/// Threads are joined without the mutex: a run takes time to end.
void ChainSet::join_ended_starts() {
  std::vector<std::thread> ended;
  {
    const std::lock_guard lock(mutex_);
    const std::lock_guard chain_locks(chain_locks_mutex_);
    for (auto starting = starting_.begin(); starting != starting_.end();) {
      if (claimed_.contains(starting->first)) {
        ++starting;
        continue;
      }
      ended.push_back(std::move(starting->second));
      starting = starting_.erase(starting);
    }
  }
  for (std::thread& thread : ended) {
    thread.join();
  }
}

/// Whether it has failed and may work at another time. A capture would be read again from its begin.
bool ChainSet::is_retried(Entry const& entry) {
  const bool has_not_started = entry.run == nullptr && !entry.error.empty();
  const bool has_ended = entry.run != nullptr && entry.run->state() == ChainState::kFailed;
  return !entry.applied.is_stopped && (has_not_started || (has_ended && entry.is_live));
}

void ChainSet::retry_failed() {
  join_ended_starts();
  const Retries::Clock::time_point now = Retries::Clock::now();
  const std::lock_guard lock(mutex_);
  for (auto const& [name, entry] : chains_) {
    Result<ChainLock> chain_lock = ChainLock::take(*this, name, nullptr);
    if (chain_lock.ok() && !starting_.contains(name) && retries_.is_due(name, is_retried(entry), now)) {
      const LogContext context(name);
      spdlog::info("{}: is started again", name);
      work_in_thread(name, *std::move(chain_lock), [this, applied = entry.applied] { start_again(applied); });
    }
  }
}

void ChainSet::start_remembered() {
  for (StateStore::Loaded const& loaded : store_.load()) {
    if (!loaded.applied.ok()) {
      spdlog::error("{}: not written by the service, so its chain is not started: {}", loaded.path,
                    std::string(loaded.applied.status().message()));
      continue;
    }
    ApplyRecord const& applied = *loaded.applied;
    const std::lock_guard lock(mutex_);
    chains_[applied.name] = Entry{applied, {}, nullptr, {}};
    if (applied.is_stopped) {
      continue;
    }
    Result<ChainLock> chain_lock = ChainLock::take(*this, applied.name, nullptr);
    if (chain_lock.ok()) {
      work_in_thread(applied.name, *std::move(chain_lock), [this, applied] { start_again(applied); });
    }
  }
}

void ChainSet::start_again(ApplyRecord applied) {
  const LogContext context(applied.name);
  std::string fallback;
  SpecRevision revision;
  const ApplyRecord remembered = applied;
  const auto start = [&]() -> Status {
    CATENA_ASSIGN_OR_RETURN(ValidatedSpec validated, prepare_remembered(applied, fallback));
    {
      const std::lock_guard lock(mutex_);
      CATENA_RETURN_IF_ERROR(check_chain_lock(validated, applied.caller));
      applied.tenant_uid = tenant_owner(applied.tenant).value_or(applied.caller.uid);
      CATENA_RETURN_IF_ERROR(applied == remembered ? absl::OkStatus() : store_.save(applied));
      const std::lock_guard chain_locks(chain_locks_mutex_);
      claimed_[applied.name].wanted = &validated;
    }
    Status status = make_and_swap(applied, validated, std::nullopt, {}).status;
    const std::lock_guard chain_locks(chain_locks_mutex_);
    claimed_[applied.name].wanted = nullptr;
    CATENA_RETURN_IF_ERROR(status);
    revision = make_revision(std::move(validated.config.source), std::move(validated.files), applied.caller.uid);
    return absl::OkStatus();
  };
  if (const Status status = start(); !status.ok() && !absl::IsCancelled(status)) {
    spdlog::error("{}: does not start again: {}", applied.name, std::string(status.message()));
    put({remembered, {}, nullptr, std::string(status.message())});
  } else if (status.ok()) {
    keep_revision(applied, revision, std::chrono::seconds(0));
    const std::lock_guard lock(mutex_);
    chains_[applied.name].spec.fallback = fallback;
  }
}

void ChainSet::start_watch() {
  watch_ = std::thread([this] { watch(); });
}

void ChainSet::watch() {
  while (watch_pause_.sleep(runtime::TrafficWatch::kPeriod)) {
    retry_failed();
    return_unconfirmed();
    std::map<std::string, std::shared_ptr<ChainRun>> runs;
    {
      const std::lock_guard lock(mutex_);
      for (auto const& [name, entry] : chains_) {
        if (entry.run != nullptr && !entry.keeps_placement) {
          runs[name] = entry.run;
        }
      }
    }
    for (auto const& [name, run] : runs) {
      replan(name, run);
    }
  }
}

/// Where that is worth it, and loses no NF state.
void ChainSet::replan(std::string const& name, std::shared_ptr<ChainRun> const& run) {
  const LogContext context(name);
  Result<std::optional<runtime::Replacement>> found = run->sample_traffic();
  if (!found.ok()) {
    spdlog::warn("{}: cannot be placed for the present traffic: {}", name, std::string(found.status().message()));
  }
  if (!found.ok() || !*found) {
    return;
  }
  std::unique_lock lock(mutex_);
  const Result<ChainLock> chain_lock = ChainLock::take(*this, name, nullptr);
  const auto entry = chains_.find(name);
  if (!chain_lock.ok() || entry == chains_.end() || entry->second.run != run) {
    return;  // somebody else does something with it
  }
  const ApplyRecord applied = entry->second.applied;
  const std::string fifo = entry->second.fifo;
  const PresentSpec spec = entry->second.spec;
  ValidatedSpec validated{std::move((*found)->config), std::move((*found)->options), entry->second.resources,
                          applied.caller, fifo};
  lock.unlock();
  const Swap swap = start_and_swap(applied, std::move(validated), {run, fifo, false, true});
  if (swap.is_done) {
    lock.lock();
    chains_[name].spec = spec;
    spdlog::info("{}: placement changed: {}", name, (*found)->why);
  } else if (!swap.restarted_nfs.empty()) {
    spdlog::warn("{}: placement not changed ({}), now and later, because this would lose {}", name, (*found)->why,
                 fmt::join(runtime::describe({.nf_states = swap.restarted_nfs}), ", "));
    lock.lock();
    chains_[name].keeps_placement = true;
  } else {
    spdlog::warn("{}: placement not changed ({}): {}", name, (*found)->why,
                 swap.obstacle.empty() ? std::string(swap.status.message()) : swap.obstacle);
  }
}

bool ChainSet::has_chain_locks() const {
  const std::lock_guard lock(chain_locks_mutex_);
  return !claimed_.empty();
}

/// Chains whose rx came to its end are not to begin again with the service.
void ChainSet::remember_finished() {
  const std::lock_guard lock(mutex_);
  for (auto& [name, entry] : chains_) {
    if (entry.run == nullptr || entry.run->state() != ChainState::kFinished || entry.applied.is_stopped) {
      continue;
    }
    entry.applied.is_stopped = true;
    if (const Status saved = store_.save(entry.applied); !saved.ok()) {
      spdlog::error("{}: {}", name, std::string(saved.message()));
    }
  }
}

std::vector<std::shared_ptr<ChainRun>> ChainSet::runs() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ChainRun>> runs;
  for (auto const& [name, entry] : chains_) {
    if (entry.run != nullptr) {
      runs.push_back(entry.run);
    }
  }
  return runs;
}

std::vector<std::shared_ptr<ChainRun>> ChainSet::starting_runs() const {
  const std::lock_guard lock(chain_locks_mutex_);
  std::vector<std::shared_ptr<ChainRun>> runs;
  for (auto const& [name, claimed] : claimed_) {
    if (claimed.starting != nullptr) {
      runs.push_back(claimed.starting);
    }
  }
  return runs;
}

bool ChainSet::end_all(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  watch_pause_.end();
  remember_finished();
  for (auto const& run : runs()) {
    run->stop();
  }
  for (auto const& run : starting_runs()) {
    run->stop();
  }
  // operations that go on may bring a chain yet
  constexpr std::chrono::milliseconds kTick{10};
  while (has_chain_locks() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kTick);
  }
  if (has_chain_locks()) {
    return false;
  }
  std::map<std::string, std::thread> starting;
  {
    const std::lock_guard lock(mutex_);
    std::swap(starting, starting_);
  }
  for (auto& [name, thread] : starting) {
    thread.join();
  }
  bool all = true;
  for (auto const& run : runs()) {
    run->stop();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    all = run->wait(std::max(left, std::chrono::milliseconds(0))) && !run->abandoned_device() && all;
  }
  return all;
}

}  // namespace catena::service
