// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Traces of a running chain: spans of time, sampled so that a long run fits into memory.
namespace catena::trace {

/// Times are ns of the host's steady clock.
struct Span {
  const char* what;       ///< "kernel"; a string with static lifetime
  std::uint32_t track;    ///< in its log; spans of one track do not overlap
  std::uint32_t number;   ///< of the launch or poll in the log, from 0
  std::uint32_t packets;  ///< packets of the launch or poll
  std::int64_t begin_ns;
  std::int64_t end_ns;
};

/// The spans of one stage, in a fixed size allocated at construction. Keeps all spans as long as they fit. After that
/// it keeps only spans that begin in every second window of kWindowNs, then in every fourth, and so on. These windows
/// are spread over the whole run and complete, and are the same for all logs with the same one_in(). One thread at a
/// time writes; other threads may read after it is done.
class SpanLog {
 public:
  static constexpr std::size_t kMaxSpans = 120'000;
  static constexpr std::int64_t kWindowNs = 10'000'000;

  explicit SpanLog(std::size_t max_spans = kMaxSpans) : max_spans_(max_spans) { spans_.reserve(max_spans); }
  /// Whether a span with this begin is kept. Call it before measuring.
  bool wants(std::int64_t begin_ns) const { return (begin_ns / kWindowNs & skipped_) == 0; }
  void add(Span const& span) {
    while (spans_.size() == max_spans_ && skipped_ < kAllSkipped) {
      skipped_ = skipped_ * 2 + 1;
      std::erase_if(spans_, [this](Span const& old) { return !wants(old.begin_ns); });
    }
    if (wants(span.begin_ns) && spans_.size() < max_spans_) {
      spans_.push_back(span);
    }
  }
  /// Keeps the first error, as the reason of missing spans.
  void fail(Status const& status) { status_.Update(status); }

  std::vector<Span> const& spans() const { return spans_; }
  Status const& status() const { return status_; }
  /// N, if one in N windows is kept.
  std::int64_t one_in() const { return skipped_ + 1; }

 private:
  static constexpr std::int64_t kAllSkipped = 0x3FFFFFFF;
  std::size_t max_spans_;
  std::int64_t skipped_ = 0;  ///< bits of a window's number that must be 0
  std::vector<Span> spans_;
  Status status_;
};

}  // namespace catena::trace
