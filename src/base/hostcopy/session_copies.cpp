// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/session_copies.hpp"

namespace catena::hostcopy {

SessionCopies::Next SessionCopies::take() {
  if (started_.empty()) {
    return Next::kNone;
  }
  const std::optional<Accelerator::Ticket> ticket = started_.front();
  const Accelerator::State state = ticket ? accelerator_->state(*ticket) : Accelerator::State::kDone;
  if (state == Accelerator::State::kInFlight) {
    return Next::kNone;
  }
  if (ticket) {
    accelerator_->forget(*ticket);
  }
  started_.pop_front();
  return state == Accelerator::State::kDone      ? Next::kDone
         : state == Accelerator::State::kIllegal ? Next::kIllegal
                                                 : Next::kAbandoned;
}

}  // namespace catena::hostcopy
