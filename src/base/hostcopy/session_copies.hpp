// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "base/hostcopy/accelerator.hpp"

namespace catena::hostcopy {

/// The copies of one session, released in the order in which they were started, whatever makes them and in whatever
/// order they complete. A copy waits for those of its own session alone (HAVS, section IV-B, in-flight buffer).
/// Belongs to one thread at a time.
class SessionCopies {
 public:
  enum class Next : std::uint8_t {
    kNone,       ///< nothing was started, or the oldest copy is in flight
    kDone,       ///< its bytes are in place
    kIllegal,    ///< as Accelerator::State; the session cannot go on
    kAbandoned,  ///< as Accelerator::State; the session cannot go on
  };

  /// `accelerator` and `owner`, which may be null, outlive it. Precondition of the destructor: is_empty().
  explicit SessionCopies(Accelerator& accelerator, JobOwner* owner = nullptr)
      : accelerator_(&accelerator), owner_(owner) {}

  /// Starts a copy by an engine. Lifetimes: as in Accelerator::start(), until take() returned it.
  void start(std::span<const Move> moves) { started_.push_back(accelerator_->start(moves, owner_)); }
  /// Makes a copy by the CPU, now.
  void make(std::span<const Move> moves) {
    make_moves(moves);
    started_.push_back(std::nullopt);
  }
  /// The result of the oldest copy; unless kNone, the copy is removed. Does not poll.
  Next take();
  bool is_empty() const { return started_.empty(); }

 private:
  Accelerator* accelerator_;
  JobOwner* owner_;
  std::deque<std::optional<Accelerator::Ticket>> started_;  ///< nullopt: made by make()
};

}  // namespace catena::hostcopy
