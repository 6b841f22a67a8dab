// SPDX-License-Identifier: Apache-2.0
// The chains of a service when it starts and ends. What users do with them: chain_set.cpp.
#include "pipeline/session.hpp"
#include "service/chain_lock.hpp"
#include "service/chain_set.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::service {

ChainSet::~ChainSet() {
  watch_pause_.end();
  if (watch_.joinable()) {
    watch_.join();
  }
  for (std::thread& starting : starting_) {
    starting.join();
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
      starting_.emplace_back([this, applied, chain_lock = *std::move(chain_lock)] { start_again(applied); });
    }
  }
}

void ChainSet::start_again(ApplyRecord const& applied) {
  const auto start = [&]() -> Status {
    CATENA_ASSIGN_OR_RETURN(ValidatedSpec validated,
                            prepare_in_turn(applied.file, {applied.options}, applied.caller, {}));
    if (validated.config.name != applied.name) {
      return absl::InvalidArgumentError(concat(applied.file, ": describes chain '", validated.config.name, "' now"));
    }
    {
      const std::lock_guard lock(mutex_);
      CATENA_RETURN_IF_ERROR(check_resources(validated));
      const std::lock_guard chain_locks(chain_locks_mutex_);
      claimed_[applied.name].wanted = &validated;
    }
    Status status = make_and_swap(applied, validated, std::nullopt, {}).status;
    const std::lock_guard chain_locks(chain_locks_mutex_);
    claimed_[applied.name].wanted = nullptr;
    return status;
  };
  if (const Status status = start(); !status.ok() && !absl::IsCancelled(status)) {
    spdlog::error("{}: does not start again: {}", applied.name, std::string(status.message()));
    put({applied, {}, nullptr, std::string(status.message())});
  }
}

void ChainSet::start_watch() {
  watch_ = std::thread([this] { watch(); });
}

void ChainSet::watch() {
  while (watch_pause_.sleep(runtime::TrafficWatch::kPeriod)) {
    std::map<std::string, std::shared_ptr<ChainRun>> runs;
    {
      const std::lock_guard lock(mutex_);
      for (auto const& [name, entry] : chains_) {
        if (entry.run != nullptr) {
          runs[name] = entry.run;
        }
      }
    }
    for (auto const& [name, run] : runs) {
      replan(name, run);
    }
  }
}

/// Where that is worth it.
void ChainSet::replan(std::string const& name, std::shared_ptr<ChainRun> const& run) {
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
  ValidatedSpec validated{std::move((*found)->config), std::move((*found)->options), entry->second.resources,
                          applied.caller, fifo};
  lock.unlock();
  const Swap swap = start_and_swap(applied, std::move(validated), {run, fifo, false, true});
  if (swap.status.ok()) {
    spdlog::info("{}: placement changed: {}", name, (*found)->why);
  } else {
    spdlog::warn("{}: placement not changed ({}): {}", name, (*found)->why, std::string(swap.status.message()));
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
  for (std::thread& starting : starting_) {
    starting.join();
  }
  starting_.clear();
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
