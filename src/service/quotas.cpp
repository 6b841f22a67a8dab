// SPDX-License-Identifier: Apache-2.0
#include "service/quotas.hpp"

#include "chain/flow.hpp"
#include "chain/layout.hpp"
#include "chain/workers.hpp"
#include "service/user_keys.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>
#include <catena/packet/slot.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace catena::service {
namespace {

constexpr std::size_t index_of(Quota quota) { return static_cast<std::size_t>(quota); }

Result<Amounts> row_of(nf::Config config, Amounts amounts) {
  for (QuotaInfo const& quota : kQuotas) {
    std::uint64_t& amount = amounts[index_of(quota.quota)];
    CATENA_ASSIGN_OR_RETURN(const std::int64_t value,
                            config.integer_or(quota.key, static_cast<std::int64_t>(amount), 0, 1'000'000'000));
    amount = static_cast<std::uint64_t>(value);
  }
  CATENA_RETURN_IF_ERROR(config.finish());
  return amounts;
}

}  // namespace

Amounts amounts_of(chain::ChainConfig const& config, chain::RunOptions const& options) {
  constexpr std::uint64_t kMb = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kWithReplacement = 2;
  chain::ChainConfig sized = config;
  const chain::Parallelism threads =
      chain::parallelism_of(config, options, static_cast<std::uint32_t>(chain::usable_cores().size()));
  const std::uint64_t shards = sized.shards = threads.shards;
  const std::uint64_t slots = chain::slots_of(sized, chain::unit_packets_of(config.tuning));
  const std::uint64_t bytes = slots * packet::kSlotBytes * shards * kWithReplacement;
  std::set<std::string> groups;
  std::uint64_t processes = 0;
  for (chain::NfConfig const& nf : config.nfs) {
    const bool is_counted = nf.group.empty() || groups.insert(nf.group).second;
    processes += nf.isolation == chain::Isolation::kProcess && is_counted ? shards : 0;
  }
  Amounts amounts{};
  amounts[index_of(Quota::kChains)] = 1;
  amounts[index_of(Quota::kPacketMemory)] = (bytes + kMb - 1) / kMb;
  amounts[index_of(Quota::kNfProcesses)] = processes;
  amounts[index_of(Quota::kWorkers)] = threads.workers;
  return amounts;
}

Quotas::Quotas() {
  for (QuotaInfo const& quota : kQuotas) {
    standard_[index_of(quota.quota)] = quota.standard;
  }
}

Result<Quotas> Quotas::load(std::string const& file) {
  CATENA_ASSIGN_OR_RETURN(nf::Config config, nf::Config::load(file));
  Quotas quotas;
  CATENA_ASSIGN_OR_RETURN(nf::Config standard, config.section_or_empty("default"));
  CATENA_ASSIGN_OR_RETURN(quotas.standard_, row_of(std::move(standard), quotas.standard_));
  CATENA_ASSIGN_OR_RETURN(nf::Config users, config.section_or_empty("users"));
  for (std::string const& key : users.keys()) {
    CATENA_ASSIGN_OR_RETURN(const uid_t user, id_of_key(users, key, "user"));
    CATENA_ASSIGN_OR_RETURN(nf::Config row, users.section(key));
    CATENA_ASSIGN_OR_RETURN(quotas.users_[user], row_of(std::move(row), quotas.standard_));
  }
  CATENA_RETURN_IF_ERROR(config.finish());
  return quotas;
}

Amounts const& Quotas::of(uid_t user) const {
  const auto found = users_.find(user);
  return found == users_.end() ? standard_ : found->second;
}

std::uint64_t Quotas::limit(uid_t user, Quota quota) const {
  return is_privileged({user, 0, {}}) ? std::numeric_limits<std::uint64_t>::max() : of(user)[index_of(quota)];
}

Status Quotas::check(uid_t user, Amounts const& used, Amounts const& asked) const {
  if (is_privileged({user, 0, {}})) {
    return absl::OkStatus();
  }
  for (QuotaInfo const& quota : kQuotas) {
    const std::size_t i = index_of(quota.quota);
    if (asked[i] != 0 && used[i] + asked[i] > of(user)[i]) {
      return absl::ResourceExhaustedError(concat("the quota '", quota.key, "' of user ", user, " is ", of(user)[i],
                                                 "; ", used[i], " used, ", asked[i], " asked"));
    }
  }
  return absl::OkStatus();
}

Status ApplyRate::add(uid_t user, Quotas const& quotas, Clock::time_point now) {
  constexpr std::chrono::minutes kWindow{1};
  Amounts used{};
  Amounts asked{};
  asked[index_of(Quota::kApplies)] = 1;
  const std::lock_guard lock(mutex_);
  std::deque<Clock::time_point>& times = users_[user];
  while (!times.empty() && now - times.front() >= kWindow) {
    times.pop_front();
  }
  used[index_of(Quota::kApplies)] = times.size();
  CATENA_RETURN_IF_ERROR(quotas.check(user, used, asked));
  if (!is_privileged({user, 0, {}})) {
    times.push_back(now);
  }
  return absl::OkStatus();
}

}  // namespace catena::service
