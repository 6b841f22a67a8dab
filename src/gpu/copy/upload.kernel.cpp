// SPDX-License-Identifier: Apache-2.0
// Uploads a launch buffer from pinned host memory to the device. A copy command would do the same, but the
// copy engines take commands in order: a buffer of some hundred kilobytes would wait behind megabytes of packets.
#include "gpu/copy/transfer_dialect.hpp"

CATENA_UPLOAD_KERNEL(catena_upload) {
  using catena::copy::UploadBlock;
  const catena::u32 at = catena::kernel::global_id();
  if (catena::copy::is_block(at, from, sizes.from, sizes.to)) {
    reinterpret_cast<UploadBlock*>(to)[at] = reinterpret_cast<const UploadBlock*>(from)[at];
  }
}
