// SPDX-License-Identifier: Apache-2.0
#include "chain/layout.hpp"

#include "chain/flow.hpp"
#include "chain/planning.hpp"
#include "chain/workers.hpp"

#include <catena/core/text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace catena::chain {
namespace {

std::string_view name_of(FlowMode mode) {
  static constexpr std::array<std::string_view, 3> kNames{"pool", "backpressure", "vanilla"};
  return kNames[static_cast<std::size_t>(mode)];
}

bool is_open(Tuning const& tuning) { return tuning.unit_packets == kAutoUnitPackets; }

ProcessKind process_of(NfConfig const& nf) {
  if (nf.isolation != Isolation::kProcess) {
    return ProcessKind::kChain;
  }
  return nf.group.empty() ? ProcessKind::kOwn : ProcessKind::kGroup;
}

std::string_view name_of(ProcessKind process) {
  static constexpr std::array<std::string_view, 3> kNames{"chain", "own", "group"};
  return kNames[static_cast<std::size_t>(process)];
}

/// The layout with NFs `on: auto` on the CPU, and the default unit size if it is open.
ChainLayout unplaced(ChainConfig const& spec, Parallelism const& threads) {
  ChainLayout layout{.shards = threads.shards,
                     .workers = threads.workers,
                     .unit_packets = unit_packets_of(spec.tuning),
                     .slots = spec.tuning.pool_slots,
                     .flow = spec.flow.mode,
                     .nfs = {}};
  for (NfConfig const& nf : spec.nfs) {
    layout.nfs.push_back({nf.name, nf.on, share::Reason::kFixed, process_of(nf)});
  }
  return layout;
}

void take(Placement const& placement, ChainLayout& layout) {
  for (std::size_t i = 0; i < layout.nfs.size(); ++i) {
    layout.nfs[i].on = placement.nfs[i].on;
    layout.nfs[i].reason = placement.nfs[i].reason;
  }
}

/// Whether an NF in the process of the chain is on a device.
bool uses_device(ChainLayout const& layout, Machine const& machine) {
  return (!machine.devices.empty() || machine.assumes_device) &&
         std::ranges::any_of(layout.nfs, [](NfLayout const& nf) {
           return nf.on == plan::Processor::kGpu && nf.process == ProcessKind::kChain;
         });
}

/// Decides slots and flow, after all else.
Status size_memory(ChainConfig const& spec, PacketMemory const& memory, ChainLayout& layout) {
  if (memory.owner == PacketMemory::Owner::kCaller) {
    return absl::OkStatus();
  }
  layout.slots = slots_of(with_layout(spec, layout), layout.unit_packets);
  if (memory.owner == PacketMemory::Owner::kPrevious) {
    if (layout.slots > memory.slots) {
      return absl::FailedPreconditionError(
          concat("it needs ", layout.slots, " slots for packets, and the running chain has ", memory.slots));
    }
    layout.slots = memory.slots;
  }
  layout.flow = flow_mode_of(with_layout(spec, layout), layout.unit_packets);
  return absl::OkStatus();
}

}  // namespace

bool depends_on_device(ChainConfig const& spec) {
  const bool is_on_device = std::ranges::any_of(spec.nfs, [](NfConfig const& nf) {
    return nf.on == plan::Processor::kGpu && process_of(nf) == ProcessKind::kChain;
  });
  return has_auto(spec) || (is_open(spec.tuning) && is_on_device);
}

Machine this_machine(ChainConfig const& spec) {
  Machine machine{.cores = static_cast<std::uint32_t>(usable_cores().size()), .devices = {}, .assumes_device = true};
  if (depends_on_device(spec)) {
    if (std::optional<device::DeviceInfo> device = device_for(spec.devices.front()); device) {
      machine.devices.push_back(*std::move(device));
    }
  }
  return machine;
}

Parallelism parallelism_of(ChainConfig const& spec, RunOptions const& options, std::uint32_t cores) {
  const auto listed = static_cast<std::uint32_t>(options.cores.size());
  Parallelism threads{spec.shards, options.workers};
  if (spec.shards == kAutoShards) {
    const std::uint32_t available = listed != 0 ? listed : cores;
    threads.shards =
        auto_shards(spec, may_divide_traffic(spec, options), options.workers != 0 ? options.workers : available);
  }
  const auto stages =  // where each has an rx and a tx
      static_cast<std::uint32_t>(threads.shards * (spec.nfs.size() + 2));
  if (options.workers == 0) {
    threads.workers = listed != 0 ? listed : default_workers(spec.rx, stages, cores);
  }
  threads.workers = std::min(threads.workers, stages);
  return threads;
}

Location location_of(Machine const& machine, RunOptions const& options, std::uint32_t workers) {
  return {machine.devices.empty() ? std::nullopt : std::optional(machine.devices.front()), workers,
          options.sharing ? options.sharing->compute_units : 0};
}

Status check_shards(ChainConfig const& spec, std::uint32_t shards) {
  if (shards < spec.devices.size()) {
    return absl::InvalidArgumentError(concat(spec.source.file, ": ", spec.devices.size(),
                                             " devices, and each has a shard at least; write `shards: auto`, or ",
                                             spec.devices.size(), " or more"));
  }
  return absl::OkStatus();
}

Result<ChainLayout> resolve(ChainConfig const& spec, Machine const& machine, RunOptions const& options,
                            nf::Registry const& registry, Placement* evidence) {
  const Parallelism threads = parallelism_of(spec, options, machine.cores);
  CATENA_RETURN_IF_ERROR(check_shards(spec, threads.shards));
  ChainLayout layout = unplaced(spec, threads);
  if (has_auto(spec)) {
    CATENA_ASSIGN_OR_RETURN(Placement placement, place(with_layout(spec, layout), options.sync,
                                                       location_of(machine, options, layout.workers), registry));
    take(placement, layout);
    if (evidence != nullptr) {
      *evidence = std::move(placement);
    }
  }
  if (is_open(spec.tuning) && uses_device(layout, machine)) {
    CATENA_ASSIGN_OR_RETURN(layout.unit_packets,
                            suited_unit_packets(with_layout(spec, layout), options.sync, registry));
  }
  CATENA_RETURN_IF_ERROR(size_memory(spec, machine.memory, layout));
  return layout;
}

ChainConfig with_layout(ChainConfig spec, ChainLayout const& layout) {
  spec.shards = layout.shards;
  spec.tuning.unit_packets = layout.unit_packets;
  spec.tuning.pool_slots = layout.slots;
  spec.flow.mode = layout.flow;
  for (std::size_t i = 0; i < spec.nfs.size(); ++i) {
    spec.nfs[i].on = layout.nfs[i].on;
  }
  return spec;
}

nlohmann::ordered_json to_json(ChainLayout const& layout) {
  nlohmann::ordered_json json{
      {"shards", layout.shards}, {"workers", layout.workers},    {"unit_packets", layout.unit_packets},
      {"slots", layout.slots},   {"flow", name_of(layout.flow)}, {"nfs", nlohmann::ordered_json::array()}};
  for (NfLayout const& nf : layout.nfs) {
    json["nfs"].push_back(
        {{"name", nf.name}, {"on", nf.on == plan::Processor::kGpu ? "gpu" : "cpu"}, {"process", name_of(nf.process)}});
  }
  return json;
}

}  // namespace catena::chain
