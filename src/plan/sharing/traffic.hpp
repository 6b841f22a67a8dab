// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

/// The current load of the NFs of a chain, from monotonic counts.
namespace catena::share {

/// The counts at one moment.
struct TrafficSample {
  std::vector<std::uint64_t> packets;  ///< received by each NF so far
  std::vector<std::uint64_t> waiting;  ///< before each NF, now
  std::uint64_t rx_packets = 0;        ///< received by the chain so far
  std::uint64_t rx_bytes = 0;
};

/// The rates of the last period. One thread at a time.
class TrafficMeter {
 public:
  /// Shorter periods are inaccurate: an earlier call of look() changes nothing.
  static constexpr std::chrono::milliseconds kMinPeriod{100};
  /// An NF's need is this many times its incoming packets, so that its traffic can grow.
  static constexpr double kMargin = 1.25;

  /// The first sample, at which the first period begins; `packet_bytes`: average size until the first packet.
  void start(TrafficSample first, std::uint32_t packet_bytes, std::chrono::steady_clock::time_point at);
  /// `backlog`: one per NF; with this many waiting packets or more it has too little of the device.
  void look(TrafficSample now, std::vector<std::uint64_t> const& backlog, std::chrono::steady_clock::time_point at);

  /// Incoming packets per second of NF number `nf`; 0 before the first period.
  double packets_per_s(std::size_t nf) const { return nf < nfs_.size() ? nfs_[nf].packets_per_s : 0; }
  /// Packets per second that it must be able to process, with a margin. Nullopt before the first period, and if packets
  /// wait.
  std::optional<double> needed_pps(std::size_t nf) const {
    return nf < nfs_.size() ? nfs_[nf].needed_pps : std::nullopt;
  }
  /// Average size of the packets received by the chain in the last period with any.
  std::uint32_t packet_bytes() const { return packet_bytes_; }

 private:
  struct Nf {
    double packets_per_s = 0;
    std::optional<double> needed_pps;
  };
  TrafficSample last_;
  std::chrono::steady_clock::time_point last_at_;
  std::vector<Nf> nfs_;
  std::uint32_t packet_bytes_ = 0;
};

}  // namespace catena::share
