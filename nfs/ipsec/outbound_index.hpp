// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sa.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace catena::ipsec {

/// Finds the association of a packet that leaves (RFC 4301 section 5.1). Immutable: any number of threads.
class OutboundIndex {
 public:
  explicit OutboundIndex(std::span<const Association> associations);

  std::uint32_t size() const { return static_cast<std::uint32_t>(selectors_.size()); }
  /// Whether find() is 0 whatever the flow, so that nobody needs to know which it is.
  bool first_takes_all() const { return !selectors_.empty() && selectors_.front().matches_all(); }
  /// Position in the file of the first association whose selector matches; size() if none does.
  std::uint32_t find(FlowKey const& flow) const {
    const std::uint32_t count = size();
    std::uint32_t i = 0;
    while (i < count && !selectors_[i].matches(flow)) {
      ++i;
    }
    return i;
  }
  /// Of a flow that no selector matches: whether one may match the datagram that the packet is a part of.
  bool may_match(FlowKey const& flow) const;

 private:
  std::vector<Selector> selectors_;  // file order
};

}  // namespace catena::ipsec
