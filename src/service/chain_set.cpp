// SPDX-License-Identifier: Apache-2.0
#include "service/chain_set.hpp"

#include "base/core/log_context.hpp"
#include "chain/effective.hpp"
#include "chain/port_kind.hpp"
#include "pipeline/isolation.hpp"
#include "service/chain_lock.hpp"
#include "service/chain_log.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace catena::service {
namespace {

Status not_accepted(std::string const& name, runtime::Losses const& losses) {
  return absl::FailedPreconditionError(
      fmt::format("chain '{}' keeps running unchanged, because its replacement would lose {}. To accept this, use "
                  "`catena apply --accept-loss`",
                  name, fmt::join(runtime::describe(losses), ", ")));
}

Status does_not_end(std::string const& name, std::string const& fifo) {
  return absl::UnavailableError(
      concat("chain '", name, "' did not stop within the limit",
             fifo.empty() ? "" : concat("; its output ", fifo, " is a FIFO and may have no reader")));
}

bool may_touch(ApplyRecord const& applied, Caller const& caller) {
  return is_privileged(caller) || applied.caller.uid == caller.uid;
}

/// What is remembered of a request.
ApplyRecord applied_of(ValidatedSpec const& validated, SpecSource const& spec, RequestOptions const& options,
                       Caller const& caller) {
  return {
      validated.config.name,         validated.config.tenant, caller.uid, spec.file, options.over_file, caller, false,
      spec.kept ? spec.kept->id : ""};
}

/// Why a running chain cannot continue as the next one, or be replaced by it without loss; empty for any other error.
std::string obstacle_in(Status const& status) {
  return absl::IsFailedPrecondition(status) || absl::IsAborted(status) ? std::string(status.message()) : std::string();
}

/// Errors of a file or of options are the caller's, whatever the code; but what he may not open, or has ended, stays
/// so.
Status as_callers(Status const& status) {
  const bool keeps =
      status.ok() || absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status) || absl::IsCancelled(status);
  return keeps ? status : absl::InvalidArgumentError(status.message());
}

}  // namespace

/// With the mutex. Who first applied one of the chains that there are of the tenant.
std::optional<uid_t> ChainSet::tenant_owner(std::string const& tenant) const {
  for (auto const& [name, entry] : chains_) {
    if (entry.applied.tenant == tenant) {
      return entry.applied.tenant_uid;
    }
  }
  return std::nullopt;
}

/// With the mutex. Whether the tenant is another user's, who has a chain of it or is about to.
bool ChainSet::has_others(ValidatedSpec const& validated, Caller const& caller) const {
  std::string const& tenant = validated.config.tenant;
  if (tenant_owner(tenant).value_or(caller.uid) != caller.uid) {
    return true;
  }
  const std::lock_guard lock(chain_locks_mutex_);
  return std::ranges::any_of(claimed_, [&](auto const& claimed) {
    ValidatedSpec const* const wanted = claimed.second.wanted;
    return wanted != nullptr && wanted->config.tenant == tenant && wanted->caller.uid != caller.uid;
  });
}

/// With the mutex. Whether the name and the tenant are the caller's to have.
Status ChainSet::check_chain_lock(ValidatedSpec const& validated, Caller const& caller) const {
  const auto of_name = chains_.find(validated.config.name);
  if (of_name != chains_.end() && !may_touch(of_name->second.applied, caller)) {
    return absl::PermissionDeniedError(concat("chain '", validated.config.name, "' is another user's"));
  }
  if (has_others(validated, caller) && !is_privileged(caller)) {
    return absl::PermissionDeniedError(concat("tenant '", validated.config.tenant, "' is another user's"));
  }
  CATENA_RETURN_IF_ERROR(of_name == chains_.end() ? check_room(caller) : absl::OkStatus());
  return check_resources(validated);
}

/// With the mutex. Whether there is room for one chain more of this user.
Status ChainSet::check_room(Caller const& caller) const {
  const auto of_user = std::count_if(chains_.begin(), chains_.end(), [&caller](auto const& chain) {
    return chain.second.applied.caller.uid == caller.uid;
  });
  if (chains_.size() >= kMaxChains ||
      (!is_privileged(caller) && static_cast<std::size_t>(of_user) >= kMaxChainsOfUser)) {
    return absl::ResourceExhaustedError(concat("the service has ", chains_.size(), " chains, ", of_user,
                                               " of them yours; it has room for ", kMaxChains, ", ", kMaxChainsOfUser,
                                               " of one user; delete one"));
  }
  return absl::OkStatus();
}

