// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/dialect.hpp>

#include "copy/transfer_params.hpp"

/// How the entry of a kernel that moves bytes between host and device is spelled in each dialect: its arguments differ
/// from those of an NF's kernel, which CATENA_KERNEL() has.
#if defined(__CUDACC_RTC__)
#define CATENA_TRANSFER_KERNEL(name)                                                                        \
  extern "C" __global__ void name(catena::u8* batch, catena::u8* out, catena::u8* shared, catena::u8* pool, \
                                  catena::copy::TransferParams params)
#define CATENA_UPLOAD_KERNEL(name) extern "C" __global__ void name(catena::u8* to, const catena::u8* from)
#else
#define CATENA_TRANSFER_KERNEL(name)                                                                    \
  __kernel void name(__global catena::u8* batch, __global catena::u8* out, __global catena::u8* shared, \
                     __global catena::u8* pool, catena::copy::TransferParams params, __local catena::u8* /*unused*/)
#define CATENA_UPLOAD_KERNEL(name) \
  __kernel void name(__global catena::u8* to, __global const catena::u8* from, __local catena::u8* /*unused*/)
#endif
