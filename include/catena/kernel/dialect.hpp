// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/launch_params.hpp>
#include <catena/kernel/shared_layout.hpp>

/// The device dialect: the few primitives that differ between CUDA (through NVRTC) and OpenCL (C++ for OpenCL). Kernels
/// use these and nothing else of either language: no vector types, printf, work-group functions, C11 atomics, no
/// `__local` variable inside a kernel (use Context::local()), no `long long` (128 bits on OpenCL; u64{1} << 40, not
/// 1ULL << 40), no large struct by value (compilers unroll the copy). A kernel is one C++17 source:
///
///     #include <catena/kernel/context.hpp>
///     CATENA_KERNEL(my_nf) {
///       auto packet = ctx.packet();
///       if (!packet.valid()) return;
///       ...
///     }
///
/// Every function is a device function, without annotation.
namespace catena::kernel {

#if defined(__CUDACC_RTC__)

#define CATENA_UNROLL _Pragma("unroll")
/// Not for NFs, because one work-group may process several groups of packets, one after another (CATENA_ANY_GROUPS).
inline u32 global_id() { return blockIdx.x * blockDim.x + threadIdx.x; }
inline u32 local_id() { return threadIdx.x; }
inline u32 group_size() { return blockDim.x; }
inline u32 group_id() { return blockIdx.x; }
inline u32 group_count() { return gridDim.x; }
/// Waits for all work-items of the group. Earlier local and global writes are visible afterwards.
inline void barrier_all() { __syncthreads(); }
inline u32 atomic_add(u32* at, u32 value) { return atomicAdd(at, value); }
inline u32 byte_swap(u32 value) { return __byte_perm(value, 0, 0x0123); }
inline u32 rotate_left(u32 value, u32 bits) { return __funnelshift_l(value, value, bits); }
/// The low word of `high`:`low` shifted right; bits < 32.
inline u32 shift_right(u32 low, u32 high, u32 bits) { return __funnelshift_r(low, high, bits); }
inline u32 count_ones(u32 value) { return static_cast<u32>(__popc(static_cast<i32>(value))); }
/// Index of the lowest set bit; value != 0.
inline u32 lowest_bit(u32 value) { return static_cast<u32>(__ffs(static_cast<i32>(value | 1U << 31U))) - 1; }

#define CATENA_KERNEL_ENTRY(name)                                                                            \
  extern "C" __global__ void name(catena::u8* batch, catena::u8* out, catena::u8* state, catena::u8* spill,  \
                                  catena::u8* shared, catena::kernel::LaunchParams params,                   \
                                  catena::kernel::LaunchSizes sizes) {                                       \
    extern __shared__ __align__(16) catena::u8 catena_local_memory[];                                        \
    if (!catena::kernel::KernelEntry::prepare(batch, out, params, sizes)) {                                  \
      return;                                                                                                \
    }                                                                                                        \
    CATENA_FOR_GROUPS(name##_body(catena::kernel::KernelEntry::context(batch, out, state, spill, shared,     \
                                                                       catena_local_memory, params, group)), \
                      params)                                                                                \
  }

#elif defined(__OPENCL_CPP_VERSION__)

#define CATENA_UNROLL _Pragma("unroll")
inline u32 global_id() { return static_cast<u32>(get_global_id(0)); }
inline u32 local_id() { return static_cast<u32>(get_local_id(0)); }
inline u32 group_size() { return static_cast<u32>(get_local_size(0)); }
inline u32 group_id() { return static_cast<u32>(get_group_id(0)); }
inline u32 group_count() { return static_cast<u32>(get_num_groups(0)); }
inline void barrier_all() { barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); }
#if defined(CATENA_OPENCL_BITCODE)
// PoCL has no to_global() in this mode; clang compiles this to an instruction.
inline u32 atomic_add(u32* at, u32 value) { return __sync_fetch_and_add(at, value); }
#else
// Drivers may have atomics for global and local memory only, even if SPIR-V has generic ones.
inline u32 atomic_add(u32* at, u32 value) {
  __global u32* in_global = to_global(at);
  return in_global != nullptr ? ::atomic_add(in_global, value) : ::atomic_add(to_local(at), value);
}
#endif
inline u32 byte_swap(u32 value) { return __builtin_bswap32(value); }
inline u32 rotate_left(u32 value, u32 bits) { return (value << (bits & 31U)) | (value >> ((32U - bits) & 31U)); }
inline u32 shift_right(u32 low, u32 high, u32 bits) {
  return static_cast<u32>((static_cast<u64>(high) << 32 | low) >> (bits & 31U));
}
inline u32 count_ones(u32 value) { return static_cast<u32>(__builtin_popcount(value)); }
inline u32 lowest_bit(u32 value) { return static_cast<u32>(__builtin_ctz(value | 1U << 31U)); }

#define CATENA_KERNEL_ENTRY(name)                                                                                      \
  __kernel void name(__global catena::u8* batch, __global catena::u8* out, __global catena::u8* state,                 \
                     __global catena::u8* spill, __global catena::u8* shared, catena::kernel::LaunchParams params,     \
                     catena::kernel::LaunchSizes sizes, __local catena::u8* local_memory) {                            \
    if (!catena::kernel::KernelEntry::prepare(batch, out, params, sizes)) {                                            \
      return;                                                                                                          \
    }                                                                                                                  \
    CATENA_FOR_GROUPS(name##_body(catena::kernel::KernelEntry::context(batch, out, state, spill, shared, local_memory, \
                                                                       params, group)),                                \
                      params)                                                                                          \
  }

#else
#error "catena/kernel/dialect.hpp is for kernels: compile it through catena::kernel::build()"
#endif

// The loop of a work-group: the packets of one group. With CATENA_ANY_GROUPS a launch may have fewer groups than its
// packets need, and a work-group takes every group_count()th group from its own on. All its work-items take the same
// number of rounds.
#if CATENA_ANY_GROUPS
#define CATENA_FOR_GROUPS(body, params)                                          \
  const catena::u32 catena_groups = catena::kernel::KernelEntry::groups(params); \
  for (catena::u32 group = catena::kernel::group_id(); group < catena_groups;    \
       group += catena::kernel::group_count(), catena::kernel::barrier_all()) {  \
    body;                                                                        \
  }
#else
#define CATENA_FOR_GROUPS(body, params)                 \
  const catena::u32 group = catena::kernel::group_id(); \
  body;
#endif

}  // namespace catena::kernel

/// Defines the kernel `name`; the body sees `ctx` (catena::kernel::Context).
#define CATENA_KERNEL(name)                                           \
  static inline void name##_body(catena::kernel::Context const& ctx); \
  CATENA_KERNEL_ENTRY(name)                                           \
  static inline void name##_body(catena::kernel::Context const& ctx)
