// SPDX-License-Identifier: Apache-2.0
// Any bytes as a frame: parse() stays inside and keeps its promises.
#include <catena/packet/headers.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace packet = catena::packet;
  const auto length = static_cast<std::uint32_t>(size);
  const packet::Layers layers = packet::parse(data, length);
  const bool ipv4 = (layers.flags & packet::kIpv4) != 0;
  const std::uint32_t datagram_end = ipv4 ? layers.l3 + packet::l3_length(data, length, layers) : 0;
  const bool promises_kept = !ipv4 || (datagram_end <= length && layers.l4 <= layers.payload &&
                                       std::uint32_t{layers.payload} + layers.payload_length <= datagram_end);
  const bool no_flag_without_ipv4 = ipv4 || (layers.flags & ~packet::kLinkLocal) == 0;
  const bool ports_inside = (layers.flags & packet::kPorts) == 0 || layers.l4 + 8U <= length;
  const packet::ShownPorts ports = packet::shown_ports(data, layers);
  const bool shown_inside = ports.state != packet::ShownPorts::State::kShown || layers.l4 + 4U <= length;
  const bool whole_is_shown =
      !packet::has_whole_ports(layers.flags) || ports.state == packet::ShownPorts::State::kShown;
  if (!promises_kept || !no_flag_without_ipv4 || !ports_inside || !shown_inside || !whole_is_shown) {
    __builtin_trap();
  }
  return 0;
}
