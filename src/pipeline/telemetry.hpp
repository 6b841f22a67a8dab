// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "base/core/trace.hpp"
#include "pipeline/chrome_trace.hpp"
#include "pipeline/counted_parts.hpp"
#include "pipeline/earlier_counts.hpp"
#include "pipeline/report.hpp"
#include "pipeline/unit_records.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::runtime {

/// Shows the work of a chain: counts, progress, the time it has run, spans of its stages for a trace, and the
/// lines of packets on their way to the output files.
/// Call order: trace_of(), keep_lines() while stages are made -> watch() -> continue_from() -> begin() -> settle() ->
/// end(). By one thread, unless stated otherwise.
class Telemetry {
 public:
  /// `is_traced`: whether stages note their spans.
  explicit Telemetry(bool is_traced) : is_traced_(is_traced) {}
  Telemetry(Telemetry const&) = delete;
  Telemetry& operator=(Telemetry const&) = delete;

  bool is_traced() const { return is_traced_; }
  /// The log for the spans of a further stage; null if not traced. It lives as long as this.
  trace::SpanLog* trace_of(std::string stage);
  /// Keeps lines for the units of `arena`, which outlives this.
  void keep_lines(memory::Arena const& arena) { lines_.emplace(arena); }
  /// Null if no lines are kept.
  RecordLog* lines() { return lines_ ? &*lines_ : nullptr; }
  /// Registers the counts of all `parts`, which outlive this.
  void watch(CountedParts const& parts);
  /// The counts continue from `before`, the replaced chain; see EarlierCounts::follow().
  void continue_from(Telemetry const& before, EarlierCounts::IsShared is_shared);
  /// The replaced chain has ended.
  void settle() { earlier_.settle(); }
  /// The run begins, and ends, now.
  void begin();
  void end();

  // Any thread, after watch().
  metrics::Snapshot counts() const;
  /// The counts of this chain alone, and of the replaced chains.
  metrics::Snapshot own_counts() const { return metrics_.read(); }
  void add_earlier_to(metrics::Snapshot& counts) const { earlier_.add_to(counts); }
  /// From few counts, at once: a snapshot asks the thread of each NF, which takes time.
  RunProgress progress() const;
  /// Of the run so far, or of all of it, with the runs of replaced chains; 0 before the first of them.
  double seconds() const;
  /// The spans of each stage, in the order of trace_of(). After the run.
  std::vector<StageTrace> traces() const;

 private:
  void watch_progress(CountedParts const& parts);

  bool is_traced_;
  std::vector<std::string> traced_;  ///< names of stages
  std::vector<std::unique_ptr<trace::SpanLog>> spans_;
  std::optional<RecordLog> lines_;
  metrics::Registry metrics_;
  std::vector<std::function<void(RunProgress&)>> progress_;  ///< each adds its part
  EarlierCounts earlier_;
  std::atomic<std::int64_t> began_ns_{0};  ///< 0: not yet
  std::atomic<std::int64_t> ended_ns_{0};  ///< likewise
};

}  // namespace catena::runtime
