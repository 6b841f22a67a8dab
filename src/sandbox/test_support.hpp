// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace catena::sandbox {

/// A folder with the program that attempts things, which anybody can read; goes with the object.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(Workplace const&) = delete;
  Workplace& operator=(Workplace const&) = delete;
  std::filesystem::path operator/(std::string const& name) const { return folder_ / name; }
  std::filesystem::path const& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

/// The lines that a process wrote.
class Lines {
 public:
  void add(std::string_view line);
  std::string text() const;  ///< each with "\n"
  bool wait_for(std::string const& line) const;

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

struct Outcome {
  int exit_code = -1;
  std::string output;
};

/// Cases that need a sandbox; skipped, with the reason, where bubblewrap itself cannot make one.
class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override;

  /// Options by which the program attempts `arguments`; its output goes to `lines`, which has to live as long.
  SandboxOptions attempt(std::vector<std::string> arguments, Lines* lines = nullptr) const;
  /// In a sandbox, to its end.
  Outcome run_with(SandboxOptions options) const;
  Outcome run(std::vector<std::string> arguments) const { return run_with(attempt(std::move(arguments))); }
  /// Without a sandbox, as this user; mounts and names of the machine stay as they are.
  Outcome run_outside(std::vector<std::string> const& arguments) const;

  Workplace const& place() const { return place_; }

 private:
  Workplace place_;
};

/// Who sandboxed processes of tests are: nobody where the test is root.
std::optional<uid_t> test_user();

}  // namespace catena::sandbox
