// SPDX-License-Identifier: Apache-2.0
#include "chain/chain_file.hpp"

#include <array>
#include <vector>

#include "chain/graph.hpp"
#include "chain/includes.hpp"
#include "chain/key_fields.hpp"
#include "chain/keys.hpp"
#include "chain/match_keys.hpp"
#include "chain/port_kind.hpp"
#include "chain/run_keys.hpp"
#include "plan/planner.hpp"

namespace catena::chain {
namespace {

using std::string_view;
using enum KeyKind;

constexpr std::int64_t kMaxMatches = 256;
constexpr std::int64_t kMaxNextNodeRows = 1024;

constexpr std::array<string_view, 1> kVersions{"catena/v1"};
constexpr std::array<string_view, 1> kKinds{"Chain"};
constexpr std::array<string_view, 1> kAuto{"auto"};
constexpr std::array<string_view, 2> kPassOrDrop{"pass", "drop"};
constexpr std::array<string_view, 3> kProcessors{"cpu", "gpu", "auto"};
constexpr std::array<string_view, 2> kIsolations{"none", "process"};
constexpr std::array<string_view, 2> kTrueOrFalse{"true", "false"};
constexpr std::array kMetadata{
    Key{.name = "name",
        .kind = kName,
        .help = "name of the chain in the report",
        .is_required = true,
        .into = into<&ChainConfig::name>},
};

constexpr Key kShared{.name = "shared",
                      .kind = kWord,
                      .help = "with dpdk and dev: whether other chains of the service may share the ports",
                      .fallback = "false",
                      .words = kTrueOrFalse};

constexpr std::array<string_view, 1> kUntagged{kUntaggedWord};
constexpr std::int64_t kMaxVlan = 4094;  // 4095 is reserved, 0 is no VLAN (IEEE 802.1Q)

constexpr Key kVlan{.name = "vlan",
                    .kind = kInteger,
                    .help = "identifier of the outer VLAN tag; untagged: frames without one",
                    .minimum = 1,
                    .maximum = kMaxVlan,
                    .words = kUntagged};
constexpr Key kSrc{.name = "src", .kind = kText, .help = "IPv4 address or prefix of the source"};
constexpr Key kDst{.name = "dst", .kind = kText, .help = "IPv4 address or prefix of the destination"};
constexpr Key kProtocol{.name = "protocol",
                        .kind = kInteger,
                        .help = "number of the protocol above IPv4, or its name",
                        .maximum = 255,
                        .words = kProtocolNames};
constexpr Key kSport{.name = "sport", .kind = kText, .help = "source port of TCP or UDP, or a range: 1024-65535"};
constexpr Key kDport{.name = "dport", .kind = kText, .help = "destination port of TCP or UDP, or a range: 1024-65535"};
constexpr std::array kMatch{kVlan, kSrc, kDst, kProtocol, kSport, kDport};

/// Of rx and tx, for all kinds that are devices.
constexpr std::array kRxCommonKeys{
    kShared,
    Key{.name = "match",
        .kind = kSections,
        .help = "with shared: the chain receives frames matching an entry; without: frames matched by no other chain",
        .maximum = kMaxMatches,
        .keys = kMatch},
};
constexpr std::array kTxCommonKeys{kShared};

constexpr Key number(KeyReader into, string_view name, string_view help, string_view fallback, std::int64_t minimum,
                     std::int64_t maximum) {
  return {.name = name,
          .kind = kInteger,
          .help = help,
          .fallback = fallback,
          .minimum = minimum,
          .maximum = maximum,
          .into = into};
}

constexpr std::array kTuning{
    number(into<&Tuning::pool_slots>, "pool_slots", "maximum number of packets inside the chain, a power of two",
           "16384", 2048, 1 << 20),
    Key{.name = "unit_packets",
        .kind = kInteger,
        .help =
            "maximum packets per unit; auto: a quarter of the packets a transfer needs for nine tenths of its speed",
        .fallback = "256",
        .minimum = 4,
        .maximum = memory::kMaxUnitPackets,
        .words = kAuto,
        .into = into<&Tuning::unit_packets>},
    number(into<&Tuning::units_per_launch>, "units_per_launch", "maximum full units per launch on the device", "8", 1,
           1024),
    number(into<&Tuning::launches_in_flight>, "launches_in_flight", "concurrent launches of one NF on the device", "3",
           1, 16),
    number(into<&Tuning::device_limit_ms>, "device_limit_ms",
           "milliseconds after which an unfinished launch counts as a failed device", "10000", 10, 600'000),
    number(into<&Tuning::max_batch_delay_us>, "max_batch_delay_us",
           "microseconds that a partly filled launch may wait for more packets", "50", 0, 1'000'000),
};

constexpr std::int64_t kMaxQt = 1000;
constexpr std::array<string_view, 2> kFlowModes{"backpressure", "vanilla"};
constexpr std::int64_t kMaxDownstream = 16;
constexpr std::array kFlowSignals{
    Key{.name = "listen",
        .kind = kText,
        .help = "address and UDP port, as 192.0.2.1:7400, for requests of upstream chains"},
    Key{.name = "downstream",
        .kind = kTexts,
        .help = "addresses and UDP ports of the chains receiving from tx: this chain waits while rx of one of them is "
                "paused",
        .minimum = 1,
        .maximum = kMaxDownstream},
    Key{.name = "key",
        .kind = kFile,
        .help = "a file whose first word is the key shared by all of them: 32 to 128 hexadecimal digits",
        .is_required = true},
};

constexpr std::array kFlow{
    Key{.name = "mode",
        .kind = kWord,
        .help = "backpressure: where too many packets wait for an NF, its upstream NFs pause, up to rx; vanilla: "
                "packets that do not fit into a ring are dropped",
        .fallback = "backpressure",
        .words = kFlowModes,
        .into = into_word<&FlowConfig::mode, FlowMode::kBackpressure, FlowMode::kVanilla>},
    Key{.name = "qt",
        .kind = kNumber,
        .help = "batches allowed to wait for an NF, for NFs without a value of their own",
        .fallback = "2.8",
        .minimum = 1,
        .maximum = kMaxQt,
        .into = into<&FlowConfig::qt>},
    number(into<&FlowConfig::period_us>, "period_us",
           "microseconds between two checks of a ring; 0: at each poll of its stage", "5", 0, 1'000'000),
    Key{.name = "signals",
        .kind = kSection,
        .help = "flow control with chains of other hosts, upstream of rx and downstream of tx",
        .keys = kFlowSignals},
};
constexpr std::array<Advice, 1> kFlowAdvice{
    {{"hook",
      "it was removed: give an alert rule on the metric catena_rx_paused_seconds_total, as in docs/overload.md"}}};

constexpr std::array kIsolation{
    Key{.name = "container",
        .kind = kText,
        .help = "folder with an unpacked image: the root file system of the NF's process, read-only"},
    number(into<&NfConfig::memory_mb>, "memory_mb",
           "limit of the private memory of the NF's process, in megabytes; beyond it the process is ended", "6144", 64,
           1 << 20),
    number(into<&NfConfig::cpus>, "cpus", "number of CPUs for the NF's process; 0: all", "0", 0, 1024),
    Key{.name = "group",
        .kind = kName,
        .help = "adjacent NFs of the same group share one process; a packet is copied into it once",
        .into = into<&NfConfig::group>},
};

constexpr std::array<std::string_view, 3> kWritesAlternatives{"file: FILE", "folder: FOLDER", "receiver: HOST:PORT"};
constexpr std::array kWrites{
    Key{.name = "file", .kind = kFile, .help = "a file, created or truncated"},
    Key{.name = "folder", .kind = kText, .help = "files in this folder, kept for the next run"},
    Key{.name = "receiver", .kind = kText, .help = "datagrams, to this host and UDP port"},
};

/// `on`.
Status read_processor(FileSection& entry, Key const& key, NfConfig& nf) {
  CATENA_ASSIGN_OR_RETURN(const std::string on, entry.text(key.name));
  nf.on = on == "gpu" ? plan::Processor::kGpu : plan::Processor::kCpu;
  nf.is_auto = on == "auto";
  return absl::OkStatus();
}

/// `device`.
Status read_devices(FileSection& spec, Key const& key, ChainConfig& chain) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, spec.texts(key.name));
  CATENA_ASSIGN_OR_RETURN(chain.devices, device::parse_preferences(texts));
  return absl::OkStatus();
}

/// At spec they are the defaults of all NFs, which are an NfConfig, too.
constexpr KeyReader kIntoUnsupported =
    into_word<&NfConfig::on_unsupported, nf::OnUnsupported::kPass, nf::OnUnsupported::kDrop>;
constexpr KeyReader kIntoLinkLocal = into_word<&NfConfig::link_local, nf::LinkLocal::kPass, nf::LinkLocal::kDrop>;

constexpr std::array kNf{
    Key{.name = "name",
        .kind = kName,
        .help = "differs from all others of the chain",
        .is_required = true,
        .into = into<&NfConfig::name>},
    Key{.name = "type",
        .kind = kText,
        .help = "a type listed by `catena show nfs`; not needed with `plugin`",
        .is_required = true,
        .stands_in = "plugin",
        .into = into<&NfConfig::type>},
    Key{.name = "plugin",
        .kind = kFile,
        .help = "shared object of a network function built elsewhere; it runs in a process of its own"},
    Key{.name = "writes",
        .kind = kSections,
        .help = "for a plugin: outputs in its configuration to which it may write; all others are refused",
        .maximum = 16,
        .keys = kWrites,
        .alternatives = kWritesAlternatives},
    Key{.name = "on",
        .kind = kWord,
        .help =
            "processor of the NF's implementation; auto: the one that makes the chain faster, as measured by `catena "
            "profile --nf`",
        .fallback = "cpu",
        .words = kProcessors,
        .into = kReadBy<read_processor>},
    Key{.name = "on_unsupported",
        .kind = kWord,
        .help = "action for packets the NF cannot inspect; default: the value in spec, else the default of the type",
        .words = kPassOrDrop,
        .into = kIntoUnsupported},
    Key{.name = "link_local",
        .kind = kWord,
        .help = "action for ARP, LLDP, spanning tree and other link-local control frames; default: the value in spec",
        .words = kPassOrDrop,
        .into = kIntoLinkLocal},
    Key{.name = "isolation",
        .kind = kSection,
        .help = "none: in the chain's own process; process: in a sandboxed one with access to its packets only; "
                "a section: in a sandboxed one with another root file system or limits, or shared with adjacent NFs; "
                "default: "
                "process for a plugin and in a service, else none",
        .words = kIsolations,
        .keys = kIsolation},
    number(into<&NfConfig::latency_limit_us>, "latency_limit_us",
           "time limit of a launch of the NF on the gpu, in microseconds; for `on: auto` and with `--share`", "1000", 1,
           1'000'000),
    number(into<&NfConfig::batch_size>, "batch_size",
           "packets per launch of the NF on the gpu, at most a full launch of `tuning`; on any processor the "
           "batch that `qt` counts in; 0: a full launch on the gpu, 256 on the cpu",
           "0", 0, kMaxLaunchPackets),
    Key{.name = "qt",
        .kind = kNumber,
        .help = "with `flow`: batches allowed to wait for the NF; default: the value in flow",
        .minimum = 1,
        .maximum = kMaxQt,
        .into = into<&NfConfig::qt>},
    Key{.name = "config",
        .kind = kOfNf,
        .help = "the NF's own keys",
        .fallback = "{}",
        .into = into<&NfConfig::config>},
};

constexpr std::array<string_view, 2> kVerdicts{"pass", "alert"};
constexpr std::int64_t kMaxPort = 65'535;
constexpr std::array kNextNodeMatch{
    kVlan,
    kSrc,
    kDst,
    kProtocol,
    kSport,
    kDport,
    Key{.name = "rx_port",
        .kind = kInteger,
        .help = "number of the rx port on which the packet arrived",
        .maximum = kMaxPort},
    Key{.name = "tx_port",
        .kind = kInteger,
        .help = "number of the tx port chosen for the packet by the NFs so far",
        .maximum = kMaxPort},
    Key{.name = "verdict",
        .kind = kWord,
        .help = "alert: an NF has raised an alert for the packet so far; pass: no NF has",
        .words = kVerdicts},
};

constexpr std::array kMirror{
    Key{.name = "mirror",
        .kind = kText,
        .help = "destination of a copy of the packet: an NF's name or tx; a later row forwards the packet",
        .is_required = true},
};

constexpr std::array kNextNodeRow{
    Key{.name = "from",
        .kind = kTexts,
        .help = "source of the packets: an NF's name or rx, or a list of them",
        .is_required = true,
        .minimum = 1,
        .maximum = plan::kMaxNfs + 1},
    Key{.name = "output",
        .kind = kName,
        .help = "output of the NF: pass, alert, or one of its own (`catena show nfs`)"},
    Key{.name = "match",
        .kind = kSection,
        .help = "conditions, which must all match; without: all packets",
        .keys = kNextNodeMatch},
    Key{.name = "to",
        .kind = kSection,
        .help = "destination of the packets: an NF's name, tx or drop; {mirror: NAME}: destination of a copy of each",
        .is_required = true,
        .takes_text = true,
        .keys = kMirror},
};

constexpr std::array<Advice, 1> kNfAdvice{{{"", "the NF's own keys are under `config:`"}}};
/// Words of options and the keys that they are.
constexpr std::array<Advice, 10> kSpecAdvice{{
    {"record", "write outputs: {record: FILE}"},
    {"eve", "write outputs: {eve: FILE}"},
    {"trace", "write outputs: {trace: FILE}"},
    {"sync", "write transfers: {mode: adaptive}"},
    {"pushdown", "write transfers: {pushdown: on}"},
    {"methods", "write transfers: {methods: [strided, gather]}"},
    {"profile", "write transfers: {profile: FILE}"},
    {"share", "write sharing: {mode: scheduled}"},
    {"parts", "write sharing: {mode: scheduled, parts: green}"},
    {"new_keys", "it is an option, for one start: --new-keys SPI"},
}};

/// Not a constant: the table of kinds has the keys of rx and tx.
std::span<const Key> spec_keys() {
  static const std::vector<Key> kRxKeys = rx_keys(kRxCommonKeys);
  static const std::vector<Key> kTxKeys = tx_keys(kTxCommonKeys);
  static const std::vector kPackets{
      Key{.name = "rx",
          .kind = kSection,
          .help = "source of packets",
          .is_required = true,
          .keys = kRxKeys,
          .alternatives = rx_alternatives()},
      Key{.name = "tx",
          .kind = kSection,
          .help = "destination of packets; null: packets are counted and discarded",
          .is_required = true,
          .is_nullable = true,
          .keys = kTxKeys,
          .alternatives = tx_alternatives()},
      Key{.name = "device",
          .kind = kDevices,
          .help = "the device for NFs placed on: gpu or auto; one of several by its number: cuda:1; of a list each has "
                  "some shards",
          .fallback = "auto",
          .minimum = 1,
          .maximum = kMaxShards,
          .into = kReadBy<read_devices>},
      Key{.name = "on_unsupported",
          .kind = kWord,
          .help = "for NFs without a value of their own; default: drop for firewall and ipsec, pass for the others",
          .words = kPassOrDrop,
          .into = kIntoUnsupported},
      Key{.name = "link_local",
          .kind = kWord,
          .help = "for NFs without a value of their own",
          .fallback = "pass",
          .words = kPassOrDrop,
          .into = kIntoLinkLocal},
      Key{.name = "tenant",
          .kind = kName,
          .help = "owner of the chain in a service for many owners; default: a tenant with the chain's name",
          .into = into<&ChainConfig::tenant>},
      Key{.name = "shards",
          .kind = kInteger,
          .help =
              "parallel instances of the chain, each with the packets of some flows; default: auto where rx is a port, "
              "else 1",
          .minimum = 1,
          .maximum = kMaxShards,
          .words = kAuto},
      Key{.name = "tuning",
          .kind = kSection,
          .help = "numbers affecting speed only",
          .fallback = "{}",
          .keys = kTuning},
      Key{.name = "nfs",
          .kind = kSections,
          .help = "the NFs in order",
          .is_required = true,
          .maximum = plan::kMaxNfs,
          .keys = kNf,
          .advice = kNfAdvice},
      Key{.name = "graph",
          .kind = kSections,
          .help =
              "path of packets from rx and from each NF, by the first matching row; without: through the NFs in order",
          .maximum = kMaxNextNodeRows,
          .keys = kNextNodeRow},
      Key{.name = "flow",
          .kind = kSection,
          .help = "limits for the packets waiting in the chain; without: as many as packet memory holds",
          .keys = kFlow,
          .advice = kFlowAdvice},
      Key{.name = "unmatched",
          .kind = kText,
          .help = "destination of packets matching no row of `graph`: the name of an NF, tx, or drop"},
  };
  static const std::vector<Key> kSpec = [] {
    std::vector<Key> keys = kPackets;
    keys.insert(keys.end(), run_keys().begin(), run_keys().end());
    return keys;
  }();
  return kSpec;
}

}  // namespace

std::span<const Key> chain_keys() {
  static const std::array kRoot{
      Key{.name = "apiVersion",
          .kind = kWord,
          .help = "version of this format",
          .is_required = true,
          .words = kVersions},
      Key{.name = "kind", .kind = kWord, .help = "kind of object in the file", .is_required = true, .words = kKinds},
      Key{.name = "metadata", .kind = kSection, .help = "name of the chain", .is_required = true, .keys = kMetadata},
      Key{.name = "include",
          .kind = kTexts,
          .help = "YAML files, from the folder of this file, with values for keys missing in this file",
          .maximum = kMaxIncludedFiles},
      Key{.name = "vars",
          .kind = kVariables,
          .help = "values of variables by name: `${NAME}` in a value of this file is replaced by the value"},
      Key{.name = "spec",
          .kind = kSection,
          .help = "the chain",
          .is_required = true,
          .keys = spec_keys(),
          .advice = kSpecAdvice},
  };
  return kRoot;
}

}  // namespace catena::chain
