// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/busy.hpp"
#include "bench/common/spread.hpp"
#include "bench/simmer/run.hpp"
#include "chain/flow.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace catena::bench {

/// The two that are compared.
inline constexpr std::array<chain::FlowMode, 2> kFlowModes{chain::FlowMode::kVanilla, chain::FlowMode::kBackpressure};
std::string_view to_string(chain::FlowMode mode);

/// What an NF did, one value a repeat.
struct NfRuns {
  std::string name;
  std::vector<double> packets_per_s;   ///< that it worked on
  std::vector<double> drops_per_s;     ///< that did not fit into its ring
  std::vector<double> launches_per_s;  ///< on the device
};

/// What was measured of one way; one value a repeat.
struct FlowRuns {
  chain::FlowMode mode = chain::FlowMode::kVanilla;
  std::vector<double> packets_per_s;   ///< that left the chain
  std::vector<double> received_per_s;  ///< that rx brought
  std::vector<NfRuns> nfs;
  std::vector<BusyShare> busy;  ///< stages of the host in the last run
};

enum class Load : std::uint8_t {
  kFirstNf,  ///< what the first NF does alone
  kTwice,    ///< twice what the chain does with back-pressure
};
std::string_view to_string(Load load);

/// A chain at a load: both ways, in turn within each repeat.
struct SimmerCell {
  std::string part;
  std::string chain;
  GpuSharedAs shared_as = GpuSharedAs::kProcess;
  std::uint32_t wire_bytes = 128;  ///< of a frame with FCS
  double qt = 0;
  Load load = Load::kFirstNf;
  double offered_per_s = 0;
  std::string tuning;
  std::vector<FlowRuns> flows;
  std::string error;  ///< why it could not be measured
};

/// An NF alone on the whole device, as fast as it goes.
struct AloneCell {
  std::string nf;
  GpuSharedAs shared_as = GpuSharedAs::kProcess;
  std::uint32_t wire_bytes = 128;
  std::string tuning;
  std::vector<double> packets_per_s;
  std::vector<double> kernel_us;  ///< a packet, where a trace can be had
  std::vector<BusyShare> busy;    ///< stages of the host in the last run
  std::string error;
};

/// Overload for long, with back-pressure: a value for each look.
struct LongRun {
  std::string chain;
  std::uint32_t wire_bytes = 128;
  double seconds = 0;
  double offered_per_s = 0;
  double packets_per_s = 0;
  std::uint64_t dropped_inside = 0;
  std::vector<double> memory_mb;     ///< resident, of the process
  std::vector<double> slots_in_use;  ///< of packet memory
  std::string error;
};

struct SimmerResults {
  std::string command;
  std::string commit;   ///< of the source tree, or "unknown"
  std::string machine;  ///< processor, cores, kernel
  std::string device;
  std::uint32_t compute_units = 0;
  double seconds = 0;
  std::uint32_t repeats = 0;
  std::vector<AloneCell> alone;
  std::vector<SimmerCell> cells;
  std::vector<LongRun> long_runs;
  bool abandoned = false;  ///< a device never answered: the process must not tear it down

  std::uint64_t failed_cells() const;
};

bool is_measured(AloneCell const& cell);
/// Whether both ways have runs, and no error has ended them.
bool is_measured(SimmerCell const& cell);
/// Precondition: the cell has it.
FlowRuns const& find(SimmerCell const& cell, chain::FlowMode mode);
/// Null: there is none.
NfRuns const* find(FlowRuns const& runs, std::string_view nf);
/// By how many percent back-pressure is above vanilla, repeat by repeat.
Spread above_vanilla(SimmerCell const& cell);
/// Packets a second that all rings together dropped.
Spread dropped_inside(FlowRuns const& runs);
/// Percent of the packets that came to the NF's ring.
Spread drop_percent(NfRuns const& nf);
/// Of a launch of the NF.
Spread launch_packets(NfRuns const& nf);
/// Percent of all launches that are the NF's.
Spread launch_percent(FlowRuns const& runs, std::string_view nf);

/// Everything as one JSON object.
std::string to_json(SimmerResults const& results);

}  // namespace catena::bench
