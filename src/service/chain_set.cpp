// SPDX-License-Identifier: Apache-2.0
#include "service/chain_set.hpp"

#include "base/core/log_context.hpp"
#include "service/chain_log.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <thread>

namespace catena::service {
namespace {

/// What is remembered of a request.
ApplyRecord applied_of(ValidatedSpec const& validated, SpecSource const& spec, RequestOptions const& options,
                       Caller const& caller) {
  return {
      validated.config.name,         validated.config.tenant, caller.uid, spec.file, options.over_file, caller, false,
      spec.kept ? spec.kept->id : ""};
}

Status check_name(std::string const& name, ApplyRecord const& applied) {
  return name.empty() || name == applied.name
             ? absl::OkStatus()
             : absl::InvalidArgumentError(concat(applied.file, ": describes chain '", applied.name, "', and not '",
                                                 name, "', which was to be applied"));
}

/// Whether it is the spec that a start is limited to.
Status check_revision(RequestOptions const& options, ValidatedSpec const& validated, ApplyRecord const& applied) {
  const bool is_that =
      options.only_revision.empty() ||
      make_revision(validated.config.source, validated.files, applied.caller.uid).id == options.only_revision;
  return is_that ? absl::OkStatus()
                 : absl::FailedPreconditionError(concat("files of chain '", applied.name,
                                                        "' have changed since revision ", options.only_revision,
                                                        " ran: only user ", applied.caller.uid, " may apply them"));
}

RequestOptions with_options(RequestOptions consents, chain::GivenOptions options) {
  consents.over_file = std::move(options);
  return consents;
}

/// Of a request about a known chain: the present rights of its user, or the ones that root runs it with.
Caller rights_for(ApplyRecord const& applied, Caller const& caller) {
  return caller.uid == applied.caller.uid ? caller : applied.caller;
}

}  // namespace

Result<AppliedChain> ChainSet::apply(std::string const& name, SpecSource const& spec, RequestOptions const& options,
                                     Caller const& caller, std::stop_token const& gone) {
  return apply_for(caller.uid, name, spec, options, caller, gone);
}

Result<AppliedChain> ChainSet::apply_for(uid_t asker, std::string const& name, SpecSource const& spec,
                                         RequestOptions const& options, Caller const& caller,
                                         std::stop_token const& gone) {
  CATENA_RETURN_IF_ERROR(applies_.add(asker, table_.quotas(), ApplyRate::Clock::now()));
  Result<ValidatedSpec> validated = specs_.prepare(spec, options, caller, gone);
  CATENA_RETURN_IF_ERROR(as_callers(validated.status()));
  ApplyRecord applied = applied_of(*validated, spec, options, caller);
  const LogContext context(applied.name);
  CATENA_RETURN_IF_ERROR(check_name(name, applied));
  CATENA_RETURN_IF_ERROR(check_revision(options, *validated, applied));
  CATENA_ASSIGN_OR_RETURN(const ChainTable::Held held, table_.reserve(*validated, applied));
  std::optional<ChainEntry> const& old = held.before;
  if (options.confirm.count() != 0) {
    CATENA_RETURN_IF_ERROR(specs_.set_trial(old, applied));
  } else if (options.restarts && old) {
    applied.unconfirmed = old->applied.unconfirmed;  // a restart is no confirmation
  }
  AppliedChain result{applied.name, !old.has_value()};
  result.warnings = validated->warnings;
  for (std::string const& warning : result.warnings) {
    spdlog::warn("{}: {}", applied.name, warning);
  }
  result.amounts = amounts_of(validated->config, validated->options);
  CATENA_RETURN_IF_ERROR(replacer_.apply(applied, *std::move(validated), old, options, gone, result));
  return result;
}

Result<AppliedChain> ChainSet::preview(std::string const& name, SpecSource const& spec, RequestOptions const& options,
                                       Caller const& caller, std::stop_token const& gone) const {
  Result<ValidatedSpec> validated = specs_.prepare(spec, options, caller, gone);
  CATENA_RETURN_IF_ERROR(as_callers(validated.status()));
  const ApplyRecord applied = applied_of(*validated, spec, options, caller);
  CATENA_RETURN_IF_ERROR(check_name(name, applied));
  CATENA_ASSIGN_OR_RETURN(const std::optional<ChainEntry> old, table_.check(*validated, caller));
  AppliedChain result{applied.name, !old.has_value()};
  result.warnings = validated->warnings;
  result.amounts = amounts_of(validated->config, validated->options);
  if (!is_privileged(caller)) {
    result.quotas = table_.quotas().of(caller.uid);
  }
  CATENA_RETURN_IF_ERROR(replacer_.preview(applied, *std::move(validated), old, gone, result));
  return result;
}

/// For a start by a client who is not the owner.
Status ChainSet::limit_start(ChainEntry const& entry, RequestOptions& options, Client const& client) const {
  if (owns(client.caller, entry.applied)) {
    return absl::OkStatus();
  }
  if (!options.new_keys.empty()) {
    return absl::PermissionDeniedError(
        concat("new keys of chain '", entry.applied.name, "' need the consent of its user ", entry.applied.caller.uid));
  }
  options.only_revision = entry.spec.revision;
  if (const std::vector<RevisionInfo> kept = table_.history().list(entry.applied.name);
      options.only_revision.empty() && !kept.empty()) {
    options.only_revision = kept.front().id;  // it did not run in this service yet
  }
  return options.only_revision.empty() ? absl::FailedPreconditionError(concat(
                                             "chain '", entry.applied.name, "' has no spec in its history: only user ",
                                             entry.applied.caller.uid, " may start it"))
                                       : absl::OkStatus();
}

Result<AppliedChain> ChainSet::start(std::string const& name, RequestOptions const& consents, Client const& client,
                                     std::stop_token const& gone) {
  CATENA_ASSIGN_OR_RETURN(const ChainEntry entry, table_.find(name, client));
  if (entry.is_running()) {
    return AppliedChain{name, false, true};
  }
  CATENA_ASSIGN_OR_RETURN(const SpecSource spec, specs_.source_of(entry.applied));
  RequestOptions options = with_options(consents, entry.applied.options);
  CATENA_RETURN_IF_ERROR(limit_start(entry, options, client));
  return apply_for(client.caller.uid, name, spec, options, rights_for(entry.applied, client.caller), gone);
}

Result<AppliedChain> ChainSet::reload(std::string const& name, RequestOptions const& consents, Client const& client,
                                      std::stop_token const& gone) {
  CATENA_ASSIGN_OR_RETURN(const ChainEntry entry, table_.find(name, client));
  return apply_for(client.caller.uid, name, {entry.applied.file}, with_options(consents, entry.applied.options),
                   rights_for(entry.applied, client.caller), gone);
}

Result<AppliedChain> ChainSet::restart(std::string const& name, RequestOptions const& consents, Client const& client,
                                       std::stop_token const& gone) {
  CATENA_ASSIGN_OR_RETURN(const ChainEntry entry, table_.find(name, client));
  CATENA_ASSIGN_OR_RETURN(const SpecSource spec, specs_.source_of(entry.applied));
  RequestOptions options = with_options(consents, entry.applied.options);
  options.restarts = true;
  CATENA_RETURN_IF_ERROR(limit_start(entry, options, client));
  return apply_for(client.caller.uid, name, spec, options, rights_for(entry.applied, client.caller), gone);
}

Result<AppliedChain> ChainSet::rollback(std::string const& name, std::string const& id, RequestOptions consents,
                                        Client const& client, std::stop_token const& gone) {
  CATENA_ASSIGN_OR_RETURN(const ChainEntry entry, table_.find(name, client));
  CATENA_ASSIGN_OR_RETURN(SpecRevision revision, specs_.earlier(entry, id));
  consents.over_file = revision.source.options;
  std::string file = revision.source.file;
  return apply_for(client.caller.uid, name, {std::move(file), std::move(revision)}, consents,
                   rights_for(entry.applied, client.caller), gone);
}

Result<std::vector<RevisionInfo>> ChainSet::history(std::string const& name, Client const& client) const {
  CATENA_RETURN_IF_ERROR(check_reach(name, client));
  return table_.history().list(name);
}

Status ChainSet::confirm(std::string const& name, Client const& client) {
  CATENA_ASSIGN_OR_RETURN(const ChainTable::Held held, table_.hold(name, client));
  ApplyRecord applied = held.before->applied;
  if (applied.unconfirmed.empty()) {
    return absl::FailedPreconditionError(concat("chain '", name, "' has nothing to confirm"));
  }
  applied.unconfirmed.clear();
  CATENA_RETURN_IF_ERROR(table_.update(std::move(applied)));
  table_.edit(name, [](ChainEntry& entry) { entry.spec.confirm_until.reset(); });
  return absl::OkStatus();
}

Status ChainSet::cancel(std::string const& name, Client const& client) {
  CATENA_ASSIGN_OR_RETURN(const Claims::Start start, table_.start_of(name, client));
  if (start.run == nullptr) {
    return absl::FailedPreconditionError(concat("nothing of chain '", name, "' is being started or changed"));
  }
  if (start.change != nullptr) {
    start.change->request_stop();  // of the change alone: the chain runs
  } else {
    start.run->stop();
  }
  return table_.claims().wait_for_end(name, start, kEndLimit)
             ? absl::OkStatus()
             : absl::UnavailableError(concat("the ", start.change != nullptr ? "change" : "start", " of chain '", name,
                                             "' does not end yet"));
}

/// Reserves the name, after the end of a start that another operation waits for.
Result<ChainTable::Held> ChainSet::hold_ended(std::string const& name, Client const& client) {
  CATENA_ASSIGN_OR_RETURN(Claims::Start start, table_.start_of(name, client));
  while (start.run != nullptr) {
    start.run->stop();
    if (!table_.claims().wait_for_end(name, start, kEndLimit)) {
      return absl::UnavailableError(concat("chain '", name, "' is still starting, and ends after the start"));
    }
    CATENA_ASSIGN_OR_RETURN(start, table_.start_of(name, client));
  }
  return table_.hold(name, client);
}

Status ChainSet::stop(std::string const& name, Client const& client) {
  CATENA_ASSIGN_OR_RETURN(const ChainTable::Held held, hold_ended(name, client));
  ChainEntry const& entry = *held.before;
  ApplyRecord applied = entry.applied;
  applied.is_stopped = true;
  applied.unconfirmed.clear();  // else it would return to an earlier spec, and run
  CATENA_RETURN_IF_ERROR(table_.update(std::move(applied)));
  table_.edit(name, [](ChainEntry& stopped) { stopped.spec.confirm_until.reset(); });
  watch_.forget(name);
  return entry.run != nullptr ? end_run(name, *entry.run, entry.fifo) : absl::OkStatus();
}

Status ChainSet::remove(std::string const& name, Client const& client) {
  CATENA_ASSIGN_OR_RETURN(const ChainTable::Held held, hold_ended(name, client));
  ChainEntry const& entry = *held.before;
  CATENA_RETURN_IF_ERROR(entry.run != nullptr ? end_run(name, *entry.run, entry.fifo) : absl::OkStatus());
  CATENA_RETURN_IF_ERROR(table_.forget(name));
  table_.erase(name);
  watch_.forget(name);
  spdlog::info("{}: deleted", name);
  chain_log()->forget(name);
  return absl::OkStatus();
}

Status ChainSet::check_reach(std::string const& name, Client const& client) const {
  return table_.find(name, client).status();
}

Status ChainSet::lift_quarantine(std::string const& name) { return setup_.lift_quarantine(name); }

ChainView ChainSet::view_of(ChainEntry const& entry) const {
  const ChainState state = !entry.error.empty()       ? ChainState::kFailed
                           : entry.applied.is_stopped ? ChainState::kStopped
                                                      : ChainState::kStarting;
  ChainView view{entry.applied,
                 state,
                 entry.error,
                 setup_.quarantine_of(entry.applied.name),
                 setup_.separation_of(entry.applied),
                 watch_.retry_of(entry.applied.name),
                 entry.spec.revision,
                 entry.spec.fallback,
                 {},
                 0,
                 {},
                 {}};
  if (entry.spec.confirm_until) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(*entry.spec.confirm_until - Retries::Clock::now());
    view.confirm = std::max(left, std::chrono::seconds(0));
  }
  if (entry.run != nullptr) {
    view.number = entry.run->number();
    view.state = entry.run->state();
  }
  if (entry.run != nullptr && view.state != ChainState::kStarting) {
    view.report = entry.run->report();
    view.counts = entry.run->counts();
    view.error = entry.run->error();
    view.report->error = view.error;
  }
  return view;
}

