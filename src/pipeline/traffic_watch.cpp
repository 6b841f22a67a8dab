// SPDX-License-Identifier: Apache-2.0
#include "pipeline/traffic_watch.hpp"

#include <cmath>
#include <utility>

namespace catena::runtime {
namespace {

bool is_other(double bytes, double than) { return std::abs(bytes - than) > TrafficWatch::kOther * than; }

}  // namespace

std::optional<std::uint32_t> TrafficWatch::look(std::uint64_t packets, std::uint64_t bytes) {
  const std::uint64_t new_packets = packets - std::exchange(packets_, packets);
  const std::uint64_t new_bytes = bytes - std::exchange(bytes_, bytes);
  if (rest_ > 0) {
    --rest_;
    return std::nullopt;
  }
  const double size =
      new_packets < kMinPackets ? placed_for_ : static_cast<double>(new_bytes) / static_cast<double>(new_packets);
  if (!is_other(size, placed_for_)) {
    found_ = 0;
    return std::nullopt;
  }
  const double before = std::exchange(found_, size);
  if (before == 0 || is_other(size, before)) {
    return std::nullopt;
  }
  found_ = 0;
  placed_for_ = size;
  return static_cast<std::uint32_t>(std::lround(size));
}

}  // namespace catena::runtime
