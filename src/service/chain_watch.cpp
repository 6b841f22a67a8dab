// SPDX-License-Identifier: Apache-2.0
#include "service/chain_watch.hpp"

#include "base/core/log_context.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace catena::service {
namespace {

/// Whether it has failed and may work at another time. A capture would be read again from its begin.
bool is_retried(ChainEntry const& entry) {
  const bool has_not_started = entry.run == nullptr && !entry.error.empty();
  const bool has_ended = entry.run != nullptr && entry.run->state() == ChainState::kFailed;
  return !entry.applied.is_stopped && (has_not_started || (has_ended && entry.is_live));
}

/// Whether its trial is over, or it has failed.
bool is_returned(ChainEntry const& entry) {
  const auto until = entry.spec.confirm_until;
  const bool has_failed = entry.run != nullptr && entry.run->state() == ChainState::kFailed;
  return !entry.applied.unconfirmed.empty() && (has_failed || !until || *until <= Retries::Clock::now());
}

/// Whether an error stays the same without a user.
bool is_lasting(Status const& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) || absl::IsNotFound(status) ||
         absl::IsPermissionDenied(status) || absl::IsDataLoss(status);
}

/// A function of std::function is copied, and a claim is not.
std::shared_ptr<Claims::Claim> shared(Claims::Claim claim) { return std::make_shared<Claims::Claim>(std::move(claim)); }

}  // namespace

