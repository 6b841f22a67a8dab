// SPDX-License-Identifier: Apache-2.0
#include "base/core/trace.hpp"

#include <gtest/gtest.h>

#include <set>

namespace catena::trace {
namespace {

constexpr std::int64_t kStart = 123 * SpanLog::kWindowNs;

Span at(std::int64_t begin_ns) { return {"kernel", 0, 0, 1, begin_ns, begin_ns + 5}; }

TEST(SpanLog, has_everything_that_fits) {
  SpanLog log(100);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(log.wants(kStart + i * SpanLog::kWindowNs));
    log.add(at(kStart + i * SpanLog::kWindowNs));
  }
  EXPECT_EQ(log.spans().size(), 100U);
  EXPECT_EQ(log.one_in(), 1);
}

TEST(SpanLog, keeps_whole_windows_of_the_whole_run) {
  SpanLog log(1000);
  constexpr std::int64_t kWindows = 1000;
  constexpr std::int64_t kPerWindow = 20;
  for (std::int64_t i = 0; i < kWindows * kPerWindow; ++i) {
    log.add(at(kStart + i * SpanLog::kWindowNs / kPerWindow));
  }
  std::multiset<std::int64_t> windows;
  for (Span const& span : log.spans()) {
    windows.insert(span.begin_ns / SpanLog::kWindowNs);
  }
  EXPECT_LE(log.spans().size(), 1000U);
  EXPECT_GT(log.spans().size(), 400U);
  EXPECT_EQ(log.one_in(), 32);
  for (std::int64_t window = 123; window < 123 + kWindows; ++window) {
    EXPECT_EQ(windows.count(window), window % 32 == 0 ? kPerWindow : 0) << window;
  }
}

TEST(SpanLog, one_window_that_is_too_full_loses_its_end) {
  SpanLog log(10);
  for (int i = 0; i < 50; ++i) {
    log.add(at(64 * SpanLog::kWindowNs + i));  // a window that stays for long
  }
  EXPECT_LE(log.spans().size(), 10U);
  log.add(at(std::int64_t{1} << 60));
  EXPECT_LE(log.spans().size(), 10U);
}

}  // namespace
}  // namespace catena::trace
