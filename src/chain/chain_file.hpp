// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/config.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chain/flow.hpp"
#include "chain/graph.hpp"
#include "device/device.hpp"
#include "io/source.hpp"
#include "io/traffic_match.hpp"
#include "nf/instance.hpp"
#include "plan/planner.hpp"

/// The chain file: what an operator writes. docs/chain-file.md is its reference.
namespace catena::chain {

enum class PortKind { kPcap, kDpdk, kGenerator, kReplay, kNull };

/// `rx:` or `tx:`.
struct PortConfig {
  PortKind kind = PortKind::kNull;
  std::string target;                     ///< pcap: the file, absolute, or "-" for standard input or output
  std::string position;                   ///< file:line:column of that name; empty on the command line
  std::vector<std::string> devices;       ///< dpdk: EAL device strings, by port number
  std::uint64_t loops = 1;                ///< rx pcap: how often it is replayed
  bool is_shared = false;                 ///< dpdk: other chains of the process may have the ports, too
  std::vector<io::TrafficMatch> matches;  ///< rx, shared: of what arrives, the chain takes what meets one
  io::GeneratorConfig generator;
  io::ReplayConfig replay;
};

/// Where an NF runs: with the rest of the chain, or in a sandboxed process of its own.
enum class Isolation {
  kOfRun,  ///< the file does not say: with the rest of the chain, unless who runs it has another default
  kNone,
  kProcess
};

/// Private memory that the process of an NF has where the file does not say: DPDK reserves two gigabytes for tables of
/// its own.
inline constexpr std::uint32_t kProcessMemoryMb = 6144;

/// NFs that may have one process together.
inline constexpr std::size_t kMaxGroupNfs = 32;

/// One entry of `nfs:`.
struct NfConfig {
  std::string name;
  std::string type;  ///< empty: that of the plug-in
  plan::Processor on = plan::Processor::kCpu;
  std::optional<nf::OnUnsupported> on_unsupported;  ///< empty: as the type has it
  nf::LinkLocal link_local = nf::LinkLocal::kPass;
  nf::Config config;     ///< read by the NF
  std::string position;  ///< file:line:column of the entry, for messages
  Isolation isolation = Isolation::kOfRun;
  std::uint32_t latency_limit_us = 1000;  ///< of a launch on the GPU
  std::string plugin = {};                ///< file of a shared object, whole; empty: the type is known here
  std::string container = {};      ///< folder, whole, of the root file system that a process has; empty: its host's
  bool has_plugin_inside = false;  ///< `plugin` is a path of the container
  /// What a plug-in may have written: each names a `file`, a `folder` or a `receiver`.
  std::vector<nf::Config> writes = {};
  bool is_auto = false;                        ///< `on: auto`: place() decides `on`, which is kCpu until then
  std::uint32_t memory_mb = kProcessMemoryMb;  ///< private memory of its process
  std::uint32_t cpus = 0;                      ///< that its process runs on; 0: on any
  std::uint32_t batch_size = 0;                ///< packets that it takes at once; 0: as `tuning` says
  std::optional<double> qt = {};               ///< as FlowConfig::qt; none: that of the chain
  std::string group = {};  ///< neighbours in the chain of the same group have one process; empty: it has its own

  /// Where the plug-in is for this process.
  std::string plugin_here() const { return has_plugin_inside ? container + plugin : plugin; }
};

/// Parts that a chain may run in.
inline constexpr std::uint32_t kMaxShards = 16;

/// `shards: auto`.
inline constexpr std::uint32_t kAutoShards = 0;

/// Packets of a launch, `units_per_launch` times `unit_packets`, at most.
inline constexpr std::uint32_t kMaxLaunchPackets = 65'536;

/// `unit_packets: auto`: as many as the chain's plan and the costs ask for.
inline constexpr std::uint32_t kAutoUnitPackets = 0;

/// Numbers that a user may turn; the defaults are made for a laptop.
struct Tuning {
  std::uint32_t pool_slots = 16384;
  bool says_pool_slots = false;  ///< the file has the number
  std::uint32_t unit_packets = memory::kDefaultUnitPackets;
  std::uint32_t units_per_launch = 8;
  std::uint32_t launches_in_flight = 3;
  std::uint32_t device_limit_ms = 10'000;
  std::uint32_t max_batch_delay_us = 50;
};

struct ChainConfig {
  std::string file;
  std::string text;  ///< what is in the file
  std::string name;
  std::string tenant;  ///< whose chain it is; the chain's name where the file does not say
  PortConfig rx;
  PortConfig tx;
  std::vector<device::DevicePreference> devices = {{}};  ///< at least one; of several each has some of the shards
  std::vector<NfConfig> nfs;                             ///< in an order in which packets meet them
  FlowConfig flow = {};
  std::optional<Graph> graph = std::nullopt;  ///< none: packets go from each NF to the next
  std::uint32_t shards = 1;                   ///< kAutoShards: see auto_shards()
  Tuning tuning;
};

/// Queues of units that a shard may need: in front of each NF and behind it, where each changes hands, or packets go
/// several ways; in a graph they may do so behind rx, too, and meet in front of tx.
constexpr std::size_t queues_of(ChainConfig const& config) { return 2 * config.nfs.size() + (config.graph ? 2 : 0); }

/// NFs of a chain that have one process, by position: from `first` on, before `end`.
struct NfGroup {
  std::size_t first = 0;
  std::size_t end = 0;
};

/// The NFs that NF `nf` has its process with, itself among them; alone where it has one of its own, or none.
NfGroup group_of(ChainConfig const& config, std::size_t nf);

/// Reads a chain file. The NFs' own configurations are read later, when the NFs are made. Every error is
/// `file:line:column: ...` and names the key, the value and what is allowed.
Result<ChainConfig> load_chain(std::string const& path);
/// The same from text; relative file names start in the folder of `file`.
Result<ChainConfig> parse_chain(std::string_view text, std::string const& file);

/// Where NFs run of which the file does not say it.
void set_default_isolation(ChainConfig& config, Isolation isolation);

/// One NF of the chain in `text`, and nothing else of it, without what its `plugin` and `isolation` say. NotFound where
/// there is none of that name.
Result<NfConfig> parse_nf(std::string_view text, std::string const& file, std::string_view name);

/// `--rx` and `--tx`: "pcap:FILE", "dpdk:DEVICE", "dev:INTERFACE", "generator" (rx) or "null" (tx). InvalidArgument
/// says what is allowed.
Result<PortConfig> parse_rx_option(std::string_view text);
Result<PortConfig> parse_tx_option(std::string_view text);

}  // namespace catena::chain
