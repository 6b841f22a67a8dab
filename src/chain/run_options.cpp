// SPDX-License-Identifier: Apache-2.0
#include "chain/run_options.hpp"

#include "chain/workers.hpp"
#include "core/process_work.hpp"

#include <catena/core/text.hpp>

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
    *why = concat(std::string(opened.status().message()), "; `catena nf reset ", client, "` lifts that");
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

void use_servers(device::remote::ServerPool& servers, std::string client, RunOptions& options) {
  options.device_returns = true;
  options.processes.connect_device = [&servers, client](std::string const& nf, std::string const& text,
                                                        std::string* why) -> Result<device::remote::Fd> {
    CATENA_ASSIGN_OR_RETURN(const device::DevicePreference preference, device::parse_preference(text));
    return unless_in_quarantine(
        do_process_work([&] { return servers.connect(preference, concat(client, "/", nf), why); }), client, why);
  };
  options.open_device = [&servers, client = std::move(client)](
                            device::DevicePreference const& preference,
                            std::string* why) -> Result<std::unique_ptr<device::Device>> {
    return unless_in_quarantine(do_process_work([&] { return servers.open(preference, client, why); }), client, why);
  };
}

bool hides_order(ChainConfig const& config, RunOptions const& options) {
  return config.tx.kind != PortKind::kPcap && options.record_path.empty() && options.eve_path.empty() &&
         !options.make_source && !options.make_sink;
}

bool may_divide_traffic(ChainConfig const& config, RunOptions const& options) {
  const bool is_artificial = config.rx.kind == PortKind::kGenerator || config.rx.kind == PortKind::kReplay;
  return is_artificial && config.tx.kind == PortKind::kNull && hides_order(config, options);
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
