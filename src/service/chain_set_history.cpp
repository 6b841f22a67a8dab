// SPDX-License-Identifier: Apache-2.0
// The specs of a chain: its present one again, an earlier one, and one on trial.
#include "base/core/log_context.hpp"
#include "service/chain_lock.hpp"
#include "service/chain_set.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::service {
namespace {

RequestOptions with_options(RequestOptions consents, chain::GivenOptions options) {
  consents.over_file = std::move(options);
  return consents;
}

}  // namespace

/// A revision that the user of the chain may have again.
Result<SpecRevision> ChainSet::revision_of(ApplyRecord const& applied, std::string const& id) const {
  CATENA_ASSIGN_OR_RETURN(SpecRevision revision, store_.history().load(applied.name, id));
  if (revision.uid != applied.caller.uid) {
    return absl::FailedPreconditionError(concat("revision ", id, " of chain '", applied.name, "' was applied by user ",
                                                revision.uid, ", and the chain is user ", applied.caller.uid,
                                                "'s; apply its file"));
  }
  return revision;
}

/// The spec of a start of the chain.
Result<SpecSource> ChainSet::spec_of(ApplyRecord const& applied) const {
  SpecSource spec{applied.file};
  if (!applied.revision.empty()) {
    CATENA_ASSIGN_OR_RETURN(spec.kept, revision_of(applied, applied.revision));
  }
  return spec;
}

/// Of a request about a known chain: the present rights of its user, or the ones that root runs it with.
Caller ChainSet::rights_for(ApplyRecord const& applied, Caller const& caller) {
  return caller.uid == applied.caller.uid ? caller : applied.caller;
}

/// For a start without a user in front of it: revision `id`, or the file. Makes `applied` the record of it.
Result<ValidatedSpec> ChainSet::prepare_again(ApplyRecord& applied, std::string const& id) const {
  SpecSource spec{applied.file};
  if (!id.empty()) {
    CATENA_ASSIGN_OR_RETURN(spec.kept, revision_of(applied, id));
    applied.file = spec.file = spec.kept->source.file;
    applied.options = spec.kept->source.options;
    applied.revision = id;
  }
  CATENA_ASSIGN_OR_RETURN(ValidatedSpec validated, prepare_in_turn(spec, {applied.options}, applied.caller, {}));
  if (validated.config.name != applied.name) {
    return absl::InvalidArgumentError(concat(applied.file, ": describes chain '", validated.config.name, "' now"));
  }
  applied.tenant = validated.config.tenant;
  return validated;
}

/// The first of these that can run: the spec to return to from a trial, the one of a rollback, the file, the last spec.
/// `fallback`: why the first one cannot.
Result<ValidatedSpec> ChainSet::prepare_remembered(ApplyRecord& applied, std::string& fallback) const {
  std::vector<std::string> ids;
  for (std::string const& id : {applied.unconfirmed, applied.revision}) {
    if (!id.empty()) {
      ids.push_back(id);
    }
  }
  ids.emplace_back();
  if (!applied.unconfirmed.empty()) {
    spdlog::warn("{}: its last spec was not confirmed", applied.name);
  }
  Status first;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string id = ids[i];
    const bool is_last_choice = i > 0 && ids[i - 1].empty();
    ApplyRecord candidate = applied;
    candidate.unconfirmed.clear();
    candidate.revision.clear();
    Result<ValidatedSpec> validated = prepare_again(candidate, id);
    if (!validated.ok()) {
      first.Update(validated.status());
      if (id.empty()) {  // only now: a history takes time to read
        if (const std::vector<RevisionInfo> kept = store_.history().list(applied.name); !kept.empty()) {
          ids.push_back(kept.front().id);
        }
      }
      continue;
    }
    if (!first.ok()) {
      fallback = std::string(first.message());
      spdlog::error("{}: its {} cannot run, so {} does: {}", applied.name,
                    ids.front().empty() ? "file" : concat("revision ", ids.front()),
                    id.empty() ? "the file" : concat("revision ", id), fallback);
    } else if (!id.empty()) {
      spdlog::info("{}: revision {} is started", applied.name, id);
    }
    if (!is_last_choice) {  // a mended file counts at the next start
      applied = std::move(candidate);
    }
    return validated;
  }
  return first;
}

/// After the end of a chain for a new one that cannot be created. The error of that, with what became of the chain.
Status ChainSet::run_again(Entry const& old, Status const& status) {
  ApplyRecord applied = old.applied;
  const auto start = [&]() -> Status {
    CATENA_ASSIGN_OR_RETURN(const ValidatedSpec validated, prepare_again(applied, old.spec.revision));
    {
      const std::lock_guard lock(mutex_);
      CATENA_RETURN_IF_ERROR(store_.save(applied));
    }
    CATENA_RETURN_IF_ERROR(make_and_swap(applied, validated, std::nullopt, {}).status);
    const std::lock_guard lock(mutex_);
    chains_[applied.name].spec = old.spec;
    return absl::OkStatus();
  };
  const Status again = start();
  const std::string outcome =
      again.ok() ? "the chain has been started again with its earlier spec; packets were lost meanwhile"
                 : concat("its earlier spec does not start either: ", std::string(again.message()));
  spdlog::error("{}: {}", applied.name, outcome);
  return {status.code(), concat(std::string(status.message()), "\n", outcome)};
}

