// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/config.hpp>

#include <any>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chain/chain_source.hpp"
#include "chain/flow.hpp"
#include "chain/graph.hpp"
#include "chain/run_config.hpp"
#include "gpu/device/device.hpp"
#include "io/traffic_match.hpp"
#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "plan/planner.hpp"

/// The chain file, written by the operator. docs/chain-file.md is its reference.
namespace catena::chain {

/// A row of the table of kinds of rx and tx: port_kind.hpp.
struct PortKind;
/// `tx: null`.
extern const PortKind kNullPort;

/// `rx:` or `tx:`. Files and devices are here whatever their kind, since other parts check, open and account for them.
struct PortConfig {
  PortKind const* kind = &kNullPort;
  std::string target;                     ///< the file, absolute, or "-" for standard input or output; empty: no file
  std::string position;                   ///< file:line:column of the kind's key, or the option naming the port
  std::vector<std::string> devices;       ///< EAL device strings, by port number; empty: no device
  bool is_shared = false;                 ///< devices: other chains of the process may use the ports, too
  std::vector<io::TrafficMatch> matches;  ///< rx, shared: the chain receives frames matching any of these
  std::any settings;                      ///< of the kind, in its own type

  /// The settings. Precondition: T is the type of the kind.
  template <typename T>
  T& as() {
    return std::any_cast<T&>(settings);
  }
  template <typename T>
  T const& as() const {
    return std::any_cast<T const&>(settings);
  }
};

/// The process of an NF: the process of the chain, or its own sandboxed process.
enum class Isolation {
  kOfRun,  ///< not set in the file: the process of the chain, unless the caller sets another default
  kNone,
  kProcess
};

/// Default limit of private memory of an NF process. DPDK reserves two gigabytes for its own tables.
inline constexpr std::uint32_t kProcessMemoryMb = 6144;

/// Maximum number of NFs in one process.
inline constexpr std::size_t kMaxGroupNfs = 32;

/// One entry of `nfs:`.
struct NfConfig {
  std::string name;
  std::string type;  ///< empty: the type of the plug-in
  plan::Processor on = plan::Processor::kCpu;
  std::optional<nf::OnUnsupported> on_unsupported;  ///< nullopt: the default of the type
  nf::LinkLocal link_local = nf::LinkLocal::kPass;
  nf::Config config;     ///< read by the NF
  std::string position;  ///< file:line:column of the entry, for messages
  Isolation isolation = Isolation::kOfRun;
  std::uint32_t latency_limit_us = 1000;  ///< of a launch on the GPU
  std::string plugin = {};                ///< absolute path of a shared object; empty: `type` is registered
  std::string container = {};             ///< absolute path of the root file system of its process; empty: the host's
  bool has_plugin_inside = false;         ///< `plugin` is a path in the container
  /// Permitted outputs of a plug-in; each names a `file`, a `folder` or a `receiver`.
  std::vector<nf::Config> writes = {};
  bool is_auto = false;                        ///< `on: auto`: place() sets `on`, which is kCpu until then
  std::uint32_t memory_mb = kProcessMemoryMb;  ///< private memory of its process
  std::uint32_t cpus = 0;                      ///< number of CPUs for its process; 0: any
  std::uint32_t batch_size = 0;                ///< packets per batch; 0: as in `tuning`
  std::optional<double> qt = {};               ///< as FlowConfig::qt; nullopt: the chain's qt
  std::string group = {};                      ///< consecutive NFs of one group share a process; empty: it has its own

