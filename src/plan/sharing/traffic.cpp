// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/traffic.hpp"

#include <utility>

namespace catena::share {

void TrafficMeter::start(TrafficSample first, std::uint32_t packet_bytes, std::chrono::steady_clock::time_point at) {
  last_ = std::move(first);
  last_at_ = at;
  packet_bytes_ = packet_bytes;
  nfs_.clear();
}

void TrafficMeter::look(TrafficSample now, std::vector<std::uint64_t> const& backlog,
                        std::chrono::steady_clock::time_point at) {
  if (at - last_at_ < kMinPeriod) {
    return;
  }
  const double seconds = std::chrono::duration<double>(at - last_at_).count();
  nfs_.resize(now.packets.size());
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    nfs_[i].packets_per_s = static_cast<double>(now.packets[i] - last_.packets[i]) / seconds;
    nfs_[i].needed_pps = now.waiting[i] >= backlog[i] ? std::nullopt : std::optional(nfs_[i].packets_per_s * kMargin);
  }
  if (const std::uint64_t packets = now.rx_packets - last_.rx_packets; packets > 0) {
    packet_bytes_ = static_cast<std::uint32_t>((now.rx_bytes - last_.rx_bytes) / packets);
  }
  last_ = std::move(now);
  last_at_ = at;
}

}  // namespace catena::share