/// A chain returns to a spec that runs or, if that is on trial, to the one before. This must be possible now.
Status ChainSet::need_confirmation(std::optional<Entry> const& old, ApplyRecord& applied) const {
  if (!is_running(old) || old->spec.revision.empty()) {
    return absl::FailedPreconditionError(
        concat("chain '", applied.name,
               "' does not run a spec of its history, so it could not return to it; leave out --confirm"));
  }
  applied.unconfirmed = old->applied.unconfirmed.empty() ? old->spec.revision : old->applied.unconfirmed;
  ApplyRecord earlier = applied;
  const Status status = prepare_again(earlier, applied.unconfirmed).status();
  return status.ok() ? status
                     : absl::FailedPreconditionError(concat("chain '", applied.name, "' could not return to its spec: ",
                                                            std::string(status.message()), "; leave out --confirm"));
}

/// After a start or a change. An error is no reason to end the chain: it costs a way back.
void ChainSet::keep_revision(ApplyRecord const& applied, SpecRevision const& revision, std::chrono::seconds confirm) {
  const Status saved = store_.history().save(applied.name, revision, applied.unconfirmed);
  if (!saved.ok()) {
    spdlog::error("{}: its spec is not kept for a rollback: {}", applied.name, std::string(saved.message()));
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = chains_[applied.name];
  entry.spec.revision = saved.ok() ? revision.id : std::string();
  if (confirm.count() != 0) {
    entry.spec.confirm_until = Retries::Clock::now() + confirm;
  }
}

/// A copy of the chain for a request about it.
Result<ChainSet::Entry> ChainSet::known(std::string const& name, Caller const& caller) const {
  const std::lock_guard lock(mutex_);
  return entry_for(name, caller);
}

Result<ChainSet::AppliedChain> ChainSet::start(std::string const& name, RequestOptions const& consents,
                                               Caller const& caller, std::stop_token const& gone) {
  CATENA_ASSIGN_OR_RETURN(const Entry entry, known(name, caller));
  if (is_running(entry)) {
    return AppliedChain{name, false, true};
  }
  CATENA_ASSIGN_OR_RETURN(const SpecSource spec, spec_of(entry.applied));
  return apply(name, spec, with_options(consents, entry.applied.options), rights_for(entry.applied, caller), gone);
}

Result<ChainSet::AppliedChain> ChainSet::reload(std::string const& name, RequestOptions const& consents,
                                                Caller const& caller, std::stop_token const& gone) {
  CATENA_ASSIGN_OR_RETURN(const Entry entry, known(name, caller));
  return apply(name, {entry.applied.file}, with_options(consents, entry.applied.options),
               rights_for(entry.applied, caller), gone);
}

Result<ChainSet::AppliedChain> ChainSet::restart(std::string const& name, RequestOptions const& consents,
                                                 Caller const& caller, std::stop_token const& gone) {
  CATENA_ASSIGN_OR_RETURN(const Entry entry, known(name, caller));
  CATENA_ASSIGN_OR_RETURN(const SpecSource spec, spec_of(entry.applied));
  RequestOptions options = with_options(consents, entry.applied.options);
  options.restarts = true;
  return apply(name, spec, options, rights_for(entry.applied, caller), gone);
}

Result<ChainSet::AppliedChain> ChainSet::rollback(std::string const& name, std::string const& id,
                                                  RequestOptions consents, Caller const& caller,
                                                  std::stop_token const& gone) {
  CATENA_ASSIGN_OR_RETURN(const Entry entry, known(name, caller));
  std::string wanted = id.empty() ? entry.applied.unconfirmed : id;
  if (wanted.empty()) {
    const std::vector<RevisionInfo> kept = store_.history().list(name);
    const auto before =
        std::ranges::find_if(kept, [&](RevisionInfo const& revision) { return revision.id != entry.spec.revision; });
    if (before == kept.end()) {
      return absl::NotFoundError(concat("chain '", name, "' has no earlier spec"));
    }
    wanted = before->id;
  }
  CATENA_ASSIGN_OR_RETURN(SpecRevision revision, revision_of(entry.applied, wanted));
  consents.over_file = revision.source.options;
  std::string file = revision.source.file;
  return apply(name, {std::move(file), std::move(revision)}, consents, rights_for(entry.applied, caller), gone);
}

Result<std::vector<RevisionInfo>> ChainSet::history(std::string const& name, Caller const& caller) const {
  CATENA_RETURN_IF_ERROR(check_owner(name, caller));
  return store_.history().list(name);
}

Status ChainSet::confirm(std::string const& name, Caller const& caller) {
  const std::lock_guard lock(mutex_);
  CATENA_ASSIGN_OR_RETURN(Entry entry, entry_for(name, caller));
  CATENA_ASSIGN_OR_RETURN(const ChainLock chain_lock, ChainLock::take(*this, name, nullptr));
  if (entry.applied.unconfirmed.empty()) {
    return absl::FailedPreconditionError(concat("chain '", name, "' has nothing to confirm"));
  }
  entry.applied.unconfirmed.clear();
  CATENA_RETURN_IF_ERROR(store_.save(entry.applied));
  chains_[name].applied = std::move(entry.applied);
  chains_[name].spec.confirm_until.reset();
  return absl::OkStatus();
}

Status ChainSet::cancel(std::string const& name, Caller const& caller) {
  std::unique_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(entry_for(name, caller).status());
  std::unique_lock chain_locks(chain_locks_mutex_);
  const auto claimed = claimed_.find(name);
  if (claimed == claimed_.end() || claimed->second.starting == nullptr) {
    return absl::FailedPreconditionError(concat("nothing of chain '", name, "' is being started or changed"));
  }
  const std::shared_ptr<std::stop_source> change = claimed->second.change;
  if (change == nullptr) {
    chain_locks.unlock();
    return abort_start(name, lock);
  }
  lock.unlock();
  chain_locks.unlock();
  change->request_stop();  // of the change alone: the chain runs
  chain_locks.lock();
  const bool has_ended = chain_lock_ended_.wait_for(chain_locks, kEndLimit, [&] {
    const auto now = claimed_.find(name);
    return now == claimed_.end() || now->second.change != change;
  });
  return has_ended ? absl::OkStatus()
                   : absl::UnavailableError(concat("the change of chain '", name, "' does not end yet"));
}

/// Specs on trial whose time is over, or whose chain has failed. Each return has a thread, as it may wait for the
/// reader of an output.
void ChainSet::return_unconfirmed() {
  const std::lock_guard lock(mutex_);
  for (auto const& [name, entry] : chains_) {
    const auto until = entry.spec.confirm_until;
    const bool has_failed = entry.run != nullptr && entry.run->state() == ChainState::kFailed;
    const bool is_due = has_failed || !until || *until <= Retries::Clock::now();
    if (entry.applied.unconfirmed.empty() || !is_due || starting_.contains(name)) {
      continue;
    }
    if (Result<ChainLock> chain_lock = ChainLock::take(*this, name, nullptr); chain_lock.ok()) {
      work_in_thread(name, *std::move(chain_lock), [this, applied = entry.applied] { return_to_earlier(applied); });
    }
  }
}

/// Whether an error stays the same without a user.
bool ChainSet::is_lasting(Status const& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) || absl::IsNotFound(status) ||
         absl::IsPermissionDenied(status) || absl::IsDataLoss(status);
}

