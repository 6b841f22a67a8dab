// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace catena::runtime {

/// Says when packets are of another size than that which NFs were placed for. Belongs to one thread at a time.
class TrafficWatch {
 public:
  /// How often look() is to be called.
  static constexpr std::chrono::seconds kPeriod{5};
  /// Of a period, below which it says nothing.
  static constexpr std::uint64_t kMinPackets = 10'000;
  /// Sizes that differ by more are others.
  static constexpr double kOther = 0.1;
  /// Looks without an answer after NFs were placed by one, so that traffic that comes and goes does not move them each
  /// time.
  static constexpr int kRest = 12;

  /// `placed_for`: bytes of a packet, on average. `was_found`: an answer of another watch.
  TrafficWatch(std::uint32_t placed_for, bool was_found) : placed_for_(placed_for), rest_(was_found ? kRest : 0) {}

  /// `packets` and `bytes`: of all that came since the beginning. The average size that was found twice in a row, where
  /// it is another one than NFs were placed for; said once.
  std::optional<std::uint32_t> look(std::uint64_t packets, std::uint64_t bytes);

 private:
  double placed_for_;
  int rest_;
  std::uint64_t packets_ = 0;
  std::uint64_t bytes_ = 0;
  double found_ = 0;  ///< by the look before; 0: nothing new
};

}  // namespace catena::runtime
