// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace catena {

/// A private folder for the files of one test, removed with the object. Thread rule: one thread.
class ScratchFolder {
 public:
  /// Throws std::runtime_error if the folder cannot be created.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(ScratchFolder const&) = delete;
  ScratchFolder& operator=(ScratchFolder const&) = delete;

  /// Path of the file `name` in the folder; without a name, of the folder.
  std::string path(std::string_view name = "") const;
  void write(std::string_view name, std::string_view text) const;
  /// The content of the file; empty if it does not exist.
  std::string read(std::string_view name) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace catena
