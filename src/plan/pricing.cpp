// SPDX-License-Identifier: Apache-2.0
#include "plan/pricing.hpp"

#include <bit>

namespace catena::plan {
namespace {

using packet::FieldSet;

// What a launch carries for each packet beside fields and the NF's structs; as the kernel layer lays it out.
constexpr double kFaultFlagBytes = 1;
constexpr double kExtentBytes = 8;  // where a payload or frame stands in the launch's own buffer
constexpr double kRowBytes = 4;     // which slot a row of a shared step stands for

constexpr FieldSet kFixedSize = [] {
  FieldSet set = packet::kNoFields;
  for (u32 field = 0; field < packet::kFieldCount; ++field) {
    set |= packet::field_size(field) != 0 ? FieldSet{1} << field : packet::kNoFields;
  }
  return set;
}();

/// Fields of `set` that travel as columns.
FieldSet columns_of(FieldSet set) {
  // fields inside a frame that travels as a whole need no columns
  return (packet::has_frame(set) ? set & packet::kMetaFields : set) & kFixedSize;
}

Load columns_load(FieldSet columns, bool shared) {
  Load load;
  load.kind = Load::Kind::kColumns;
  load.bytes = load.staged_bytes = packet::columns_size(columns);
  load.columns = static_cast<std::uint32_t>(std::popcount(columns));
  load.touches_packet = (columns & packet::kFrameFields) != 0;
  load.touches_metadata = (columns & packet::kMetaFields) != 0;
  load.between_slots = shared;
  return load;
}

Load body_load(bool frames, Body const& at, Body const& staged, bool shared) {
  Load load;
  load.kind = Load::Kind::kBody;
  load.whole_frames = frames;
  load.between_slots = shared;
  load.bytes = frames ? at.frame : at.payload;
  load.longest_bytes = at.longest_frame;
  load.staged_bytes =
      (frames ? staged.staged_frame : staged.staged_payload) + (shared ? kExtentBytes : 0);  // direct: in kLaunch
  return load;
}

}  // namespace

Pricing::Pricing(PlanInput const& input)
    : costs_(&input.costs),
      // the papers' systems batch on the CPU
      allowed_(input.mode == Mode::kCopy ? method_bit(Method::kStaged) : kAllMethods) {
  double grown = 0;
  for (std::size_t nf = 0; nf < input.nfs.size(); ++nf) {
    PlacedNf const& placed = input.nfs[nf];
    const std::uint32_t room = placed.headroom + placed.tailroom;
    const Body before = body_of(input.profile, grown, room);
    grown += placed.grows_by;
    sites_.push_back({&placed, before, body_of(input.profile, grown, room)});
  }
}

double Pricing::Bill::total_ns() const {
  double total = 0;
  for (Move const& move : list()) {
    total += move.cost.total_ns;
  }
  return total;
}

void Pricing::add_direction(Site const& site, Movement const& movement, Direction direction, Bill& bill) const {
  const bool in = direction == Direction::kToDevice;
  const FieldSet set = in ? movement.to_device : movement.to_host;
  const FieldSet columns = columns_of(set);
  const bool has_body = packet::contains(set, packet::kPayload);

  const auto add = [&](Load const& load, FieldSet fields) {
    Move& move = bill.moves[bill.count++];
    move = {direction, load.kind, Method::kStaged, fields, {}};
    move.method = costs_->cheapest(allowed_, direction, load, move.cost);
  };
  Load launch;
  launch.bytes = in ? site.nf->aux_bytes : site.nf->result_bytes;
  // the flags go to the device as zeros, but not where kernels of shared steps write them into the host's memory
  const bool writes_to_host = movement.shared && (costs_->available & method_bit(Method::kGather)) != 0;
  launch.bytes += in && writes_to_host ? 0 : kFaultFlagBytes;
  if (in) {
    launch.bytes += movement.shared ? kRowBytes : has_body ? kExtentBytes : 0;
  }
  launch.staged_bytes = launch.bytes;
  add(launch, packet::kNoFields);
  // Where the columns of the packets take another way, the metadata does not. Staged, they are as dear together as
  // apart.
  const FieldSet in_packets = columns & packet::kFrameFields;
  MoveCost alone;
  const bool apart =
      in_packets != 0 && in_packets != columns &&
      costs_->cheapest(allowed_, direction, columns_load(in_packets, movement.shared), alone) != Method::kStaged;
  for (const FieldSet part : {apart ? in_packets : columns, apart ? columns & ~in_packets : packet::kNoFields}) {
    if (part != 0) {
      add(columns_load(part, movement.shared), part);
    }
  }
  if (has_body) {
    // frames keep the room that they may grow into while they stand in a launch's buffer, in both directions
    Body const& at = in ? site.before : site.after;
    add(body_load(packet::has_frame(set), at, movement.shared ? at : site.before, movement.shared), set & ~columns);
  }
}

Pricing::Bill Pricing::bill(std::size_t nf, Movement const& movement) const {
  Bill bill;
  add_direction(sites_[nf], movement, Direction::kToDevice, bill);
  add_direction(sites_[nf], movement, Direction::kToHost, bill);
  return bill;
}

}  // namespace catena::plan