ChainWatch::~ChainWatch() {
  pause_.end();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ChainWatch::start() {
  thread_ = std::thread([this] { watch(); });
}

void ChainWatch::watch() {
  while (pause_.sleep(runtime::TrafficWatch::kPeriod)) {
    retry_failed();
    return_unconfirmed();
    sample_traffic();
  }
}

void ChainWatch::start_remembered() {
  for (ApplyRecord const& applied : table_.load()) {
    Result<ChainTable::Held> held = table_.hold(applied.name, own_client());
    if (held.ok()) {
      start_in_thread(applied, std::move(held->claim));
    }
  }
}

void ChainWatch::retry_failed() {
  const Retries::Clock::time_point now = Retries::Clock::now();
  const std::vector<std::string> due = table_.names_of([&](ChainEntry const& entry) {
    std::string const& name = entry.applied.name;
    const bool is_free = !table_.claims().contains(name) && !threads_.is_at_work(name);
    return is_free && retries_.is_due(name, is_retried(entry), now);
  });
  for (std::string const& name : due) {
    Result<ChainTable::Held> held = table_.hold(name, own_client());
    if (held.ok() && is_retried(*held->before)) {
      const LogContext context(name);
      spdlog::info("{}: is started again", name);
      start_in_thread(held->before->applied, std::move(held->claim));
    }
  }
}

void ChainWatch::return_unconfirmed() {
  for (std::string const& name : table_.names_of(is_returned)) {
    Result<ChainTable::Held> held = table_.hold(name, own_client());
    if (held.ok() && is_returned(*held->before)) {
      // an error: next time
      static_cast<void>(threads_.run(name, [this, applied = held->before->applied,
                                            claim = shared(std::move(held->claim))] { return_to_earlier(applied); }));
    }
  }
}

/// An NF that hangs while its chain is changed or placed holds up its own chain.
void ChainWatch::sample_traffic() {
  const auto is_placed = [](ChainEntry const& entry) { return entry.is_running() && !entry.keeps_placement; };
  for (std::string const& name : table_.names_of(is_placed)) {
    static_cast<void>(threads_.run(name, [this, name] { replan(name); }));  // an error: next time
  }
}

/// Without a thread, the chain is one that does not start.
void ChainWatch::start_in_thread(ApplyRecord const& applied, Claims::Claim claim) {
  const Status begun =
      threads_.run(applied.name, [this, applied, claim = shared(std::move(claim))] { start_again(applied); });
  if (absl::IsResourceExhausted(begun)) {
    spdlog::error("{}: {}", applied.name, std::string(begun.message()));
    table_.edit(applied.name, [&begun](ChainEntry& entry) {
      if (entry.run == nullptr) {
        entry.error = std::string(begun.message());  // so it is tried again
      }
    });
  }
}

void ChainWatch::start_again(ApplyRecord applied) {
  const ApplyRecord remembered = applied;
  std::string fallback;
  const Status status = start_spec(applied, fallback);
  const Result<ChainEntry> started = table_.find(applied.name, own_client());
  audit_.add_own(status.ok() && !fallback.empty() ? "fallback" : "start", applied.name,
                 status.ok() && started.ok() ? started->spec.revision : "", status);
  if (!status.ok() && !absl::IsCancelled(status)) {
    spdlog::error("{}: does not start again: {}", applied.name, std::string(status.message()));
    table_.put({remembered, {}, nullptr, std::string(status.message())});
  } else if (status.ok()) {
    table_.edit(applied.name, [&fallback](ChainEntry& entry) { entry.spec.fallback = fallback; });
  }
}

Status ChainWatch::start_spec(ApplyRecord& applied, std::string& fallback) {
  CATENA_ASSIGN_OR_RETURN(ValidatedSpec validated, specs_.prepare_remembered(applied, fallback));
  CATENA_RETURN_IF_ERROR(table_.want(validated, applied));
  CATENA_RETURN_IF_ERROR(table_.remember(applied));
  return replacer_.start(applied, std::move(validated));
}

/// A lasting refusal is logged, and the chain keeps its spec. After any other error the return is tried again.
void ChainWatch::return_to_earlier(ApplyRecord const& on_trial) {
  spdlog::warn("{}: its spec was not confirmed", on_trial.name);
  const Status status = try_earlier(on_trial);
  audit_.add_own("return", on_trial.name, on_trial.unconfirmed, status);
  if (status.ok()) {
    spdlog::warn("{}: has returned to revision {}", on_trial.name, on_trial.unconfirmed);
    return;
  }
  const bool is_over = is_lasting(status) && !table_.is_ending();
  spdlog::error("{}: does not return to revision {} {}: {}", on_trial.name, on_trial.unconfirmed,
                is_over ? "and keeps its spec" : "yet", std::string(status.message()));
  table_.edit(on_trial.name, [is_over](ChainEntry& entry) {
    constexpr std::chrono::seconds kPause{8};
    entry.spec.confirm_until = is_over ? std::nullopt : std::optional(Retries::Clock::now() + kPause);
  });
  if (!is_over) {
    return;
  }
  ApplyRecord kept = on_trial;
  kept.unconfirmed.clear();
  if (const Status saved = table_.update(std::move(kept)); !saved.ok()) {
    spdlog::error("{}: {}", on_trial.name, std::string(saved.message()));
  }
}

Status ChainWatch::try_earlier(ApplyRecord const& on_trial) {
  ApplyRecord applied = on_trial;
  applied.unconfirmed.clear();
  CATENA_ASSIGN_OR_RETURN(ValidatedSpec validated, specs_.prepare_again(applied, on_trial.unconfirmed));
  validated.accepts_loss = true;
  CATENA_RETURN_IF_ERROR(table_.want(validated, applied));
  CATENA_ASSIGN_OR_RETURN(const ChainEntry old, table_.find(applied.name, own_client()));
  AppliedChain result{applied.name, false};
  return replacer_.apply(applied, std::move(validated), old, {}, {}, result);
}

/// Where that is worth it, and loses no NF state.
void ChainWatch::replan(std::string const& name) {
  const Result<ChainEntry> sampled = table_.find(name, own_client());
  if (!sampled.ok() || sampled->run == nullptr) {
    return;
  }
  Result<std::optional<runtime::Replacement>> found = sampled->run->sample_traffic();
  if (!found.ok()) {
    spdlog::warn("{}: cannot be placed for the present traffic: {}", name, std::string(found.status().message()));
  }
  if (!found.ok() || !*found) {
    return;
  }
  const Result<ChainTable::Held> held = table_.hold(name, own_client());
  if (held.ok() && held->before->run == sampled->run) {  // else an operation changes it
    replacer_.move(*held->before, **std::move(found));
  }
}

}  // namespace catena::service
