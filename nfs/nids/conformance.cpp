// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include <string>

#include "nids.hpp"

namespace {

using catena::nf::testing::make_frame;

const std::vector<catena::nf::testing::Frame> kFrames{
    make_frame(6, 0x0A000001, 0x0B000001, 40000, 80, "GET /index.html"),
    make_frame(6, 0x0A000001, 0x0B000001, 40000, 80, "nothing of interest"),
    make_frame(17, 0x0A000001, 0x0B000001, 53, 53, "malware.example"),
    make_frame(17, 0x0A000001, 0x0B000001, 53, 53, ""),
    catena::nf::testing::make_echo(0x0A000001, 0x0B000001, 7, 1, "ping"),
    make_frame(17, 0x0A000001, 0x0B000001, 1, 2, std::string(1000, 'e'))};

}  // namespace

CATENA_NF_CONFORMANCE(nids, catena_nf_nids(), [] {
  return Subject{
      .yaml = "rules: ids.rules",
      .files = {{"ids.rules",
                 "alert tcp any any -> any 80 (msg:\"get\"; content:\"GET \"; depth:4; sid:1;)\n"
                 "drop udp any any -> any 53 (msg:\"name\"; content:\"MALWARE\"; nocase; sid:2;)\n"
                 "alert ip any any -> any any (msg:\"more matches than the list holds\"; content:\"e\"; sid:3;)\n"
                 "alert tcp 10.0.0.0/8 any -> any any (msg:\"flags\"; flags:A; sid:4;)\n"
                 "alert icmp any any -> 11.0.0.0/8 any (msg:\"ping\"; itype:8; icode:0; sid:5;)\n"}},
      .frames = kFrames,
      .reached = {{"rule", 1}}};
});

CATENA_NF_CONFORMANCE(nids_strings, catena_nf_nids(), [] {
  return Subject{.yaml = "strings: strings.txt", .files = {{"strings.txt", "index\nmalware\ne\n"}}, .frames = kFrames};
});
