// SPDX-License-Identifier: Apache-2.0
// Where NFs of a session run that are `on: auto`: before it runs, and when packets are of another size then.
#include "base/core/scale.hpp"
#include "chain/placing.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace catena::runtime {
namespace {

/// By which a chain must be faster so that it is worth a change.
constexpr double kGain = 1.1;

}  // namespace

/// Opens the device, which says what it is, and gives it back where no NF comes to it.
Status Session::place_nfs(nf::Registry const& registry, RunOptions const& options) {
  CATENA_RETURN_IF_ERROR(open_devices());
  std::optional<device::DeviceInfo> device;
  placed_with_ = options.sync;
  if (!devices_.opened().empty()) {
    device = devices_.opened().front()->info();
    placed_with_ = sync_for(options, *device);
  }
  place_ = chain::place_of(options, std::move(device));
  CATENA_ASSIGN_OR_RETURN(placement_, chain::place(config_, placed_with_, place_, registry));
  traffic_watch_.emplace(placement_->packet_bytes, options.sync.packet_bytes.has_value());
  const bool is_used = std::ranges::any_of(config_.nfs, [](chain::NfConfig const& entry) {
    return entry.on == plan::Processor::kGpu && entry.isolation != chain::Isolation::kProcess;
  });
  if (!is_used && !devices_.opened().empty()) {
    devices_.close(kNobodyOnGpu);
  }
  return absl::OkStatus();
}

Result<std::optional<Replacement>> Session::sample_traffic(nf::Registry const& registry) {
  if (!placement_ || !place_.device) {
    return std::nullopt;
  }
  const GpuSharing::Traffic so_far = traffic();
  const std::uint32_t placed_for = placement_->packet_bytes;
  const std::optional<std::uint32_t> size = traffic_watch_->look(so_far.rx_packets, so_far.rx_bytes);
  if (!size) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const std::unique_lock<std::mutex> lock, lock_settled());
  chain::SyncOptions sync = placed_with_;
  sync.packet_bytes = size;
  chain::ChainConfig next = config_;
  CATENA_ASSIGN_OR_RETURN(const chain::Placement best, chain::place(next, sync, place_, registry));
  chain::ChainConfig as_it_is = config_;
  std::vector<std::string> moves;
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    as_it_is.nfs[nf].is_auto = false;
    if (next.nfs[nf].on != config_.nfs[nf].on) {
      moves.push_back(
          concat("'", next.nfs[nf].name, "' to the ", next.nfs[nf].on == plan::Processor::kGpu ? "gpu" : "cpu"));
    }
    Entry const& entry = first_of(nf);
    if (content_of(config_.nfs[nf], entry.files) != entry.content) {
      return std::nullopt;  // its files have changed, which nobody has asked for yet
    }
  }
  if (moves.empty() || best.is_partial) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const chain::Placement now, chain::place(as_it_is, sync, place_, registry));
  if (best.chosen.without_ends < kGain * now.chosen.without_ends) {
    return std::nullopt;
  }
  Replacement replacement{std::move(next), options_, {}};
  replacement.options.sync.packet_bytes = size;
  if (has_chosen_units_) {
    replacement.config.tuning.unit_packets = chain::kAutoUnitPackets;
  }
  replacement.why =
      fmt::format("packets have {} bytes now, and NFs were placed for {}: {} go{}; by the model {} instead of {}",
                  *size, placed_for, fmt::join(moves, ", "), moves.size() == 1 ? "es" : "",
                  rate_text(best.chosen.without_ends, "pps"), rate_text(now.chosen.without_ends, "pps"));
  return std::optional(std::move(replacement));
}

}  // namespace catena::runtime