/// With the mutex. Whether other chains leave it what it wants.
Status ChainSet::check_resources(ValidatedSpec const& validated) const {
  const auto check = [&validated](std::string const& name, std::vector<Resource> const& resources) {
    const std::string why = name == validated.config.name ? std::string() : clash(validated.resources, resources, name);
    return why.empty() ? absl::OkStatus() : absl::AlreadyExistsError(why);
  };
  for (auto const& [name, entry] : chains_) {
    const bool holds = entry.run != nullptr &&
                       (entry.run->state() == ChainState::kStarting || entry.run->state() == ChainState::kRunning);
    CATENA_RETURN_IF_ERROR(holds ? check(name, entry.resources) : absl::OkStatus());
  }
  const std::lock_guard lock(chain_locks_mutex_);
  for (auto const& [name, claimed] : claimed_) {
    CATENA_RETURN_IF_ERROR(claimed.wanted != nullptr ? check(name, claimed.wanted->resources) : absl::OkStatus());
  }
  return absl::OkStatus();
}

/// As prepare(), for one request of a user at a time: files take memory and time while they are read.
Result<ValidatedSpec> ChainSet::prepare_in_turn(SpecSource const& spec, RequestOptions const& options,
                                                Caller const& caller, std::stop_token const& gone) const {
  if (is_privileged(caller)) {
    return prepare(spec, options, caller, registry_);
  }
  CATENA_ASSIGN_OR_RETURN(const UserTurns::Turn turn, turns_.take(caller.uid, gone));
  return prepare(spec, options, caller, registry_);
}

Result<ChainSet::AppliedChain> ChainSet::apply(std::string const& name, SpecSource const& spec,
                                               RequestOptions const& options, Caller const& caller,
                                               std::stop_token const& gone) {
  Result<ValidatedSpec> validated = prepare_in_turn(spec, options, caller, gone);
  CATENA_RETURN_IF_ERROR(as_callers(validated.status()));
  ApplyRecord applied = applied_of(*validated, spec, options, caller);
  const LogContext context(applied.name);
  if (!name.empty() && name != applied.name) {
    return absl::InvalidArgumentError(
        concat(spec.file, ": describes chain '", applied.name, "', and not '", name, "', which was to be applied"));
  }
  std::unique_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(check_chain_lock(*validated, caller));
  CATENA_ASSIGN_OR_RETURN(const ChainLock chain_lock, ChainLock::take(*this, applied.name, &*validated));
  applied.tenant_uid = tenant_owner(applied.tenant).value_or(caller.uid);
  const auto found = chains_.find(applied.name);
  const std::optional<Entry> old = found == chains_.end() ? std::nullopt : std::optional(found->second);
  lock.unlock();
  if (options.confirm.count() != 0) {
    CATENA_RETURN_IF_ERROR(need_confirmation(old, applied));
  } else if (options.restarts && old) {
    applied.unconfirmed = old->applied.unconfirmed;  // a restart is no confirmation
  }
  AppliedChain result{applied.name, !old.has_value()};
  CATENA_RETURN_IF_ERROR(change_or_replace(applied, *validated, old, options, gone, result));  // the claim has this one
  return result;
}

Status ChainSet::change_or_replace(ApplyRecord const& applied, ValidatedSpec validated, std::optional<Entry> const& old,
                                   RequestOptions const& options, std::stop_token const& gone, AppliedChain& result) {
  const SpecRevision revision = make_revision(validated.config.source, validated.files, applied.caller.uid);
  if (!old) {
    CATENA_RETURN_IF_ERROR(store_.history().remove(applied.name));  // of a chain of another user, perhaps
  } else if (!options.restarts) {
    CATENA_ASSIGN_OR_RETURN(result.is_changed, change(applied, validated, *old, gone, result));
  }
  if (!result.is_changed) {
    CATENA_RETURN_IF_ERROR(replace(applied, std::move(validated), old, gone, result));
  }
  keep_revision(applied, revision, options.confirm);
  if (options.restarts && old) {
    const std::lock_guard lock(mutex_);
    chains_[applied.name].spec.confirm_until = old->spec.confirm_until;
  }
  return absl::OkStatus();
}

