// SPDX-License-Identifier: Apache-2.0
#include "io/shared_port.hpp"

#include "io/interface.hpp"

#include <catena/core/text.hpp>

namespace catena::io {

std::vector<NamedCount> drops_of(SharedPort const& port) {
  return {{"unmatched", port.unmatched},    {"malformed", port.malformed},      {"chain_ended", port.left_behind},
          {"too_long", port.too_long},      {"backlog_full", port.port.missed}, {"no_slot", port.port.no_slot},
          {"rx_error", port.port.rx_errors}};
}

std::string shared_name(std::string const& device) {
  const std::string interface = interface_of(device);
  return interface.empty() ? concat("device ", device.substr(0, device.find(','))) : concat("interface ", interface);
}

std::string conflict(PortMember const& a, PortMember const& b) {
  for (TrafficMatch const& of_a : a.matches) {
    for (TrafficMatch const& of_b : b.matches) {
      const Overlap lie = overlap(of_a, of_b);
      if (lie == Overlap::kSame || lie == Overlap::kCrossing) {
        return concat("chains '", a.chain, "' (", to_string(of_a), ") and '", b.chain, "' (", to_string(of_b), ") ",
                      lie == Overlap::kSame ? "want the same frames"
                                            : "want some of the same frames, and each also wants others");
      }
    }
  }
  return {};
}

}  // namespace catena::io
