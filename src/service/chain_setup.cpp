// SPDX-License-Identifier: Apache-2.0
#include "service/chain_setup.hpp"

#include "chain/port_kind.hpp"
#include "pipeline/isolation.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

namespace catena::service {

namespace {

/// By the name that device servers know.
std::string owner_of(ApplyRecord const& applied) { return concat("user ", applied.caller.uid); }

}  // namespace

Status ChainSetup::set_up(ApplyRecord const& applied, ValidatedSpec& validated) const {
  validated.options.switches = switches_;
  validated.options.processes.chain = ++last_number_;
  CATENA_RETURN_IF_ERROR(share_device(validated));
  if (servers_ != nullptr) {  // after share_device(), as shared GPUs need the common server
    runtime::use_servers(*servers_, {applied.name, applied.tenant, servers_for_, owner_of(applied)}, validated.options);
  }
  if (has_other_rights(applied.caller)) {
    validated.options.processes.uid = applied.caller.uid;
    validated.options.processes.gid = applied.caller.gid;
  }
  // last: trials get the user of the processes from these options
  return runtime::allow_processes(validated.config, validated.options);
}

/// Has the chain's NFs share their device with those of the others, where the service does that.
Status ChainSetup::share_device(ValidatedSpec& validated) const {
  if (std::string const& wanted = validated.config.run.device_servers; wanted != "none") {
    CATENA_ASSIGN_OR_RETURN(const runtime::ServersFor servers_for, runtime::parse_servers_for(wanted));
    if (servers_for != servers_for_) {
      return absl::InvalidArgumentError(concat(validated.config.source.file, ": 'device_servers' is ", wanted,
                                               ", and this service has others (`catena serve --device-servers`); leave "
                                               "it out"));
    }
  }
  if (!sharing_) {
    return runtime::check_servers(servers_for_, validated.options.sharing);
  }
  if (validated.options.sharing) {
    return absl::InvalidArgumentError(concat(validated.config.source.file,
                                             ": the NFs of all chains share devices here (`catena serve --share ",
                                             share::to_string(sharing_->mode), "`); leave out --share and `sharing`"));
  }
  CATENA_RETURN_IF_ERROR(chain::check_one_device(validated.config));
  validated.options.sharing = sharing_;
  validated.options.partitions.plans = partition_plans_;
  return absl::OkStatus();
}

std::string ChainSetup::separation_of(ApplyRecord const& applied) const {
  return servers_ != nullptr && servers_for_ == runtime::ServersFor::kDevice
             ? servers_->separation_of(owner_of(applied))
             : std::string();
}

std::string ChainSetup::quarantine_of(std::string const& name) const {
  return servers_ != nullptr ? servers_->quarantine_of(name) : std::string();
}

Status ChainSetup::lift_quarantine(std::string const& name) {
  if (servers_ == nullptr || !servers_->reset(name).ok()) {
    return absl::FailedPreconditionError(concat("chain '", name, "' is not in quarantine"));
  }
  spdlog::info("{}: its quarantine is lifted", name);
  return absl::OkStatus();
}

}  // namespace catena::service