Result<ChainSet::AppliedChain> ChainSet::preview(std::string const& name, SpecSource const& spec,
                                                 RequestOptions const& options, Caller const& caller,
                                                 std::stop_token const& gone) const {
  Result<ValidatedSpec> validated = prepare_in_turn(spec, options, caller, gone);
  CATENA_RETURN_IF_ERROR(as_callers(validated.status()));
  const ApplyRecord applied = applied_of(*validated, spec, options, caller);
  if (!name.empty() && name != applied.name) {
    return absl::InvalidArgumentError(
        concat(spec.file, ": describes chain '", applied.name, "', and not '", name, "', which was to be applied"));
  }
  std::unique_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(check_chain_lock(*validated, caller));
  const auto found = chains_.find(applied.name);
  const std::optional<Entry> old = found == chains_.end() ? std::nullopt : std::optional(found->second);
  lock.unlock();
  AppliedChain result{applied.name, !old.has_value()};
  if (!old) {
    return result;
  }
  result.replace_reason = obstacle_to(applied, old);
  if (result.replace_reason.empty()) {
    Result<std::vector<std::string>> changes =
        old->run->preview_change(validated->config, validated->options.new_keys, gone);
    result.is_changed = changes.ok();
    if (changes.ok()) {
      result.changes = *std::move(changes);
      return result;
    }
    result.replace_reason = obstacle_in(changes.status());
    if (result.replace_reason.empty()) {
      return absl::IsUnavailable(changes.status()) ? changes.status() : as_callers(changes.status());
    }
  }
  CATENA_RETURN_IF_ERROR(preview_replacement(applied, *std::move(validated), old, gone, result));
  return result;
}

/// Sets the losses of the replacement of `old`.
Status ChainSet::preview_replacement(ApplyRecord const& applied, ValidatedSpec validated,
                                     std::optional<Entry> const& old, std::stop_token const& gone,
                                     AppliedChain& result) const {
  CATENA_RETURN_IF_ERROR(as_callers(set_up(applied, validated)));
  if (!is_running(old)) {
    return absl::OkStatus();
  }
  std::string obstacle = obstacle_to(applied, old);
  if (obstacle.empty()) {
    Result<std::vector<std::string>> restarted =
        old->run->preview_replacement(validated.config, validated.options, gone);
    if (restarted.ok()) {
      result.losses.nf_states = *std::move(restarted);
      return absl::OkStatus();
    }
    obstacle = obstacle_in(restarted.status());
    if (obstacle.empty()) {
      return absl::IsUnavailable(restarted.status()) ? restarted.status() : as_callers(restarted.status());
    }
  }
  result.losses = losses_of(validated, *old, std::move(obstacle));
  return absl::OkStatus();
}

bool ChainSet::is_running(std::optional<Entry> const& old) {
  return old && old->run != nullptr && old->run->state() == ChainState::kRunning;
}

/// Why the old chain cannot continue as the new one; empty if it can. A chain runs with the rights and for the tenant
/// of its creation.
std::string ChainSet::obstacle_to(ApplyRecord const& applied, std::optional<Entry> const& old) {
  if (!is_running(old)) {
    return "it is not running";
  }
  const bool is_of_same = old->applied.caller == applied.caller && old->applied.tenant == applied.tenant;
  return is_of_same ? std::string() : "it was applied by another user, or for another tenant";
}

/// The losses of a new chain that starts after the end of the old one.
runtime::Losses ChainSet::losses_of(ValidatedSpec const& validated, Entry const& old, std::string obstacle) {
  // an error: the old chain has ended in the meantime, and its state with it
  return {std::move(obstacle), old.run->restarted_nfs_of(validated.config).value_or(std::vector<std::string>())};
}

