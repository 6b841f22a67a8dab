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
    slots_.push_back({.engine = std::move(member.engine),
                      .node = member.node,
                      .use = configured.ok() ? Use::kIdle : Use::kLost,
                      .idle_since = 0});
  }
}

AcceleratorPool::Slot& AcceleratorPool::slot_of(Engine const* engine) {
  return *std::ranges::find_if(slots_, [&](Slot const& slot) { return slot.engine.get() == engine; });
}

Engine* AcceleratorPool::take(int node) {
  const std::lock_guard lock(mutex_);
  const auto is_before = [node](Slot const& one, Slot const& other) {
    const bool is_near = one.node == node;
    return is_near == (other.node == node) ? one.idle_since < other.idle_since : is_near;
  };
  Slot* first = nullptr;
  for (Slot& slot : slots_) {
    if (slot.use == Use::kIdle && (first == nullptr || is_before(slot, *first))) {
      first = &slot;
    }
  }
  if (first == nullptr) {
    return nullptr;
  }
  first->use = Use::kInUse;
  return first->engine.get();
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
  const bool is_stopped = engine->stop();
  const std::lock_guard lock(mutex_);
  slot_of(engine).is_runaway = !is_stopped;
  return is_stopped;
}

Result<AcceleratorPool::Reach> AcceleratorPool::register_memory(std::span<std::byte> memory,
                                                                std::shared_ptr<const void> owner) {
  const std::lock_guard lock(mutex_);
  for (Slot const& slot : slots_) {
    const Status registered = slot.use == Use::kLost ? absl::OkStatus() : slot.engine->register_memory(memory);
    if (!registered.ok()) {
      unregister(memory, std::move(owner));
      return registered;
    }
  }
  return Reach(memory.data(), [this, memory, owner = std::move(owner)](const void* /*memory*/) mutable {
    const std::lock_guard ending(mutex_);
    unregister(memory, std::move(owner));
  });
}

void AcceleratorPool::unregister(std::span<std::byte> memory, std::shared_ptr<const void> owner) {
  bool is_free = true;
  for (Slot const& slot : slots_) {
    const Status ended =
        slot.is_runaway ? absl::UnavailableError("it did not stop") : slot.engine->unregister_memory(memory);
    if (!ended.ok()) {
      spdlog::warn("memory stays in use: copy engine {} may access it: {}", slot.engine->name(), ended.ToString());
      is_free = false;
    }
  }
  if (!is_free) {
    kept_.push_back(std::move(owner));
  }
}

AcceleratorPool::Census AcceleratorPool::census() const {
  const std::lock_guard lock(mutex_);
  const auto count = [&](Use use) { return static_cast<std::uint32_t>(std::ranges::count(slots_, use, &Slot::use)); };
  return {count(Use::kIdle), count(Use::kInUse), count(Use::kLost)};
}

}  // namespace catena::hostcopy
