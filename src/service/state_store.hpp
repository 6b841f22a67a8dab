// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/apply_record.hpp"
#include "service/spec_history.hpp"

#include <catena/core/status.hpp>

#include <string>
#include <vector>

namespace catena::service {

/// The applied chains, in a folder that outlives the service: one file per chain. It determines the rights of a chain,
/// so no other user may write there. One thread at a time.
class StateStore {
 public:
  /// Creates the folder and its parents, if missing; only the service's user may enter it. FailedPrecondition if it is
  /// another user's; else the system's error.
  static Result<StateStore> open(std::string folder);

  /// Either all of it is on the disk, also after a power cut, or the file is unchanged. The system's error.
  Status save(ApplyRecord const& applied) const;
  /// Its history, too. OK without a file.
  Status remove(std::string const& name) const;
  struct Loaded {
    std::string path;
    Result<ApplyRecord> applied;  ///< or the error in the file
  };
  /// By name.
  std::vector<Loaded> load() const;
  /// The last specs of the chains.
  SpecHistory const& history() const { return history_; }

 private:
  explicit StateStore(std::string folder) : folder_(std::move(folder)), history_(folder_ + "/history") {}
  std::string path_of(std::string const& name) const;

  std::string folder_;
  SpecHistory history_;
};

}  // namespace catena::service