/// Has a chain that runs go on with what has changed. False: it has to be made anew.
Result<bool> ChainSet::change(ApplyRecord const& applied, ValidatedSpec const& validated, Entry const& old,
                              std::stop_token const& gone, AppliedChain& result) {
  result.replace_reason = obstacle_to(applied, old);
  Status status;
  Entry changed = old;
  changed.applied = applied;
  changed.resources = validated.resources;
  changed.fifo = validated.fifo;
  changed.config = chain::effective_text(validated.config);
  changed.spec.fallback.clear();
  changed.spec.confirm_until.reset();
  if (result.replace_reason.empty()) {
    std::unique_lock lock(mutex_);
    if (is_ending_) {
      return absl::UnavailableError("the service is ending");
    }
    CATENA_RETURN_IF_ERROR(store_.save(applied));
    lock.unlock();
    // who ends the chain ends the change, too; who cancels the change does not end the chain
    const auto end = std::make_shared<std::stop_source>();
    const std::stop_callback on_gone(gone, [&end] { end->request_stop(); });
    set_starting(applied.name, old.run, end);
    Result<std::vector<std::string>> changes =
        old.run->change(validated.config, validated.options.new_keys, end->get_token());
    set_starting(applied.name, nullptr);
    status = changes.status();
    lock.lock();
    if (changes.ok()) {
      result.changes = *std::move(changes);
      chains_[applied.name] = changed;
    } else {
      CATENA_RETURN_IF_ERROR(store_.save(chains_[applied.name].applied));
    }
    result.replace_reason = obstacle_in(status);
  }
  if (!result.replace_reason.empty()) {
    spdlog::info("{}: the change needs a replacement: {}", applied.name, result.replace_reason);
    return false;
  }
  CATENA_RETURN_IF_ERROR(absl::IsUnavailable(status) ? status : as_callers(status));
  for (std::string const& line : result.changes) {
    spdlog::info("{}: changed: {}", applied.name, line);
  }
  return true;
}

