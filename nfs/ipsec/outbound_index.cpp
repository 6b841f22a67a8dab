// SPDX-License-Identifier: Apache-2.0
#include "outbound_index.hpp"

#include <algorithm>
#include <iterator>

namespace catena::ipsec {

OutboundIndex::OutboundIndex(std::span<const Association> associations) {
  std::transform(associations.begin(), associations.end(), std::back_inserter(selectors_),
                 [](Association const& association) { return association.selector; });
}

bool OutboundIndex::may_match(packet::PacketFlow const& flow) const {
  return std::any_of(selectors_.begin(), selectors_.end(),
                     [&flow](Selector const& selector) { return selector.may_match(flow); });
}

}  // namespace catena::ipsec
