// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace catena::checker {

/// Declarations of the CUDA features used by the kernel dialect: enough to parse a kernel as NVRTC would, on a machine
/// without it.
inline constexpr std::string_view kCudaPrelude = R"(
#define __CUDACC_RTC__ 1
#define __global__
#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))
struct CudaPosition { unsigned int x, y, z; };
extern CudaPosition threadIdx;
extern CudaPosition blockIdx;
extern CudaPosition blockDim;
extern CudaPosition gridDim;
void __syncthreads();
unsigned int atomicAdd(unsigned int* at, unsigned int value);
unsigned int __byte_perm(unsigned int low, unsigned int high, unsigned int order);
unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int bits);
unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int bits);
int __popc(int value);
int __ffs(int value);
)";

}  // namespace catena::checker
