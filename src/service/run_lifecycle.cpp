// SPDX-License-Identifier: Apache-2.0
#include "service/run_lifecycle.hpp"

#include <catena/core/text.hpp>

namespace catena::service {

std::string_view to_string(ChainState state) {
  switch (state) {
    case ChainState::kStarting:
      return "starting";
    case ChainState::kRunning:
      return "running";
    case ChainState::kStopped:
      return "stopped";
    case ChainState::kFinished:
      return "finished";
    case ChainState::kFailed:
      return "failed";
  }
  return {};
}

void RunLifecycle::made(Status const& created) {
  is_made_ = true;
  if (!created.ok()) {
    status_ = is_stopped_ ? absl::OkStatus() : created;
    state_ = is_stopped_ ? ChainState::kStopped : ChainState::kFailed;
  }
}

Status RunLifecycle::can_start() const {
  return is_stopped_ ? absl::CancelledError(concat("chain '", name_, "' was stopped while it was being started"))
                     : absl::OkStatus();
}

void RunLifecycle::started() {
  is_started_ = true;
  state_ = ChainState::kRunning;
}

void RunLifecycle::ended(bool is_followed) {
  const bool has_finished = !is_stopped_ && !is_followed;
  state_ = !status_.ok() ? ChainState::kFailed : has_finished ? ChainState::kFinished : ChainState::kStopped;
}

}  // namespace catena::service
