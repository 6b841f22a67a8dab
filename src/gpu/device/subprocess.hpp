// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device/device.hpp"

/// Runs compilers: programs of this machine, started without a shell, in a folder readable by this user only.
namespace catena::device {

/// A private folder (mode 0700) under $TMPDIR, removed with the object.
class TemporaryFolder {
 public:
  /// Unavailable if the folder cannot be created; the text names the parent folder.
  static Result<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  std::filesystem::path const& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// Writes the files of a program into `folder`. Unavailable if they cannot be written. Precondition: check_source().
Status write_sources(ProgramSource const& source, std::filesystem::path const& folder);

struct ProcessResult {
  int exit_code = -1;  ///< 128 + signal number if ended by a signal
  std::string output;  ///< the first 32 KiB of stdout and stderr
};

/// Runs `arguments[0]` (an absolute path) and waits. `folder` holds its output during the run.
/// Unavailable if it cannot be started; DeadlineExceeded if it runs longer than `limit`: it is killed together with its
/// child processes.
Result<ProcessResult> run_process(std::vector<std::string> const& arguments, std::filesystem::path const& folder,
                                  std::chrono::seconds limit);

/// The first executable called `name` in the folders of $PATH; empty if not found.
std::string find_in_path(std::string_view name);

Result<std::vector<std::byte>> read_file(std::filesystem::path const& path);

}  // namespace catena::device
