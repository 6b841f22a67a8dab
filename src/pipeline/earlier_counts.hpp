// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "pipeline/report.hpp"

#include <functional>
#include <mutex>

namespace catena::runtime {

class Telemetry;

/// The counts of the chains that a chain has replaced, so that its counts go on. Any thread, unless stated otherwise.
class EarlierCounts {
 public:
  /// Label values for counts of NFs that the chain no longer has, and for reasons that its NFs no longer have. All of
  /// them are one series, so that series do not grow with the number of replacements.
  static constexpr const char* kRemoved = "(removed)";
  static constexpr const char* kEarlier = "(earlier)";

  /// Whether a series of a chain is counted by an object that the next chain has, too.
  using IsShared = std::function<bool(metrics::Sample const&)>;

  /// The chain of `before` is about to be replaced. `before` lives until settle(). Before the other functions.
  void follow(Telemetry const& before, IsShared is_shared);
  /// The replaced chain has ended: takes its counts. By one thread.
  void settle();

  /// Adds the counters of the earlier chains to this one's.
  void add_to(metrics::Snapshot& counts) const;
  void add_to(RunProgress& progress) const;

 private:
  metrics::Snapshot counts_before() const;

  mutable std::mutex mutex_;
  Telemetry const* before_ = nullptr;  ///< not settled yet
  IsShared is_shared_;
  metrics::Snapshot counts_;  ///< settled
  RunProgress progress_;      ///< likewise
};

/// Adds the counters of `earlier` to `counts`. `is_running`: the earlier chain is about to be replaced. Pure.
void add_counts_of(metrics::Snapshot const& earlier, bool is_running, metrics::Snapshot& counts);

}  // namespace catena::runtime
