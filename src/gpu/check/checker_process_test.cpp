// SPDX-License-Identifier: Apache-2.0
#include "gpu/check/checker_process.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace catena::static_check {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// A program in place of the checker, in a folder readable by everyone.
class CheckerProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "catena-checker-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  Result<std::string> run(std::string const& script, milliseconds limit = seconds(60)) const {
    const std::filesystem::path program = folder_ / "checker";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0755);
    return run_checker(program, "the input\n", limit);
  }
  /// For root only: without a sandbox on this machine the program is not run.
  static bool cannot_run(Result<std::string> const& output) {
    return ::geteuid() == 0 && absl::IsUnavailable(output.status());
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(CheckerProcess, reads_its_input_and_returns_its_output) {
  const Result<std::string> output = run("read -r line <&3; echo \"$line is read\" >&4; echo noise; echo noise >&2");
  if (cannot_run(output)) {
    GTEST_SKIP() << output.status();
  }
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(*output, "the input is read\n");
}

TEST_F(CheckerProcess, of_root_is_not_root_and_has_no_capability) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "this test is for root";
  }
  const Result<std::string> output = run("while read -r line; do echo \"$line\"; done </proc/self/status >&4");
  if (cannot_run(output)) {
    GTEST_SKIP() << output.status();
  }
  ASSERT_TRUE(output.ok()) << output.status();
  for (const char* name : {"Uid", "Gid"}) {
    // a reserved user, or the one without a name where the range is missing
    EXPECT_THAT(*output, ContainsRegex(concat(name, ":[[:space:]](19000[0-9]{5}|65534)[[:space:]]")));
  }
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_THAT(*output, ContainsRegex(concat(set, ":[[:space:]]0000000000000000\n")));
  }
  EXPECT_THAT(*output, HasSubstr("NoNewPrivs:\t1\n"));
  EXPECT_THAT(*output, HasSubstr("Seccomp:\t2\n"));
}

TEST_F(CheckerProcess, of_root_sees_no_file_of_users) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "this test is for root";
  }
  const Result<std::string> output =
      run("for name in /etc/passwd /root /home /var /run; do test ! -e $name || echo $name; done >&4; echo end >&4");
  if (cannot_run(output)) {
    GTEST_SKIP() << output.status();
  }
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(*output, "end\n");
}

TEST_F(CheckerProcess, has_no_output_if_it_fails_or_does_not_end_or_writes_too_much) {
  const auto begin = std::chrono::steady_clock::now();
  for (const char* script : {"echo end >&4; exit 1", "echo end >&4; kill -9 $$", "while :; do echo end; done >&4",
                             "echo end >&4; exec sleep 1000"}) {
    const Result<std::string> output = run(script, seconds(5));
    if (cannot_run(output)) {
      GTEST_SKIP() << output.status();
    }
    ASSERT_TRUE(output.ok()) << script << ": " << output.status();
    EXPECT_EQ(*output, "") << script;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(60));
}

TEST_F(CheckerProcess, is_not_run_if_it_is_missing) {
  EXPECT_TRUE(absl::IsUnavailable(run_checker("/usr/missing", "", seconds(60)).status()));
}

}  // namespace
}  // namespace catena::static_check
