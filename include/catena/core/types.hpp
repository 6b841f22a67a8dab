// SPDX-License-Identifier: Apache-2.0
#pragma once

// Integer types with one width on the host, in CUDA and in OpenCL. Kernels include this file, so it includes no std
// header.
#if defined(__OPENCL_CPP_VERSION__)
// OpenCL reserves these words (beside the spellings with two underscores). C++ and CUDA do not, and all of them compile
// the same source.
#define kernel catena_word_kernel
#define local catena_word_local
#define generic catena_word_generic
#define global catena_word_global
#define constant catena_word_constant
#endif

namespace catena {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
#if defined(__OPENCL_CPP_VERSION__) || defined(__OPENCL_VERSION__)
using u64 = unsigned long;
using i64 = long;
#elif defined(__CUDACC_RTC__)
using u64 = unsigned long long;
using i64 = long long;
#else
using u64 = __UINT64_TYPE__;
using i64 = __INT64_TYPE__;
#endif
using i32 = int;

static_assert(sizeof(u8) == 1 && sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8);

}  // namespace catena
