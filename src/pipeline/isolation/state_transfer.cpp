// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/state_transfer.hpp"

#include <utility>

namespace catena::nf_process {

namespace {

using Clock = std::chrono::steady_clock;

/// In which an incarnation has to take the state that it is given: packets wait.
constexpr std::chrono::seconds kTakeOverLimit{10};

}  // namespace

void StateTransfer::let_leave() {
  const std::scoped_lock lock(mutex_);
  leaves_ = true;
}

bool StateTransfer::leaves() const {
  const std::scoped_lock lock(mutex_);
  return leaves_;
}

Result<int> StateTransfer::leave(StateOf const& said, FileDescriptor memory, bool is_last) {
  const std::scoped_lock lock(mutex_);
  std::uint64_t all = said.bytes;
  bool is_known = false;
  for (State const& state : left_) {
    all += state.of.bytes;
    is_known = is_known || state.of.nf == said.nf;
  }
  if (!leaves_ || !is_last || is_known || all > kMaxStateBytes) {
    return absl::DataLossError("NF process sent unrequested state");
  }
  left_.push_back({said, std::move(memory)});
  return left_.back().memory.get();
}

void StateTransfer::forget_left() {
  const std::scoped_lock lock(mutex_);
  left_.clear();
}

void StateTransfer::set_waiting(Connection const* connection) {
  const std::scoped_lock lock(mutex_);
  waiting_ = connection;
}

void StateTransfer::take(StateTransfer& before, std::size_t nfs) {
  const std::scoped_lock both(mutex_, before.mutex_);
  to_take_ = std::exchange(before.left_, {});
  had_state_.assign(nfs, false);
  for (State const& state : to_take_) {
    had_state_[state.of.nf] = true;
  }
  is_complete_ = true;
  deadline_ = Clock::now() + kTakeOverLimit;
}

std::optional<std::vector<StateTransfer::State>> StateTransfer::states_for(Connection const* connection) {
  const std::scoped_lock lock(mutex_);
  if (!is_complete_ || waiting_ == nullptr || waiting_ != connection) {
    return std::nullopt;
  }
  is_complete_ = false;
  was_given_ = true;
  return std::exchange(to_take_, {});
}

Status StateTransfer::set_begun(Connection const* connection, std::vector<Status> results) {
  const std::scoped_lock lock(mutex_);
  if (waiting_ != connection || !was_given_) {
    return absl::DataLossError("it starts without a request");
  }
  waiting_ = nullptr;
  begun_ = std::move(results);
  return absl::OkStatus();
}

bool StateTransfer::has_begun(Connection const*& late) {
  late = nullptr;
  const std::scoped_lock lock(mutex_);
  if (!begun_ && waiting_ != nullptr) {
    if (Clock::now() < deadline_) {
      return false;
    }
    late = std::exchange(waiting_, nullptr);
    return true;
  }
  to_take_.clear();
  is_complete_ = false;
  return true;
}

std::vector<Status> StateTransfer::results(std::vector<bool> const& is_portable) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Status> results = begun_.value_or(std::vector<Status>(
      is_portable.size(), absl::UnavailableError("its process ended before it had started, or took too long")));
  for (std::size_t nf = 0; nf < results.size(); ++nf) {
    if (results[nf].ok() && !had_state_[nf] && is_portable[nf]) {
      results[nf] = absl::DataLossError("the previous process left no state");
    }
  }
  return results;
}

}  // namespace catena::nf_process
