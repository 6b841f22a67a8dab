// SPDX-License-Identifier: Apache-2.0
#include "plan/testing/simulation.hpp"

#include <catena/core/text.hpp>

#include "plan/explain.hpp"

namespace catena::plan::testing {
namespace {

using packet::FieldSet;

constexpr std::uint8_t kPoison = 255;  // device memory that nobody wrote
constexpr FieldSet kFrameBounds = packet::fields(packet::kMetaOffset, packet::kMetaLength);
constexpr FieldSet kWhereHeadersAre = kFrameBounds | packet::fields(packet::kMetaLayers);

template <typename Function>
void for_each_field(FieldSet set, Function const& function) {
  for (std::uint32_t field = 0; set != 0; ++field, set >>= 1) {
    if ((set & 1U) != 0) {
      function(field);
    }
  }
}

}  // namespace

Simulation::Simulation(std::span<const PlacedNf> nfs) : nfs_(nfs) {
  const std::uint64_t all = (std::uint64_t{1} << nfs.size()) - 1;
  const auto add = [&](std::uint64_t deciders) {
    for (const bool is_rare : {false, true}) {
      packets_.push_back({.deciders = deciders, .is_rare = is_rare});
      packets_.back().device.fill(kPoison);
    }
  };
  add(all);
  add(0);
  for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
    add(std::uint64_t{1} << nf);
    add(all & ~(std::uint64_t{1} << nf));
  }
}

void Simulation::read(SimulatedPacket const& packet, Versions const& memory, FieldSet set, std::size_t nf,
                      std::string_view who) {
  for_each_field(set, [&](std::uint32_t field) {
    if (error_.empty() && memory[field] != packet.newest[field]) {
      error_ = concat(who, " of ", nf < nfs_.size() ? nfs_[nf].name : "tx", " uses an outdated ",
                      describe(FieldSet{1} << field));
    }
  });
}

void Simulation::host_step(std::size_t nf, std::string_view step, FieldSet reads, FieldSet writes, FieldSet few) {
  for (SimulatedPacket& packet : packets_) {
    if (((packet.deciders >> nf) & 1U) == 0) {
      read(packet, packet.host, writes, nf, step);
      continue;
    }
    read(packet, packet.host, reads | few, nf, step);
    const FieldSet written = packet.is_rare ? writes : writes & ~few;
    for_each_field(written, [&](std::uint32_t field) { packet.host[field] = ++packet.newest[field]; });
    packet.marked |= written & few;
  }
}

void Simulation::move_marked(SimulatedPacket& packet, std::size_t nf) {
  read(packet, packet.host, packet.marked, nf, "the move of what is marked");
  for_each_field(packet.marked, [&](std::uint32_t field) { packet.device[field] = packet.host[field]; });
  packet.marked = packet::kNoFields;
}

void Simulation::shared_step(std::size_t nf, Movement const& movement) {
  Hints const& hints = nfs_[nf].hints;
  const bool in_frames = ((hints.gr | hints.gw) & packet::kFrameFields) != 0;
  const bool moves_frame_bounds = (hints.gw & kFrameBounds) != 0;
  const FieldSet frame_out = movement.to_host & packet::kFrameFields;
  if (moves_frame_bounds && frame_out != 0 && !packet::has_frame(frame_out) && error_.empty()) {
    error_ =
        concat("a part of the frame comes back from ", nfs_[nf].name, ", and the host does not know its place yet");
  }
  for (SimulatedPacket& packet : packets_) {
    move_marked(packet, nf);
    if ((movement.to_device & packet::kFrameFields) != 0) {
      read(packet, packet.host, kWhereHeadersAre, nf, "the move to the device");
    }
    read(packet, packet.host, movement.to_device, nf, "the move to the device");
    for_each_field(movement.to_device, [&](std::uint32_t field) { packet.device[field] = packet.host[field]; });
    if (((packet.deciders >> nf) & 1U) != 0) {
      read(packet, packet.device, hints.gr | (in_frames ? kWhereHeadersAre : packet::kNoFields), nf, "the kernel");
      for_each_field(hints.gw, [&](std::uint32_t field) { packet.device[field] = ++packet.newest[field]; });
    } else {
      read(packet, packet.device, hints.gw, nf, "the kernel");
    }
    read(packet, packet.device, movement.to_host, nf, "the move to the host");
    for_each_field(movement.to_host, [&](std::uint32_t field) { packet.host[field] = packet.device[field]; });
    if (frame_out != 0) {
      const FieldSet places = packet::has_frame(frame_out) ? kFrameBounds : kWhereHeadersAre;
      read(packet, packet.device, places, nf, "the move to the host");
      read(packet, packet.host, places, nf, "the move to the host");
    }
  }
}

