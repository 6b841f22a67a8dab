// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <x86intrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace catena::stack {

/// The parts of the stack's work, for its CPU shares.
enum class Part : std::uint8_t {
  kPort,      ///< frames received
  kTcp,       ///< with frames sent
  kSession,   ///< commands and events of applications
  kCopy,      ///< copies by the CPU, and their submission to engines
  kPoll,      ///< of engines
  kPostCopy,  ///< copied bytes on their way to TCP
  kIdle,
};
inline constexpr std::array<std::string_view, 7> kPartNames{"port", "tcp",       "session", "copy",
                                                            "poll", "post_copy", "idle"};

/// Cycles by part: the time from enter() to the next enter(). Belongs to one thread.
class PartClock {
 public:
  /// Returns the previous part.
  Part enter(Part part) {
    const std::uint64_t now = __rdtsc();
    cycles_[static_cast<std::size_t>(part_)] += now - since_;
    since_ = now;
    return std::exchange(part_, part);
  }
  /// Begins a round of the stack's loop.
  void begin_round() {
    enter(part_);
    before_round_ = cycles_;
  }
  /// The round found nothing to do: its time was idle.
  void forget_round() {
    enter(part_);
    std::uint64_t spent = 0;
    for (std::size_t i = 0; i < cycles_.size(); ++i) {
      spent += cycles_[i] - before_round_[i];
    }
    cycles_ = before_round_;
    cycles_[static_cast<std::size_t>(Part::kIdle)] += spent;
  }
  std::array<std::uint64_t, kPartNames.size()> const& cycles() const { return cycles_; }
  /// Cycles since the clock was made: at least the sum of cycles().
  std::uint64_t elapsed() const { return __rdtsc() - begin_; }

 private:
  std::uint64_t begin_ = __rdtsc();
  std::uint64_t since_ = begin_;
  Part part_ = Part::kIdle;
  std::array<std::uint64_t, kPartNames.size()> cycles_{};
  std::array<std::uint64_t, kPartNames.size()> before_round_{};
};

}  // namespace catena::stack
