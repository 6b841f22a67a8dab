// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include "ttl_guard.hpp"

CATENA_NF_CONFORMANCE(ttl_guard, catena_nf_ttl_guard(), [] {
  return Subject{.yaml = "minimum: 64\n",
                 .frames = {make_frame(17, 0x0A000001, 0x0A000002, 1, 2, "passes", 64),
                            make_frame(6, 0x0A000001, 0x0A000002, 1, 2, "dropped", 63)},
                 .reached = {{"ttl_too_low", 1}}};
});
