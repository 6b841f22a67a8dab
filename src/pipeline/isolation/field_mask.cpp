// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/field_mask.hpp"

#include <catena/packet/headers.hpp>
#include <catena/packet/slot.hpp>

#include <algorithm>

namespace catena::nf_process {
namespace {

using packet::FieldSet;

/// What is behind the headers.
constexpr FieldSet kBehind = packet::fields(packet::kPayload, packet::kTrailer);
constexpr FieldSet kBounds = packet::fields(packet::kMetaLength, packet::kMetaOffset);

}  // namespace

FieldUse FieldUse::of(packet::Hints const& hints) {
  return {hints.cr | hints.gr | hints.prepare_reads | hints.complete_reads,
          hints.cw | hints.gw | hints.prepare_writes | hints.prepare_writes_few | hints.complete_writes};
}

FieldMask::FieldMask(FieldUse const& field_use)
    // a write may be of a part, or leave packets out: what it leaves has to be there
    : to_nf_(((field_use.reads | field_use.writes) & kBehind) != 0 || (field_use.writes & kBounds) != 0
                 ? Piece::kFrame
                 : Piece::kHeaders),
      from_nf_((field_use.writes & (kBehind | kBounds)) != 0    ? Piece::kFrame
               : (field_use.writes & packet::kFrameFields) != 0 ? Piece::kHeaders
                                                                : Piece::kNone),
      may_move_((field_use.writes & kBounds) != 0),
      may_set_port_(packet::contains(field_use.writes, packet::kMetaPort)) {}

std::uint32_t FieldMask::header_bytes(packet::Layers const& layers, std::uint32_t length) {
  if ((layers.flags & packet::kIpv4) == 0) {
    return length;
  }
  // a transport header that is none counts as payload, and whoever parses looks at it, too
  const std::uint32_t end = std::max<std::uint32_t>(layers.payload, layers.l4 + packet::kTcpMinBytes);
  return std::min(length, packet::cache_line_end(end));
}

}  // namespace catena::nf_process