/// A lasting refusal is logged, and the chain keeps its spec. After any other error the return is tried again.
void ChainSet::return_to_earlier(ApplyRecord const& on_trial) {
  const LogContext context(on_trial.name);
  spdlog::warn("{}: its spec was not confirmed", on_trial.name);
  const Status status = try_earlier(on_trial);
  if (status.ok()) {
    spdlog::warn("{}: has returned to revision {}", on_trial.name, on_trial.unconfirmed);
    return;
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = chains_[on_trial.name];
  if (!is_lasting(status) || is_ending_) {
    constexpr std::chrono::seconds kPause{8};
    entry.spec.confirm_until = Retries::Clock::now() + kPause;
    spdlog::error("{}: does not return to revision {} yet: {}", on_trial.name, on_trial.unconfirmed,
                  std::string(status.message()));
    return;
  }
  spdlog::error("{}: does not return to revision {} and keeps its spec: {}", on_trial.name, on_trial.unconfirmed,
                std::string(status.message()));
  entry.applied.unconfirmed.clear();
  entry.spec.confirm_until.reset();
  if (const Status saved = store_.save(entry.applied); !saved.ok()) {
    spdlog::error("{}: {}", on_trial.name, std::string(saved.message()));
  }
}

Status ChainSet::try_earlier(ApplyRecord const& on_trial) {
  ApplyRecord applied = on_trial;
  applied.unconfirmed.clear();
  CATENA_ASSIGN_OR_RETURN(ValidatedSpec validated, prepare_again(applied, on_trial.unconfirmed));
  validated.accepts_loss = true;
  std::unique_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(check_chain_lock(validated, applied.caller));
  applied.tenant_uid = tenant_owner(applied.tenant).value_or(applied.caller.uid);
  const std::optional<Entry> old = chains_[applied.name];
  {
    const std::lock_guard chain_locks(chain_locks_mutex_);
    claimed_[applied.name].wanted = &validated;
  }
  lock.unlock();
  AppliedChain result{applied.name, false};
  Status status = change_or_replace(applied, validated, old, {}, {}, result);
  const std::lock_guard chain_locks(chain_locks_mutex_);
  claimed_[applied.name].wanted = nullptr;
  return status;
}

}  // namespace catena::service
