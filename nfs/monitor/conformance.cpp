// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include "monitor.hpp"

CATENA_NF_CONFORMANCE(monitor, catena_nf_monitor(), [] {
  return Subject{.yaml =
                     "max_flows: 4\n"
                     "export: [{format: json, file: flows.jsonl}, {format: ipfix, file: flows.ipfix}]\n",
                 .frames = {make_frame(6, 0x0A000001, 0x0B000001, 40000, 80, "request"),
                            make_frame(6, 0x0B000001, 0x0A000001, 80, 40000, "answer"),
                            make_frame(6, 0x0A000001, 0x0B000001, 40000, 80, "of the first flow"),
                            with_tos(make_frame(17, 0x0A000002, 0x0B000001, 40000, 53, "query"), 46 << 2),
                            make_echo(0x0A000001, 0x0B000001, 7, 1, "ping"),
                            make_echo(0x0A000001, 0x0A000002, 3, 4, "with a type"),
                            with_fragment(make_frame(17, 0x0A000001, 0x0A000002, 1, 2, "12345678"), 0x0001)}};
})
