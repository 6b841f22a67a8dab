// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/placing.hpp"
#include "gpu/device/device.hpp"
#include "nf/instance.hpp"
#include "nf/registry.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/traffic_watch.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace catena::runtime {

/// The chain with a better placement for the current traffic.
struct Replacement {
  chain::ChainConfig config;
  RunOptions options;
  std::string why;  ///< a sentence for the log
};

/// The choices that a chain file leaves open: where its NFs `on: auto` run, and `unit_packets: auto`. Made before the
/// chain runs; the placement is checked again for packets of another size.
/// Call order: place() -> resolve_unit_packets() -> sample() and find_better(), repeatedly. By one thread at a time.
class AutoPlacement {
 public:
  /// Sets `on` of each NF `on: auto`. `device`: nullopt: the chain has no device. Errors: as chain::place().
  Status place(chain::ChainConfig& config, RunOptions const& options, std::optional<device::DeviceInfo> device,
               nf::Registry const& registry);
  /// Null before place().
  chain::Placement const* placement() const { return placement_ ? &*placement_ : nullptr; }

  /// Sets the unit size if it is open. `device`: as in place(). `instances`: of all NFs. Errors: as
  /// chain::plan_input() and chain::add_nf().
  Status resolve_unit_packets(chain::ChainConfig& config, RunOptions const& options, device::DeviceInfo const* device,
                              std::span<nf::Instance* const> instances);
  /// Whether the chain file left the unit size open.
  bool has_chosen_units() const { return has_chosen_units_; }

  /// The average size of packets, if it has changed since the placement; nullopt without one, or without a device.
  /// `packets` and `bytes`: totals since the start. Call it every TrafficWatch::kPeriod.
  std::optional<std::uint32_t> sample(std::uint64_t packets, std::uint64_t bytes);
  /// A better placement of the running chain for packets of `bytes`; nullopt if the model predicts a gain of no more
  /// than a tenth, or cannot predict it, or files of an NF have changed. After sample() returned `bytes`. Errors: as
  /// chain::place().
  Result<std::optional<Replacement>> find_better(chain::ChainConfig const& config, RunOptions const& options,
                                                 Pipeline const& pipeline, std::uint32_t bytes,
                                                 nf::Registry const& registry) const;

 private:
  std::optional<chain::Placement> placement_;
  chain::Location location_;           ///< of placement_
  chain::SyncOptions sync_;            ///< likewise
  std::optional<TrafficWatch> watch_;  ///< likewise
  bool has_chosen_units_ = false;
};

}  // namespace catena::runtime
