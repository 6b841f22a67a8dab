// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sa.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/outputs.hpp>

#include <cstdint>
#include <memory>
#include <string>

/// What an association must not forget when its process ends: which sequence numbers it may have used (encrypt: with
/// one key each number is one key stream, RFC 3686 section 2.1), or may have seen (decrypt: the replay window).
namespace catena::ipsec {

struct SavedState {
  /// The first number that was neither used nor, by a process that then ended, reserved.
  std::uint64_t next = 1;
  /// decrypt: bit i tells whether number next - 1 - i was seen. All of them where a process did not end by itself.
  std::uint64_t seen = ~std::uint64_t{0};
};

/// The file of one association and direction, and the right to it: at most one StateFile of a name exists at a time, in
/// all processes of the machine. Not thread safe; movable.
class StateFile {
 public:
  /// Opens or makes `folder` (for its owner alone) and takes the right to the file `name` in it. FailedPrecondition if
  /// somebody else has it; InvalidArgument with file:line:column where the file is there and no state of `direction`;
  /// else as nf::Outputs::open_kept().
  static Result<StateFile> open(nf::Outputs& outputs, std::string const& folder, std::string const& name,
                                Direction direction);
  /// Whether somebody else has the right to the file `name` of `folder` now.
  static bool is_taken(nf::Outputs& outputs, std::string const& folder, std::string const& name);
  /// The file `name` of `folder`, whether it is there or not.
  static std::string path_of(std::string const& folder, std::string const& name);

  /// Whether there was a file when this was opened, and what it said.
  bool is_new() const { return is_new_; }
  SavedState const& loaded() const { return loaded_; }
  std::string const& path() const { return path_; }

  /// Puts the file in place of the old one in one step, and returns when both it and its name are on the disk: whenever
  /// the machine stops, the old state or the new one is there. What the system says if that fails; the old one then is
  /// what counts. `spi` is for readers.
  Status save(SavedState const& state, std::uint32_t spi) const;

 private:
  StateFile() = default;

  std::string path_;
  Direction direction_ = Direction::kEncrypt;
  SavedState loaded_;
  bool is_new_ = true;
  std::unique_ptr<nf::Output> output_;  // and the right to it
};

}  // namespace catena::ipsec
