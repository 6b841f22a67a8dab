// SPDX-License-Identifier: Apache-2.0
#include "chain/run_options.hpp"

#include "chain/port_kind.hpp"
#include "chain/workers.hpp"

#include <catena/core/text.hpp>

namespace catena::chain {
namespace {

std::uint32_t cores_for(RunOptions const& options) {
  if (options.workers != 0) {
    return options.workers;
  }
  return static_cast<std::uint32_t>(options.cores.empty() ? usable_cores().size() : options.cores.size());
}

}  // namespace

bool hides_order(ChainConfig const& config, RunOptions const& options) {
  return config.tx.target.empty() && options.record_path.empty() && options.eve_path.empty() && options.opens_rx &&
         options.opens_tx;
}

bool may_divide_traffic(ChainConfig const& config, RunOptions const& options) {
  return config.rx.kind->is_artificial && config.tx.kind == &kNullPort && hides_order(config, options);
}

Status apply(RunOptions const& options, ChainConfig& config) {
  config.rx = options.rx.value_or(config.rx);
  config.tx = options.tx.value_or(config.tx);
  if (!options.devices.empty()) {
    config.devices = options.devices;
  }
  if (config.shards == kAutoShards) {
    config.shards = auto_shards(config, may_divide_traffic(config, options), cores_for(options));
  }
  if (config.shards < config.devices.size()) {
    return absl::InvalidArgumentError(concat(config.file, ": ", config.devices.size(),
                                             " devices, and each has a shard at least; write `shards: auto`, or ",
                                             config.devices.size(), " or more"));
  }
  return absl::OkStatus();
}

}  // namespace catena::chain
