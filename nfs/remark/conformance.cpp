// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/conformance.hpp>

#include "remark.hpp"

namespace {

catena::nf::testing::Frame marked_46() {
  auto frame = catena::nf::testing::make_frame(6, 0x0A000001, 0x0A000002, 1, 2, "dropped");
  frame[15] = 46 << 2;
  return frame;
}

}  // namespace

CATENA_NF_CONFORMANCE(remark, catena_nf_remark(), [] {
  return Subject{.yaml = "map: [{from: 0, to: 10}]\nunlisted: drop\n",
                 .frames = {make_frame(17, 0x0A000001, 0x0A000002, 1, 2, "marked"), marked_46()},
                 .reached = {{"unlisted", 1}}};
});
