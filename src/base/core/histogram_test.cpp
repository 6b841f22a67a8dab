// SPDX-License-Identifier: Apache-2.0
#include "base/core/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace catena {
namespace {

/// Times from nanoseconds to minutes, about as many in each power of two.
std::vector<std::uint64_t> random_times(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> times(count);
  for (std::uint64_t& time : times) {
    time = random() >> (27 + random() % 37);
  }
  return times;
}

/// Nearest rank by sorting: what percentile() promises to come close to.
std::uint64_t exact_percentile(std::vector<std::uint64_t> times, std::uint64_t per_mille) {
  std::sort(times.begin(), times.end());
  const std::size_t rank = std::max<std::size_t>((times.size() * per_mille + 999) / 1000, 1);
  return times[rank - 1];
}

TEST(Histogram, empty_has_no_times) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0U);
  EXPECT_EQ(empty.percentile(50), 0U);
  EXPECT_EQ(empty.max(), 0U);
  EXPECT_EQ(empty.mean(), 0.0);
}

TEST(Histogram, times_below_64_ns_are_exact) {
  Histogram histogram;
  for (std::uint64_t ns = 0; ns < 64; ++ns) {
    histogram.add(ns);
  }
  EXPECT_EQ(histogram.percentile(0), 0U);
  EXPECT_EQ(histogram.percentile(50), 31U);
  EXPECT_EQ(histogram.percentile(75), 47U);
  EXPECT_EQ(histogram.percentile(100), 63U);
}

TEST(Histogram, counts_up_to_a_time_leave_none_out_below_63_64ths_of_it) {
  const std::vector<std::uint64_t> times = random_times(20'000);
  Histogram histogram;
  double sum = 0;
  for (const std::uint64_t ns : times) {
    histogram.add(ns);
    sum += static_cast<double>(ns);
  }
  const auto up_to = [&times](std::uint64_t limit) {
    return static_cast<std::uint64_t>(
        std::count_if(times.begin(), times.end(), [limit](std::uint64_t ns) { return ns <= limit; }));
  };
  for (const std::uint64_t ns :
       {std::uint64_t{0}, std::uint64_t{63}, std::uint64_t{1'000}, std::uint64_t{123'456'789}}) {
    EXPECT_LE(histogram.count_up_to(ns), up_to(ns)) << ns;
    EXPECT_GE(histogram.count_up_to(ns), up_to(ns - ns / 64)) << ns;
  }
  EXPECT_EQ(histogram.count_up_to(std::numeric_limits<std::uint64_t>::max()), times.size());
  EXPECT_DOUBLE_EQ(histogram.sum(), sum);
}

TEST(Histogram, percentiles_are_at_most_a_64th_above_the_true_ones) {
  const std::vector<std::uint64_t> times = random_times(20'000);
  Histogram histogram;
  for (const std::uint64_t ns : times) {
    histogram.add(ns);
  }
  for (const std::uint64_t per_mille : {0U, 1U, 10U, 250U, 500U, 900U, 950U, 990U, 999U, 1000U}) {
    const std::uint64_t exact = exact_percentile(times, per_mille);
    const std::uint64_t found = histogram.percentile(static_cast<double>(per_mille) / 10.0);
    EXPECT_GE(found, exact) << per_mille;
    EXPECT_LE(found, exact + exact / 64) << per_mille;
  }
  EXPECT_EQ(histogram.max(), *std::max_element(times.begin(), times.end()));
  EXPECT_EQ(histogram.percentile(100), histogram.max());
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  EXPECT_NEAR(histogram.mean(), sum / static_cast<double>(times.size()), sum * 1e-12);
}

TEST(Histogram, bucket_borders_hold_over_the_whole_range) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t ns : {(std::uint64_t{1} << bit) - 1, std::uint64_t{1} << bit,
                                   (std::uint64_t{1} << bit) + ((std::uint64_t{1} << bit) >> 1)}) {
      Histogram histogram;
      histogram.add(ns);
      histogram.add(std::numeric_limits<std::uint64_t>::max());
      const std::uint64_t found = histogram.percentile(50);
      EXPECT_GE(found, ns);
      EXPECT_LE(found - ns, ns / 64) << ns;
    }
  }
}

TEST(Histogram, a_count_stands_for_as_many_times) {
  Histogram at_once;
  at_once.add(1000, 3);
  at_once.add(5'000'000, 0);
  at_once.add(2000, 1);
  Histogram one_by_one;
  for (const std::uint64_t ns : {1000U, 1000U, 1000U, 2000U}) {
    one_by_one.add(ns);
  }
  EXPECT_EQ(at_once.count(), 4U);
  EXPECT_EQ(at_once.max(), 2000U) << "a count of 0 adds nothing";
  EXPECT_DOUBLE_EQ(at_once.mean(), 1250.0);
  for (const double percent : {25.0, 75.0, 76.0, 100.0}) {
    EXPECT_EQ(at_once.percentile(percent), one_by_one.percentile(percent));
  }
}

TEST(Histogram, times_may_lie_evenly_between_two) {
  Histogram times;
  times.add_between(1000, 2600, 1000);
  EXPECT_EQ(times.count(), 1000U);
  EXPECT_EQ(times.max(), 2600U);
  EXPECT_NEAR(static_cast<double>(times.percentile(50)), 1800, 1800.0 / 16);
  EXPECT_GE(times.percentile(50), 1800U) << "never below the true one";
  Histogram few;
  few.add_between(10, 40, 3);
  EXPECT_EQ(few.count(), 3U);
  EXPECT_EQ(few.percentile(0), 20U);
  EXPECT_EQ(few.max(), 40U);
  few.add_between(7, 7, 5);
  few.add_between(5, 50, 0);
  EXPECT_EQ(few.count(), 8U);
  EXPECT_EQ(few.percentile(0), 7U);
  EXPECT_EQ(few.max(), 40U);
}

TEST(Histogram, of_a_time_is_what_came_since) {
  Histogram times;
  times.add(1'000'000, 3);
  const Histogram earlier = times;
  times.add(500, 2);
  times.add(90);
  times.remove(earlier);
  EXPECT_EQ(times.count(), 3U);
  EXPECT_EQ(times.percentile(0), 90U);
  EXPECT_GE(times.max(), 500U);
  EXPECT_LE(times.max(), 500U + 500U / 64);
  EXPECT_NEAR(times.mean(), 1090.0 / 3, 1e-6);
  times.remove(Histogram(times));
  EXPECT_EQ(times.count(), 0U);
  EXPECT_EQ(times.max(), 0U);
}

TEST(Histogram, merged_parts_are_the_whole) {
  const std::vector<std::uint64_t> times = random_times(3000);
  Histogram whole;
  Histogram first;
  Histogram second;
  for (std::size_t i = 0; i < times.size(); ++i) {
    whole.add(times[i]);
    (i % 3 == 0 ? first : second).add(times[i]);
  }
  first.merge(second);
  EXPECT_EQ(first.count(), whole.count());
  EXPECT_EQ(first.max(), whole.max());
  EXPECT_DOUBLE_EQ(first.mean(), whole.mean());
  for (int percent = 0; percent <= 100; ++percent) {
    EXPECT_EQ(first.percentile(percent), whole.percentile(percent));
  }
}

}  // namespace
}  // namespace catena
