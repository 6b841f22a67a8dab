// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/sandbox/sandbox.hpp"

namespace catena::sandbox {

/// A folder, readable by everyone, with the test program that attempts forbidden actions. Removed with the object.
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

/// The lines written by a process.
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

/// Cases that need a sandbox. Skipped, with the reason, if bubblewrap itself cannot create one.
class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override;

  /// Options to run the test program with `arguments`. `lines` receives its output and must live as long.
  SandboxOptions attempt(std::vector<std::string> arguments, Lines* lines = nullptr) const;
  /// Runs it in a sandbox to its end.
  Outcome run_with(SandboxOptions options) const;
  Outcome run(std::vector<std::string> arguments) const { return run_with(attempt(std::move(arguments))); }
  /// Runs it without a sandbox, as this user. The machine's mounts and names stay unchanged.
  Outcome run_outside(std::vector<std::string> const& arguments) const;

  Workplace const& place() const { return place_; }

 private:
  Workplace place_;
};

/// The user of sandboxed processes in tests: an unprivileged one if the test runs as root, else unset.
std::optional<uid_t> test_user();

}  // namespace catena::sandbox
