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
/// compares each version that is read or moved with the one that was written last. Knows nothing of views.
///
/// The packets differ in which NFs decide them: all do, none does, all but one, one alone; and in whether they are
/// among the few that get an NF's prepare_writes_few. NFs leave packets alone that they do not decide. The memory where
/// an NF writes must hold the newest value of the packets that it leaves alone: else some packets had it in one memory
/// and some in the other.
class Simulation {
 public:
  explicit Simulation(std::span<const PlacedNf> nfs);

  /// Lets NF number `nf` work; call for each in order. `movement` is null for an NF on the CPU.
  void work(std::size_t nf, Movement const* movement);
  /// The first part of work(): what happens before the movement or the work on the CPU.
  void prepare(std::size_t nf);
  /// tx: reads every field of every packet.
  void send();
  /// The shared buffer is given up.
  void forget_device();
  /// What goes on are copies that the host made of the packets.
  void copy();
  /// The first use of an outdated field, empty if there was none.
  std::string const& error() const { return error_; }

  /// Fields whose newest value is in the memory for every packet, or would be once marked ones are moved.
  packet::FieldSet valid_on_host() const;
  packet::FieldSet valid_on_device() const;

 private:
  using Versions = std::array<std::uint8_t, packet::kFieldCount>;
  struct SimulatedPacket {
    std::uint64_t deciders;  // bit i: NF number i decides it
    bool is_rare;            // it gets prepare_writes_few
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
/// The same on every path from rx to tx that `links` have, one after the other.
std::string simulate(std::span<const PlacedNf> nfs, std::span<const Link> links, Plan const& plan);

/// One movement an NF; those of CPU NFs are empty.
std::vector<Movement> movements_of(Plan const& plan);

}  // namespace catena::plan::testing
