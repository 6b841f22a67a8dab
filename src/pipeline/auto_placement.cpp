// SPDX-License-Identifier: Apache-2.0
#include "pipeline/auto_placement.hpp"

#include "base/core/scale.hpp"
#include "pipeline/device_side.hpp"
#include "pipeline/nf_making.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

/// By which a chain must be faster so that it is worth a change.
constexpr double kGain = 1.1;

}  // namespace

Status AutoPlacement::resolve(chain::ChainConfig const& spec, RunOptions const& options, chain::Machine const& machine,
                              nf::Registry const& registry) {
  chain::RunOptions with_costs = static_cast<chain::RunOptions const&>(options);
  if (!machine.devices.empty()) {
    with_costs.sync = sync_for(options, machine.devices.front());
  }
  chain::Placement evidence;
  CATENA_ASSIGN_OR_RETURN(chain::ChainLayout layout, chain::resolve(spec, machine, with_costs, registry, &evidence));
  layout_.emplace(std::move(layout));
  has_chosen_units_ = spec.tuning.unit_packets == chain::kAutoUnitPackets;
  if (chain::has_auto(spec)) {
    location_ = chain::location_of(machine, options, layout_->workers);
    sync_ = std::move(with_costs.sync);
    watch_.emplace(evidence.packet_bytes, options.sync.packet_bytes.has_value());
    placement_ = std::move(evidence);
  }
  return absl::OkStatus();
}

std::optional<std::uint32_t> AutoPlacement::sample(std::uint64_t packets, std::uint64_t bytes) {
  return placement_ && location_.device ? watch_->look(packets, bytes) : std::nullopt;
}

Result<std::optional<Replacement>> AutoPlacement::find_better(chain::ChainConfig const& config,
                                                              RunOptions const& options, Pipeline const& pipeline,
                                                              std::uint32_t bytes, nf::Registry const& registry) const {
  chain::SyncOptions sync = sync_;
  sync.packet_bytes = bytes;
  CATENA_ASSIGN_OR_RETURN(const chain::Placement best, chain::place(config, sync, location_, registry));
  chain::ChainConfig next = config;
  chain::ChainConfig as_it_is = config;
  std::vector<std::string> moves;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    as_it_is.nfs[nf].is_auto = false;
    next.nfs[nf].on = best.nfs[nf].on;
    if (next.nfs[nf].on != config.nfs[nf].on) {
      moves.push_back(
          concat("'", next.nfs[nf].name, "' to the ", next.nfs[nf].on == plan::Processor::kGpu ? "gpu" : "cpu"));
    }
    NfEntry const& entry = pipeline.first_of(nf);
    if (content_of(entry.config, entry.files) != entry.content) {
      return std::nullopt;  // nobody has requested this change yet
    }
  }
  if (moves.empty() || best.is_partial) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const chain::Placement now, chain::place(as_it_is, sync, location_, registry));
  if (best.chosen.without_ends < kGain * now.chosen.without_ends) {
    return std::nullopt;
  }
  Replacement replacement{std::move(next), options, {}};
  replacement.options.sync.packet_bytes = bytes;
  if (has_chosen_units_) {
    replacement.config.tuning.unit_packets = chain::kAutoUnitPackets;
  }
  replacement.why =
      fmt::format("packets have {} bytes now, and NFs were placed for {}: {} go{}; by the model {} instead of {}",
                  bytes, placement_->packet_bytes, fmt::join(moves, ", "), moves.size() == 1 ? "es" : "",
                  rate_text(best.chosen.without_ends, "pps"), rate_text(now.chosen.without_ends, "pps"));
  return std::optional(std::move(replacement));
}

}  // namespace catena::runtime
