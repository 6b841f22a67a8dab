// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

#include "device/hash.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

/// Compiled programs on disk, one file each, named by the hash of everything that went into them. Several processes may
/// share the folder: a file appears whole (by rename) or not at all. Nothing here is an error for the caller.
namespace catena::program {

class ProgramCache {
 public:
  /// $CATENA_CACHE_DIR, else $XDG_CACHE_HOME/catena, else $HOME/.cache/catena. Without any of them nothing is kept.
  static ProgramCache from_environment();
  /// Another one in a folder of it, which has a bound of its own; nothing is kept where this keeps nothing.
  ProgramCache below(std::string_view name) const {
    return ProgramCache(folder_.empty() ? std::filesystem::path() : folder_ / name);
  }
  explicit ProgramCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The program kept under `key`. None where there is no such file, it is damaged, or another user wrote it.
  std::optional<device::Binary> find(device::Hash128 const& key) const;

  /// Keeps `binary` under `key`, and removes the oldest files of a folder that has grown beyond kMaxPrograms, or beyond
  /// kMaxBytes of them.
  void store(device::Hash128 const& key, device::Binary const& binary) const;

  static constexpr std::size_t kMaxPrograms = 1024;
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;

  /// Where programs are kept; empty: nowhere.
  std::filesystem::path const& folder() const { return folder_; }

 private:
  std::filesystem::path file_of(device::Hash128 const& key) const;
  void prune() const;

  std::filesystem::path folder_;  ///< empty: nothing is kept
};

}  // namespace catena::program
