// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/live_clock.hpp"
#include "nf/instance.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace catena::runtime {

/// Interval of Nf::tick() calls for a live link: time-outs are in seconds, so this is often enough for all of them.
inline constexpr std::chrono::nanoseconds kTickEvery = std::chrono::milliseconds(250);

/// Calls Nf::tick() for a stage, with the clock that stamps the packets. Without a clock (captures, artificial traffic)
/// it never does: only the packets have times then, and the same input gives the same output.
class Ticker {
 public:
  Ticker(nf::Instance& instance, std::optional<io::LiveClock> clock) : instance_(&instance), clock_(clock) {}

  /// Call while no batch of the NF is between prepare() and complete().
  void poll() {
    if (!clock_.has_value()) {
      return;
    }
    if (const std::uint64_t now_ns = clock_->now_ns(); now_ns >= next_ns_) {
      next_ns_ = now_ns + static_cast<std::uint64_t>(kTickEvery.count());
      instance_->nf().tick(now_ns);
    }
  }

 private:
  nf::Instance* instance_;
  std::optional<io::LiveClock> clock_;
  std::uint64_t next_ns_ = 0;
};

}  // namespace catena::runtime
