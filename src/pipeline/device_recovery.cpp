// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_recovery.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace catena::runtime {
namespace {

/// A device that does not come back is tried ever later.
constexpr std::chrono::milliseconds kFirstDelay{5};
constexpr std::chrono::milliseconds kMaxDelay{500};
/// How often a stage is asked whether it has taken its binding.
constexpr std::chrono::microseconds kOfferPeriod{100};

}  // namespace

DeviceRecovery::DeviceRecovery(std::vector<Part> parts) {
  for (Part& part : parts) {
    Generations<DeviceSide> sides(*part.side, part.stages.size());
    states_.push_back({std::move(part), std::move(sides), RetryDelay(kFirstDelay, kMaxDelay)});
  }
}

void DeviceRecovery::look(Pause& pause) {
  for (State& state : states_) {
    monitor(state, pause);
  }
}

void DeviceRecovery::count_last_losses() {
  for (State& state : states_) {
    if (!state.sides.latest().use().allowed() && !std::exchange(state.is_lost, true)) {
      losses_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

void DeviceRecovery::monitor(State& state, Pause& pause) {
  if (state.sides.latest().use().allowed()) {
    return;
  }
  if (!std::exchange(state.is_lost, true)) {
    losses_.fetch_add(1, std::memory_order_relaxed);
    state.retries.restart();
  }
  if (!state.retries.is_due(std::chrono::steady_clock::now())) {
    return;
  }
  Result<std::unique_ptr<DeviceSide>> side = state.part.make();
  if (!side.ok()) {
    return;  // it is asked again
  }
  const std::string name = (*side)->device().info().name;
  const Result<bool> is_back = bring_back(state, *std::move(side), pause);
  if (!is_back.ok()) {
    spdlog::warn("device {} was back, and is lost again: {}", name, is_back.status().ToString());
  } else if (*is_back) {
    state.is_lost = false;
    returns_.fetch_add(1, std::memory_order_relaxed);
    spdlog::warn("device {} is in use again", name);
  }
}

/// Hands `side` to the stages. False where `pause` ended in between. An error: the device is lost again.
Result<bool> DeviceRecovery::bring_back(State& state, std::unique_ptr<DeviceSide> side, Pause& pause) {
  DeviceSide& fresh = *side;
  std::vector<kernel::LaunchBounds> bounds;
  if (state.part.bounds) {
    CATENA_ASSIGN_OR_RETURN(bounds, state.part.bounds(fresh.device()));
  }
  for (std::size_t i = 0; i < state.part.stages.size(); ++i) {
    DeviceStage* const stage = state.part.stages[i];
    const std::size_t nf = stage->position();
    auto binding = stage->attach(*fresh.kernel_of(nf), fresh.only_on_device(nf), fresh.use(),
                                 nf < bounds.size() ? bounds[nf] : kernel::LaunchBounds{});
    if (!binding.ok()) {
      static_cast<void>(fresh.use().stop(binding.status()));  // for the stages that have taken theirs
      return binding.status();
    }
    stage->unbind().reset();  // what was on its way to the stage when the device was lost
    if (side != nullptr) {
      state.sides.add(std::move(side));  // lives from here on: a stage may take something of it
    }
    stage->bind(*std::move(binding));
    while (!stage->has_taken_binding()) {
      if (!pause.sleep(kOfferPeriod)) {
        return false;
      }
    }
    // what it had before ends here, and not where packets wait
    stage->unbind().reset();
    // each side has memory of a device, also of one that went again before all stages had it
    state.sides.hold_latest(i);
  }
  return true;
}

}  // namespace catena::runtime
