// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include "firewall.hpp"

CATENA_NF_CONFORMANCE(firewall, catena_nf_firewall(), [] {
  return Subject{.yaml = "rules: fw.rules\ndefault: deny\n",
                 .files = {{"fw.rules",
                            "deny  tcp  10.0.0.0/8  any          1024-65535  443\n"
                            "deny  tcp  10.0.0.0/8  12.0.0.0/8   any         any\n"
                            "allow tcp  10.0.0.0/8  any          any         any\n"
                            "allow icmp any         any          any         any\n"}},
                 .frames = {make_frame(6, 0x0A000001, 0x0B000001, 40000, 443, "denied"),
                            make_frame(6, 0x0A000001, 0x0C000001, 40000, 80, "denied again"),
                            make_frame(6, 0x0A000001, 0x0B000001, 40000, 80, "allowed"),
                            make_frame(17, 0x0A000001, 0x0B000001, 40000, 443, "by default")},
                 .reached = {{"denied", 3}}};
});
