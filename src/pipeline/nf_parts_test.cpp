// SPDX-License-Identifier: Apache-2.0
#include "pipeline/nf_parts.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace catena::runtime {
namespace {

TEST(NfParts, an_nf_in_a_process_takes_its_part_in_its_own_time) {
  const std::vector<share::Part> first{{0, {4, 16}}};
  const std::vector<share::Part> next{{4, {2, 16}}};
  const device::DeviceInfo device;
  const std::vector<SharingNf> nfs(1);
  GpuPartitioner partitioner(device, {}, nfs);
  NfParts parts(1);
  ProcessPart process;
  parts.begin(first);
  parts.add(0, process);
  EXPECT_EQ(process.given(), as_given(first[0]));
  EXPECT_FALSE(parts.held()[0].is_used);
  process.take(process.given());
  EXPECT_TRUE(parts.held()[0].is_used);

  EXPECT_FALSE(parts.is_due(first));
  ASSERT_TRUE(parts.is_due(next));
  Pause pause;
  ASSERT_EQ(parts.hand_out(next, partitioner, pause), absl::OkStatus());
  EXPECT_EQ(process.given(), as_given(next[0]));
  EXPECT_EQ(parts.held()[0].part, next[0]);
  EXPECT_FALSE(parts.held()[0].is_used);
  EXPECT_EQ(parts.used(), next) << "by the stages of this process";
  EXPECT_EQ(parts.changes(), 1U);
  EXPECT_FALSE(parts.is_due(next));
}

}  // namespace
}  // namespace catena::runtime
