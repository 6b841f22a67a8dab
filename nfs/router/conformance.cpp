// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include "dataplane/eal/eal.hpp"
#include "router.hpp"

CATENA_NF_CONFORMANCE(router, catena_nf_router(), [] {
  static_cast<void>(catena::dataplane::ensure_eal());
  return Subject{.yaml =
                     "routes: routes.txt\n"
                     "ports: [{port: 1, mac: 02:00:00:00:01:01, next_hop_mac: 02:00:00:00:01:02}]\n",
                 .files = {{"routes.txt", "10.0.0.0/8 1\n10.1.0.0/16 3\n10.1.2.128/25 4\n"}},
                 .frames = {make_frame(17, 0xC0A80001, 0x0A000001, 1, 2, "rewritten"),
                            make_frame(6, 0xC0A80001, 0x0A010203, 1, 2, "forwarded"),
                            make_frame(6, 0xC0A80001, 0x0A0102F3, 1, 2, "longer than /24"),
                            make_frame(17, 0xC0A80001, 0x0B000001, 1, 2, "no route"),
                            make_frame(17, 0xC0A80001, 0x0A000001, 1, 2, "at its end", 1)},
                 .reached = {{"no_route", 1}, {"ttl_expired", 1}}};
});
