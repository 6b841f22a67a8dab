// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/fields.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/core/transfer_methods.hpp"
#include "gpu/device/device.hpp"

/// The transfers of a plan around an NF's kernel, and the sources of the transfer kernels.
namespace catena::copy {

/// Variable-length bytes moved with each packet.
enum class Frames : std::uint32_t { kNone = 0, kPayload = 1, kFrame = 2 };

/// A step on the shared buffer: the plan's transfers around the kernel.
struct SharedStep {
  packet::FieldSet to_device = 0;                       ///< P_H2D
  packet::FieldSet to_host = 0;                         ///< P_D2H
  TransferMethod columns_in = TransferMethod::kStaged;  ///< header fields; never kStrided. Metadata is always staged
  TransferMethod columns_out = TransferMethod::kStaged;
  TransferMethod body_in = TransferMethod::kStaged;  ///< payloads or frames
  TransferMethod body_out = TransferMethod::kStaged;
};

Frames frames_of(packet::FieldSet set);
/// The fixed-size fields of `set`, which can be in a column.
packet::FieldSet fixed_size(packet::FieldSet set);

/// Compile-time properties of a kernel: the NF's declarations, equal for every plan, and the plan's decisions.
struct LaunchPlan {
  packet::FieldSet reads = 0;        ///< GR
  packet::FieldSet writes = 0;       ///< GW
  std::uint32_t aux_bytes = 0;       ///< multiple of 4, at most kMaxAuxBytes
  std::uint32_t result_bytes = 0;    ///< multiple of 4, at most kMaxResultBytes
  std::optional<SharedStep> shared;  ///< nullopt: a direct step, on the launch's own buffer
};

/// The fields for locating a frame. They travel with every whole frame.
inline constexpr packet::FieldSet kPlaces =
    packet::fields(packet::kMetaLayers, packet::kMetaOffset, packet::kMetaLength);

/// The moved columns, derived from the hints.
packet::FieldSet in_columns(LaunchPlan const& plan);
packet::FieldSet out_columns(LaunchPlan const& plan);

/// The source of the kernel that moves fields before (`in`) or after the kernel of a shared step. Its name is kMoveIn
/// or kMoveOut. Precondition: plan.shared.
device::ProgramSource transfer_source(LaunchPlan const& plan, bool in);
/// The source of the kernel that uploads a launch buffer. Its name is kUpload.
device::ProgramSource upload_source();
/// The launch form of `source` if it is one of the two kernels above, for any plan; nullopt for any other source.
std::optional<device::LaunchForm> form_of_own(device::ProgramSource const& source);
inline constexpr std::string_view kUpload = "catena_upload";
inline constexpr std::string_view kMoveIn = "catena_move_in";
inline constexpr std::string_view kMoveOut = "catena_move_out";
/// Work-items per packet of a transfer kernel for payloads or frames, as a power of two (one work-item for other
/// fields). Few packets use more for low latency, many packets use fewer for low cost. kTransferGroup: work-items per
/// group.
inline constexpr std::uint32_t kTransferLaneBits = 3;
inline constexpr std::uint32_t kTransferLaneBitsOfFew = 5;
inline constexpr std::uint32_t kTransferGroup = 64;

}  // namespace catena::copy
