// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace catena::dataplane {

/// Times in nanoseconds, counted in buckets: up to 63 ns one bucket a value, above that 64 buckets of equal width for
/// each power of two. So a percentile is never below the true one and at most 1/64 above it, at any magnitude, in
/// 30 KB that are there from the start. Belongs to one thread at a time.
class LatencyHistogram {
 public:
  /// Adds the same time `count` times.
  void add(std::uint64_t ns, std::uint64_t count = 1);
  void merge(LatencyHistogram const& other);

  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }
  /// 0 when empty.
  double mean() const { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }
  /// The smallest time that at least `percent` % of the times do not exceed (nearest rank), rounded up to the end of
  /// its bucket but never above max(). `percent` from 0 (the smallest time) to 100 (the largest). 0 when empty.
  std::uint64_t percentile(double percent) const;

 private:
  static constexpr std::uint32_t kSubBits = 6;
  static constexpr std::uint32_t kSubBuckets = 1U << kSubBits;
  static std::size_t bucket_of(std::uint64_t ns);
  static std::uint64_t last_of(std::size_t bucket);

  std::array<std::uint64_t, (64 - kSubBits + 1) * kSubBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
  double sum_ = 0.0;  // an integer of 64 bits would overflow after days at full speed
};

}  // namespace catena::dataplane
