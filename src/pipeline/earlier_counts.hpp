// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "pipeline/report.hpp"

#include <mutex>
#include <set>
#include <string>

namespace catena::runtime {

class Telemetry;

/// The counts of the chains that a chain has replaced, so that its counts go on. Any thread, unless stated otherwise.
class EarlierCounts {
 public:
  /// Label values for counts of NFs that the chain no longer has, and for reasons that its NFs no longer have. All of
  /// them are one series, so that series do not grow with the number of replacements.
  static constexpr const char* kRemoved = "(removed)";
  static constexpr const char* kEarlier = "(earlier)";

  /// The chain of `before` is about to be replaced. `before` lives until settle(). `kept_processes`: NFs whose
  /// processes go on, with their own counts. Before the other functions.
  void follow(Telemetry const& before, std::set<std::string> kept_processes);
  /// The replaced chain has ended: takes its counts. By one thread.
  void settle();

  /// Adds the counters of the earlier chains to this one's.
  void add_to(metrics::Snapshot& counts) const;
  void add_to(RunProgress& progress) const;

 private:
  mutable std::mutex mutex_;
  Telemetry const* before_ = nullptr;  ///< not settled yet
  std::set<std::string> kept_processes_;
  metrics::Snapshot counts_;  ///< settled
  RunProgress progress_;      ///< likewise
};

/// Adds the counters of `earlier` to `counts`. `is_running`: the earlier chain is about to be replaced. Others as in
/// EarlierCounts. Pure.
void add_counts_of(metrics::Snapshot const& earlier, bool is_running, std::set<std::string> const& kept_processes,
                   metrics::Snapshot& counts);

}  // namespace catena::runtime
