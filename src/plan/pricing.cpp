// SPDX-License-Identifier: Apache-2.0
#include "plan/pricing.hpp"

#include <algorithm>
#include <bit>

namespace catena::plan {
namespace {

using packet::FieldSet;

// What a launch carries for each packet beside fields and the NF's structs; as the kernel layer lays it out.
constexpr double kFaultFlagBytes = 1;
constexpr double kExtentBytes = 8;  // where a payload or frame is in the launch's own buffer
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

TransferShape columns_load(FieldSet columns, bool shared) {
  TransferShape shape;
  shape.kind = TransferShape::Kind::kColumns;
  shape.bytes = shape.staged_bytes = packet::columns_size(columns);
  shape.columns = static_cast<std::uint32_t>(std::popcount(columns));
  shape.touches_packet = (columns & packet::kFrameFields) != 0;
  shape.touches_metadata = (columns & packet::kMetaFields) != 0;
  shape.between_slots = shared;
  return shape;
}

TransferShape body_load(bool frames, Body const& at, Body const& staged, bool shared) {
  TransferShape shape;
  shape.kind = TransferShape::Kind::kBody;
  shape.whole_frames = frames;
  shape.between_slots = shared;
  shape.bytes = frames ? at.frame : at.payload;
  shape.longest_bytes = at.longest_frame;
  shape.staged_bytes =
      (frames ? staged.staged_frame : staged.staged_payload) + (shared ? kExtentBytes : 0);  // direct: in kLaunch
  return shape;
}

}  // namespace

Pricing::Pricing(PlanInput const& input) : costs_(&input.costs) {
  // of packets that come to an NF on several paths, the mean: how many take which, nobody knows
  struct Grown {
    double sum = 0;
    double paths = 0;
  };
  std::vector<Grown> waiting(input.nfs.size());
  const std::vector<PlanEdge> edges = edges_of(input);
  const auto send = [&waiting, &edges](std::size_t from, double grown) {
    for (PlanEdge const& edge : edges) {
      if (edge.from == from && edge.to != kTx) {
        waiting[edge.to].sum += grown;
        waiting[edge.to].paths += 1;
      }
    }
  };
  send(kRx, 0);
  for (std::size_t nf = 0; nf < input.nfs.size(); ++nf) {
    PlacedNf const& placed = input.nfs[nf];
    const double grown = waiting[nf].sum / std::max(1.0, waiting[nf].paths);
    const double after = grown + placed.grows_by;
    const std::uint32_t growth = placed.headroom + placed.tailroom;
    sites_.push_back({&placed, body_of(input.profile, grown, growth), body_of(input.profile, grown, 0),
                      body_of(input.profile, after, growth)});
    send(nf, after);
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

  const auto add = [&](TransferShape const& shape, FieldSet fields) {
    Move& move = bill.moves[bill.count++];
    move = {direction, shape.kind, TransferMethod::kStaged, fields, {}};
    move.method = costs_->cheapest(direction, shape, move.cost);
  };
  TransferShape launch;
  launch.bytes = in ? site.nf->aux_bytes : site.nf->result_bytes;
  // the flags go to the device as zeros, but not where kernels of shared steps write them into the host's memory
  const bool writes_to_host = movement.shared && costs_->has_pool_methods();
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
  const bool apart = in_packets != 0 && in_packets != columns &&
                     !uses_staging(costs_->cheapest(direction, columns_load(in_packets, movement.shared), alone));
  for (const FieldSet part : {apart ? in_packets : columns, apart ? columns & ~in_packets : packet::kNoFields}) {
    if (part != 0) {
      add(columns_load(part, movement.shared), part);
    }
  }
  if (has_body) {
    // A direct step works on frames where they are in the launch buffer, with the room that they may grow into. A
    // shared step spreads them, but what a kernel made of a frame is laid out before it ran.
    Body const& at = in ? site.before : site.after;
    Body const& staged = in && movement.shared ? site.compact : site.before;
    add(body_load(packet::has_frame(set), at, staged, movement.shared), set & ~columns);
  }
}

Pricing::Bill Pricing::bill(std::size_t nf, Movement const& movement) const {
  Bill bill;
  add_direction(sites_[nf], movement, Direction::kToDevice, bill);
  add_direction(sites_[nf], movement, Direction::kToHost, bill);
  return bill;
}

}  // namespace catena::plan
