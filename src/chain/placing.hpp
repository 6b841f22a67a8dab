// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/planning.hpp"
#include "gpu/device/device.hpp"
#include "nf/registry.hpp"
#include "plan/sharing/partition_placement.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The placement of NFs with `on: auto`: decided once, before a chain runs, from the chain file, the cost profile and
/// the available hardware. Equal inputs give equal placements.
namespace catena::chain {

bool has_auto(ChainConfig const& config);

/// The hardware for a chain.
struct Location {
  std::optional<device::DeviceInfo> device;  ///< of several devices the first; nullopt: no device
  std::uint32_t workers = 1;
  std::uint32_t compute_units = 0;  ///< maximum number, of the device; 0: all
};

/// One NF of the chain.
struct PlacedEntry {
  std::string name;
  bool is_auto = false;
  plan::Processor on = plan::Processor::kCpu;
  share::Reason reason = share::Reason::kFixed;
  std::optional<double> cpu_ns;         ///< per packet on the CPU; nullopt: unknown
  double gpu_ns = 0;                    ///< per packet on the gpu, with its SM partition; 0: unknown, or no room
  std::optional<double> otherwise_pps;  ///< with it on the other side, and rx and tx no limit; 0: does not fit
  std::string note;                     ///< why it cannot be on the gpu, or which measurement is missing; else empty
};

struct Placement {
  std::vector<PlacedEntry> nfs;  ///< all of the chain
  share::Estimate chosen;
  share::Estimate all_cpu;
  share::Estimate all_gpu;
  share::Machine machine;
  std::uint32_t packet_bytes = 0;  ///< expected average size of packets
  std::string device;              ///< name of the device; empty: no device
  bool is_partial = false;         ///< the cost of some NF at its place is unknown, and counts as 0
};

/// Decides for each NF `on: auto`: as share::place(), by the costs in sync.profile for the NF with its configuration
/// and rule files, for packets of the average size, and by the planned moves of each placement. An NF without a kernel
/// is on the CPU, and so is a plugin, which is never measured. An NF in its own process has its own plan. `config` has
/// a number of shards. Creates NFs for itself. Errors: as check(), listing all errors.
Result<Placement> place(ChainConfig const& config, SyncOptions const& sync, Location const& where,
                        nf::Registry const& registry);

/// "ids  auto -> gpu: 31.0 ns a packet, cpu 812.0 ns; on the cpu the chain would achieve 1.2 Mpps".
std::string describe(PlacedEntry const& entry);
/// One line per NF `on: auto`, then the modelled throughput of the chain as placed, and with all of them on either
/// side.
std::vector<std::string> describe(Placement const& placement);
nlohmann::ordered_json to_json(Placement const& placement);

}  // namespace catena::chain
