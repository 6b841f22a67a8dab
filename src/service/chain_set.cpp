// SPDX-License-Identifier: Apache-2.0
#include "service/chain_set.hpp"

#include "chain/effective.hpp"
#include "pipeline/isolation.hpp"
#include "service/chain_lock.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace catena::service {
namespace {

/// What is inside a chain is finished in a moment, but for an output that nobody reads.
constexpr std::chrono::seconds kEndLimit{10};

Status does_not_end(std::string const& name, std::string const& fifo) {
  return absl::UnavailableError(
      concat("chain '", name, "' did not stop within the limit",
             fifo.empty() ? "" : concat("; its output ", fifo, " is a FIFO and may have no reader")));
}

bool may_touch(ApplyRecord const& applied, Caller const& caller) {
  return is_privileged(caller) || applied.caller.uid == caller.uid;
}

/// What is remembered of a request.
ApplyRecord applied_of(ValidatedSpec const& validated, std::string const& file, RequestOptions const& options,
                       Caller const& caller) {
  return {validated.config.name, validated.config.tenant, caller.uid, file, options.over_file, caller, false};
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
Result<ValidatedSpec> ChainSet::prepare_in_turn(std::string const& file, RequestOptions const& options,
                                                Caller const& caller, std::stop_token const& gone) const {
  if (is_privileged(caller)) {
    return prepare(file, options, caller, registry_);
  }
  CATENA_ASSIGN_OR_RETURN(const UserTurns::Turn turn, turns_.take(caller.uid, gone));
  return prepare(file, options, caller, registry_);
}

Result<ChainSet::AppliedChain> ChainSet::apply(std::string const& name, std::string const& file,
                                               RequestOptions const& options, Caller const& caller,
                                               std::stop_token const& gone) {
  Result<ValidatedSpec> validated = prepare_in_turn(file, options, caller, gone);
  CATENA_RETURN_IF_ERROR(as_callers(validated.status()));
  ApplyRecord applied = applied_of(*validated, file, options, caller);
  if (!name.empty() && name != applied.name) {
    return absl::InvalidArgumentError(
        concat(file, ": describes chain '", applied.name, "', and not '", name, "', which was to be applied"));
  }
  std::unique_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(check_chain_lock(*validated, caller));
  CATENA_ASSIGN_OR_RETURN(const ChainLock chain_lock, ChainLock::take(*this, applied.name, &*validated));
  applied.tenant_uid = tenant_owner(applied.tenant).value_or(caller.uid);
  const auto found = chains_.find(applied.name);
  const std::optional<Entry> old = found == chains_.end() ? std::nullopt : std::optional(found->second);
  lock.unlock();
  AppliedChain result{applied.name, !old.has_value()};
  if (old) {
    CATENA_ASSIGN_OR_RETURN(result.is_changed, change(applied, *validated, *old, gone, result));
  }
  if (!result.is_changed) {
    CATENA_RETURN_IF_ERROR(replace(applied, *validated, old, gone, result));  // a copy: the claim has this one
  }
  return result;
}

Result<ChainSet::AppliedChain> ChainSet::preview(std::string const& name, std::string const& file,
                                                 RequestOptions const& options, Caller const& caller,
                                                 std::stop_token const& gone) const {
  Result<ValidatedSpec> validated = prepare_in_turn(file, options, caller, gone);
  CATENA_RETURN_IF_ERROR(as_callers(validated.status()));
  const ApplyRecord applied = applied_of(*validated, file, options, caller);
  if (!name.empty() && name != applied.name) {
    return absl::InvalidArgumentError(
        concat(file, ": describes chain '", applied.name, "', and not '", name, "', which was to be applied"));
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
  Status status = can_change(applied, old);
  if (status.ok()) {
    Result<std::vector<std::string>> changes = old->run->preview_change(validated->config, gone);
    status = changes.status();
    result.changes = changes.ok() ? *std::move(changes) : std::vector<std::string>();
  }
  result.is_changed = status.ok();
  result.replace_reason = std::string(status.message());
  if (!status.ok()) {
    Status lossless = can_change(applied, old);
    lossless.Update(lossless.ok() ? old->run->can_be_followed_by(validated->config) : absl::OkStatus());
    result.loss_reason = std::string(lossless.message());
  }
  return status.ok() || absl::IsFailedPrecondition(status) ? Result<AppliedChain>(std::move(result))
                                                           : as_callers(status);
}

/// A chain runs with the rights and for the tenant that it was made for.
Status ChainSet::can_change(ApplyRecord const& applied, std::optional<Entry> const& old) {
  if (!old || old->run == nullptr || old->run->state() != ChainState::kRunning) {
    return absl::FailedPreconditionError("it is not running");
  }
  if (old->applied.caller != applied.caller || old->applied.tenant != applied.tenant) {
    return absl::FailedPreconditionError("it was applied by another user, or for another tenant");
  }
  return absl::OkStatus();
}

/// Has a chain that runs go on with what has changed. False: it has to be made anew.
Result<bool> ChainSet::change(ApplyRecord const& applied, ValidatedSpec const& validated, Entry const& old,
                              std::stop_token const& gone, AppliedChain& result) {
  Status status = can_change(applied, old);
  Entry changed = old;
  changed.applied = applied;
  changed.resources = validated.resources;
  changed.fifo = validated.fifo;
  changed.config = chain::effective_text(validated.config);
  if (status.ok()) {
    std::unique_lock lock(mutex_);
    if (is_ending_) {
      return absl::UnavailableError("the service is ending");
    }
    CATENA_RETURN_IF_ERROR(store_.save(applied));
    lock.unlock();
    set_starting(applied.name, old.run);  // who ends the chain ends the change, too
    Result<std::vector<std::string>> changes = old.run->change(validated.config, validated.options.new_keys, gone);
    set_starting(applied.name, nullptr);
    status = changes.status();
    lock.lock();
    if (changes.ok()) {
      result.changes = *std::move(changes);
      chains_[applied.name] = changed;
    } else {
      CATENA_RETURN_IF_ERROR(store_.save(chains_[applied.name].applied));
    }
  }
  if (absl::IsFailedPrecondition(status) || absl::IsAborted(status)) {
    result.replace_reason = std::string(status.message());
    spdlog::info("{}: is replaced: {}", applied.name, result.replace_reason);
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
  {
    const std::lock_guard lock(mutex_);
    CATENA_RETURN_IF_ERROR(store_.save(applied));
  }
  Swap swap{can_change(applied, old)};
  if (swap.status.ok()) {
    swap = take_over(applied, validated, *old, gone);
  }
  if (absl::IsFailedPrecondition(swap.status)) {
    if (old && old->run != nullptr && old->run->state() == ChainState::kRunning) {
      result.loss_reason = std::string(swap.status.message());
      spdlog::info("{}: packets that arrive during the replacement are lost: {}", applied.name, result.loss_reason);
    }
    swap = make_and_swap(applied, std::move(validated), old, gone);
  }
  if (swap.is_done) {
    return swap.status;
  }
  // as it was; if this fails too, the next start of the service says what is wrong with the chain
  Entry given_up_entry;  // ended without the mutex
  const std::lock_guard lock(mutex_);
  given_up_entry = std::exchange(chains_[applied.name], old.value_or(Entry()));
  if (!old) {
    chains_.erase(applied.name);
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
  before.ends_first = before.run != nullptr && !clash(validated.resources, old->resources, applied.name).empty();
  if (Status ended = before.ends_first ? end(applied.name, *before.run, before.fifo) : absl::OkStatus(); !ended.ok()) {
    return {std::move(ended), false};
  }
  return start_and_swap(applied, std::move(validated), before, gone);
}

/// FailedPrecondition: not with this one, which goes on.
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
Status ChainSet::set_up(ApplyRecord const& applied, ValidatedSpec& validated) {
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
  std::string config = chain::effective_text(validated.config);
  const Entry entry{applied,
                    std::move(validated.resources),
                    std::make_shared<ChainRun>(std::move(validated.config), std::move(validated.options),
                                               applied.caller, registry_, before.is_taken_over ? before.run : nullptr),
                    {},
                    std::move(validated.fifo),
                    std::move(config)};
  if (Status announced = announce(entry, old_is_gone); !announced.ok()) {
    return {std::move(announced), before.ends_first};
  }
  Status status = entry.run->wait_until_ready(gone);
  if (before.is_taken_over && absl::IsFailedPrecondition(status)) {
    return {std::move(status), false};
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
    return {std::move(status), false};
  }
  if (!status.ok()) {
    spdlog::info("{}", std::string(status.message()));
    const bool is_undone = gone.stop_requested() && before.run == nullptr;
    return old_is_gone && !is_undone ? given_up(applied, std::move(status)) : Swap{std::move(status), false};
  }
  put(entry);
  return {absl::OkStatus(), true};
}

/// Ends a run that was made and does not start, and with it what it holds of the one before.
void ChainSet::withdraw(Entry const& entry) {
  set_starting(entry.applied.name, nullptr);  // the entry has it, too
  entry.run->stop();
  entry.run->wait(kEndLimit);
}

/// The run that the operation which has the name waits for.
void ChainSet::set_starting(std::string const& name, std::shared_ptr<ChainRun> run) {
  const std::lock_guard chain_locks(chain_locks_mutex_);
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
  if (const Status saved = store_.save(applied); !saved.ok()) {
    status = saved;
  }
  chains_[applied.name] = {applied, {}, nullptr, {}};
  return {std::move(status), true};
}

/// Has the chain's NFs share their device with those of the others, where the service does that.
Status ChainSet::share_device(ValidatedSpec& validated) {
  if (std::string const& wanted = validated.config.run.device_servers; wanted != "none") {
    CATENA_ASSIGN_OR_RETURN(const runtime::ServersFor servers_for, runtime::parse_servers_for(wanted));
    if (servers_for != servers_for_) {
      return absl::InvalidArgumentError(concat(validated.config.file, ": 'device_servers' is ", wanted,
                                               ", and this service has others (`catena serve --device-servers`); leave "
                                               "it out"));
    }
  }
  if (!sharing_) {
    return runtime::check_servers(servers_for_, validated.options.sharing);
  }
  if (validated.options.sharing) {
    return absl::InvalidArgumentError(concat(validated.config.file,
                                             ": the NFs of all chains share devices here (`catena serve --share ",
                                             share::to_string(sharing_->mode), "`); leave out --share and `sharing`"));
  }
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
  CATENA_RETURN_IF_ERROR(store_.save(entry.applied));
  chains_[name].applied = entry.applied;
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
  lock.unlock();
  spdlog::info("{}: deleted", name);
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

ChainView ChainSet::view_of(Entry const& entry) const {
  const ChainState state = !entry.error.empty()       ? ChainState::kFailed
                           : entry.applied.is_stopped ? ChainState::kStopped
                                                      : ChainState::kStarting;
  ChainView view{entry.applied, state, entry.error, {}, {}, {}};
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
  lock.unlock();
  return view_of(entry);
}

Result<std::string> ChainSet::config_of(std::string const& name, Caller const& caller) const {
  const std::lock_guard lock(mutex_);
  CATENA_ASSIGN_OR_RETURN(Entry entry, entry_for(name, caller));
  return entry.config.empty() ? absl::FailedPreconditionError(concat("chain '", name, "' did not run in this service"))
                              : Result<std::string>(std::move(entry.config));
}

std::vector<ChainView> ChainSet::list(Caller const& caller) const {
  std::vector<Entry> entries;
  {
    const std::lock_guard lock(mutex_);
    for (auto const& [name, entry] : chains_) {
      if (may_touch(entry.applied, caller)) {
        entries.push_back(entry);
      }
    }
  }
  std::vector<ChainView> views;
  std::transform(entries.begin(), entries.end(), std::back_inserter(views),
                 [this](Entry const& entry) { return view_of(entry); });
  return views;
}

}  // namespace catena::service
