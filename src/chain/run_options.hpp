// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/planning.hpp"
#include "gpu/device/device.hpp"
#include "gpu/device/remote/server_pool.hpp"
#include "io/sink.hpp"
#include "packet/memory/packet_pool.hpp"
#include "plan/sharing/partition_plan.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/persistent.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace catena::chain {

/// The caller's settings for NFs with `isolation: process`.
struct NfProcesses {
  std::string program;                    ///< see nf_process::find_nf_program()
  std::optional<std::uint32_t> uid = {};  ///< their user; nullopt: as nf_process::ProcessOptions
  std::optional<std::uint32_t> gid = {};
  /// As nf_process::ProcessOptions, for the NF of this name.
  std::function<Result<device::remote::Fd>(std::string const& nf, std::string const& preference, std::string* why)>
      connect_device = {};
  /// For check(): has a process create the NF, on the CPU, with the settings of the chain, and ends it. Errors: the
  /// NF's own. Null: plug-ins are not checked.
  std::function<Status(NfConfig const&, ChainConfig const&)> try_out = {};
  std::stop_token give_up = {};  ///< as nf_process::ProcessOptions
};

/// SM partitions of the NFs of a chain, in their order, assigned by another process. Any thread.
struct GivenParts {
  std::function<std::vector<share::Part>()> now;               ///< without SMs: not assigned yet, and the NF takes all
  std::function<void(std::vector<share::Part> const&)> taken;  ///< the NFs use these from now on
};

/// How the NFs of a chain share its device: `--share`, `--parts` and `--compute-units`.
struct SharingOptions {
  share::Mode mode = share::Mode::kUncoordinated;
  std::optional<share::Parts> parts = std::nullopt;  ///< nullopt: green contexts if the device has them, else blocks
  std::uint32_t compute_units = 0;                   ///< shared by them; 0: all
  /// Shares the device with the NFs of other chains, in that mode; null: the chain's own NFs alone.
  std::shared_ptr<share::PartitionPlans> partition_plans = nullptr;
  std::optional<GivenParts> given = std::nullopt;  ///< replaces a partition plan
};

/// The settings of the command line, in addition to a chain file.
struct RunOptions {
  std::optional<PortConfig> rx;
  std::optional<PortConfig> tx;
  std::vector<device::DevicePreference> devices;  ///< empty: as in the file
  std::string record_path;                        ///< empty: no record
  std::string eve_path;                           ///< for alerts as EVE JSON lines; empty: not written
  std::string trace_path;    ///< for the timeline of launches from run() (see to_chrome_trace()); empty: not written
  std::string profile_path;  ///< file of sync.profile, which must not be overwritten
  bool trace = false;        ///< keeps the timeline for traces() without a file
  std::vector<std::uint32_t> cores;  ///< worker i stays on cores[i % size]; empty: anywhere
  std::uint32_t workers = 1;         ///< 0, for apply(): one per core
  bool new_keys = false;             ///< no key of the chain was used before: for one start
  SyncOptions sync;
  std::optional<SharingOptions> sharing = std::nullopt;  ///< nullopt: every NF uses the whole device
  /// If set, these create the source and the sink in place of rx and tx, which are not opened then; for measurement
  /// programs. The plan is still made for rx.
  std::function<Result<std::unique_ptr<io::Source>>()> make_source;
  std::function<Result<std::unique_ptr<io::Sink>>()> make_sink;
  bool with_records = false;  ///< NFs produce record lines, to be taken from their instances
  /// Ports shared with other chains; null: the chain has the shared ports of its file alone.
  std::shared_ptr<io::SharedPortRegistry> switches;
  /// If packet memory belongs to another process: replaces memory::PacketPool::create(), with this number of queues.
  std::function<Result<std::shared_ptr<memory::PacketPool>>(std::uint32_t queues)> make_pool;
  /// The liveness of rx and tx for NFs; nullopt: from rx and tx.
  std::optional<nf::Ends> ends = std::nullopt;
  /// The shard of the NFs, if another process has the other shards of the same configuration; nullopt: all are here.
  std::optional<nf::Shard> shard = std::nullopt;
  /// If the NFs are part of the run of another process: its context, of which `new_keys` is ignored.
  std::optional<nf::RunContext> context = std::nullopt;
  /// Settings for NFs in their own process. The program is empty if they cannot have one.
  NfProcesses processes = {};
  /// If set, replaces device::open(): for devices owned by other processes, and for tests. Any thread.
  std::function<Result<std::unique_ptr<device::Device>>(device::DevicePreference const&, std::string* why)> open_device;
  /// A lost device can be opened again: the chain retries until it succeeds, and then returns to the device.
  bool device_returns = false;
  std::optional<ProfileStore> profiles = std::nullopt;  ///< has the costs of the opened device; nullopt: sync.profile
};

/// The limits of a device server for chains with this sharing.
device::remote::ServerLimits server_limits(std::optional<SharingOptions> const& sharing);

/// The clients of a device server: all users of a device; the chains of one tenant; or one process, of an NF or group,
/// or of a chain's other NFs.
enum class ServersFor { kDevice, kTenant, kProcess };
/// "device", "tenant" or "process", as in `--device-servers`. InvalidArgument lists the allowed values.
Result<ServersFor> parse_servers_for(std::string_view text);
/// Whether NFs can share a GPU with such servers. InvalidArgument: SM partitions and temporal sharing work within one
/// server only.
Status check_servers(ServersFor servers, std::optional<SharingOptions> const& sharing);

/// A client of device servers.
struct ServerClient {
  std::string chain;
  std::string tenant;
  ServersFor servers = ServersFor::kDevice;
};
/// Makes a run open devices through `servers`, which must outlive it, and return to them after a loss. The client name
/// is the chain's; for the process of an NF it is CHAIN/NF. Servers of kTenant and kProcess end with `options` and the
/// objects made from it. A client in quarantine has no device: the CPU serves it.
void use_servers(device::remote::ServerPool& servers, ServerClient const& client, RunOptions& options);

/// Whether the order of packets of several flows is invisible in the output.
bool hides_order(ChainConfig const& config, RunOptions const& options);

/// The same, and rx is artificial traffic and tx discards it: each shard may make its part of the packets by itself.
bool may_divide_traffic(ChainConfig const& config, RunOptions const& options);

/// Applies `options` to `config`, and sets the number of shards if it is open. A second call changes nothing.
/// InvalidArgument for fewer shards than devices.
Status apply(RunOptions const& options, ChainConfig& config);

}  // namespace catena::chain
