// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace catena {

/// Times in nanoseconds, counted in buckets: one bucket per value up to 63 ns, above that 64 buckets of equal width per
/// power of two. So a percentile is never below the true one and at most 1/64 above it, at any magnitude. Takes 30 KB,
/// allocated at the start. One thread at a time adds. Any thread may read or copy it meanwhile, and may miss the newest
/// times.
class Histogram {
 public:
  Histogram() = default;
  Histogram(Histogram const& other) { *this = other; }
  Histogram& operator=(Histogram const& other) {
    buckets_ = other.buckets_;
    max_ = other.max_;
    sum_.store(other.sum_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return *this;
  }
  /// Adds the same time `count` times.
  void add(std::uint64_t ns, std::uint64_t count = 1) {
    if (count == 0) {
      return;
    }
    buckets_[bucket_of(ns)] += count;
    if (ns > max_) {
      max_ = ns;
    }
    sum_.store(sum_.load(std::memory_order_relaxed) + static_cast<double>(ns) * static_cast<double>(count),
               std::memory_order_relaxed);
  }
  /// Adds `count` times evenly spaced from `first` to `last`, which is not less. Uses at most sixteen groups, each
  /// counted with its longest time.
  void add_between(std::uint64_t first, std::uint64_t last, std::uint64_t count) {
    if (first == last) {
      add(last, count);
      return;
    }
    constexpr std::uint64_t kGroups = 16;
    const std::uint64_t groups = std::min(kGroups, count);
    for (std::uint64_t group = 0; group < groups; ++group) {
      const std::uint64_t times = count * (group + 1) / groups - count * group / groups;
      add(last - (last - first) / groups * (groups - 1 - group), times);
    }
  }
  void merge(Histogram const& other) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      buckets_[i] += other.buckets_[i];
    }
    max_ = std::max<std::uint64_t>(max_, other.max_);
    sum_.store(sum_.load(std::memory_order_relaxed) + other.sum_.load(std::memory_order_relaxed),
               std::memory_order_relaxed);
  }

  /// Subtracts the times of `earlier`, an older copy of this, and so keeps the times added since. max() is then the end
  /// of the highest bucket in use.
  void remove(Histogram const& earlier) {
    std::uint64_t max = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const std::uint64_t left = buckets_[i] - earlier.buckets_[i];
      buckets_[i] = left;
      max = left > 0 ? last_of(i) : max;
    }
    max_ = std::min<std::uint64_t>(max_, max);
    sum_.store(sum_.load(std::memory_order_relaxed) - earlier.sum_.load(std::memory_order_relaxed),
               std::memory_order_relaxed);
  }

  std::uint64_t count() const {
    std::uint64_t count = 0;
    for (Counter const& bucket : buckets_) {
      count += bucket;
    }
    return count;
  }
  std::uint64_t max() const { return max_; }
  /// 0 if empty.
  double mean() const {
    const std::uint64_t times = count();
    return times == 0 ? 0.0 : sum_.load(std::memory_order_relaxed) / static_cast<double>(times);
  }
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  /// Times in buckets that end at `ns` or below: no time above `ns`, and all up to 63/64 of it.
  std::uint64_t count_up_to(std::uint64_t ns) const {
    std::uint64_t count = 0;
    for (std::size_t bucket = 0; bucket < buckets_.size() && last_of(bucket) <= ns; ++bucket) {
      count += buckets_[bucket];
    }
    return count;
  }
  /// The smallest time not exceeded by at least `percent` % of the times (nearest rank), rounded up to the end of its
  /// bucket but never above max(). `percent` from 0 (the smallest time) to 100 (the largest). 0 if empty. Call it on a
  /// copy, as no thread may add meanwhile.
  std::uint64_t percentile(double percent) const {
    const std::uint64_t times = count();
    if (times == 0) {
      return 0;
    }
    const double wanted = std::ceil(std::clamp(percent, 0.0, 100.0) * static_cast<double>(times) / 100.0);
    const std::uint64_t rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, times);
    std::uint64_t seen = 0;
    std::size_t bucket = 0;
    while ((seen += buckets_[bucket]) < rank) {
      ++bucket;
    }
    return std::min<std::uint64_t>(last_of(bucket), max_);
  }

 private:
  static constexpr std::uint32_t kSubBits = 6;
  static constexpr std::uint32_t kSubBuckets = 1U << kSubBits;

  // A value with its highest bit at position e >= kSubBits keeps the kSubBits bits below that one. Its bucket is
  // `(e - kSubBits + 1) * 64` plus these bits, 2^(e - kSubBits) wide. Smaller values are their own bucket.
  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < kSubBuckets) {
      return ns;
    }
    const auto shift = static_cast<std::uint32_t>(std::bit_width(ns)) - 1 - kSubBits;
    return std::size_t{shift + 1} * kSubBuckets + ((ns >> shift) & (kSubBuckets - 1));
  }
  static std::uint64_t last_of(std::size_t bucket) {
    if (bucket < kSubBuckets) {
      return bucket;
    }
    const std::size_t shift = bucket / kSubBuckets - 1;
    const std::uint64_t first = (std::uint64_t{kSubBuckets} + bucket % kSubBuckets) << shift;
    return first + ((std::uint64_t{1} << shift) - 1);
  }

  std::array<Counter, (64 - kSubBits + 1) * kSubBuckets> buckets_{};
  Counter max_;
  std::atomic<double> sum_{0.0};  // an integer of 64 bits would overflow after days at full speed
};

}  // namespace catena
