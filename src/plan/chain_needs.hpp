// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"

#include <array>
#include <vector>

/// What the NFs of a chain need where: hints, with what every NF needs added and what does not depend on a plan
/// worked out.
namespace catena::plan {

using packet::kAllFields;
/// Where a frame begins and ends in its slot.
inline constexpr packet::FieldSet kFrameBounds = packet::fields(packet::kMetaOffset, packet::kMetaLength);
/// Where a frame and its headers are.
inline constexpr packet::FieldSet kPlaces = kFrameBounds | packet::fields(packet::kMetaLayers);
/// The framework reads these before each NF: to choose the packets that the NF decides, and to find their bytes.
inline constexpr packet::FieldSet kReadByAll = kPlaces | packet::fields(packet::kMetaVerdict);

/// Work on the CPU.
struct HostStep {
  packet::FieldSet needs = 0;  ///< must be valid on the CPU before it
  packet::FieldSet writes = 0;
  packet::FieldSet outdates = 0;  ///< of the writes, those that leave the device with an old value
};

struct NfNeeds {
  bool on_gpu = false;
  std::array<HostStep, 3> host;  ///< prepare, compute (empty on a GPU), complete
  // of a GPU NF
  bool needs_whole = false;         ///< needs packets whole: touches fields of variable length
  bool whole_by_now = false;        ///< it does, or a GPU NF before it on some path
  bool moves_frame_bounds = false;  ///< frames begin or end elsewhere after the kernel
  packet::FieldSet writes = 0;      ///< GW
  packet::FieldSet on_device = 0;   ///< must be valid on the device for a shared step
  packet::FieldSet direct_in = 0;   ///< what a direct step carries
  packet::FieldSet direct_out = 0;
  /// What the CPU reads from complete() on up to the next GPU NF's prepare(), both included, on some path; tx reads
  /// everything.
  packet::FieldSet host_needs_after = 0;

  HostStep const& prepare() const { return host[0]; }
  HostStep const& complete() const { return host[2]; }
};

/// Of every NF of a plan's input, whose links are sound.
std::vector<NfNeeds> needs_of(std::span<const PlacedNf> nfs, std::span<const Link> links);

/// Adds what must travel along with `set`: fields of variable length between the headers only move with the frame.
packet::FieldSet movable(packet::FieldSet set);
/// The same for what `nf` brings back. Where the headers are in a frame whose bounds it moved, the host learns in
/// complete(); until then it can place whole frames only.
packet::FieldSet movable_back(packet::FieldSet set, NfNeeds const& nf);

}  // namespace catena::plan
