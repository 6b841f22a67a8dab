// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/copy/body_copy.hpp>
#include <catena/core/status.hpp>
#include <catena/core/transfer.hpp>
#include <catena/device/device.hpp>
#include <catena/packet/fields.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// From an NF's kernel source and its plan to a loaded program.
namespace catena::kernel {

/// A file embedded by catena_embed(): static storage.
struct EmbeddedFile {
  const char* name;
  const char* text;
};

/// Which variable-length bytes travel with each packet.
enum class Frames : std::uint32_t { kNone = 0, kPayload = 1, kFrame = 2 };

/// How an NF's kernel is launched. A value, not code.
struct LaunchPolicy {
  std::uint32_t lanes = 1;         ///< work-items per packet, a divisor of group_size
  std::uint32_t group_size = 64;   ///< work-items per group
  std::uint32_t local_bytes = 0;   ///< local memory per group
  std::uint32_t spill_factor = 0;  ///< device-only spill bytes per byte of the frames
};

/// A step on the shared buffer: what the plan moves around the kernel.
struct SharedStep {
  packet::FieldSet to_device = 0;                       ///< P_H2D
  packet::FieldSet to_host = 0;                         ///< P_D2H
  TransferMethod columns_in = TransferMethod::kStaged;  ///< header fields; never kStrided. Metadata is always staged
  TransferMethod columns_out = TransferMethod::kStaged;
  TransferMethod body_in = TransferMethod::kStaged;  ///< payloads or frames
  TransferMethod body_out = TransferMethod::kStaged;
};

/// Everything that decides what is compiled for one NF: an NF's needs and the plan's answer.
struct ProgramSpec {
  std::span<const EmbeddedFile> source;  ///< kernel file first
  std::string kernel;                    ///< CATENA_KERNEL name
  packet::FieldSet reads = 0;            ///< GR
  packet::FieldSet writes = 0;           ///< GW
  std::uint32_t aux_bytes = 0;           ///< multiple of 4, at most 64
  std::uint32_t result_bytes = 0;        ///< multiple of 4, at most 256
  std::uint32_t headroom = 0;            ///< bytes by which the kernel may grow a frame at its front; a multiple of 16
  std::uint32_t tailroom = 0;            ///< and at its end; a frame does not grow beyond its slot
  LaunchPolicy policy;
  std::optional<SharedStep> shared;  ///< the plan's answer; none: direct use, the launch carries what the kernel sees
};

/// Derived from the hints: which bytes travel, which columns.
Frames frames_of(packet::FieldSet set);
packet::FieldSet in_columns(ProgramSpec const& spec);
packet::FieldSet out_columns(ProgramSpec const& spec);

/// The source with the SDK's headers and the plan's macros, as the device compilers take it.
device::ProgramSource adapt(ProgramSpec const& spec);
/// The source of the kernel that moves fields in front of a shared step's kernel (`in`), or after it; its name is
/// kMoveIn or kMoveOut. Precondition: spec.shared.
device::ProgramSource transfer_source(ProgramSpec const& spec, bool in);
/// The source of the kernel that uploads a launch buffer; its name is kUpload.
device::ProgramSource upload_source();
inline constexpr std::string_view kUpload = "catena_upload";
inline constexpr std::string_view kMoveIn = "catena_move_in";
inline constexpr std::string_view kMoveOut = "catena_move_out";
/// Work-items a packet of a transfer kernel that moves payloads or frames, as a power of two (without them one): so
/// many that few packets are quick, so few that many packets are cheap. And those of its groups.
inline constexpr std::uint32_t kTransferLaneBits = 3;
inline constexpr std::uint32_t kTransferLaneBitsOfFew = 5;
inline constexpr std::uint32_t kTransferGroup = 64;

/// Compiles (or takes from the disk cache) and loads. The cache is $CATENA_CACHE_DIR, else $XDG_CACHE_HOME/catena,
/// else ~/.cache/catena; a cache that cannot be used is no error. A cached binary that does not load is compiled anew.
Result<std::unique_ptr<device::Program>> build(device::Device& device, ProgramSpec const& spec);
/// The same of any source; `what` names it in messages.
Result<std::unique_ptr<device::Program>> build(device::Device& device, device::ProgramSource const& source,
                                               std::string_view what);

}  // namespace catena::kernel
