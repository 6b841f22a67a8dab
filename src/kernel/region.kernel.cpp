// SPDX-License-Identifier: Apache-2.0
// Copies the region of a launch from pinned host memory to the device. A copy command would do the same, but the
// copy engines take commands in order: a region of some hundred kilobytes would wait behind megabytes of packets.
#include <catena/kernel/dialect.hpp>

namespace catena::kernel {

struct alignas(16) Block {
  u64 low;
  u64 high;
};

}  // namespace catena::kernel

CATENA_REGION_KERNEL(catena_copy_region) {
  const catena::u32 at = catena::kernel::global_id();
  if (at < params.blocks) {
    reinterpret_cast<catena::kernel::Block*>(to)[at] = reinterpret_cast<const catena::kernel::Block*>(from)[at];
  }
}
