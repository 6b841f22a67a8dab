// SPDX-License-Identifier: Apache-2.0
#include "pipeline/resource_builder.hpp"

#include "chain/planning.hpp"
#include "pipeline/device_side.hpp"
#include "pipeline/isolation.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace catena::runtime {

Result<std::vector<chain::FlowLimits>> ResourceBuilder::make_pools() {
  chain::DataPath const& path = pipeline_.path();
  if (options_.make_pool) {
    for (std::uint32_t i = 0; i < path.pools(); ++i) {
      CATENA_ASSIGN_OR_RETURN(std::shared_ptr<memory::PacketPool> pool, options_.make_pool(path.queues_of_pool()));
      ends_.add_pool(std::move(pool));
    }
  } else {
    const Ends::PoolSize size{chain_.tuning.pool_slots, chain_.tuning.unit_packets, path.queues_of_pool(),
                              path.parts_of_pool()};
    CATENA_RETURN_IF_ERROR(ends_.make_pools(path.pools(), size, before_ == nullptr ? nullptr : before_->ends));
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<chain::FlowLimits> limits,
                          chain::flow_limits(chain_, chain_.tuning.unit_packets));
  make_queues(chain_.flow.mode == chain::FlowMode::kVanilla);
  return limits;
}

void ResourceBuilder::make_queues(bool drops_at_tail) {
  std::vector<std::uint32_t> used(ends_.pools().size());
  for (Segment& segment : pipeline_.segments()) {
    for (std::size_t i = 0; i < segment.shards.size(); ++i) {
      Shard& shard = segment.shards[i];
      chain::Topology const& topology = segment.topology;
      std::uint32_t before_nfs = 0;  // pushers of all rings of NFs
      for (std::size_t nf = 0; nf < shard.nfs.size(); ++nf) {
        // no unit is in the rings between the NFs of a process
        const bool has_ring = shard.nfs[nf].isolated == nullptr || shard.nfs[nf].isolated->number() == 0;
        before_nfs += has_ring ? topology.pushers(topology.before_nf(nf)) : 0;
      }
      for (std::uint32_t queue = 0; queue < topology.queues(); ++queue) {
        const bool gets_refused = drops_at_tail && queue == topology.last();
        shard.queues.emplace_back(ends_.pool_of(i).arena(), used[i % used.size()]++,
                                  topology.pushers(queue) + (gets_refused ? before_nfs : 0));
      }
    }
  }
}

Status ResourceBuilder::make_device_sides() {
  const auto pools = ends_.pools();
  // a side may be made again while the chain runs, when this builder is gone
  return devices_.make_sides(pools.size(), [&chain = chain_, &options = options_, &pipeline = pipeline_, pools](
                                               std::shared_ptr<device::Device> device, std::size_t side) {
    return DeviceSide::create(std::move(device), chain, options, pipeline.first_instances(),
                              pools[side % pools.size()]);
  });
}

Status ResourceBuilder::share(device::Device& device) {
  // of a chain that brings more than one NF can do, most packets wait for that
  constexpr std::uint64_t kPartThatWaits = 8;
  const std::uint64_t slots = ends_.slots();
  const auto profile = std::make_shared<chain::CostProfile>(sync_for(options_, device.info()).profile);
  std::vector<GpuSharing::Nf> nfs;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < pipeline_.entries().size(); ++i) {
    NfEntry const& entry = pipeline_.first_of(i);
    kernel::DeviceNf const* const kernel = devices_.side_of(0) == nullptr ? nullptr : devices_.side_of(0)->kernel_of(i);
    if (kernel == nullptr && !is_on_own_gpu(entry.config)) {
      continue;
    }
    positions.push_back(i);
    nfs.push_back({entry.config.name,
                   [profile, key = *entry.key](std::uint32_t bytes) { return profile->find(key, bytes); },
                   1000.0 * entry.config.latency_limit_us, kernel == nullptr ? 1 : kernel->spec().group_size,
                   static_cast<std::uint32_t>(pipeline_.entries()[i].size()), chain_.tuning.unit_packets,
                   chain_.tuning.unit_packets * chain_.tuning.units_per_launch, kernel == nullptr,
                   std::max<std::uint64_t>(slots / kPartThatWaits, chain_.tuning.unit_packets)});
  }
  if (nfs.empty()) {
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(const plan::PacketProfile packets, chain::profile_of(chain_.rx));
  return devices_.share(device, *options_.sharing, options_.partitions, std::move(positions), std::move(nfs),
                        static_cast<std::uint32_t>(std::ceil(packets.average_bytes())));
}

}  // namespace catena::runtime
