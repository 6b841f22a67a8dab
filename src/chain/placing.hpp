// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/planning.hpp"
#include "chain/run_options.hpp"
#include "device/device.hpp"
#include "nf/registry.hpp"
#include "share/placement.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Where the NFs run that are `on: auto`: decided once, before a chain runs, from the chain file, the cost profile and
/// what there is to run on. So whoever asks with the same gets the same answer.
namespace catena::chain {

bool has_auto(ChainConfig const& config);

/// What a chain runs on.
struct Place {
  std::optional<device::DeviceInfo> device;  ///< of several the first; none: there is none
  std::uint32_t workers = 1;
  std::uint32_t compute_units = 0;  ///< of the device, at most; 0: all
};
/// As the options of a run say it.
Place place_of(RunOptions const& options, std::optional<device::DeviceInfo> device);

/// One NF of the chain.
struct PlacedEntry {
  std::string name;
  bool is_auto = false;
  plan::Processor on = plan::Processor::kCpu;
  share::Reason reason = share::Reason::kFixed;
  std::optional<double> cpu_ns;         ///< that it takes for a packet on the CPU; none: not known
  double gpu_ns = 0;                    ///< the same on the gpu, with its part of it; 0: not known, or there is no room
  std::optional<double> otherwise_pps;  ///< with it on the other side, and rx and tx no limit; 0: does not fit
  std::string note;                     ///< why it cannot be on the gpu, or what would have to be known; else empty
};

struct Placement {
  std::vector<PlacedEntry> nfs;  ///< all of the chain
  share::Estimate chosen;
  share::Estimate all_cpu;
  share::Estimate all_gpu;
  share::Machine machine;
  std::uint32_t packet_bytes = 0;  ///< of packets as they are expected, on average
  std::string device;              ///< name of the device; empty: none
  bool is_partial = false;         ///< what some NF takes where it is, is not known, and counts as nothing
};

/// Decides for each NF `on: auto`, and puts that into `on`: as share::place(), by the costs that sync.profile has for
/// the NF with its configuration and rule files, for packets of the average size, and by what the planner says that
/// each placement moves. An NF without a kernel is on the CPU, and so is a plugin, which nobody measures. One with a
/// process of its own has a plan of its own. `config`: as apply() leaves it. Makes the NFs for itself. Errors: as
/// check(), all that is wrong.
Result<Placement> place(ChainConfig& config, SyncOptions const& sync, Place const& where, nf::Registry const& registry);

/// "ids  auto -> gpu: 31.0 ns a packet, cpu 812.0 ns; on the cpu the chain would achieve 1.2 Mpps".
std::string describe(PlacedEntry const& entry);
/// A line for each NF `on: auto`, then what the chain achieves by the model and what it would on either side.
std::vector<std::string> describe(Placement const& placement);
nlohmann::ordered_json to_json(Placement const& placement);

}  // namespace catena::chain
