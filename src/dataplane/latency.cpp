// SPDX-License-Identifier: Apache-2.0
#include "dataplane/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace catena::dataplane {

// A value with its highest bit at position e >= kSubBits keeps the kSubBits bits below that one: bucket
// (e - kSubBits + 1) * 64 + those bits, which is 2^(e - kSubBits) wide. Smaller values are their own bucket.
std::size_t LatencyHistogram::bucket_of(std::uint64_t ns) {
  if (ns < kSubBuckets) {
    return ns;
  }
  const auto shift = static_cast<std::uint32_t>(std::bit_width(ns)) - 1 - kSubBits;
  return std::size_t{shift + 1} * kSubBuckets + ((ns >> shift) & (kSubBuckets - 1));
}

std::uint64_t LatencyHistogram::last_of(std::size_t bucket) {
  if (bucket < kSubBuckets) {
    return bucket;
  }
  const std::size_t shift = bucket / kSubBuckets - 1;
  const std::uint64_t first = (std::uint64_t{kSubBuckets} + bucket % kSubBuckets) << shift;
  return first + ((std::uint64_t{1} << shift) - 1);
}

void LatencyHistogram::add(std::uint64_t ns, std::uint64_t count) {
  if (count == 0) {
    return;
  }
  buckets_[bucket_of(ns)] += count;
  count_ += count;
  max_ = std::max(max_, ns);
  sum_ += static_cast<double>(ns) * static_cast<double>(count);
}

void LatencyHistogram::merge(LatencyHistogram const& other) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i] += other.buckets_[i];
  }
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

std::uint64_t LatencyHistogram::percentile(double percent) const {
  if (count_ == 0) {
    return 0;
  }
  const double wanted_rank = std::ceil(std::clamp(percent, 0.0, 100.0) * static_cast<double>(count_) / 100.0);
  const auto wanted = static_cast<std::uint64_t>(wanted_rank);
  const std::uint64_t rank = std::clamp<std::uint64_t>(wanted, 1, count_);
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while ((seen += buckets_[bucket]) < rank) {
    ++bucket;
  }
  return std::min(last_of(bucket), max_);
}

}  // namespace catena::dataplane
