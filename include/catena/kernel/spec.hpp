// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace catena::kernel {

/// A file embedded in the program, in static storage. catena_add_nf() generates the table of an NF's kernel files.
struct EmbeddedFile {
  const char* name;
  const char* text;
};

/// A kernel as declared by its author. The NF's hints name its fields, and the NF's descriptor has the sizes of its aux
/// and result structs. Additions by a plan do not concern the author.
struct KernelSpec {
  std::span<const EmbeddedFile> source;  ///< kernel file first
  std::string name;                      ///< CATENA_KERNEL name
  std::uint32_t lanes = 1;               ///< work-items per packet, a divisor of group_size
  std::uint32_t group_size = 64;         ///< work-items per group
  std::uint32_t local_bytes = 0;         ///< local memory per group
  std::uint32_t spill_factor = 0;        ///< device-only spill bytes per byte of the frames
  std::uint32_t headroom = 0;            ///< bytes by which the kernel may grow a frame at its front; a multiple of 16
  std::uint32_t tailroom = 0;            ///< likewise at its end; a frame does not grow beyond its slot
};

/// Limits of the sizes of an NF's aux and result structs; both are multiples of 4 bytes.
inline constexpr std::uint32_t kMaxAuxBytes = 64;
inline constexpr std::uint32_t kMaxResultBytes = 256;

}  // namespace catena::kernel
