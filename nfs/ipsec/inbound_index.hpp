// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sa.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::ipsec {

/// Finds the association of an arriving packet (RFC 4301 section 4.1). Immutable. Thread rule: any number of threads.
class InboundIndex {
 public:
  explicit InboundIndex(std::span<const Association> associations);

  /// File position of the association with this SPI and outer destination; nullopt if none matches.
  std::optional<std::uint32_t> find(std::uint32_t spi, std::uint32_t destination) const;
  /// True if an association with this outer destination receives ESP in UDP on this port. UDP to port 4500 of other
  /// addresses is not inspected.
  bool receives_udp(std::uint32_t destination, std::uint16_t port) const;
  /// The same for any port.
  bool receives_udp(std::uint32_t destination) const;
  /// True if an association ends at this address.
  bool is_tunnel_end(std::uint32_t destination) const;

 private:
  struct Entry {
    std::uint64_t key;
    std::uint32_t association;
  };
  std::vector<Entry> by_spi_;             // sorted by destination << 32 | SPI
  std::vector<std::uint64_t> udp_ports_;  // sorted: destination << 16 | port
};

/// Caches the last association found in an InboundIndex: packets of one tunnel arrive in sequence. The index must
/// outlive this. Thread rule: one thread at a time.
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
  std::uint64_t last_key_ = 0;  // SPI 0 is reserved (RFC 4303 section 2.1)
  std::optional<std::uint32_t> last_;
};

}  // namespace catena::ipsec
