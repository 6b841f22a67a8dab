// SPDX-License-Identifier: Apache-2.0
#include "pipeline/telemetry.hpp"

#include "pipeline/counts.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace catena::runtime {
namespace {

std::int64_t steady_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

metrics::Labels of_shard(std::size_t shard) { return {{"shard", std::to_string(shard)}}; }

/// Adds `collect_end(end, counts)` for each of `ends`, with a shard if they are several.
void add_ends(metrics::Registry& registry, auto const& ends, auto collect_end) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    registry.add(ends.size() > 1 ? of_shard(i) : metrics::Labels(),
                 [end = ends[i], collect_end](metrics::Snapshot& counts) { collect_end(*end, counts); });
  }
}

}  // namespace

trace::SpanLog* Telemetry::trace_of(std::string stage) {
  if (!is_traced_) {
    return nullptr;
  }
  traced_.push_back(std::move(stage));
  return spans_.emplace_back(std::make_unique<trace::SpanLog>()).get();
}

std::vector<StageTrace> Telemetry::traces() const {
  std::vector<StageTrace> traces;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    traces.push_back({traced_[i], spans_[i].get()});
  }
  return traces;
}

void Telemetry::watch(CountedParts const& parts) {
  for (CountedNf const& nf : parts.nfs) {
    if (!nf.is_kept) {
      nf.instance->board().publish(nf.instance->nf());  // a first reader finds them, too
    }
  }
  // tx before rx: never more out than in
  add_ends(metrics_, parts.tx, [](TxStage const& tx, metrics::Snapshot& counts) { collect(tx, counts); });
  for (CountedBranch const& branch : parts.branches) {
    metrics_.add(of_shard(branch.shard), [stage = branch.stage, names = parts.names](metrics::Snapshot& counts) {
      collect(*stage, names, counts);
      collect(*stage, false, counts);
    });
  }
  for (CountedNf const& nf : parts.nfs) {
    metrics_.add(of_shard(nf.shard),
                 [instance = nf.instance](metrics::Snapshot& counts) { collect(*instance, counts); });
    if (nf.isolated != nullptr) {
      metrics_.add(of_shard(nf.shard), [name = nf.instance->name(), isolated = nf.isolated](metrics::Snapshot& counts) {
        collect(name, isolated->process(), counts);
      });
    }
  }
  parts.flow->register_counts(metrics_);
  add_ends(metrics_, parts.rx, [](RxStage const& rx, metrics::Snapshot& counts) { collect(rx, counts); });
  add_ends(metrics_, parts.pools,
           [](memory::PacketPool const& pool, metrics::Snapshot& counts) { collect(pool, counts); });
  add_ends(metrics_, parts.rx, [](RxStage const& rx, metrics::Snapshot& counts) { collect(rx, false, counts); });
  for (ReshardStage const* stage : parts.reshards) {
    metrics_.add({}, [stage](metrics::Snapshot& counts) { collect(*stage, false, counts); });
  }
  for (CountedNf const& nf : parts.nfs) {
    if (nf.stage != nullptr) {
      metrics_.add(of_shard(nf.shard),
                   [stage = nf.stage](metrics::Snapshot& counts) { collect(*stage, true, counts); });
    }
  }
  add_ends(metrics_, parts.tx, [](TxStage const& tx, metrics::Snapshot& counts) { collect(tx, false, counts); });
  if (parts.recovery != nullptr) {
    metrics_.add({}, [recovery = parts.recovery](metrics::Snapshot& counts) { collect(*recovery, counts); });
  }
  watch_progress(parts);
}

void Telemetry::watch_progress(CountedParts const& parts) {
  for (TxStage const* tx : parts.tx) {
    progress_.emplace_back([tx](RunProgress& progress) {
      const io::SinkCounts sink = tx->sink().counts();
      progress.sent += sink.sent;
      for (io::NamedCount const& drop : sink.drops) {
        progress.dropped += drop.count;
      }
    });
  }
  for (CountedNf const& nf : parts.nfs) {
    progress_.emplace_back([instance = nf.instance](RunProgress& progress) {
      for (auto const& [reason, count] : instance->drops()) {
        progress.dropped += count;
      }
    });
  }
  for (CountedBranch const& branch : parts.branches) {
    progress_.emplace_back([stage = branch.stage](RunProgress& progress) {
      progress.dropped += stage->dropped() + stage->unmatched() + stage->malformed();
    });
  }
  progress_.emplace_back([flow = parts.flow](RunProgress& progress) { progress.dropped += flow->refused(); });
  progress_.emplace_back([rx = parts.rx](RunProgress& progress) {
    progress.part_done = rx.front()->source().part_done();
    for (RxStage const* stage : rx) {
      progress.dropped += stage->refused();
      progress.part_done = std::min(progress.part_done, stage->source().part_done());  // the slowest one's
    }
    for (RxStage const* stage : rx) {  // last: never more out than in
      progress.received += stage->packets();
    }
  });
}

RunProgress Telemetry::progress() const {
  RunProgress progress;
  for (auto const& add : progress_) {
    add(progress);
  }
  earlier_.add_to(progress);
  return progress;
}

metrics::Snapshot Telemetry::counts() const {
  metrics::Snapshot counts = own_counts();
  add_earlier_to(counts);
  return counts;
}

void Telemetry::continue_from(Telemetry const& before, EarlierCounts::IsShared is_shared) {
  began_ns_ = before.began_ns_.load();
  earlier_.follow(before, std::move(is_shared));
}

void Telemetry::begin() {
  if (began_ns_ == 0) {
    began_ns_ = steady_ns();
  }
}

void Telemetry::end() { ended_ns_ = steady_ns(); }

double Telemetry::seconds() const {
  constexpr double kNsPerSecond = 1e9;
  const std::int64_t began_ns = began_ns_;
  const std::int64_t ended_ns = ended_ns_;
  return began_ns == 0 ? 0 : static_cast<double>((ended_ns == 0 ? steady_ns() : ended_ns) - began_ns) / kNsPerSecond;
}

}  // namespace catena::runtime
