// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"

#include <array>
#include <vector>

/// The fields needed by the NFs of a chain, and where: hints, with the needs common to all NFs, and with the
/// plan-independent values computed.
namespace catena::plan {

using packet::kAllFields;
/// Where a frame begins and ends in its slot.
inline constexpr packet::FieldSet kFrameBounds = packet::fields(packet::kMetaOffset, packet::kMetaLength);
/// Where a frame and its headers are.
inline constexpr packet::FieldSet kPlaces = kFrameBounds | packet::fields(packet::kMetaLayers);
/// The framework reads these before each NF: to choose the packets that the NF processes, and to find their bytes.
inline constexpr packet::FieldSet kReadByAll = kPlaces | packet::fields(packet::kMetaVerdict);

/// Work on the CPU.
struct HostStep {
  packet::FieldSet needs = 0;  ///< must be valid on the CPU before it
  packet::FieldSet writes = 0;
  packet::FieldSet outdates = 0;  ///< of the writes, the fields with an old value left on the device
};

struct NfNeeds {
  bool on_gpu = false;
  std::array<HostStep, 3> host;  ///< prepare, compute (empty on a GPU), complete
  // of a GPU NF
  bool needs_whole = false;         ///< needs packets whole: touches fields of variable length
  bool whole_by_now = false;        ///< this NF needs packets whole, or a GPU NF before it on some path
  bool moves_frame_bounds = false;  ///< the kernel changes the start or end of frames
  packet::FieldSet writes = 0;      ///< GW
  packet::FieldSet on_device = 0;   ///< must be valid on the device for a shared step
  packet::FieldSet direct_in = 0;   ///< carried by a direct step
  packet::FieldSet direct_out = 0;
  /// The fields read by the CPU from complete() on up to the next GPU NF's prepare(), both included, on some path; tx
  /// reads everything.
  packet::FieldSet host_needs_after = 0;

  HostStep const& prepare() const { return host[0]; }
  HostStep const& complete() const { return host[2]; }
};

/// Of every NF of a plan input with valid edges.
std::vector<NfNeeds> needs_of(std::span<const PlacedNf> nfs, std::span<const PlanEdge> edges);

/// Adds the fields that must move together with `set`: fields of variable length between the headers only move with the
/// frame.
packet::FieldSet movable(packet::FieldSet set);
/// The same for the fields brought back by `nf`. If it moved the bounds of frames, the host learns the place of the
/// headers in complete(); until then it can place whole frames only.
packet::FieldSet movable_back(packet::FieldSet set, NfNeeds const& nf);

}  // namespace catena::plan
