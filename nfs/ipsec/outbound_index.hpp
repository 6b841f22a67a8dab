// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sa.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace catena::ipsec {

/// Finds the association of an outgoing packet (RFC 4301 section 5.1). Immutable. Thread rule: any number of threads.
class OutboundIndex {
 public:
  explicit OutboundIndex(std::span<const Association> associations);

  std::uint32_t size() const { return static_cast<std::uint32_t>(selectors_.size()); }
  /// True if find() returns 0 for every flow, so that the flow need not be read.
  bool first_takes_all() const { return !selectors_.empty() && selectors_.front().matches_all(); }
  /// File position of the first association with a matching selector; size() if no selector matches.
  std::uint32_t find(packet::PacketFlow const& flow) const {
    const std::uint32_t count = size();
    std::uint32_t i = 0;
    while (i < count && !selectors_[i].matches(flow)) {
      ++i;
    }
    return i;
  }
  /// For a flow without a matching selector: true if a selector may match the whole datagram of which the packet is a
  /// fragment.
  bool may_match(packet::PacketFlow const& flow) const;

 private:
  std::vector<Selector> selectors_;  // file order
};

}  // namespace catena::ipsec
