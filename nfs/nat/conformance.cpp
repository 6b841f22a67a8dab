// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include "nat.hpp"

CATENA_NF_CONFORMANCE(nat, catena_nf_nat(), [] {
  constexpr std::uint32_t kHost = 0x0A000005;
  constexpr std::uint32_t kServer = 0xC6336407;
  constexpr std::uint32_t kExternal = 0xCB007101;
  Frame cut_short = make_frame(17, kHost, kServer, 1, 53, "");
  cut_short[kL3 + 3] = 24;  // the datagram ends in the UDP header
  const auto [first, later] = in_two(make_frame(17, kHost, kServer, 1111, 53, "in two parts"), 9, 8);
  return Subject{
      .yaml = "inside: [10.0.0.0/8]\nexternal: [203.0.113.1]\nports: 1111-1112",
      .frames = {make_frame(17, kHost, kServer, 1111, 53, "out"), make_frame(17, kServer, kExternal, 53, 1111, "in"),
                 make_frame(17, kHost + 1, kExternal, 1112, 1111, "hairpin"),
                 make_frame(17, kHost + 2, kServer, 1111, 53, "no port left"),
                 make_frame(6, kHost, kServer, 1111, 80, "tcp"), make_frame(6, kServer, kExternal, 80, 1112, "nobody"),
                 make_echo(kHost, kServer, 7, 1, "echo"), make_echo(kHost + 1, kServer, 7, 1, "the same identifier"),
                 make_frame(50, kHost, kServer, 0, 0, "another protocol"),
                 with_fragment(make_frame(17, kHost, kServer, 1111, 53, "12345678"), 0x0001), cut_short,
                 make_frame(17, kServer, kHost, 1, 2, "to inside"),
                 make_frame(17, kServer, kServer + 1, 1, 2, "untouched"),
                 make_frame(17, kHost, 0xE00000FB, 1, 2, "multicast"),
                 make_error(3, kServer, make_frame(17, kExternal, kServer, 1111, 53, "out"), 11),
                 make_error(3, kHost, make_frame(17, kServer, kHost, 53, 1111, "in")), first, later},
      .reached = {{"pool_exhausted", 1},
                  {"no_mapping", 1},
                  {"fragment", 1},
                  {"malformed", 1},
                  {"unsupported_protocol", 1},
                  {"inbound_to_inside", 1}}};
})
