// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

/// Limits of a user of the service. Privileged callers are not limited.
namespace catena::service {

enum class Quota { kChains, kPacketMemory, kNfProcesses, kWorkers, kApplies, kMetricSeries };

/// A row of the table of quotas.
struct QuotaInfo {
  Quota quota;
  std::string_view key;  ///< in the file
  std::uint64_t standard;
};

inline constexpr std::array kQuotas{
    QuotaInfo{Quota::kChains, "chains", 32},
    QuotaInfo{Quota::kPacketMemory, "packet_memory_mb", 4096},
    QuotaInfo{Quota::kNfProcesses, "nf_processes", 128},
    QuotaInfo{Quota::kWorkers, "workers", 4096},
    QuotaInfo{Quota::kApplies, "applies_per_minute", 240},
    QuotaInfo{Quota::kMetricSeries, "metric_series", 10'000},
};

/// One number per quota, by its place in kQuotas.
using Amounts = std::array<std::uint64_t, kQuotas.size()>;

/// The part of a chain in the quotas of its user, at most: a pipeline, and for packet memory also one replacement.
Amounts amounts_of(chain::ChainConfig const& config, chain::RunOptions const& options);

/// The quotas of all users: a row by user, and a default row.
class Quotas {
 public:
  /// The built-in row for all users.
  Quotas();
  /// A YAML file `{default: {chains: 8}, users: {1000: {chains: 64}}}`. A missing key has the value of the default row,
  /// or the built-in one. Errors: as nf::Config::load(), with file:line:column.
  static Result<Quotas> load(std::string const& file);

  Amounts const& of(uid_t user) const;
  /// The same of one quota; the greatest number for privileged users.
  std::uint64_t limit(uid_t user, Quota quota) const;
  /// ResourceExhausted, with quota, used and asked amounts, if the user may not have `asked` besides `used`.
  Status check(uid_t user, Amounts const& used, Amounts const& asked) const;

 private:
  Amounts standard_;
  std::map<uid_t, Amounts> users_;
};

/// Counts the applies of users in the last minute. Any thread.
class ApplyRate {
 public:
  using Clock = std::chrono::steady_clock;
  /// Counts one more. ResourceExhausted, without counting, as Quotas::check().
  Status add(uid_t user, Quotas const& quotas, Clock::time_point now);

 private:
  std::mutex mutex_;
  std::map<uid_t, std::deque<Clock::time_point>> users_;
};

}  // namespace catena::service
