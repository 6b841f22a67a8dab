// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/fields.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/transfer.hpp"
#include "device/device.hpp"

/// What a plan moves around an NF's kernel, and the sources of the kernels that move it.
namespace catena::copy {

/// Which variable-length bytes travel with each packet.
enum class Frames : std::uint32_t { kNone = 0, kPayload = 1, kFrame = 2 };

/// A step on the shared buffer: what the plan moves around the kernel.
struct SharedStep {
  packet::FieldSet to_device = 0;                       ///< P_H2D
  packet::FieldSet to_host = 0;                         ///< P_D2H
  TransferMethod columns_in = TransferMethod::kStaged;  ///< header fields; never kStrided. Metadata is always staged
  TransferMethod columns_out = TransferMethod::kStaged;
  TransferMethod body_in = TransferMethod::kStaged;  ///< payloads or frames
  TransferMethod body_out = TransferMethod::kStaged;
};

Frames frames_of(packet::FieldSet set);
/// Of `set`, the fields that can be in a column: those of fixed size.
packet::FieldSet fixed_size(packet::FieldSet set);

/// What a kernel is compiled for: what the NF declares for every plan, and the plan's answer.
struct LaunchPlan {
  packet::FieldSet reads = 0;        ///< GR
  packet::FieldSet writes = 0;       ///< GW
  std::uint32_t aux_bytes = 0;       ///< multiple of 4, at most kMaxAuxBytes
  std::uint32_t result_bytes = 0;    ///< multiple of 4, at most kMaxResultBytes
  std::optional<SharedStep> shared;  ///< none: direct use, the launch carries what the kernel sees
};

/// What says where a frame is: it travels wherever a whole frame does.
inline constexpr packet::FieldSet kPlaces =
    packet::fields(packet::kMetaLayers, packet::kMetaOffset, packet::kMetaLength);

/// Derived from the hints: which columns travel.
packet::FieldSet in_columns(LaunchPlan const& plan);
packet::FieldSet out_columns(LaunchPlan const& plan);

/// The source of the kernel that moves fields in front of a shared step's kernel (`in`), or after it; its name is
/// kMoveIn or kMoveOut. Precondition: plan.shared.
device::ProgramSource transfer_source(LaunchPlan const& plan, bool in);
/// The source of the kernel that uploads a launch buffer; its name is kUpload.
device::ProgramSource upload_source();
/// How the kernels of `source` are launched if it is one of the two above, whatever the plan; none: it is another.
std::optional<device::LaunchForm> form_of_own(device::ProgramSource const& source);
inline constexpr std::string_view kUpload = "catena_upload";
inline constexpr std::string_view kMoveIn = "catena_move_in";
inline constexpr std::string_view kMoveOut = "catena_move_out";
/// Work-items a packet of a transfer kernel that moves payloads or frames, as a power of two (without them one): so
/// many that few packets are quick, so few that many packets are cheap. And those of its groups.
inline constexpr std::uint32_t kTransferLaneBits = 3;
inline constexpr std::uint32_t kTransferLaneBitsOfFew = 5;
inline constexpr std::uint32_t kTransferGroup = 64;

}  // namespace catena::copy
