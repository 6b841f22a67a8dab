// SPDX-License-Identifier: Apache-2.0
// The chains of a service when it starts and ends. What users do with them: chain_set.cpp.
#include "core/log_line.hpp"
#include "service/chain_set.hpp"
#include "service/claim.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::service {

ChainSet::~ChainSet() {
  for (std::thread& starting : starting_) {
    starting.join();
  }
}

void ChainSet::start_remembered() {
  for (StateStore::Loaded const& loaded : store_.load()) {
    if (!loaded.applied.ok()) {
      spdlog::error("{}: not what the service wrote, so its chain is not started: {}", loaded.path,
                    log_line(std::string(loaded.applied.status().message())));
      continue;
    }
    Applied const& applied = *loaded.applied;
    const std::lock_guard lock(mutex_);
    chains_[applied.name] = Entry{applied, {}, nullptr, {}};
    if (applied.is_stopped) {
      continue;
    }
    Result<Claim> claim = Claim::take(*this, applied.name, nullptr);
    if (claim.ok()) {
      starting_.emplace_back([this, applied, claim = *std::move(claim)] { start_again(applied); });
    }
  }
}

void ChainSet::start_again(Applied const& applied) {
  const auto start = [&]() -> Status {
    CATENA_ASSIGN_OR_RETURN(Prepared prepared, prepare(applied.file, applied.options, applied.caller, registry_));
    if (prepared.config.name != applied.name) {
      return absl::InvalidArgumentError(concat(applied.file, ": describes chain '", prepared.config.name, "' now"));
    }
    {
      const std::lock_guard lock(mutex_);
      CATENA_RETURN_IF_ERROR(check_resources(prepared));
      const std::lock_guard claims(claims_mutex_);
      claimed_[applied.name].wanted = &prepared;
    }
    Status status = make_and_swap(applied, prepared, std::nullopt).status;
    const std::lock_guard claims(claims_mutex_);
    claimed_[applied.name].wanted = nullptr;
    return status;
  };
  if (const Status status = start(); !status.ok() && !absl::IsCancelled(status)) {
    spdlog::error("{}: does not start again: {}", applied.name, log_line(std::string(status.message())));
    put({applied, {}, nullptr, std::string(status.message())});
  }
}

bool ChainSet::has_claims() const {
  const std::lock_guard lock(claims_mutex_);
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
  const std::lock_guard lock(claims_mutex_);
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
  remember_finished();
  for (auto const& run : runs()) {
    run->stop();
  }
  for (auto const& run : starting_runs()) {
    run->stop();
  }
  // operations that go on may bring a chain yet
  constexpr std::chrono::milliseconds kTick{10};
  while (has_claims() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kTick);
  }
  if (has_claims()) {
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
