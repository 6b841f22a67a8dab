// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>
#include <catena/nf/testing/traffic.hpp>

#include "monitor.hpp"

CATENA_NF_CONFORMANCE(monitor, catena_nf_monitor(), [] {
  return Subject{.yaml = "max_flows: 4\nexport: [{format: json, file: flows.jsonl}]",
                 .frames = {make_frame(6, 0x0A000001, 0x0A000002, 1, 2, "counted"),
                            make_frame(17, 0x0A000001, 0x0A000002, 1, 2, "counted"),
                            make_frame(6, 0x0A000001, 0x0A000002, 1, 2, "of the first flow"),
                            make_echo(0x0A000001, 0x0A000002, 3, 4, "with a type"),
                            with_fragment(make_frame(17, 0x0A000001, 0x0A000002, 1, 2, "12345678"), 0x0001)}};
})
