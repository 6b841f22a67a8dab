// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/layout.hpp"
#include "chain/placing.hpp"
#include "gpu/device/device.hpp"
#include "nf/registry.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/traffic_watch.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace catena::runtime {

/// The chain with a better placement for the current traffic.
struct Replacement {
  chain::ChainConfig config;
  RunOptions options;
  std::string why;  ///< a sentence for the log
};

/// The layout of a chain, decided before the chain runs. Its placement is checked again for packets of another size.
/// Call order: resolve() -> sample() and find_better(), repeatedly. By one thread at a time.
class AutoPlacement {
 public:
  /// Decides the layout of `spec`, by the costs of the first device of `machine`. Errors: as chain::resolve().
  Status resolve(chain::ChainConfig const& spec, RunOptions const& options, chain::Machine const& machine,
                 nf::Registry const& registry);
  /// After resolve().
  chain::ChainLayout const& layout() const { return *layout_; }
  /// Null without an NF `on: auto`, and before resolve().
  chain::Placement const* placement() const { return placement_ ? &*placement_ : nullptr; }
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
  std::optional<chain::ChainLayout const> layout_;  ///< nullopt before resolve()
  std::optional<chain::Placement> placement_;
  chain::Location location_;           ///< of placement_
  chain::SyncOptions sync_;            ///< likewise
  std::optional<TrafficWatch> watch_;  ///< likewise
  bool has_chosen_units_ = false;
};

}  // namespace catena::runtime
