// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/histogram.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The counts of a running chain. Counts are Counters and Histograms beside the state they describe, each written by
/// the thread that owns this state. A Registry knows all sources of counts and reads them at any time. The live line,
/// the report and all other views of counts see the same Snapshot.
namespace catena::metrics {

/// "nf" is "fw".
struct Label {
  std::string name;
  std::string value;
  bool operator==(Label const&) const = default;
};
using Labels = std::vector<Label>;

struct Sample {
  std::string name;  ///< Prometheus name: "catena_nf_packets_total"
  Labels labels;
  std::uint64_t value;
};

/// Counts of about one moment. One thread at a time.
class Snapshot {
 public:
  void add(std::string_view name, Labels labels, std::uint64_t value) {
    samples_.push_back({std::string(name), std::move(labels), value});
    samples_.back().labels.insert(samples_.back().labels.end(), common_.begin(), common_.end());
  }
  /// Adds to the times already under this name.
  void add(std::string_view name, Histogram const& times) { times_[std::string(name)].merge(times); }

  void set(std::size_t sample, std::uint64_t value) { samples_[sample].value = value; }
  /// Adds to the value of sample number `sample`.
  void increase(std::size_t sample, std::uint64_t by) { samples_[sample].value += by; }
  /// Adds all times of `other`.
  void merge_times(Snapshot const& other) {
    for (auto const& [name, times] : other.times_) {
      times_[name].merge(times);
    }
  }

  std::vector<Sample> const& samples() const { return samples_; }
  /// The sum of all samples named `name` with all of `labels`.
  std::uint64_t sum(std::string_view name, Labels const& labels = {}) const {
    std::uint64_t sum = 0;
    for (Sample const& sample : samples_) {
      sum += is_meant(sample, name, labels) ? sample.value : 0;
    }
    return sum;
  }
  /// Likewise for each value of the label `by`, in order of first occurrence.
  std::vector<std::pair<std::string, std::uint64_t>> sums(std::string_view name, std::string_view by,
                                                          Labels const& labels = {}) const {
    std::vector<std::pair<std::string, std::uint64_t>> sums;
    for (Sample const& sample : samples_) {
      const auto label = std::find_if(sample.labels.begin(), sample.labels.end(),
                                      [&](Label const& candidate) { return candidate.name == by; });
      if (label == sample.labels.end() || !is_meant(sample, name, labels)) {
        continue;
      }
      auto entry = std::find_if(sums.begin(), sums.end(), [&](auto const& pair) { return pair.first == label->value; });
      if (entry == sums.end()) {
        entry = sums.insert(sums.end(), {label->value, 0});
      }
      entry->second += sample.value;
    }
    return sums;
  }
  /// Empty if no times have this name.
  Histogram times(std::string_view name) const {
    const auto found = times_.find(name);
    return found == times_.end() ? Histogram() : found->second;
  }

 private:
  friend class Registry;
  static bool is_meant(Sample const& sample, std::string_view name, Labels const& labels) {
    return sample.name == name && std::all_of(labels.begin(), labels.end(), [&](Label const& label) {
             return std::find(sample.labels.begin(), sample.labels.end(), label) != sample.labels.end();
           });
  }

  std::vector<Sample> samples_;
  std::map<std::string, Histogram, std::less<>> times_;
  Labels common_;  ///< of the source being collected
};

/// The sources of counts. Filled before it is read, then read by any thread.
class Registry {
 public:
  /// Adds the counts of a source to a snapshot. Called by any thread, as long as the registry exists.
  using Collect = std::function<void(Snapshot&)>;
  /// `labels` are added to every sample from `collect`.
  void add(Labels labels, Collect collect) { sources_.push_back({std::move(labels), std::move(collect)}); }
  Snapshot read() const {
    Snapshot snapshot;
    for (Source const& source : sources_) {
      snapshot.common_ = source.labels;
      source.collect(snapshot);
    }
    return snapshot;
  }

 private:
  struct Source {
    Labels labels;
    Collect collect;
  };
  std::vector<Source> sources_;
};

}  // namespace catena::metrics
