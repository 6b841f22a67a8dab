// SPDX-License-Identifier: Apache-2.0
#include "pipeline/auto_placement.hpp"

#include "base/core/scale.hpp"
#include "chain/planning.hpp"
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

Status AutoPlacement::place(chain::ChainConfig& config, RunOptions const& options,
                            std::optional<device::DeviceInfo> device, nf::Registry const& registry) {
  sync_ = device ? sync_for(options, *device) : options.sync;
  location_ = chain::place_of(options, std::move(device));
  CATENA_ASSIGN_OR_RETURN(placement_, chain::place(config, sync_, location_, registry));
  watch_.emplace(placement_->packet_bytes, options.sync.packet_bytes.has_value());
  return absl::OkStatus();
}

Status AutoPlacement::resolve_unit_packets(chain::ChainConfig& config, RunOptions const& options,
                                           device::DeviceInfo const* device, std::span<nf::Instance* const> instances) {
  if (config.tuning.unit_packets != chain::kAutoUnitPackets) {
    return absl::OkStatus();
  }
  has_chosen_units_ = true;
  if (device == nullptr) {
    config.tuning.unit_packets = memory::kDefaultUnitPackets;
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(plan::PlanInput input, chain::plan_input(config, sync_for(options, *device)));
  for (std::size_t i = 0; i < instances.size(); ++i) {
    CATENA_RETURN_IF_ERROR(chain::add_nf(config.nfs[i], *instances[i], input).status());
  }
  chain::add_ways(config, instances, input);
  CATENA_ASSIGN_OR_RETURN(config.tuning.unit_packets, chain::resolve_unit_packets(config, input));
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
  chain::ChainConfig next = config;
  CATENA_ASSIGN_OR_RETURN(const chain::Placement best, chain::place(next, sync, location_, registry));
  chain::ChainConfig as_it_is = config;
  std::vector<std::string> moves;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    as_it_is.nfs[nf].is_auto = false;
    if (next.nfs[nf].on != config.nfs[nf].on) {
      moves.push_back(
          concat("'", next.nfs[nf].name, "' to the ", next.nfs[nf].on == plan::Processor::kGpu ? "gpu" : "cpu"));
    }
    NfEntry const& entry = pipeline.first_of(nf);
    if (content_of(config.nfs[nf], entry.files) != entry.content) {
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
