// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "gpu/device/remote/server_pool.hpp"
#include "pipeline/run_options.hpp"

#include <catena/core/status.hpp>

#include <optional>
#include <string>
#include <string_view>

/// Devices of chains that other processes own: device servers, and their clients.
namespace catena::runtime {

/// The limits of a device server for chains with this sharing.
device::remote::ServerLimits server_limits(std::optional<chain::SharingOptions> const& sharing);

/// The clients of a device server: all users of a device; the chains of one tenant; or one process, of an NF or group,
/// or of a chain's other NFs.
enum class ServersFor { kDevice, kTenant, kProcess };
/// "device", "tenant" or "process", as in `--device-servers`. InvalidArgument lists the allowed values.
Result<ServersFor> parse_servers_for(std::string_view text);
/// Whether NFs can share a GPU with such servers. InvalidArgument: SM partitions and temporal sharing work within one
/// server only.
Status check_servers(ServersFor servers, std::optional<chain::SharingOptions> const& sharing);

/// A client of device servers.
struct ServerClient {
  std::string chain;
  std::string tenant;
  ServersFor servers = ServersFor::kDevice;
  std::string owner = {};  ///< responsible for its kernels; empty: unknown
};
/// Makes a run open devices through `servers`, which must outlive it, and return to them after a loss. The client name
/// is the chain's; for the process of an NF it is CHAIN/NF. Servers of kTenant and kProcess end with `options` and the
/// objects made from it. A client in quarantine has no device: the CPU serves it. With kDevice an owner whose clients
/// have taken devices down gets a server of his own (ServerPool::separation_of()), or no device if `options` share a
/// GPU.
void use_servers(device::remote::ServerPool& servers, ServerClient const& client, RunOptions& options);

}  // namespace catena::runtime
