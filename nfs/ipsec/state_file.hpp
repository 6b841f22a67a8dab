// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "replay_window.hpp"
#include "sa.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/outputs.hpp>

#include <cstdint>
#include <memory>
#include <string>

/// State of an association that must survive its process: the sequence numbers that may have been used (encrypt: with
/// one key each number is one key stream, RFC 3686 section 2.1), or seen (decrypt: the replay window).
namespace catena::ipsec {

struct SavedState {
  /// The first number neither used nor reserved by a process that has ended.
  std::uint64_t next = 1;
  /// decrypt: of a window whose highest number is next - 1; at most ReplayWindow::kMaxPackets bits. Empty, so that all
  /// numbers count as seen, if a process did not end cleanly.
  ReplayWindow::Seen seen;
};
/// The file of one association and direction, with its lock: at most one StateFile of a name exists at a time on the
/// machine. Not thread safe; movable.
class StateFile {
 public:
  /// Opens or creates `folder` (accessible only to its owner) and locks the file `name` in it. FailedPrecondition if
  /// the file is locked elsewhere; InvalidArgument with file:line:column if the file exists and is not a state of
  /// `direction`; else as nf::Outputs::open_kept().
  static Result<StateFile> open(nf::Outputs& outputs, std::string const& folder, std::string const& name,
                                Direction direction);
  /// True if the file `name` of `folder` is now locked elsewhere.
  static bool is_taken(nf::Outputs& outputs, std::string const& folder, std::string const& name);
  /// The path of file `name` in `folder`; the file may be missing.
  static std::string path_of(std::string const& folder, std::string const& name);

  /// True if no file existed when this was opened; loaded() is the content of an existing one.
  bool is_new() const { return is_new_; }
  SavedState const& loaded() const { return loaded_; }
  std::string const& path() const { return path_; }

  /// Replaces the file atomically, and returns when file and name are on disk: if the machine stops, either the old or
  /// the new state exists. Returns the system's error on failure; the old state then remains valid. `spi` is for
  /// readers.
  Status save(SavedState const& state, std::uint32_t spi) const;

 private:
  StateFile() = default;

  std::string path_;
  Direction direction_ = Direction::kEncrypt;
  SavedState loaded_;
  bool is_new_ = true;
  std::unique_ptr<nf::Output> output_;  // holds the lock
};

}  // namespace catena::ipsec