Result<ChainView> ChainSet::get(std::string const& name, Client const& client) const {
  CATENA_ASSIGN_OR_RETURN(const ChainEntry entry, table_.find(name, client));
  return view_of(entry);
}

Result<std::string> ChainSet::config_of(std::string const& name, Client const& client) const {
  CATENA_ASSIGN_OR_RETURN(ChainEntry entry, table_.find(name, client));
  return entry.config.empty() ? absl::FailedPreconditionError(concat("chain '", name, "' did not run in this service"))
                              : Result<std::string>(std::move(entry.config));
}

std::vector<ChainView> ChainSet::list(Client const& client) const {
  std::vector<ChainView> views;
  std::ranges::transform(table_.list(client), std::back_inserter(views),
                         [this](ChainEntry const& entry) { return view_of(entry); });
  return views;
}

void ChainSet::set_quotas(Quotas quotas) { table_.set_quotas(std::move(quotas)); }

void ChainSet::start_remembered() { watch_.start_remembered(); }

void ChainSet::start_watch() { watch_.start(); }

bool ChainSet::end_all(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  table_.end();
  watch_.end();
  for (auto const& run : table_.runs()) {
    run->stop();
  }
  for (auto const& run : table_.claims().starting_runs()) {
    run->stop();
  }
  // operations that go on may bring a chain yet
  constexpr std::chrono::milliseconds kTick{10};
  while (!table_.claims().is_empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kTick);
  }
  if (!table_.claims().is_empty() || !watch_.wait(deadline)) {
    return false;
  }
  bool all = true;
  for (auto const& run : table_.runs()) {
    run->stop();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    all = run->wait(std::max(left, std::chrono::milliseconds(0))) && !run->abandoned_device() && all;
  }
  return all;
}

}  // namespace catena::service
