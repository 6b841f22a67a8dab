// SPDX-License-Identifier: Apache-2.0
#include "service/chain_table.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

namespace catena::service {
namespace {

Status is_ending_error() { return absl::UnavailableError("the service is ending"); }

/// The amounts of a chain that has `held` and is to have `wanted`, except for the number of chains: it may yet keep
/// what it has.
void add_running(Amounts& used, Amounts const& held, Amounts const& wanted) {
  static_assert(kQuotas.front().quota == Quota::kChains);
  for (std::size_t i = 1; i < used.size(); ++i) {
    used[i] += std::max(held[i], wanted[i]);
  }
}

}  // namespace

void ChainTable::set_quotas(Quotas quotas) {
  const std::lock_guard lock(mutex_);
  quotas_ = std::move(quotas);
}

Quotas ChainTable::quotas() const {
  const std::lock_guard lock(mutex_);
  return quotas_;
}

/// With the mutex. The first user to apply one of the tenant's chains.
std::optional<uid_t> ChainTable::tenant_owner(std::string const& tenant) const {
  for (auto const& [name, entry] : chains_) {
    if (entry.applied.tenant == tenant) {
      return entry.applied.tenant_uid;
    }
  }
  return std::nullopt;
}

/// With the mutex. Whether the tenant is another user's, who has a chain of it or is about to.
bool ChainTable::has_others(ValidatedSpec const& validated, Caller const& caller) const {
  std::string const& tenant = validated.config.tenant;
  if (tenant_owner(tenant).value_or(caller.uid) != caller.uid) {
    return true;
  }
  return std::ranges::any_of(claims_.wanted(), [&](auto const& each) {
    return each.second.tenant == tenant && each.second.uid != caller.uid;
  });
}

/// With the mutex. Whether name, tenant, ports and outputs are the caller's to have.
Result<std::optional<ChainEntry>> ChainTable::check_here(ValidatedSpec const& validated, Caller const& caller) const {
  const auto of_name = chains_.find(validated.config.name);
  if (of_name != chains_.end() && !owns(caller, of_name->second.applied)) {
    return absl::PermissionDeniedError(concat("chain '", validated.config.name, "' is another user's"));
  }
  if (has_others(validated, caller) && !is_privileged(caller)) {
    return absl::PermissionDeniedError(concat("tenant '", validated.config.tenant, "' is another user's"));
  }
  CATENA_RETURN_IF_ERROR(check_room(validated, caller));
  CATENA_RETURN_IF_ERROR(check_resources(validated));
  return of_name == chains_.end() ? std::optional<ChainEntry>() : std::optional(of_name->second);
}

/// With the mutex. Whether the quotas of the user have room for the chain, in place of the one of its name. A stopped
/// chain counts as a chain only.
Status ChainTable::check_room(ValidatedSpec const& validated, Caller const& caller) const {
  if (!chains_.contains(validated.config.name) && chains_.size() >= kMaxChains) {
    return absl::ResourceExhaustedError(concat("the service has ", chains_.size(), " chains; delete one"));
  }
  const std::map<std::string, Claims::Wanted> wanted = claims_.wanted();
  Amounts used{};
  for (auto const& [name, entry] : chains_) {
    if (name != validated.config.name && entry.applied.caller.uid == caller.uid) {
      used[0] += 1;
      const auto claimed = wanted.find(name);
      add_running(used, entry.holds_resources() ? entry.amounts : Amounts(),
                  claimed != wanted.end() ? claimed->second.amounts : Amounts());
    }
  }
  for (auto const& [name, operation] : wanted) {
    if (name != validated.config.name && operation.uid == caller.uid && operation.amounts[0] != 0 &&
        !chains_.contains(name)) {
      used[0] += 1;
      add_running(used, {}, operation.amounts);
    }
  }
  for (ChainEntry const& entry : replaced_) {
    const bool counts = entry.applied.name != validated.config.name && entry.applied.caller.uid == caller.uid;
    add_running(used, counts && entry.holds_resources() ? entry.amounts : Amounts(), {});
  }
  return quotas_.check(caller.uid, used, amounts_of(validated.config, validated.options));
}

/// With the mutex. Whether other chains leave it what it wants.
Status ChainTable::check_resources(ValidatedSpec const& validated) const {
  const auto check = [&validated](std::string const& name, std::vector<Resource> const& resources) {
    const std::string why = name == validated.config.name ? std::string() : clash(validated.resources, resources, name);
    return why.empty() ? absl::OkStatus() : absl::AlreadyExistsError(why);
  };
  for (auto const& [name, entry] : chains_) {
    CATENA_RETURN_IF_ERROR(entry.holds_resources() ? check(name, entry.resources) : absl::OkStatus());
  }
  for (auto const& [name, wanted] : claims_.wanted()) {
    CATENA_RETURN_IF_ERROR(check(name, wanted.resources));
  }
  return absl::OkStatus();
}

/// With the mutex.
Result<ChainEntry> ChainTable::find_here(std::string const& name, Client const& client) const {
  const auto found = chains_.find(name);
  if (found == chains_.end()) {
    return absl::NotFoundError(concat("no chain is named '", name, "'"));
  }
  if (!reaches(client, found->second.applied)) {
    return absl::PermissionDeniedError(concat("chain '", name, "' is another user's"));
  }
  return found->second;
}

/// With the mutex, so that a name found free still is.
Result<Claims::Claim> ChainTable::claim_here(std::string const& name) {
  return is_ending_ ? Result<Claims::Claim>(is_ending_error()) : claims_.take(name);
}

/// With the mutex.
void ChainTable::want_here(ValidatedSpec const& validated, ApplyRecord& applied) {
  claims_.want(applied.name, {validated.config.tenant, validated.caller.uid, validated.resources,
                              amounts_of(validated.config, validated.options)});
  applied.tenant_uid = tenant_owner(applied.tenant).value_or(applied.caller.uid);
}

Result<ChainEntry> ChainTable::find(std::string const& name, Client const& client) const {
  const std::lock_guard lock(mutex_);
  return find_here(name, client);
}

std::vector<ChainEntry> ChainTable::list(Client const& client) const {
  const std::lock_guard lock(mutex_);
  std::vector<ChainEntry> entries;
  for (auto const& [name, entry] : chains_) {
    if (reaches(client, entry.applied)) {
      entries.push_back(entry);
    }
  }
  return entries;
}

std::vector<std::string> ChainTable::names_of(std::function<bool(ChainEntry const&)> const& is_wanted) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (auto const& [name, entry] : chains_) {
    if (is_wanted(entry)) {
      names.push_back(name);
    }
  }
  return names;
}

