// SPDX-License-Identifier: Apache-2.0
// Others that share no code with this project say what must become of a packet: scapy, and the kernel's own NAT.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <catena/core/text.hpp>

#include <array>
#include <cstdio>
#include <filesystem>

#include "nat_testing.hpp"

namespace catena::nat::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kCannot = 77;  // a script's exit status where the machine lacks what it needs

/// Exit status and output of a shell command.
struct CommandResult {
  int status = -1;
  std::string output;
};
CommandResult run_command(std::string const& command) {
  CommandResult result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> buffer;
  while (const std::size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), bytes);
  }
  result.status = ::pclose(pipe);
  return result;
}

class Oracle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_command("/usr/bin/python3 -c 'import scapy.all'").status != 0) {
      GTEST_SKIP() << "python3-scapy is not installed";
    }
    std::string pattern = (fs::temp_directory_path() / "catena-nat-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;  // also where a skipped test made no folder
    fs::remove_all(folder_, ignored);
  }

  CommandResult run_script(std::string_view script) const {
    return run_command(
        concat("/usr/bin/python3 -B '", CATENA_SOURCE_DIR "/nfs/nat/oracle/", script, "' '", folder_.string(), "'"));
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
    auto frames = nf::testing::read_capture((folder_ / name).string());
    EXPECT_TRUE(frames.ok()) << frames.status();
    return std::move(frames).value_or(std::vector<Frame>());
  }

  fs::path folder_;
};

TEST_F(Oracle, packets_and_errors_become_what_scapy_says) {
  const CommandResult script = run_script("scapy_nat.py");
  ASSERT_EQ(script.status, 0) << script.output;
  expect_same_as_the_oracle(1200);
}

TEST_F(Oracle, packets_and_errors_become_what_linux_makes_of_them) {
  const CommandResult script = run_script("linux_nat.py");
  if (WIFEXITED(script.status) && WEXITSTATUS(script.status) == kCannot) {
    GTEST_SKIP() << "no network namespaces with nftables here: " << script.output;
  }
  ASSERT_EQ(script.status, 0) << script.output;
  expect_same_as_the_oracle(600);
}

}  // namespace
}  // namespace catena::nat::testing
