// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/flow.hpp"
#include "gpu/device/device.hpp"
#include "pipeline/device_manager.hpp"
#include "pipeline/ends.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/takeover.hpp"

#include <catena/core/status.hpp>

#include <vector>

namespace catena::runtime {

/// Makes the memory of a chain, on the host and on its devices: packet pools, queues, device sides and SM partitions.
/// Call order: make_pools() -> make_device_sides() -> share() if needed.
class ResourceBuilder {
 public:
  /// `pipeline` has its NFs. `before`: the running chain to be replaced, else null. The chain, its options and its
  /// pipeline outlive `devices`.
  ResourceBuilder(chain::ChainConfig const& chain, RunOptions const& options, Pipeline& pipeline, Ends& ends,
                  DeviceManager& devices, TakeoverParts const* before)
      : chain_(chain), options_(options), pipeline_(pipeline), ends_(ends), devices_(devices), before_(before) {}

  /// Makes the packet pools and the queues of all shards. Returns the limits of the NFs' rings. Errors: as
  /// Ends::make_pools() and chain::flow_limits().
  Result<std::vector<chain::FlowLimits>> make_pools();
  /// Errors: as DeviceSide::create().
  Status make_device_sides();
  /// Divides `device` among the NFs on it. Errors: as chain::profile_of() and DeviceManager::share().
  Status share(device::Device& device);

 private:
  void make_queues(bool drops_at_tail);

  chain::ChainConfig const& chain_;
  RunOptions const& options_;
  Pipeline& pipeline_;
  Ends& ends_;
  DeviceManager& devices_;
  TakeoverParts const* before_;
};

}  // namespace catena::runtime