std::vector<std::shared_ptr<ChainRun>> ChainTable::runs() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ChainRun>> runs;
  for (auto const& [name, entry] : chains_) {
    if (entry.run != nullptr) {
      runs.push_back(entry.run);
    }
  }
  std::ranges::transform(replaced_, std::back_inserter(runs), &ChainEntry::run);
  return runs;
}

Result<ChainTable::Held> ChainTable::reserve(ValidatedSpec const& validated, ApplyRecord& applied) {
  const std::lock_guard lock(mutex_);
  CATENA_ASSIGN_OR_RETURN(std::optional<ChainEntry> before, check_here(validated, applied.caller));
  CATENA_ASSIGN_OR_RETURN(Claims::Claim claim, claim_here(applied.name));
  want_here(validated, applied);
  return Held{std::move(claim), std::move(before)};
}

Status ChainTable::want(ValidatedSpec const& validated, ApplyRecord& applied) {
  const std::lock_guard lock(mutex_);
  CATENA_RETURN_IF_ERROR(check_here(validated, applied.caller).status());
  want_here(validated, applied);
  return absl::OkStatus();
}

Result<std::optional<ChainEntry>> ChainTable::check(ValidatedSpec const& validated, Caller const& caller) const {
  const std::lock_guard lock(mutex_);
  CATENA_ASSIGN_OR_RETURN(std::optional<ChainEntry> before, check_here(validated, caller));
  CATENA_RETURN_IF_ERROR(is_ending_ ? is_ending_error() : absl::OkStatus());
  CATENA_RETURN_IF_ERROR(claims_.contains(validated.config.name) ? Claims::taken(validated.config.name)
                                                                 : absl::OkStatus());
  return before;
}

