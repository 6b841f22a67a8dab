// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/host_mover.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace catena::hostcopy {
namespace {

std::vector<AcceleratorPool::Member> member_of(Result<std::unique_ptr<Engine>> engine) {
  std::vector<AcceleratorPool::Member> members;
  if (engine.ok()) {
    members.push_back({*std::move(engine), AcceleratorOptions{}.node});
  } else {
    spdlog::warn("no copy engine: {}. The CPU copies in its place.", engine.status().ToString());
  }
  return members;
}

}  // namespace

HostMover::HostMover(Result<std::unique_ptr<Engine>> engine, Engine::Limits const& limits,
                     std::chrono::nanoseconds patience)
    : pool_(member_of(std::move(engine)), limits), accelerator_(pool_, {.patience = patience}) {}

bool HostMover::is_done(Ticket ticket) {
  if (accelerator_.state(ticket) == Accelerator::State::kInFlight) {
    accelerator_.poll();
  }
  const bool is_done = accelerator_.state(ticket) != Accelerator::State::kInFlight;
  if (is_done) {
    accelerator_.forget(ticket);
  }
  return is_done;
}

std::string HostMover::engine() const {
  return accelerator_.engine() == nullptr ? std::string(kCpuEngine) : accelerator_.engine()->name();
}

}  // namespace catena::hostcopy
