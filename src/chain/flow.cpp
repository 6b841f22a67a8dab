// SPDX-License-Identifier: Apache-2.0
#include "chain/flow.hpp"

#include "chain/chain_file.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace catena::chain {
namespace {

/// That an NF on the CPU takes at once, at least: as the stages of a run do.
constexpr std::uint32_t kCpuBatch = 256;

double qt_of(ChainConfig const& chain, NfConfig const& nf) { return nf.qt.value_or(chain.flow.qt); }

std::uint32_t batch_of(ChainConfig const& chain, NfConfig const& nf, std::uint32_t unit_packets) {
  if (nf.on == plan::Processor::kGpu) {
    const std::uint32_t launch = chain.tuning.units_per_launch * unit_packets;
    return nf.batch_size == 0 ? launch : std::clamp(nf.batch_size, unit_packets, launch);
  }
  return std::max(nf.batch_size == 0 ? kCpuBatch : nf.batch_size, unit_packets);
}

/// Batches that it may have in work.
std::uint32_t in_work_of(ChainConfig const& chain, NfConfig const& nf) {
  return nf.on == plan::Processor::kGpu ? chain.tuning.launches_in_flight : 1;
}

/// Of which more than one way leads on: there one NF may have packets waiting while others go on.
bool has_branches(ChainConfig const& chain) {
  if (!chain.graph) {
    return false;
  }
  const std::vector<plan::PlanEdge> edges = edges_of(*chain.graph, chain.nfs.size());
  return std::ranges::any_of(edges, [&edges](plan::PlanEdge const& edge) {
    return std::ranges::count(edges, edge.from, &plan::PlanEdge::from) > 1;
  });
}

/// Of each NF, but for its share.
std::vector<FlowLimits> limits_of(ChainConfig const& chain, std::uint32_t unit_packets) {
  std::vector<FlowLimits> limits;
  for (NfConfig const& nf : chain.nfs) {
    FlowLimits& of_nf = limits.emplace_back();
    of_nf.batch = batch_of(chain, nf, unit_packets);
    of_nf.slow_down = static_cast<std::uint32_t>(std::ceil(qt_of(chain, nf) * of_nf.batch));
    of_nf.fasten_up = of_nf.slow_down - std::min(of_nf.slow_down, of_nf.batch);
    of_nf.in_process = (in_work_of(chain, nf) + 1) * of_nf.batch;
  }
  return limits;
}

std::uint64_t slots_of_copies(ChainConfig const& chain, std::uint32_t unit_packets) {
  return chain.graph ? std::uint64_t{mirrors_of(*chain.graph)} * unit_packets : 0;
}

/// That may wait and be worked on at a time.
std::uint64_t slots_wanted(ChainConfig const& chain, std::uint32_t unit_packets) {
  std::uint64_t wanted = unit_packets + slots_of_copies(chain, unit_packets);  // rx has the former
  const std::vector<FlowLimits> limits = limits_of(chain, unit_packets);
  for (std::size_t nf = 0; nf < limits.size(); ++nf) {
    const bool has_process = chain.nfs[nf].isolation == Isolation::kProcess;
    wanted += limits[nf].slow_down;
    wanted += has_process ? limits[nf].in_process : std::uint64_t{in_work_of(chain, chain.nfs[nf])} * limits[nf].batch;
  }
  return wanted;
}

std::uint32_t shards_of(ChainConfig const& chain) { return std::max(1U, chain.shards); }

}  // namespace

FlowMode flow_mode_of(ChainConfig const& chain, std::uint32_t unit_packets) {
  if (!chain.flow.position.empty()) {
    return chain.flow.mode;
  }
  const bool has_room = slots_wanted(chain, unit_packets) <= chain.tuning.pool_slots / shards_of(chain);
  return has_room ? FlowMode::kBackpressure : FlowMode::kPool;
}

std::uint32_t slots_of(ChainConfig const& chain, std::uint32_t unit_packets) {
  constexpr std::uint64_t kMaxSlots = 1U << 20;  // of the key
  if (chain.flow.position.empty() || chain.tuning.says_pool_slots) {
    return chain.tuning.pool_slots;
  }
  const std::uint64_t wanted = std::bit_ceil(slots_wanted(chain, unit_packets) * shards_of(chain));
  return std::max(Tuning().pool_slots, static_cast<std::uint32_t>(std::min(kMaxSlots, wanted)));
}

Result<std::vector<FlowLimits>> flow_limits(ChainConfig const& chain, std::uint32_t unit_packets) {
  const std::uint32_t shards = shards_of(chain);
  // those of shards are in one memory where they do not have ends of their own
  const std::uint64_t slots = chain.tuning.pool_slots / shards;
  const std::uint64_t of_copies = slots_of_copies(chain, unit_packets);
  if (of_copies > slots / 2) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: for copies {} slots are kept free{}, and 'pool_slots' is {}; write `tuning: {{pool_slots: {}}}`, or a "
        "smaller 'unit_packets'",
        chain.graph->position, of_copies, shards > 1 ? fmt::format(" in each of {} shards", shards) : "",
        chain.tuning.pool_slots, std::bit_ceil(2 * of_copies * shards)));
  }
  if (chain.flow.mode == FlowMode::kPool) {
    return std::vector<FlowLimits>();
  }
  std::vector<FlowLimits> limits = limits_of(chain, unit_packets);
  const std::uint64_t wanted = slots_wanted(chain, unit_packets);
  if (wanted > slots) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: 'flow' lets {} packets wait and be worked on{}, and 'pool_slots' is {}; write `tuning: {{pool_slots: "
        "{}}}`, or a smaller 'qt', 'units_per_launch' or 'launches_in_flight'",
        chain.flow.position, wanted, shards > 1 ? fmt::format(" in each of {} shards", shards) : "",
        chain.tuning.pool_slots, std::bit_ceil(wanted * shards)));
  }
  const std::uint64_t left = has_branches(chain) ? (slots - wanted) / std::max<std::size_t>(1, limits.size()) : 0;
  for (FlowLimits& of_nf : limits) {
    of_nf.share = of_nf.slow_down + static_cast<std::uint32_t>(left);
  }
  return limits;
}

std::vector<std::string> flow_warnings(ChainConfig const& chain) {
  std::vector<std::string> warnings;
  if (chain.flow.mode != FlowMode::kBackpressure) {
    return warnings;
  }
  const auto warn_below = [&warnings](double qt, std::string const& position, std::string const& whose) {
    if (qt < kLeastSoundQt) {
      warnings.push_back(
          fmt::format("{}: 'qt'{} is {}: with less than {} batches NFs wait for packets while their upstream NFs pause",
                      position, whose, qt, kLeastSoundQt));
    }
  };
  warn_below(chain.flow.qt, chain.flow.position, "");
  for (NfConfig const& nf : chain.nfs) {
    warn_below(nf.qt.value_or(kLeastSoundQt), nf.position, concat(" of NF '", nf.name, "'"));
  }
  return warnings;
}

}  // namespace catena::chain
