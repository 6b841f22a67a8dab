// SPDX-License-Identifier: Apache-2.0
#include "stack/tcp/memory.hpp"

#include <malloc.h>

#include <cstdlib>
#include <cstring>

namespace catena::stack {

LwipMemory& lwip_memory() {
  static LwipMemory memory;
  return memory;
}

}  // namespace catena::stack

extern "C" {

void* catena_stack_allocate(size_t bytes) {
  catena::stack::LwipMemory& memory = catena::stack::lwip_memory();
  if (memory.bytes + bytes > memory.limit) {
    return nullptr;
  }
  void* const block = std::malloc(bytes);
  if (block != nullptr) {
    ++memory.blocks;
    memory.bytes += ::malloc_usable_size(block);
  }
  return block;
}

void* catena_stack_allocate_zeros(size_t count, size_t bytes) {
  void* const block = catena_stack_allocate(count * bytes);
  return block == nullptr ? nullptr : std::memset(block, 0, count * bytes);
}

void catena_stack_free(void* block) {
  catena::stack::LwipMemory& memory = catena::stack::lwip_memory();
  --memory.blocks;
  memory.bytes -= ::malloc_usable_size(block);
  std::free(block);
}

}  // extern "C"
