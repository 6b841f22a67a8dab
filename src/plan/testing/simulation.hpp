// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/candidates.hpp"

namespace catena::plan::testing {

/// Carries a plan out on packets whose fields are version numbers, once in host memory and once in device memory, and
/// compares each version read or moved with the version written last. Independent of views.
///
/// The packets differ in the NFs that process them: all, no NF, all but one, one alone; and in whether they are among
/// the few packets written by an NF's prepare_writes_few. NFs do not change packets that they do not process. The
/// memory written by an NF must hold the newest values of the packets not changed by it: else some packets would have
/// them in one memory and some in the other.
class Simulation {
 public:
  explicit Simulation(std::span<const PlacedNf> nfs);

  /// Runs NF number `nf`; call for each in order. `movement` is null for an NF on the CPU.
  void work(std::size_t nf, Movement const* movement);
  /// The first part of work(): before the movement or the work on the CPU.
  void prepare(std::size_t nf);
  /// tx: reads every field of every packet.
  void send();
  /// Discards the shared buffer.
  void forget_device();
  /// Continues with copies of the packets made by the host.
  void copy();
  /// The first use of an outdated field; empty without one.
  std::string const& error() const { return error_; }

  /// Fields whose newest value is in the memory for every packet, or would be after moving the marked fields.
  packet::FieldSet valid_on_host() const;
  packet::FieldSet valid_on_device() const;

 private:
  using Versions = std::array<std::uint8_t, packet::kFieldCount>;
  struct SimulatedPacket {
    std::uint64_t deciders;  // bit i: NF number i processes it
    bool is_rare;            // it gets the writes of prepare_writes_few
    packet::FieldSet marked = packet::kNoFields;
    Versions newest{};
    Versions host{};
    Versions device{};
  };

  packet::FieldSet valid_in(Versions SimulatedPacket::*memory) const;
  void move_marked(SimulatedPacket& packet, std::size_t nf);
  void host_step(std::size_t nf, std::string_view step, packet::FieldSet reads, packet::FieldSet writes,
                 packet::FieldSet few = packet::kNoFields);
  void shared_step(std::size_t nf, Movement const& movement);
  void direct_step(std::size_t nf, Movement const& movement);
  void read(SimulatedPacket const& packet, Versions const& memory, packet::FieldSet set, std::size_t nf,
            std::string_view who);

  std::span<const PlacedNf> nfs_;
  std::vector<SimulatedPacket> packets_;
  std::string error_;
};

/// Carries out a whole plan of NFs in a row; the error, or empty.
std::string simulate(std::span<const PlacedNf> nfs, std::span<const Movement> movements);
std::string simulate(std::span<const PlacedNf> nfs, Plan const& plan);
/// The same on every path from rx to tx in `edges`, one after the other.
std::string simulate(std::span<const PlacedNf> nfs, std::span<const PlanEdge> edges, Plan const& plan);

/// One movement per NF; empty for CPU NFs.
std::vector<Movement> movements_of(Plan const& plan);

}  // namespace catena::plan::testing