void Simulation::direct_step(std::size_t nf, Movement const& movement) {
  Hints const& hints = nfs_[nf].hints;
  for (SimulatedPacket& packet : packets_) {
    if (((packet.deciders >> nf) & 1U) == 0) {
      read(packet, packet.host, hints.gw, nf, "the kernel");
      continue;
    }
    if ((movement.to_device & packet::kFrameFields) != 0) {
      read(packet, packet.host, kWhereHeadersAre, nf, "the move to the device");
    }
    read(packet, packet.host, movement.to_device, nf, "the move to the device");
    Versions buffer;
    buffer.fill(kPoison);
    for_each_field(movement.to_device, [&](std::uint32_t field) { buffer[field] = packet.host[field]; });
    const bool has_frame = packet::has_frame(movement.to_device);
    read(packet, buffer, hints.gr | (has_frame ? kWhereHeadersAre : packet::kNoFields), nf, "the kernel");
    for_each_field(hints.gw, [&](std::uint32_t field) { buffer[field] = ++packet.newest[field]; });
    read(packet, buffer, movement.to_host, nf, "the move to the host");
    for_each_field(movement.to_host, [&](std::uint32_t field) { packet.host[field] = buffer[field]; });
  }
}

void Simulation::prepare(std::size_t nf) {
  for (SimulatedPacket const& packet : packets_) {
    // the framework inspects every packet to choose those that the NF decides
    read(packet, packet.host, kWhereHeadersAre | packet::fields(packet::kMetaVerdict), nf, "the framework in front");
  }
  Hints const& hints = nfs_[nf].hints;
  host_step(nf, "prepare", hints.prepare_reads, hints.prepare_writes, hints.prepare_writes_few);
}

void Simulation::work(std::size_t nf, Movement const* movement) {
  Hints const& hints = nfs_[nf].hints;
  prepare(nf);
  if (movement == nullptr) {
    host_step(nf, "compute", hints.cr, hints.cw);
  } else if (movement->shared) {
    shared_step(nf, *movement);
  } else {
    direct_step(nf, *movement);
  }
  host_step(nf, "complete", hints.complete_reads, hints.complete_writes);
}

void Simulation::send() {
  for (SimulatedPacket const& packet : packets_) {
    read(packet, packet.host, packet::kAllFields, nfs_.size(), "sending");
  }
}

void Simulation::forget_device() {
  for (SimulatedPacket& packet : packets_) {
    packet.device.fill(kPoison);
  }
}

void Simulation::copy() {
  for (SimulatedPacket& packet : packets_) {
    read(packet, packet.host, packet::kAllFields, nfs_.size(), "the copy");
    packet.marked = packet::kNoFields;
    packet.device.fill(kPoison);
  }
}

FieldSet Simulation::valid_on_host() const { return valid_in(&SimulatedPacket::host); }
FieldSet Simulation::valid_on_device() const { return valid_in(&SimulatedPacket::device); }

FieldSet Simulation::valid_in(Versions SimulatedPacket::*memory) const {
  FieldSet valid = packet::kAllFields;
  for (SimulatedPacket const& packet : packets_) {
    for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
      const bool comes = memory == &SimulatedPacket::device && (packet.marked >> field & 1U) != 0;
      if ((comes ? packet.host : packet.*memory)[field] != packet.newest[field]) {
        valid &= ~(FieldSet{1} << field);
      }
    }
  }
  return valid;
}

std::string simulate(std::span<const PlacedNf> nfs, std::span<const Movement> movements) {
  Simulation simulation(nfs);
  for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
    simulation.work(nf, nfs[nf].on == Processor::kGpu ? &movements[nf] : nullptr);
  }
  simulation.send();
  return simulation.error();
}

namespace {

/// Sends packets on from `from`, on every path; the error, or empty.
std::string follow(std::size_t from, Simulation const& simulation, std::span<const PlacedNf> nfs,
                   std::span<const PlanEdge> edges, std::span<const Movement> movements) {
  for (PlanEdge const& edge : edges) {
    if (edge.from != from) {
      continue;
    }
    Simulation on_path = simulation;
    if (edge.is_copy) {
      on_path.copy();
    }
    if (edge.to == kTx) {
      on_path.send();
    } else {
      on_path.work(edge.to, nfs[edge.to].on == Processor::kGpu ? &movements[edge.to] : nullptr);
    }
    std::string error = on_path.error();
    if (error.empty() && edge.to != kTx) {
      error = follow(edge.to, on_path, nfs, edges, movements);
    }
    if (!error.empty()) {
      return error;
    }
  }
  return {};
}

}  // namespace

std::string simulate(std::span<const PlacedNf> nfs, std::span<const PlanEdge> edges, Plan const& plan) {
  return follow(kRx, Simulation(nfs), nfs, edges, movements_of(plan));
}

std::vector<Movement> movements_of(Plan const& plan) {
  std::vector<Movement> movements;
  for (PlannedNf const& nf : plan.nfs) {
    movements.push_back(nf.step ? Movement{nf.step->shared, nf.step->to_device, nf.step->to_host} : Movement{});
  }
  return movements;
}

std::string simulate(std::span<const PlacedNf> nfs, Plan const& plan) { return simulate(nfs, movements_of(plan)); }

}  // namespace catena::plan::testing
