// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

/// What the NFs of a chain have to do now, from counts that only grow.
namespace catena::share {

/// The counts at one moment.
struct TrafficSample {
  std::vector<std::uint64_t> packets;  ///< that came to each NF so far
  std::vector<std::uint64_t> waiting;  ///< in front of each NF, now
  std::uint64_t rx_packets = 0;        ///< that came to the chain so far
  std::uint64_t rx_bytes = 0;
};

/// What became of it in the last period. One thread at a time.
class TrafficMeter {
 public:
  /// Shorter periods say little: a look that comes sooner changes nothing.
  static constexpr std::chrono::milliseconds kMinPeriod{100};
  /// What an NF needs is so many times what came to it, so that its traffic can grow.
  static constexpr double kMargin = 1.25;

  /// The first sample, from which the next look measures; `packet_bytes`: on average, as long as no packet came.
  void start(TrafficSample first, std::uint32_t packet_bytes, std::chrono::steady_clock::time_point at);
  /// `backlog`: packets that wait for an NF from which on it has too little of the device; one for each NF.
  void look(TrafficSample now, std::vector<std::uint64_t> const& backlog, std::chrono::steady_clock::time_point at);

  /// Packets a second that came to NF number `nf`; 0 before the first period.
  double packets_per_s(std::size_t nf) const { return nf < nfs_.size() ? nfs_[nf].packets_per_s : 0; }
  /// Packets a second that it has to be good for, with a margin. None: before the first period, and where packets wait.
  std::optional<double> needed_pps(std::size_t nf) const {
    return nf < nfs_.size() ? nfs_[nf].needed_pps : std::nullopt;
  }
  /// Average size of the packets that came to the chain in the last period in which any did.
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
