// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// What a running chain did when: spans of time, sampled so that a long run fits into memory.
namespace catena::trace {

/// Times are ns of the host's steady clock.
struct Span {
  const char* what;       ///< "kernel"; lives as long as the program
  std::uint32_t track;    ///< of its log: spans of one track follow one another
  std::uint32_t number;   ///< which launch or poll of the log it belongs to, from 0
  std::uint32_t packets;  ///< that it is about
  std::int64_t begin_ns;
  std::int64_t end_ns;
};

/// The spans of one stage. It has a fixed size, which it takes when it is made. While all fit, it has all; once they do
/// not, it has those that begin in every second window of kWindowNs, then in every fourth, and so on: pieces of the
/// whole run, the same for all logs of the same size class, in which nothing is left out. One thread at a time writes;
/// others may read once that has ended.
class SpanLog {
 public:
  static constexpr std::size_t kMaxSpans = 120'000;
  static constexpr std::int64_t kWindowNs = 10'000'000;

  explicit SpanLog(std::size_t max_spans = kMaxSpans) : max_spans_(max_spans) { spans_.reserve(max_spans); }
  /// Whether a span that begins then is kept. Ask in front of measuring.
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
  /// Keeps the first error: why spans are missing.
  void fail(Status const& status) { status_.Update(status); }

  std::vector<Span> const& spans() const { return spans_; }
  Status const& status() const { return status_; }
  /// One window in so many is kept.
  std::int64_t one_in() const { return skipped_ + 1; }

 private:
  static constexpr std::int64_t kAllSkipped = 0x3FFFFFFF;
  std::size_t max_spans_;
  std::int64_t skipped_ = 0;  ///< bits of a window's number that must be 0
  std::vector<Span> spans_;
  Status status_;
};

}  // namespace catena::trace
