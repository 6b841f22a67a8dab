// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace catena::nf::testing {

/// A folder of its own for the files of one test, removed with the object. Thread rule: one thread.
class ScratchFolder {
 public:
  /// Throws std::runtime_error if the folder cannot be made.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(ScratchFolder const&) = delete;
  ScratchFolder& operator=(ScratchFolder const&) = delete;

  /// Of the file `name` in the folder; without one, of the folder.
  std::string path(std::string_view name = "") const;
  void write(std::string_view name, std::string_view text) const;
  /// What the file holds; empty if there is none.
  std::string read(std::string_view name) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace catena::nf::testing
