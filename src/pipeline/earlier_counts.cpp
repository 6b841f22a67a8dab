// SPDX-License-Identifier: Apache-2.0
#include "pipeline/earlier_counts.hpp"

#include "pipeline/counts.hpp"
#include "pipeline/telemetry.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace catena::runtime {
namespace {

using metrics::Label;
using metrics::Labels;
using metrics::Sample;
using metrics::Snapshot;

constexpr std::string_view kCounter = "_total";

bool names_node(Label const& label) {
  return label.name == "nf" || label.name == "stage" || label.name == "from" || label.name == "to";
}

Labels without_shard(Labels labels) {
  std::erase_if(labels, [](Label const& label) { return label.name == "shard"; });
  return labels;
}

std::string key_of(std::string_view name, Labels const& labels) {
  std::string key(name);
  for (Label const& label : labels) {
    key.append(1, '\0').append(label.name).append(1, '\0').append(label.value);
  }
  return key;
}

std::string nf_of(Sample const& sample) {
  for (Label const& label : sample.labels) {
    if (label.name == "nf") {
      return label.value;
    }
  }
  return {};
}

/// Finds the series of a chain for the counts of earlier chains.
class Series {
 public:
  explicit Series(Snapshot& counts) : counts_(counts) {
    for (std::size_t i = 0; i < counts.samples().size(); ++i) {
      add(i);
    }
  }
  /// To the same series; else to the same one of another shard, as shards may be fewer now; else to one for all counts
  /// of this kind.
  void take(Sample const& earlier) {
    for (Labels const& labels : {earlier.labels, without_shard(earlier.labels), common_labels(earlier)}) {
      if (const auto found = by_key_.find(key_of(earlier.name, labels)); found != by_key_.end()) {
        return counts_.increase(found->second, earlier.value);
      }
    }
    append(earlier.name, common_labels(earlier), earlier.value);
  }
  void take_if_new(Sample const& earlier) {
    if (!by_key_.contains(key_of(earlier.name, earlier.labels))) {
      append(earlier.name, earlier.labels, earlier.value);
    }
  }

 private:
  void add(std::size_t number) {
    Sample const& sample = counts_.samples()[number];
    by_key_.emplace(key_of(sample.name, sample.labels), number);
    by_key_.emplace(key_of(sample.name, without_shard(sample.labels)), number);
    for (Label const& label : sample.labels) {
      if (names_node(label)) {
        nodes_.insert(label.value);
      }
    }
  }
  void append(std::string_view name, Labels labels, std::uint64_t value) {
    counts_.add(name, std::move(labels), value);
    add(counts_.samples().size() - 1);
  }
  Labels common_labels(Sample const& sample) const {
    Labels labels = without_shard(sample.labels);
    bool is_removed = false;
    const bool is_of_nf = !nf_of(sample).empty();
    for (Label& label : labels) {
      if (names_node(label) && !nodes_.contains(label.value)) {
        label.value = EarlierCounts::kRemoved;
        is_removed = true;
      }
    }
    for (Label& label : labels) {
      // reasons of packets that were not inspected, and of rx and tx, have a fixed number, and appear with the first
      // one
      if (label.name == "reason" && (is_removed || (is_of_nf && sample.name != counts::kUninspected))) {
        label.value = EarlierCounts::kEarlier;
      }
    }
    return labels;
  }

  Snapshot& counts_;
  std::map<std::string, std::size_t> by_key_;
  std::set<std::string> nodes_{"rx", "tx"};
};

}  // namespace

void EarlierCounts::follow(Telemetry const& before, IsShared is_shared) {
  const std::lock_guard lock(mutex_);
  before_ = &before;
  is_shared_ = std::move(is_shared);
}

/// Of the replaced chain and the chains before it, without its part in shared series, which this chain counts on.
Snapshot EarlierCounts::counts_before() const {
  const Snapshot own = before_->own_counts();
  Snapshot all = own;
  for (std::size_t i = 0; i < own.samples().size(); ++i) {
    if (is_shared_(own.samples()[i])) {
      all.set(i, 0);
    }
  }
  before_->add_earlier_to(all);
  return all;
}

void EarlierCounts::settle() {
  const std::lock_guard lock(mutex_);
  if (before_ != nullptr) {
    progress_ = before_->progress();
    counts_ = counts_before();
    before_ = nullptr;
  }
}

void EarlierCounts::add_to(Snapshot& counts) const {
  const std::lock_guard lock(mutex_);
  if (before_ != nullptr) {
    add_counts_of(counts_before(), true, counts);
  } else {
    add_counts_of(counts_, false, counts);
  }
}

void EarlierCounts::add_to(RunProgress& progress) const {
  const std::lock_guard lock(mutex_);
  const RunProgress earlier = before_ != nullptr ? before_->progress() : progress_;
  progress.received += earlier.received;
  progress.sent += earlier.sent;
  progress.dropped += earlier.dropped;
}

void add_counts_of(Snapshot const& earlier, bool is_running, Snapshot& counts) {
  if (earlier.samples().empty()) {
    return;
  }
  Series series(counts);
  for (Sample const& sample : earlier.samples()) {
    if (is_running && sample.name == counts::kStatistic) {
      series.take_if_new(sample);  // an NF that goes on cannot be asked by this chain yet
    } else if (sample.name.ends_with(kCounter)) {
      series.take(sample);
    }
  }
  counts.merge_times(earlier);
}

}  // namespace catena::runtime
