// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/applied.hpp"

#include <catena/core/status.hpp>

#include <string>
#include <vector>

namespace catena::service {

/// What was applied, in a folder that outlives the service: a file for each chain. It says with whose rights a chain
/// runs, so nobody else may write there. One thread at a time.
class StateStore {
 public:
  /// Makes the folder, and those above it, where there is none; nobody but the service's user may enter it.
  /// FailedPrecondition where it is another user's; else what the system says.
  static Result<StateStore> open(std::string folder);

  /// Either the whole of it is on the disk, also after a power cut, or the file is as it was. What the system says.
  Status save(Applied const& applied) const;
  /// OK where there is none.
  Status remove(std::string const& name) const;
  struct Loaded {
    std::string path;
    Result<Applied> applied;  ///< what is wrong with the file
  };
  /// By name.
  std::vector<Loaded> load() const;

 private:
  explicit StateStore(std::string folder) : folder_(std::move(folder)) {}
  std::string path_of(std::string const& name) const;

  std::string folder_;
};

}  // namespace catena::service
