// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include "remark.hpp"

CATENA_NF_CONFORMANCE(remark, catena_nf_remark(), [] {
  return Subject{.yaml = "map: [{from: 0, to: 10}]\nunlisted: drop\n",
                 .frames = {make_frame(17, 0x0A000001, 0x0A000002, 1, 2, "marked"),
                            with_tos(make_frame(6, 0x0A000001, 0x0A000002, 1, 2, "dropped"), 46 << 2)},
                 .reached = {{"unlisted", 1}}};
});
