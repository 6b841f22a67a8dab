// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sa.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::ipsec {

/// Finds the association of an arriving packet (RFC 4301 section 4.1). Immutable: any number of threads.
class InboundIndex {
 public:
  explicit InboundIndex(std::span<const Association> associations);

  /// Position in the file of the association with this SPI and outer destination.
  std::optional<std::uint32_t> find(std::uint32_t spi, std::uint32_t destination) const;
  /// True if some association with that outer destination takes ESP in UDP on that port. UDP to anybody else's port
  /// 4500 is none of our business.
  bool receives_udp(std::uint32_t destination, std::uint16_t port) const;
  /// The same of any port.
  bool receives_udp(std::uint32_t destination) const;
  /// True if some association ends at that address.
  bool is_tunnel_end(std::uint32_t destination) const;

 private:
  struct Entry {
    std::uint64_t key;
    std::uint32_t association;
  };
  std::vector<Entry> by_spi_;             // sorted by destination << 32 | SPI
  std::vector<std::uint64_t> udp_ports_;  // sorted: destination << 16 | port
};

/// An InboundIndex, which outlives it, and the last association that was found there: packets of one tunnel come one
/// after the other. One thread at a time.
class RecentInbound {
 public:
  explicit RecentInbound(InboundIndex const& index) : index_(&index) {}

  /// As InboundIndex::find().
  std::optional<std::uint32_t> find(std::uint32_t spi, std::uint32_t destination) {
    const std::uint64_t key = std::uint64_t{destination} << 32 | spi;
    if (key == last_key_) {
      return last_;
    }
    const auto found = index_->find(spi, destination);
    if (found) {
      last_key_ = key;
      last_ = found;
    }
    return found;
  }

 private:
  InboundIndex const* index_;
  std::uint64_t last_key_ = 0;  // SPI 0 is no association's (RFC 4303 section 2.1)
  std::optional<std::uint32_t> last_;
};

}  // namespace catena::ipsec