  /// Path of the plug-in in the file system of the calling process.
  std::string plugin_here() const { return has_plugin_inside ? container + plugin : plugin; }
};

/// Maximum number of shards of a chain.
inline constexpr std::uint32_t kMaxShards = 16;

/// `shards: auto`.
inline constexpr std::uint32_t kAutoShards = 0;

/// Maximum number of packets per launch, `units_per_launch` times `unit_packets`.
inline constexpr std::uint32_t kMaxLaunchPackets = 65'536;

/// `unit_packets: auto`: chosen from the chain's plan and the costs.
inline constexpr std::uint32_t kAutoUnitPackets = 0;

/// Parameters for users to tune; the defaults suit a laptop.
struct Tuning {
  std::uint32_t pool_slots = 16384;
  bool says_pool_slots = false;  ///< set in the file
  std::uint32_t unit_packets = memory::kDefaultUnitPackets;
  std::uint32_t units_per_launch = 8;
  std::uint32_t launches_in_flight = 3;
  std::uint32_t device_limit_ms = 10'000;
  std::uint32_t max_batch_delay_us = 50;
};

/// Packets per unit; the default if the chain file leaves them open and no layout has decided them.
constexpr std::uint32_t unit_packets_of(Tuning const& tuning) {
  return tuning.unit_packets == kAutoUnitPackets ? memory::kDefaultUnitPackets : tuning.unit_packets;
}

struct ChainConfig {
  ChainSource source;
  std::string name;
  std::string tenant;  ///< owner of the chain; the chain's name if not set in the file
  PortConfig rx;
  PortConfig tx;
  std::vector<device::DevicePreference> devices = {{}};  ///< at least one; several devices divide the shards
  std::vector<NfConfig> nfs;                             ///< in topological order, upstream NFs first
  FlowConfig flow = {};
  std::optional<Graph> graph = std::nullopt;  ///< nullopt: packets go from each NF to the next
  std::uint32_t shards = 1;                   ///< kAutoShards: see auto_shards()
  Tuning tuning;
  RunConfig run;
};

/// Unit queues that a shard may need: before and after each NF, for reshard stages and branches; in a graph also after
/// rx, for branches, and before tx, for merges.
constexpr std::size_t queues_of(ChainConfig const& config) { return 2 * config.nfs.size() + (config.graph ? 2 : 0); }

/// NFs of a chain in one process, by position: from `first` on, before `end`.
struct NfGroup {
  std::size_t first = 0;
  std::size_t end = 0;
};

/// The NFs in the process of NF `nf`, including `nf`; `nf` alone if it has its own process or is in the chain's
/// process.
NfGroup group_of(ChainConfig const& config, std::size_t nf);

/// Reads a chain file and the files included by it, with `options` put over their keys. The NFs' own configurations are
/// read later, when the NFs are created. Every error is `file:line:column: ...` and names the key, the value and the
/// allowed values; an error of an option begins with the option. `environment`: values of variables without one in the
/// file.
Result<ChainConfig> load_chain(std::string const& path, GivenOptions const& options = {}, Variables environment = {});
/// The same for a chain file with the text `text`; relative file names start in the folder of `file`.
Result<ChainConfig> parse_chain(std::string_view text, std::string const& file, GivenOptions const& options = {},
                                Variables environment = {});
/// The same for the texts of an earlier ChainConfig. Opens no file.
Result<ChainConfig> parse_chain(ChainSource source);

/// Sets the isolation of all NFs without one in the file.
void set_default_isolation(ChainConfig& config, Isolation isolation);

/// Reads a single NF of the chain of `source`, without its `plugin` and `isolation`. Opens no chain file. NotFound if
/// no NF has this name.
Result<NfConfig> parse_nf(ChainSource source, std::string_view name);

/// `--rx` and `--tx`: "pcap:FILE", "generator" and others (port_kind.hpp). InvalidArgument lists the allowed values.
Result<PortConfig> parse_rx_option(std::string_view text);
Result<PortConfig> parse_tx_option(std::string_view text);
/// The allowed values for the help of the options: "pcap:FILE (- is standard input), dpdk:DEVICE or generator".
std::string rx_option_help();
std::string tx_option_help();
/// The file in a value of --rx or --tx, a part of `text`; nullopt if the value is of a kind without a file.
std::optional<std::string_view> file_of_port_option(std::string_view text);

}  // namespace catena::chain