Result<ChainTable::Held> ChainTable::hold(std::string const& name, Client const& client) {
  const std::lock_guard lock(mutex_);
  CATENA_ASSIGN_OR_RETURN(ChainEntry entry, find_here(name, client));
  CATENA_ASSIGN_OR_RETURN(Claims::Claim claim, claim_here(name));
  return Held{std::move(claim), std::move(entry)};
}

Result<Claims::Start> ChainTable::start_of(std::string const& name, Client const& client) const {
  const std::lock_guard lock(mutex_);
  CATENA_RETURN_IF_ERROR(find_here(name, client).status());
  return claims_.start_of(name);
}

Status ChainTable::remember(ApplyRecord const& applied) {
  const std::lock_guard lock(mutex_);
  return is_ending_ ? is_ending_error() : store_.save(applied);
}

Status ChainTable::update(ApplyRecord applied) {
  const std::lock_guard lock(mutex_);
  CATENA_RETURN_IF_ERROR(store_.save(applied));
  chains_[applied.name].applied = std::move(applied);
  return absl::OkStatus();
}

void ChainTable::put(ChainEntry entry) {
  std::vector<std::shared_ptr<ChainRun>> ended;
  const std::lock_guard lock(mutex_);
  ended = forget_ended();
  ChainEntry& present = chains_[entry.applied.name];
  std::swap(present, entry);  // what was there ends without the mutex
  if (entry.run != present.run && entry.holds_resources()) {
    replaced_.push_back(entry);
  }
}

/// With the mutex. The ended runs of replaced chains, to be destroyed without it.
std::vector<std::shared_ptr<ChainRun>> ChainTable::forget_ended() {
  std::vector<std::shared_ptr<ChainRun>> ended;
  const auto first = std::partition(replaced_.begin(), replaced_.end(),
                                    [](ChainEntry const& entry) { return entry.holds_resources(); });
  std::transform(first, replaced_.end(), std::back_inserter(ended),
                 [](ChainEntry& entry) { return std::move(entry.run); });
  replaced_.erase(first, replaced_.end());
  return ended;
}

void ChainTable::edit(std::string const& name, std::function<void(ChainEntry&)> const& change) {
  const std::lock_guard lock(mutex_);
  if (const auto found = chains_.find(name); found != chains_.end()) {
    change(found->second);
  }
}

Status ChainTable::announce(ChainEntry const& entry, bool is_seen) {
  ChainEntry replaced;  // ended without the mutex
  const std::lock_guard lock(mutex_);
  if (is_ending_) {
    return is_ending_error();
  }
  claims_.set_start(entry.applied.name, {entry.run});
  if (is_seen) {
    replaced = std::exchange(chains_[entry.applied.name], entry);
  }
  return absl::OkStatus();
}

Status ChainTable::restore(std::string const& name, std::optional<ChainEntry> before) {
  std::map<std::string, ChainEntry>::node_type given_up;  // ended without the mutex
  const std::lock_guard lock(mutex_);
  given_up = chains_.extract(name);
  if (!before) {
    return store_.remove(name);
  }
  Status saved = store_.save(before->applied);
  chains_[name] = *std::move(before);
  return saved;
}

Status ChainTable::forget(std::string const& name) {
  const std::lock_guard lock(mutex_);
  return store_.remove(name);
}

void ChainTable::erase(std::string const& name) {
  std::map<std::string, ChainEntry>::node_type deleted;  // ended without the mutex: a device server may end with it
  const std::lock_guard lock(mutex_);
  deleted = chains_.extract(name);
}

std::vector<ApplyRecord> ChainTable::load() {
  std::vector<ApplyRecord> all;
  for (StateStore::Loaded const& loaded : store_.load()) {
    if (!loaded.applied.ok()) {
      spdlog::error("{}: not written by the service, so its chain is not started: {}", loaded.path,
                    std::string(loaded.applied.status().message()));
      continue;
    }
    put({*loaded.applied, {}, nullptr, {}});
    if (!loaded.applied->is_stopped) {
      all.push_back(*loaded.applied);
    }
  }
  return all;
}

void ChainTable::end() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
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

bool ChainTable::is_ending() const {
  const std::lock_guard lock(mutex_);
  return is_ending_;
}

}  // namespace catena::service
