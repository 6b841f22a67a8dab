// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/placing.hpp"
#include "chain/run_options.hpp"
#include "gpu/device/device.hpp"
#include "nf/registry.hpp"
#include "packet/memory/unit.hpp"
#include "plan/planner.hpp"
#include "plan/sharing/partition_placement.hpp"

#include <catena/core/status.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// The decisions about a chain: one value, made by one function. It is the input of plans, checks and builders.
///
/// Thread rule: any thread.
namespace catena::chain {

/// The packet memory for a chain.
struct PacketMemory {
  enum class Owner : std::uint8_t {
    kChain,     ///< the chain makes it
    kPrevious,  ///< the running chain that this one replaces, and whose memory it takes over
    kCaller,    ///< another process, with slots and limits of its own
  };
  Owner owner = Owner::kChain;
  std::uint32_t slots = 0;  ///< kPrevious: of the running chain
};

/// The facts of a machine that decisions depend on.
struct Machine {
  std::uint32_t cores = 1;  ///< usable by the process of the chain
  /// Devices of the chain, in the order of its file; empty: no device.
  std::vector<device::DeviceInfo> devices = {};
  /// Without a device the unit size suits a device with all capabilities: for a plan that is only shown.
  bool assumes_device = false;
  PacketMemory memory = {};
};

/// Whether the layout depends on the devices of the machine.
bool depends_on_device(ChainConfig const& spec);

/// The machine of this process, for a chain that is not run: its first device is the one that a run would open. Opens
/// no device; looks for devices only if the layout depends on them.
Machine this_machine(ChainConfig const& spec);

/// The process of an NF.
enum class ProcessKind : std::uint8_t {
  kChain,  ///< the process of the chain
  kOwn,    ///< a sandboxed process with this NF alone
  kGroup,  ///< a sandboxed process with all NFs of its group
};

/// The decisions about one NF.
struct NfLayout {
  std::string name;
  plan::Processor on = plan::Processor::kCpu;  ///< in its process
  share::Reason reason = share::Reason::kFixed;
  ProcessKind process = ProcessKind::kChain;

  bool operator==(NfLayout const&) const = default;
};

/// The layout of a chain. Nothing in it is open, and nothing changes it after resolve().
struct ChainLayout {
  std::uint32_t shards = 1;                                  ///< at least one per device of the file
  std::uint32_t workers = 1;                                 ///< threads; at most one per stage
  std::uint32_t unit_packets = memory::kDefaultUnitPackets;  ///< packets per unit
  std::uint32_t slots = Tuning().pool_slots;                 ///< of packet memory
  FlowMode flow = FlowMode::kPool;
  std::vector<NfLayout> nfs;  ///< in the order of the spec

  bool operator==(ChainLayout const&) const = default;
};

/// The threads of a chain: the part of its layout without NFs and devices of the machine.
struct Parallelism {
  std::uint32_t shards = 1;
  std::uint32_t workers = 1;
};

/// The shards and workers of a chain on `cores` usable cores: as in the spec and in `options.workers`, at most one
/// worker per stage; open numbers as auto_shards() and default_workers(). Listed cores replace the usable ones.
Parallelism parallelism_of(ChainConfig const& spec, RunOptions const& options, std::uint32_t cores);

/// The hardware for a chain with `workers` workers, as place() needs it.
Location location_of(Machine const& machine, RunOptions const& options, std::uint32_t workers);

/// OK if `shards` shards are enough for the devices of the spec; else InvalidArgument.
Status check_shards(ChainConfig const& spec, std::uint32_t shards);

/// Decides everything that a chain file may leave open. Pure: equal inputs give equal layouts. `options.sync` has the
/// costs. If an NF is `on: auto`, or the unit size is open and an NF is on a device, it creates the NFs of the spec for
/// their hints, and destroys them; it reads their files, and opens no port, device or output. `evidence`, if not null,
/// is set to the costs of the placement if an NF is `on: auto`. Errors: as check_shards() and place(); with an open
/// unit size as suited_unit_packets(). FailedPrecondition if the chain needs more slots than the running one has.
Result<ChainLayout> resolve(ChainConfig const& spec, Machine const& machine, RunOptions const& options,
                            nf::Registry const& registry, Placement* evidence = nullptr);

/// The spec with the decisions of its layout in place of open values: the input of the functions that plan, check and
/// build. Precondition: `layout` is of this spec.
ChainConfig with_layout(ChainConfig spec, ChainLayout const& layout);

/// {"shards": 2, "workers": 4, "unit_packets": 256, "slots": 16384, "flow": "backpressure", "nfs": [{"name": "ids",
/// "on": "gpu", "process": "chain"}]}.
nlohmann::ordered_json to_json(ChainLayout const& layout);

}  // namespace catena::chain
