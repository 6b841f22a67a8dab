// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run_end.hpp"

#include <algorithm>
#include <utility>

namespace catena::runtime {

bool RunEnd::pass_on(std::vector<nf::Instance const*> migrated) {
  if (how_ != How::kOpen) {
    return false;
  }
  migrated_ = std::move(migrated);  // is read if the exchange succeeds, and not before
  How open = How::kOpen;
  return how_.compare_exchange_strong(open, How::kPassedOn);
}

bool RunEnd::decide() {
  How open = How::kOpen;
  return !how_.compare_exchange_strong(open, How::kByItself) && open == How::kPassedOn;
}

bool RunEnd::is_migrated(nf::Instance const& nf) const {
  return is_passed_on() && std::ranges::find(migrated_, &nf) != migrated_.end();
}

void RunEnd::finish(Status outcome, bool is_empty) {
  outcome_ = std::move(outcome);
  is_empty_ = is_empty;
  has_ended_ = true;
}

}  // namespace catena::runtime
