// SPDX-License-Identifier: Apache-2.0
// Copies the region of a launch from pinned host memory to the device. A copy command would do the same, but the
// copy engines take commands in order: a region of some hundred kilobytes would wait behind megabytes of packets.
#include <catena/kernel/dialect.hpp>

CATENA_REGION_KERNEL(catena_copy_region) {
  using catena::kernel::RegionBlock;
  const catena::u32 at = catena::kernel::global_id();
  if (at < reinterpret_cast<const catena::kernel::RegionHead*>(from)->region_blocks) {
    reinterpret_cast<RegionBlock*>(to)[at] = reinterpret_cast<const RegionBlock*>(from)[at];
  }
}
