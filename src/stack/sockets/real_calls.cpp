// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/real_calls.hpp"

#include <dlfcn.h>

namespace catena::sockets {
namespace {

RealCalls calls;
std::atomic<bool> are_found{false};

}  // namespace

void* find_next(char const* name) { return ::dlsym(RTLD_NEXT, name); }

RealCalls const& real() {
  if (!are_found.load(std::memory_order_acquire)) {
    // several threads may find them at once: they write the same values
#define CATENA_FIND(name) calls.name = reinterpret_cast<decltype(&::name)>(find_next(#name));
    CATENA_INTERCEPTED(CATENA_FIND)
#undef CATENA_FIND
    are_found.store(true, std::memory_order_release);
  }
  return calls;
}

}  // namespace catena::sockets
