// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/dialect.hpp>

#include "gpu/copy/transfer_params.hpp"

/// Spelling of a transfer kernel's entry in each dialect. Its arguments differ from the arguments of an NF's kernel,
/// which CATENA_KERNEL() spells.
#if defined(__CUDACC_RTC__)
#define CATENA_TRANSFER_KERNEL(name)                                                                        \
  extern "C" __global__ void name(catena::u8* batch, catena::u8* out, catena::u8* shared, catena::u8* pool, \
                                  catena::copy::TransferParams params, catena::copy::TransferSizes sizes)
#define CATENA_UPLOAD_KERNEL(name) \
  extern "C" __global__ void name(catena::u8* to, const catena::u8* from, catena::copy::UploadSizes sizes)
#else
#define CATENA_TRANSFER_KERNEL(name)                                                                    \
  __kernel void name(__global catena::u8* batch, __global catena::u8* out, __global catena::u8* shared, \
                     __global catena::u8* pool, catena::copy::TransferParams params,                    \
                     catena::copy::TransferSizes sizes, __local catena::u8* /*unused*/)
#define CATENA_UPLOAD_KERNEL(name)                                                                              \
  __kernel void name(__global catena::u8* to, __global const catena::u8* from, catena::copy::UploadSizes sizes, \
                     __local catena::u8* /*unused*/)
#endif

namespace catena::copy {

/// Whether UploadBlock `at` belongs to the launch buffer at `from`, and lies within its `from_bytes` bytes and within
/// the `to_bytes` bytes of the target.
inline bool is_block(u32 at, const u8* from, u64 from_bytes, u64 to_bytes) {
  const u64 end = (u64{at} + 1) * sizeof(UploadBlock);
  return end <= from_bytes && end <= to_bytes && from_bytes >= sizeof(kernel::LaunchHeader) &&
         at < reinterpret_cast<const kernel::LaunchHeader*>(from)->upload_blocks;
}

}  // namespace catena::copy
