// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include "gpu/device/hash.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

/// Compiled programs on disk, one file each, named by the hash of all inputs. Several processes may share the folder: a
/// file appears whole (by rename) or not at all. The caller never gets an error.
namespace catena::program {

class ProgramCache {
 public:
  /// $CATENA_CACHE_DIR, else $XDG_CACHE_HOME/catena, else $HOME/.cache/catena. Without any of them nothing is kept.
  static ProgramCache from_environment();
  /// A cache in a subfolder of this one, with its own limits; keeps nothing if this one keeps nothing.
  ProgramCache below(std::string_view name) const {
    return ProgramCache(folder_.empty() ? std::filesystem::path() : folder_ / name);
  }
  explicit ProgramCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The program kept under `key`; nullopt if its file is missing or damaged, or was written by another user.
  std::optional<device::Binary> find(device::Hash128 const& key) const;

  /// Keeps `binary` under `key`, and removes the oldest files if the folder exceeds kMaxPrograms files or kMaxBytes
  /// bytes.
  void store(device::Hash128 const& key, device::Binary const& binary) const;

  static constexpr std::size_t kMaxPrograms = 1024;
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;

  /// Folder of the programs; empty: nothing is kept.
  std::filesystem::path const& folder() const { return folder_; }

 private:
  std::filesystem::path file_of(device::Hash128 const& key) const;
  void prune() const;

  std::filesystem::path folder_;  ///< empty: nothing is kept
};

}  // namespace catena::program
