// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/accelerator_pool.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::hostcopy {

AcceleratorPool::AcceleratorPool(std::vector<Member> members, Engine::Limits const& limits) {
  for (Member& member : members) {
    const Status configured = member.engine->configure(limits);
    if (!configured.ok()) {
      spdlog::warn("copy engine {} is left out: {}", member.engine->name(), configured.ToString());
    }
    slots_.push_back({std::move(member.engine), member.node, configured.ok() ? Use::kIdle : Use::kLost, 0});
  }
}

AcceleratorPool::Slot& AcceleratorPool::slot_of(Engine const* engine) {
  return *std::ranges::find_if(slots_, [&](Slot const& slot) { return slot.engine.get() == engine; });
}

Engine* AcceleratorPool::take(int node) {
  const std::lock_guard lock(mutex_);
  Slot* longest = nullptr;
  for (Slot& slot : slots_) {
    if (slot.use == Use::kIdle && slot.node == node && (longest == nullptr || slot.idle_since < longest->idle_since)) {
      longest = &slot;
    }
  }
  if (longest == nullptr) {
    return nullptr;
  }
  longest->use = Use::kInUse;
  return longest->engine.get();
}

void AcceleratorPool::give_back(Engine* engine) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slot_of(engine);
  slot.use = Use::kIdle;
  slot.idle_since = ++turns_;
}

bool AcceleratorPool::lose(Engine* engine) {
  {
    const std::lock_guard lock(mutex_);
    slot_of(engine).use = Use::kLost;
  }
  return engine->stop();
}

AcceleratorPool::Census AcceleratorPool::census() const {
  const std::lock_guard lock(mutex_);
  const auto count = [&](Use use) { return static_cast<std::uint32_t>(std::ranges::count(slots_, use, &Slot::use)); };
  return {count(Use::kIdle), count(Use::kInUse), count(Use::kLost)};
}

}  // namespace catena::hostcopy
