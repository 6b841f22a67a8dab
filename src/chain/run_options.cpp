// SPDX-License-Identifier: Apache-2.0
#include "chain/run_options.hpp"

#include "base/core/process_work.hpp"
#include "chain/port_kind.hpp"
#include "chain/workers.hpp"

#include <catena/core/text.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace catena::chain {
namespace {

std::uint32_t cores_for(RunOptions const& options) {
  if (options.workers != 0) {
    return options.workers;
  }
  return static_cast<std::uint32_t>(options.cores.empty() ? usable_cores().size() : options.cores.size());
}

/// A client in quarantine has no device, and the reason says what helps.
template <typename Opened>
Result<Opened> unless_in_quarantine(Result<Opened> opened, std::string_view client, std::string* why) {
  if (absl::IsFailedPrecondition(opened.status())) {
    *why = concat(std::string(opened.status().message()), "; `catena nf reset ", client, "` lifts it");
    return Opened();
  }
  return opened;
}

}  // namespace

device::remote::ServerLimits server_limits(std::optional<SharingOptions> const& sharing) {
  device::remote::ServerLimits limits;
  limits.one_at_a_time = sharing && sharing->mode == share::Mode::kTemporal;
  return limits;
}

Result<ServersFor> parse_servers_for(std::string_view text) {
  if (text == "device") {
    return ServersFor::kDevice;
  }
  if (text == "tenant") {
    return ServersFor::kTenant;
  }
  if (text == "process") {
    return ServersFor::kProcess;
  }
  return absl::InvalidArgumentError(concat("--device-servers is device, tenant or process, and not '", text, "'"));
}

Status check_servers(ServersFor servers, std::optional<SharingOptions> const& sharing) {
  if (servers == ServersFor::kDevice || !sharing || sharing->mode == share::Mode::kUncoordinated) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      concat("--share ", share::to_string(sharing->mode),
             " divides the device of one device server; it needs `--device-servers device`, or leave --share out"));
}

void use_servers(device::remote::ServerPool& servers, ServerClient const& client, RunOptions& options) {
  using Group = std::shared_ptr<device::remote::ServerPool::Group>;
  Group group;  // null: that of all
  if (client.servers != ServersFor::kDevice) {
    group = servers.group(client.servers == ServersFor::kTenant ? client.tenant : client.chain);
  }
  // held for as long as the chain may start the process again
  struct OfProcesses {
    std::mutex mutex;
    std::map<std::string, Group, std::less<>> groups;
  };
  const auto of_nfs = std::make_shared<OfProcesses>();
  const bool is_for_process = client.servers == ServersFor::kProcess;
  const auto group_of = [&servers, group, of_nfs, is_for_process](std::string const& name) {
    if (!is_for_process) {
      return group;
    }
    const std::scoped_lock lock(of_nfs->mutex);
    Group& own = of_nfs->groups[name];
    if (own == nullptr) {
      own = servers.group(name);
    }
    return own;
  };
  options.device_returns = true;
  options.processes.connect_device = [&servers, chain = client.chain, group_of](
                                         std::string const& nf, std::string const& text,
                                         std::string* why) -> Result<device::remote::Fd> {
    CATENA_ASSIGN_OR_RETURN(const device::DevicePreference preference, device::parse_preference(text));
    const std::string name = concat(chain, "/", nf);
    const Group own = group_of(name);
    return unless_in_quarantine(do_process_work([&] { return servers.connect(preference, name, why, own.get()); }),
                                chain, why);
  };
  options.open_device = [&servers, chain = client.chain, group](
                            device::DevicePreference const& preference,
                            std::string* why) -> Result<std::unique_ptr<device::Device>> {
    return unless_in_quarantine(do_process_work([&] { return servers.open(preference, chain, why, group.get()); }),
                                chain, why);
  };
}

bool hides_order(ChainConfig const& config, RunOptions const& options) {
  return config.tx.target.empty() && options.record_path.empty() && options.eve_path.empty() && !options.make_source &&
         !options.make_sink;
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
