// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include <algorithm>
#include <initializer_list>

#include "router.hpp"

namespace {

/// `frame` with two words of options.
catena::nf::testing::Frame with_option(catena::nf::testing::Frame frame, std::initializer_list<std::uint8_t> option) {
  frame = catena::nf::testing::with_options(std::move(frame), 2);
  std::copy(option.begin(), option.end(), frame.begin() + 34);
  return catena::nf::testing::with_header_checksum(std::move(frame));
}

}  // namespace

CATENA_NF_CONFORMANCE(router, catena_nf_router(), [] {
  return Subject{.yaml =
                     "routes: routes.txt\n"
                     "ports: [{port: 1, mac: 02:00:00:00:01:01, next_hop_mac: 02:00:00:00:01:02, "
                     "address: 10.0.0.254/24}]\n"
                     "icmp_rate: 20\n",
                 .files = {{"routes.txt", "10.0.0.0/8 1\n10.1.0.0/16 3\n10.1.2.128/25 4\n"}},
                 .frames = {make_frame(17, 0xC0A80001, 0x0A000001, 1, 2, "rewritten"),
                            make_frame(6, 0xC0A80001, 0x0A010203, 1, 2, "forwarded"),
                            make_frame(6, 0xC0A80001, 0x0A0102F3, 1, 2, "longer than /24"),
                            make_frame(17, 0xC0A80001, 0x0B000001, 1, 2, "no route"),
                            make_frame(17, 0xC0A80001, 0x0A000001, 1, 2, "at its end", 1),
                            make_frame(17, 0x7F000001, 0x0A000001, 1, 2, "from nowhere"),
                            make_frame(17, 0xC0A80001, 0x7F000001, 1, 2, "to nowhere"),
                            make_frame(17, 0xC0A80001, 0xE0000105, 1, 2, "to a group"),
                            make_frame(17, 0xC0A80001, 0x0A0000FF, 1, 2, "to all"),
                            make_frame(1, 0xC0A80001, 0x0A0000FE, 1, 2, "to the router"),
                            with_option(make_frame(17, 0xC0A80001, 0x0A000001, 1, 2, "recorded"), {7, 7, 4}),
                            with_option(make_frame(17, 0xC0A80001, 0x0A0102F3, 1, 2, "timed"), {68, 8, 5}),
                            with_option(make_frame(17, 0xC0A80001, 0x0A000001, 1, 2, "malformed"), {7, 9, 4}),
                            with_option(make_frame(17, 0xE0000001, 0x0A000001, 1, 2, "of a group"), {7, 9, 4}),
                            with_option(make_frame(1, 0xC0A80001, 0x0A000001, 0x0301, 1, "an error"), {7, 9, 4}),
                            with_option(make_frame(17, 0xC0A80001, 0x0A000001, 1, 2, "led"), {131, 7, 4}),
                            make_frame(17, 0x0A0000FE, 0x0A000001, 1, 2, "from the router")},
                 .reached = {{"no_route", 1},
                             {"ttl_expired", 1},
                             {"martian_source", 3},
                             {"source_route", 1},
                             {"martian_destination", 1},
                             {"multicast", 1},
                             {"broadcast", 1},
                             {"to_router", 1},
                             {"not_routable", 1}}};
});
