// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include "lb.hpp"

CATENA_NF_CONFORMANCE(lb, catena_nf_lb(), [] {
  constexpr std::uint32_t kClient = 0xC6336407;
  constexpr std::uint32_t kService = 0xCB00710A;
  constexpr std::uint32_t kBackend = 0x0A000001;
  return Subject{
      .yaml =
          "services:\n"
          "  - {address: 203.0.113.10, port: 80, protocol: tcp, backends: [{name: a, address: 10.0.0.1, port: 8080}]}\n"
          "  - {address: 203.0.113.10, port: 53, protocol: udp, backends: [{name: b, address: 10.0.0.1}]}\n"
          "  - address: 203.0.113.10\n"
          "    port: 81\n"
          "    protocol: tcp\n"
          "    backends: [{name: c, address: 10.0.0.1, state: drain}]\n"
          "max_flows: 2",
      .frames = {make_frame(6, kClient, kService, 1111, 80, "request"),
                 make_frame(6, kBackend, kClient, 8080, 1111, "answer"),
                 make_frame(17, kClient, kService, 1111, 53, "query"),
                 make_frame(17, kClient, kService, 1112, 53, "not tracked"),
                 make_frame(17, kBackend, kClient, 53, 1112, "an untracked answer"),
                 make_frame(6, kClient, kService, 1111, 81, "no backend"),
                 with_fragment(make_frame(17, kClient, kService, 1111, 53, "12345678"), 0x0001),
                 make_frame(6, kClient, kBackend, 1111, 8080, "untouched"),
                 make_error(3, kBackend, make_frame(6, kClient, kBackend, 1111, 8080, "req"), 20),
                 make_error(3, kClient, make_frame(6, kService, kClient, 80, 1111, "ans"), 8)},
      .reached = {{"no_backend", 1}, {"fragment", 1}}};
})
