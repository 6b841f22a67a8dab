// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/planning.hpp"
#include "device/device.hpp"
#include "device/remote/server_pool.hpp"
#include "io/sink.hpp"
#include "memory/packet_pool.hpp"
#include "share/division.hpp"

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

/// What NFs with `isolation: process` need of who runs them.
struct NfProcesses {
  std::string program;                    ///< see nf_process::find_nf_program()
  std::optional<std::uint32_t> uid = {};  ///< who they are; none: as nf_process::ProcessOptions
  std::optional<std::uint32_t> gid = {};
  /// As nf_process::ProcessOptions, for the NF of that name.
  std::function<Result<device::remote::Fd>(std::string const& nf, std::string const& preference, std::string* why)>
      connect_device = {};
  /// Has a process make the NF, on the CPU, as the chain says, and ends it: for check(). Errors: the NF's own. Null:
  /// plug-ins are not asked.
  std::function<Status(NfConfig const&, ChainConfig const&)> try_out = {};
  std::stop_token give_up = {};  ///< as nf_process::ProcessOptions
};

/// Parts of a GPU that another process hands out to the NFs of a chain, in their order. Any thread.
struct GivenParts {
  std::function<std::vector<share::Part>()> now;  ///< without SMs: it has not said yet, and the NF takes all
  std::function<void(std::vector<share::Part> const&)> taken;  ///< the NFs have these now
};

/// How the NFs of a chain share its device: `--share`, `--parts` and `--compute-units`.
struct SharingOptions {
  share::Mode mode = share::Mode::kUncoordinated;
  std::optional<share::Parts> parts = std::nullopt;  ///< none: green contexts where the device has them, else blocks
  std::uint32_t compute_units = 0;                   ///< that they share; 0: all
  /// With which they share it with the NFs of other chains, in that mode; null: they are alone.
  std::shared_ptr<share::Divisions> divisions = nullptr;
  std::optional<GivenParts> given = std::nullopt;  ///< takes the place of a division
};

/// What the command line adds to a chain file.
struct RunOptions {
  std::optional<PortConfig> rx;
  std::optional<PortConfig> tx;
  std::vector<device::DevicePreference> devices;  ///< empty: the file's
  std::string record_path;                        ///< empty: no record
  std::string eve_path;                           ///< where alerts go as EVE JSON lines; empty: nowhere
  std::string trace_path;    ///< where run() writes the time line of launches (see to_chrome_trace()); empty: nowhere
  std::string profile_path;  ///< where sync.profile was read from, so that nothing is written there
  bool trace = false;        ///< keeps the time line for traces() where no file is wanted
  std::vector<std::uint32_t> cores;  ///< where workers stay, worker i on cores[i % size]; empty: anywhere
  std::uint32_t workers = 1;         ///< 0, for apply(): as many as there are cores
  bool new_keys = false;             ///< no key of the chain was used before: of one start
  SyncOptions sync;
  std::optional<SharingOptions> sharing = std::nullopt;  ///< none: every NF takes the whole device
  /// Where given, what takes the place of the ends that rx and tx name, which are not opened then; for programs that
  /// measure. The plan is still made for what rx says.
  std::function<Result<std::unique_ptr<io::Source>>()> make_source;
  std::function<Result<std::unique_ptr<io::Sink>>()> make_sink;
  bool with_records = false;  ///< NFs give lines for records to who takes them from their instances
  /// Ports that other chains have, too; null: this chain alone has those that its file says are shared.
  std::shared_ptr<io::PortSwitches> switches;
  /// Where the memory of packets is another process's, takes the place of memory::PacketPool::create() with so many
  /// queues.
  std::function<Result<std::shared_ptr<memory::PacketPool>>(std::uint32_t queues)> make_pool;
  /// What NFs are told of the run; none: what rx and tx say.
  std::optional<nf::Ends> ends = std::nullopt;
  /// What the NFs are of those with the same configuration, where the others are somebody else's; none: all are here.
  std::optional<nf::Shard> shard = std::nullopt;
  /// Where the NFs are part of another process's run, what that is; its `new_keys` is not looked at.
  std::optional<nf::RunContext> context = std::nullopt;
  /// How NFs with a process of their own get it. Its program is empty where they cannot have one.
  NfProcesses processes = {};
  /// As device::open(), which it takes the place of where given: devices that other processes own, and those of tests.
  /// Any thread.
  std::function<Result<std::unique_ptr<device::Device>>(device::DevicePreference const&, std::string* why)> open_device;
  /// A device that was lost can be opened again: that is tried until it works, and then the chain returns to it.
  bool device_returns = false;
  std::optional<ProfileStore> profiles = std::nullopt;  ///< has the costs of the opened device; none: sync.profile has
};

/// What a device server is to keep to for chains that share its device so.
device::remote::ServerLimits server_limits(std::optional<SharingOptions> const& sharing);

/// What a device server is for: all who use a device; the chains of one tenant; one process, that of an NF or group or
/// that of a chain's other NFs.
enum class ServersFor { kDevice, kTenant, kProcess };
/// "device", "tenant" or "process", as `--device-servers` takes it. InvalidArgument with what may be written.
Result<ServersFor> parse_servers_for(std::string_view text);
/// Whether NFs can share a GPU so. InvalidArgument: parts of it and turns are those of one server.
Status check_servers(ServersFor servers, std::optional<SharingOptions> const& sharing);

/// Who opens devices of servers.
struct ServerClient {
  std::string chain;
  std::string tenant;
  ServersFor servers = ServersFor::kDevice;
};
/// Has a run open devices through `servers`, which outlive it, as the client that its chain is called, and the process
/// of an NF as CHAIN/NF, and return to them after a loss. Servers that are not for a device end when `options` and
/// what is made of them do. A client in quarantine has no device: the CPU serves it.
void use_servers(device::remote::ServerPool& servers, ServerClient const& client, RunOptions& options);

/// Whether nobody sees in which order packets of several flows leave.
bool hides_order(ChainConfig const& config, RunOptions const& options);

/// The same, and rx is artificial traffic that goes nowhere: each shard may make its part of the packets by itself.
bool may_divide_traffic(ChainConfig const& config, RunOptions const& options);

/// Puts into `config` what `options` say, and the number of shards where it is open. A second time changes nothing.
/// InvalidArgument for fewer shards than devices.
Status apply(RunOptions const& options, ChainConfig& config);

}  // namespace catena::chain