Status ChainSet::replace(ApplyRecord const& applied, ValidatedSpec validated, std::optional<Entry> const& old,
                         std::stop_token const& gone, AppliedChain& result) {
  if (!validated.options.new_keys.empty() && !validated.accepts_loss) {
    // a refused request must not leave states for its keys, which would need no consent later
    CATENA_RETURN_IF_ERROR(preview_replacement(applied, validated, old, gone, result));
    if (!result.losses.empty()) {
      return not_accepted(applied.name, result.losses);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    CATENA_RETURN_IF_ERROR(store_.save(applied));
  }
  const bool was_running = is_running(old);
  const bool restarts = validated.restarts;
  Swap swap{.obstacle = restarts ? "it is restarted" : obstacle_to(applied, old)};
  if (swap.obstacle.empty()) {
    swap = take_over(applied, validated, *old, gone);
    result.losses.nf_states = swap.restarted_nfs;
  }
  if (!swap.obstacle.empty() && is_running(old)) {
    result.losses = losses_of(validated, *old, swap.obstacle);
  }
  if (!result.losses.empty() && !validated.accepts_loss) {
    swap = {not_accepted(applied.name, result.losses)};
  } else if (!swap.obstacle.empty()) {
    for (std::string const& loss : runtime::describe(result.losses)) {
      spdlog::warn("{}: the replacement loses {}", applied.name, loss);
    }
    swap = make_and_swap(applied, std::move(validated), old, gone);
  }
  if (swap.is_done) {
    const bool has_failed = !swap.status.ok() && !absl::IsCancelled(swap.status) && !restarts;
    return has_failed && old && was_running ? run_again(*old, swap.status) : swap.status;
  }
  // as it was; if this fails too, the next start of the service says what is wrong with the chain
  Entry given_up_entry;  // ended without the mutex
  const std::lock_guard lock(mutex_);
  given_up_entry = std::exchange(chains_[applied.name], old.value_or(Entry()));
  if (!old) {
    chains_.erase(applied.name);
    chain_log()->forget(applied.name);
  }
  const Status undone = old ? store_.save(old->applied) : store_.remove(applied.name);
  return undone.ok() ? swap.status
                     : Status(swap.status.code(),
                              concat(std::string(swap.status.message()), "\n", std::string(undone.message())));
}

ChainSet::Swap ChainSet::make_and_swap(ApplyRecord const& applied, ValidatedSpec validated,
                                       std::optional<Entry> const& old, std::stop_token const& gone) {
  if (Status ready = set_up(applied, validated); !ready.ok()) {
    return {std::move(ready), false};
  }
  Before before{old ? old->run : nullptr, old ? old->fifo : std::string()};
  before.ends_first = before.run != nullptr &&
                      (validated.restarts || !clash(validated.resources, old->resources, applied.name).empty());
  if (Status ended = before.ends_first ? end(applied.name, *before.run, before.fifo) : absl::OkStatus(); !ended.ok()) {
    return {std::move(ended), false};
  }
  return start_and_swap(applied, std::move(validated), before, gone);
}

ChainSet::Swap ChainSet::take_over(ApplyRecord const& applied, ValidatedSpec validated, Entry const& old,
                                   std::stop_token const& gone) {
  if (Status ready = set_up(applied, validated); !ready.ok()) {
    return {std::move(ready), false};
  }
  return start_and_swap(applied, std::move(validated), {old.run, old.fifo, false, true}, gone);
}

Status ChainSet::end(std::string const& name, ChainRun& run, std::string const& fifo) {
  run.stop();
  return run.wait(kEndLimit) ? absl::OkStatus() : does_not_end(name, fifo);
}

/// Gives the chain what it has of the service.
Status ChainSet::set_up(ApplyRecord const& applied, ValidatedSpec& validated) const {
  if (servers_ != nullptr) {
    runtime::use_servers(*servers_, {applied.name, applied.tenant, servers_for_}, validated.options);
  }
  validated.options.switches = switches_;
  CATENA_RETURN_IF_ERROR(share_device(validated));
  CATENA_RETURN_IF_ERROR(runtime::allow_processes(validated.config, validated.options));
  if (has_other_rights(applied.caller)) {
    validated.options.processes.uid = applied.caller.uid;
    validated.options.processes.gid = applied.caller.gid;
  }
  return absl::OkStatus();
}

ChainSet::Swap ChainSet::start_and_swap(ApplyRecord const& applied, ValidatedSpec validated, Before const& before,
                                        std::stop_token const& gone) {
  bool old_is_gone = before.run == nullptr || before.ends_first;
  const bool accepts_loss = validated.accepts_loss;
  std::string config = chain::effective_text(validated.config);
  const bool is_live = validated.config.rx.kind->is_live;
  const Entry entry{applied,
                    std::move(validated.resources),
                    std::make_shared<ChainRun>(std::move(validated.config), std::move(validated.options),
                                               applied.caller, registry_, before.is_taken_over ? before.run : nullptr),
                    {},
                    std::move(validated.fifo),
                    std::move(config),
                    is_live};
  if (Status announced = announce(entry, old_is_gone); !announced.ok()) {
    return {std::move(announced), before.ends_first};
  }
  Status status = entry.run->wait_until_ready(gone);
  if (before.is_taken_over && absl::IsFailedPrecondition(status)) {
    return {.obstacle = std::string(status.message())};
  }
  std::vector<std::string> restarted = status.ok() ? entry.run->restarted_nfs() : std::vector<std::string>();
  if (!restarted.empty() && !accepts_loss) {
    withdraw(entry);
    return {.restarted_nfs = std::move(restarted)};
  }
  if (!status.ok() && !absl::IsCancelled(status)) {
    spdlog::error("{}: does not start: {}", applied.name, std::string(status.message()));
    if (before.ends_first) {
      put({applied, {}, nullptr, std::string(status.message())});
    }
    return {as_callers(status), before.ends_first};
  }
  if (status.ok() && !old_is_gone && !before.is_taken_over) {
    if (Status ended = end(applied.name, *before.run, before.fifo); !ended.ok()) {
      return {std::move(ended), false};
    }
    old_is_gone = true;
  }
  if (status.ok()) {
    status = entry.run->start();
  }
  if (before.is_taken_over && absl::IsFailedPrecondition(status)) {
    withdraw(entry);
    return {.obstacle = std::string(status.message())};
  }
  if (!status.ok()) {
    spdlog::info("{}", std::string(status.message()));
    const bool is_undone = gone.stop_requested() && before.run == nullptr;
    return old_is_gone && !is_undone ? given_up(applied, std::move(status)) : Swap{std::move(status), false};
  }
  put(entry);
  return {absl::OkStatus(), true, {}, std::move(restarted)};
}

/// Ends a run that was made and does not start, and with it what it holds of the one before.
void ChainSet::withdraw(Entry const& entry) {
  set_starting(entry.applied.name, nullptr);  // the entry has it, too
  entry.run->stop();
  entry.run->wait(kEndLimit);
}

/// The run that the operation which has the name waits for.
void ChainSet::set_starting(std::string const& name, std::shared_ptr<ChainRun> run,
                            std::shared_ptr<std::stop_source> change) {
  const std::lock_guard chain_locks(chain_locks_mutex_);
  claimed_[name].change = std::move(change);
  std::swap(claimed_[name].starting, run);
}

/// From here on others may stop the run while it starts. `is_seen`: and find it in the list.
Status ChainSet::announce(Entry const& entry, bool is_seen) {
  const std::lock_guard lock(mutex_);
  if (is_ending_) {
    return absl::UnavailableError("the service is ending");
  }
  const std::lock_guard chain_locks(chain_locks_mutex_);
  claimed_[entry.applied.name].starting = entry.run;
  if (is_seen) {
    chains_[entry.applied.name] = entry;
  }
  return absl::OkStatus();
}

/// What becomes of a chain whose start was given up: it is stopped, or if the service ends, starts again with it.
ChainSet::Swap ChainSet::given_up(ApplyRecord applied, Status status) {
  const std::lock_guard lock(mutex_);
  applied.is_stopped = !is_ending_;
  if (applied.is_stopped) {
    applied.unconfirmed.clear();
  }
  if (const Status saved = store_.save(applied); !saved.ok()) {
    status = saved;
  }
  chains_[applied.name] = {applied, {}, nullptr, {}};
  return {std::move(status), true};
}

/// Has the chain's NFs share their device with those of the others, where the service does that.
Status ChainSet::share_device(ValidatedSpec& validated) const {
  if (std::string const& wanted = validated.config.run.device_servers; wanted != "none") {
    CATENA_ASSIGN_OR_RETURN(const runtime::ServersFor servers_for, runtime::parse_servers_for(wanted));
    if (servers_for != servers_for_) {
      return absl::InvalidArgumentError(concat(validated.config.source.file, ": 'device_servers' is ", wanted,
                                               ", and this service has others (`catena serve --device-servers`); leave "
                                               "it out"));
    }
  }
  if (!sharing_) {
    return runtime::check_servers(servers_for_, validated.options.sharing);
  }
  if (validated.options.sharing) {
    return absl::InvalidArgumentError(concat(validated.config.source.file,
                                             ": the NFs of all chains share devices here (`catena serve --share ",
                                             share::to_string(sharing_->mode), "`); leave out --share and `sharing`"));
  }
  CATENA_RETURN_IF_ERROR(chain::check_one_device(validated.config));
  validated.options.sharing = sharing_;
  validated.options.partitions.plans = partition_plans_;
  return absl::OkStatus();
}

void ChainSet::put(Entry entry) {
  const std::lock_guard lock(mutex_);
  std::swap(chains_[entry.applied.name], entry);  // what was there ends without the mutex
}

/// With the mutex.
Result<ChainSet::Entry> ChainSet::entry_for(std::string const& name, Caller const& caller) const {
  const auto found = chains_.find(name);
  if (found == chains_.end()) {
    return absl::NotFoundError(concat("no chain is named '", name, "'"));
  }
  if (!may_touch(found->second.applied, caller)) {
    return absl::PermissionDeniedError(concat("chain '", name, "' is another user's"));
  }
  return found->second;
}

/// With the mutex, which is free meanwhile: ends a start that another operation on the chain waits for, and waits for
/// the end of that operation.
Status ChainSet::abort_start(std::string const& name, std::unique_lock<std::mutex>& lock) {
  std::unique_lock chain_locks(chain_locks_mutex_);
  const auto starting = [&] {
    const auto claimed = claimed_.find(name);
    return claimed == claimed_.end() ? nullptr : claimed->second.starting;
  };
  std::shared_ptr<ChainRun> run = starting();
  if (run == nullptr) {
    return absl::OkStatus();
  }
  lock.unlock();
  run->stop();
  const bool has_ended = chain_lock_ended_.wait_for(chain_locks, kEndLimit, [&] { return starting() != run; });
  chain_locks.unlock();
  run.reset();  // without the mutex: it may take time to end
  lock.lock();
  return has_ended ? absl::OkStatus()
                   : absl::UnavailableError(concat("chain '", name, "' is still starting, and ends after the start"));
}

Status ChainSet::stop(std::string const& name, Caller const& caller) {
  std::unique_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(entry_for(name, caller).status());
  CATENA_RETURN_IF_ERROR(abort_start(name, lock));
  CATENA_ASSIGN_OR_RETURN(Entry entry, entry_for(name, caller));
  CATENA_ASSIGN_OR_RETURN(const ChainLock chain_lock, ChainLock::take(*this, name, nullptr));
  entry.applied.is_stopped = true;
  entry.applied.unconfirmed.clear();  // else it would return to an earlier spec, and run
  CATENA_RETURN_IF_ERROR(store_.save(entry.applied));
  chains_[name].applied = entry.applied;
  chains_[name].spec.confirm_until.reset();
  retries_.forget(name);
  lock.unlock();
  return entry.run != nullptr ? end(name, *entry.run, entry.fifo) : absl::OkStatus();
}

Status ChainSet::remove(std::string const& name, Caller const& caller) {
  std::unique_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(entry_for(name, caller).status());
  CATENA_RETURN_IF_ERROR(abort_start(name, lock));
  CATENA_ASSIGN_OR_RETURN(const Entry entry, entry_for(name, caller));
  CATENA_ASSIGN_OR_RETURN(const ChainLock chain_lock, ChainLock::take(*this, name, nullptr));
  CATENA_RETURN_IF_ERROR(store_.remove(name));
  lock.unlock();
  CATENA_RETURN_IF_ERROR(entry.run != nullptr ? end(name, *entry.run, entry.fifo) : absl::OkStatus());
  std::map<std::string, Entry>::node_type
      deleted;  // ended without the mutex, as `entry` is: a device server may end with it
  lock.lock();
  deleted = chains_.extract(name);
  retries_.forget(name);
  lock.unlock();
  spdlog::info("{}: deleted", name);
  chain_log()->forget(name);
  return absl::OkStatus();
}

Status ChainSet::check_owner(std::string const& name, Caller const& caller) const {
  const std::lock_guard lock(mutex_);
  return entry_for(name, caller).status();
}

Status ChainSet::lift_quarantine(std::string const& name) {
  if (servers_ == nullptr || !servers_->reset(name).ok()) {
    return absl::FailedPreconditionError(concat("chain '", name, "' is not in quarantine"));
  }
  spdlog::info("{}: its quarantine is lifted", name);
  return absl::OkStatus();
}

ChainView ChainSet::view_of(Entry const& entry, std::optional<std::chrono::seconds> retry) const {
  const ChainState state = !entry.error.empty()       ? ChainState::kFailed
                           : entry.applied.is_stopped ? ChainState::kStopped
                                                      : ChainState::kStarting;
  ChainView view{entry.applied, state, entry.error, {}, retry, entry.spec.revision, entry.spec.fallback, {}, {}, {}};
  if (entry.spec.confirm_until) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(*entry.spec.confirm_until - Retries::Clock::now());
    view.confirm = std::max(left, std::chrono::seconds(0));
  }
  if (servers_ != nullptr) {
    view.quarantine = servers_->quarantine_of(entry.applied.name);
  }
  if (entry.run != nullptr) {
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

Result<ChainView> ChainSet::get(std::string const& name, Caller const& caller) const {
  std::unique_lock lock(mutex_);
  CATENA_ASSIGN_OR_RETURN(const Entry entry, entry_for(name, caller));
  const auto retry = retries_.left(name, Retries::Clock::now());
  lock.unlock();
  return view_of(entry, retry);
}

Result<std::string> ChainSet::config_of(std::string const& name, Caller const& caller) const {
  const std::lock_guard lock(mutex_);
  CATENA_ASSIGN_OR_RETURN(Entry entry, entry_for(name, caller));
  return entry.config.empty() ? absl::FailedPreconditionError(concat("chain '", name, "' did not run in this service"))
                              : Result<std::string>(std::move(entry.config));
}

std::vector<ChainView> ChainSet::list(Caller const& caller) const {
  std::vector<std::pair<Entry, std::optional<std::chrono::seconds>>> entries;
  {
    const std::lock_guard lock(mutex_);
    for (auto const& [name, entry] : chains_) {
      if (may_touch(entry.applied, caller)) {
        entries.emplace_back(entry, retries_.left(name, Retries::Clock::now()));
      }
    }
  }
  std::vector<ChainView> views;
  std::transform(entries.begin(), entries.end(), std::back_inserter(views),
                 [this](auto const& entry) { return view_of(entry.first, entry.second); });
  return views;
}

}  // namespace catena::service
