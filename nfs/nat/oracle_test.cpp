// SPDX-License-Identifier: Apache-2.0
// Others that share no code with this project say what must become of a packet: scapy, and the kernel's own NAT.
#include <gtest/gtest.h>

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/nf/testing/oracle.hpp>

#include "nat_testing.hpp"

namespace catena::nat::testing {
namespace {

using nf::testing::CommandResult;

class Oracle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nf::testing::can_import("scapy.all")) {
      GTEST_SKIP() << "python3-scapy is not installed";
    }
  }

  CommandResult run_script(std::string_view script) const {
    return nf::testing::run_oracle("nat", script, {folder_.path()});
  }
  /// What the script says arrives must become what it says leaves, everywhere.
  void expect_same_as_the_oracle(std::size_t count) const {
    const std::vector<Frame> arriving = read("in.pcap");
    const std::vector<Frame> expected = read("expected.pcap");
    ASSERT_EQ(arriving.size(), count);
    ASSERT_EQ(expected.size(), count);
    const RunResult result = run_everywhere(arriving);
    ASSERT_EQ(result.records.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(passed(result, i)) << result.records[i];
      ASSERT_EQ(result.packets[i].frame, expected[i]) << result.records[i];
    }
  }

 private:
  std::vector<Frame> read(std::string_view name) const {
    auto frames = nf::testing::read_capture(folder_.path(name));
    EXPECT_TRUE(frames.ok()) << frames.status();
    return std::move(frames).value_or(std::vector<Frame>());
  }

  ScratchFolder folder_;
};

TEST_F(Oracle, packets_and_errors_become_what_scapy_says) {
  const CommandResult script = run_script("scapy_nat.py");
  ASSERT_EQ(script.status, 0) << script.output;
  expect_same_as_the_oracle(1200);
}

TEST_F(Oracle, packets_and_errors_become_what_linux_makes_of_them) {
  const CommandResult script = run_script("linux_nat.py");
  if (script.status == nf::testing::kOracleCannot) {
    GTEST_SKIP() << "no network namespaces with nftables here: " << script.output;
  }
  ASSERT_EQ(script.status, 0) << script.output;
  expect_same_as_the_oracle(600);
}

}  // namespace
}  // namespace catena::nat::testing
