// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/remote/server_pool.hpp"
#include "io/sink.hpp"
#include "pipeline/device_servers.hpp"
#include "service/apply_record.hpp"
#include "service/validated_spec.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::service {

/// Devices, their servers, and ports, as shared by the chains of a service. Any thread.
class ChainSetup {
 public:
  /// `servers` must outlive it and the chains. `servers`: of the devices of chains; null: devices are opened in this
  /// process. `sharing`: of each device among the NFs of all chains; nullopt: every NF uses the whole device, or as set
  /// by its chain. `servers_for`: the clients of a server; must suit the service's `sharing` (see
  /// runtime::check_servers()).
  ChainSetup(device::remote::ServerPool* servers, std::optional<chain::SharingOptions> sharing,
             runtime::ServersFor servers_for)
      : servers_(servers),
        sharing_(sharing),
        partition_plans_(sharing_ ? std::make_shared<share::PartitionPlans>(sharing_->mode) : nullptr),
        servers_for_(servers_for) {}

  /// Gives a chain its part in these, and a number for lists of processes. InvalidArgument if its options contradict
  /// the service's.
  Status set_up(ApplyRecord const& applied, ValidatedSpec& validated) const;
  /// Why the chain may not use its device; empty if it may.
  std::string quarantine_of(std::string const& name) const;
  /// Why chains of its user start with a device server of their own; empty: they do not.
  std::string separation_of(ApplyRecord const& applied) const;
  /// FailedPrecondition if the chain is not in quarantine.
  Status lift_quarantine(std::string const& name);
  /// Ports shared by chains now.
  std::vector<io::SharedPort> shared_ports() const { return switches_->list(); }

 private:
  Status share_device(ValidatedSpec& validated) const;

  device::remote::ServerPool* servers_;
  std::optional<chain::SharingOptions> sharing_;
  std::shared_ptr<share::PartitionPlans> partition_plans_;  ///< of all chains; null without sharing_
  runtime::ServersFor servers_for_;
  mutable std::atomic<std::uint64_t> last_number_{0};  ///< of a run of a chain
  std::shared_ptr<io::SharedPortRegistry> switches_ = io::make_shared_port_registry();
};

}  // namespace catena::service
