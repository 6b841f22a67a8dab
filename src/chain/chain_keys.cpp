// SPDX-License-Identifier: Apache-2.0
#include "chain/chain_file.hpp"

#include <catena/packet/slot.hpp>

#include <array>
#include <limits>

#include "chain/graph.hpp"
#include "chain/keys.hpp"
#include "chain/match_keys.hpp"
#include "plan/planner.hpp"

namespace catena::chain {
namespace {

using std::string_view;
using enum KeyKind;

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxDevices = 32;
constexpr std::int64_t kMaxMatches = 256;
constexpr std::int64_t kMaxSteerRows = 1024;

constexpr std::array<string_view, 1> kVersions{"catena/v1"};
constexpr std::array<string_view, 1> kKinds{"Chain"};
constexpr std::array<string_view, 1> kAuto{"auto"};
constexpr std::array<string_view, 2> kPassOrDrop{"pass", "drop"};
constexpr std::array<string_view, 3> kProcessors{"cpu", "gpu", "auto"};
constexpr std::array<string_view, 2> kIsolations{"none", "process"};
constexpr std::array<string_view, 1> kImix{"imix"};
constexpr std::array<string_view, 2> kTrueOrFalse{"true", "false"};
constexpr std::array<string_view, 5> kRxAlternatives{"pcap: FILE", "dpdk: DEVICE", "dev: INTERFACE", "generator: {...}",
                                                     "replay: {...}"};
constexpr std::array<string_view, 3> kTxAlternatives{"pcap: FILE", "dpdk: DEVICE", "dev: INTERFACE"};

constexpr std::array kMetadata{
    Key{.name = "name", .kind = kName, .help = "name of the chain in the report", .is_required = true},
};

constexpr Key kRate{.name = "rate",
                    .kind = kInteger,
                    .help = "packets per second; 0: as fast as the chain takes them",
                    .fallback = "0",
                    .maximum = 1'000'000'000};
constexpr Key kSeed{
    .name = "seed", .kind = kInteger, .help = "the same seed gives the same packets", .fallback = "1", .maximum = kAny};
constexpr Key kCount{.name = "count",
                     .kind = kInteger,
                     .help = "packets in all; 0: until the run is stopped",
                     .fallback = "0",
                     .maximum = kAny};

constexpr std::array kGenerator{
    Key{.name = "packet",
        .kind = kInteger,
        .help = "frame length in bytes, without FCS; imix: 64, 594 and 1518 bytes as 7 : 4 : 1",
        .fallback = "64",
        .minimum = io::kMinGeneratedBytes,
        .maximum = packet::kMaxFrameBytes,
        .words = kImix},
    Key{.name = "flows",
        .kind = kInteger,
        .help = "flows that take turns",
        .fallback = "1024",
        .minimum = 1,
        .maximum = io::kMaxGeneratedFlows},
    kRate,
    kSeed,
    kCount,
};

constexpr std::array kReplay{
    Key{.name = "packet",
        .kind = kIntegers,
        .help = "frame length in bytes, without FCS; the sizes of a list take turns",
        .fallback = "64",
        .minimum = io::kMinGeneratedBytes,
        .maximum = packet::kMaxFrameBytes,
        .most = io::kMaxReplaySizes},
    Key{.name = "flows",
        .kind = kInteger,
        .help = "flows that take turns; times the number of sizes at most 262144",
        .fallback = "1024",
        .minimum = 1,
        .maximum = io::kMaxReplayTemplates},
    kRate,
    kSeed,
    kCount,
};

constexpr Key kDpdk{
    .name = "dpdk", .kind = kTexts, .help = "a DPDK device string, or several", .minimum = 1, .maximum = kMaxDevices};

constexpr Key kDev{.name = "dev",
                   .kind = kTexts,
                   .help = "an interface of the kernel, or several",
                   .minimum = 1,
                   .maximum = kMaxDevices};

constexpr Key kShared{.name = "shared",
                      .kind = kWord,
                      .help = "with dpdk and dev: whether other chains of the service may have the ports, too",
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

constexpr std::array kRxKeys{
    Key{.name = "pcap", .kind = kFile, .help = "a pcap or pcapng capture of Ethernet frames; -: standard input"},
    Key{.name = "loops",
        .kind = kInteger,
        .help = "with pcap: how often the file is read",
        .fallback = "1",
        .minimum = 1,
        .maximum = kAny},
    kDpdk,
    kDev,
    kShared,
    Key{.name = "match",
        .kind = kSections,
        .help = "of a shared port: the chain takes what meets an entry; without: what no other chain takes",
        .maximum = kMaxMatches,
        .keys = kMatch},
    Key{.name = "generator", .kind = kSection, .help = "artificial traffic", .keys = kGenerator},
    Key{.name = "replay", .kind = kSection, .help = "artificial traffic for benchmarks", .keys = kReplay},
};

constexpr std::array kTxKeys{
    Key{.name = "pcap", .kind = kFile, .help = "the pcap file to write; -: standard output"},
    kDpdk,
    kDev,
    kShared,
};

constexpr Key number(string_view name, string_view help, string_view fallback, std::int64_t minimum,
                     std::int64_t maximum) {
  return {.name = name, .kind = kInteger, .help = help, .fallback = fallback, .minimum = minimum, .maximum = maximum};
}

constexpr std::array kTuning{
    number("pool_slots", "packets that can be inside the chain at once, a power of two", "16384", 2048, 1 << 20),
    Key{.name = "unit_packets",
        .kind = kInteger,
        .help = "packets of a unit at most; auto: a quarter of what a transfer needs for nine tenths of its speed",
        .fallback = "256",
        .minimum = 4,
        .maximum = memory::kMaxUnitPackets,
        .words = kAuto},
    number("units_per_launch", "full units that one launch on the device has room for", "8", 1, 1024),
    number("launches_in_flight", "launches of one NF that are on the device at once", "3", 1, 16),
    number("device_limit_ms", "milliseconds after which a launch that does not end counts as a failed device", "10000",
           10, 600'000),
    number("max_batch_delay_us", "microseconds that a launch which is not full may wait for more packets", "50", 0,
           1'000'000),
};

constexpr std::int64_t kMaxQt = 1000;
constexpr std::array<string_view, 2> kFlowModes{"backpressure", "vanilla"};
constexpr std::int64_t kMaxDownstream = 16;
constexpr std::array kFlowSignals{
    Key{.name = "listen",
        .kind = kText,
        .help = "address and UDP port, as 192.0.2.1:7400, where chains ask that send what arrives here"},
    Key{.name = "downstream",
        .kind = kTexts,
        .help = "addresses and UDP ports of chains that get what tx sends: while one says so, this one waits",
        .minimum = 1,
        .maximum = kMaxDownstream},
    Key{.name = "key",
        .kind = kFile,
        .help = "a file whose first word is a key that all of them have: 32 to 128 hexadecimal digits",
        .is_required = true},
};

constexpr std::int64_t kMaxCommandWords = 64;
constexpr std::array kFlowHook{
    Key{.name = "command",
        .kind = kTexts,
        .help = "a program, whole, and its arguments; $CATENA_STATE is congested or free, $CATENA_CHAIN the name",
        .is_required = true,
        .minimum = 1,
        .maximum = kMaxCommandWords},
    number("period_ms", "milliseconds over which it is looked how long rx was paused", "1000", 10, 600'000),
    Key{.name = "paused",
        .kind = kNumber,
        .help = "part of that time from which on it is congested; free again below half of it",
        .fallback = "0.1",
        .maximum = 1},
};

constexpr std::array kFlow{
    Key{.name = "mode",
        .kind = kWord,
        .help = "backpressure: where too many packets wait for an NF, those in front of it pause, up to rx; vanilla: "
                "what does not fit into a ring is dropped",
        .fallback = "backpressure",
        .words = kFlowModes},
    Key{.name = "qt",
        .kind = kNumber,
        .help = "batches of an NF that may wait for it, for NFs that do not say it themselves",
        .fallback = "2.8",
        .minimum = 1,
        .maximum = kMaxQt},
    number("period_us", "microseconds between two looks at a ring; 0: at each poll of its stage", "5", 0, 1'000'000),
    Key{.name = "signals",
        .kind = kSection,
        .help = "chains of other hosts in front of rx and behind tx that wait for each other",
        .keys = kFlowSignals},
    Key{.name = "hook",
        .kind = kSection,
        .help = "a command that is run when rx has to wait, and when it no longer has",
        .keys = kFlowHook},
};

constexpr std::array kIsolation{
    Key{.name = "container",
        .kind = kText,
        .help = "folder with an unpacked image: the root file system of the NF's process, read-only"},
    number("memory_mb", "megabytes of memory that the NF's process may have for itself; it ends where it needs more",
           "6144", 64, 1 << 20),
    number("cpus", "CPUs that the NF's process runs on; 0: on any", "0", 0, 1024),
    Key{.name = "group",
        .kind = kName,
        .help = "neighbours in the chain of the same group share one process, into which a packet is copied once"},
};

constexpr std::array<std::string_view, 3> kWritesAlternatives{"file: FILE", "folder: FOLDER", "receiver: HOST:PORT"};
constexpr std::array kWrites{
    Key{.name = "file", .kind = kFile, .help = "a file, which is made or emptied"},
    Key{.name = "folder", .kind = kText, .help = "files in this folder that are there for the next run"},
    Key{.name = "receiver", .kind = kText, .help = "datagrams, to this host and UDP port"},
};

constexpr std::array kNf{
    Key{.name = "name", .kind = kName, .help = "differs from all others of the chain", .is_required = true},
    Key{.name = "type",
        .kind = kText,
        .help = "one that `catena show nfs` lists; needless where `plugin` says which NF it is",
        .is_required = true,
        .stands_in = "plugin"},
    Key{.name = "plugin",
        .kind = kFile,
        .help =
            "file of a network function that is built elsewhere (a shared object); it runs in a process of its own"},
    Key{.name = "writes",
        .kind = kSections,
        .help = "for a plugin: what it may have written of what its configuration names; all else it is refused",
        .maximum = 16,
        .keys = kWrites,
        .alternatives = kWritesAlternatives},
    Key{.name = "on",
        .kind = kWord,
        .help = "which implementation decides the packets; auto: the one by which the chain is faster, by what `catena "
                "profile --nf` measured",
        .fallback = "cpu",
        .words = kProcessors},
    Key{.name = "on_unsupported",
        .kind = kWord,
        .help = "what becomes of packets that the NF cannot inspect; default: that of spec, else that of the type",
        .words = kPassOrDrop},
    Key{.name = "link_local",
        .kind = kWord,
        .help =
            "what becomes of ARP, LLDP, spanning tree and other frames that concern one link; default: that of spec",
        .words = kPassOrDrop},
    Key{.name = "isolation",
        .kind = kSection,
        .help =
            "none: in the chain's own process; process: in a sandboxed one that has its packets and nothing else; "
            "a section: in such a one, with another root file system or bounds, or shared with neighbours; default: "
            "process for a plugin and in a service, else none",
        .words = kIsolations,
        .keys = kIsolation},
    number(
        "latency_limit_us",
        "microseconds that a launch of the NF may take on the gpu, for `on: auto` and where NFs share it by `--share`",
        "1000", 1, 1'000'000),
    number("batch_size",
           "packets of a launch of the NF on the gpu, at most those that `tuning` gives one; elsewhere, as there, "
           "what `qt` counts in; 0: a full launch, or 256",
           "0", 0, kMaxLaunchPackets),
    Key{.name = "qt",
        .kind = kNumber,
        .help = "with `flow`: batches that may wait for the NF; default: that of flow",
        .minimum = 1,
        .maximum = kMaxQt},
    Key{.name = "config", .kind = kOfNf, .help = "the NF's own keys", .fallback = "{}"},
};

constexpr std::array<string_view, 2> kVerdicts{"pass", "alert"};
constexpr std::int64_t kMaxPort = 65'535;
constexpr std::array kSteerMatch{
    kVlan,
    kSrc,
    kDst,
    kProtocol,
    kSport,
    kDport,
    Key{.name = "rx_port",
        .kind = kInteger,
        .help = "number of the port of rx that the packet came in on",
        .maximum = kMaxPort},
    Key{.name = "tx_port",
        .kind = kInteger,
        .help = "number of the port of tx that it is to leave through, as NFs said so far",
        .maximum = kMaxPort},
    Key{.name = "verdict",
        .kind = kWord,
        .help = "alert: an NF that it met so far raised an alert; pass: none did",
        .words = kVerdicts},
};

constexpr std::array kMirror{
    Key{.name = "mirror",
        .kind = kText,
        .help = "name of the NF that gets a copy of the packet, or tx; the packet goes on by a later row",
        .is_required = true},
};

constexpr std::array kSteerRow{
    Key{.name = "from",
        .kind = kTexts,
        .help = "name of the NF that packets leave, or rx, or a list of such",
        .is_required = true,
        .minimum = 1,
        .maximum = plan::kMaxNfs + 1},
    Key{.name = "output",
        .kind = kName,
        .help = "output of the NF by which they leave it: pass, alert, or one of its own (`catena show nfs`)"},
    Key{.name = "match", .kind = kSection, .help = "packets that meet all of this; without: all", .keys = kSteerMatch},
    Key{.name = "to",
        .kind = kSection,
        .help = "name of the NF where they go, or tx, or drop; {mirror: NAME}: a copy of each goes there",
        .is_required = true,
        .takes_text = true,
        .keys = kMirror},
};

constexpr std::array kSpec{
    Key{.name = "rx",
        .kind = kSection,
        .help = "where packets come from",
        .is_required = true,
        .keys = kRxKeys,
        .alternatives = kRxAlternatives},
    Key{.name = "tx",
        .kind = kSection,
        .help = "where packets go; null: nowhere, they are counted",
        .is_required = true,
        .is_nullable = true,
        .keys = kTxKeys,
        .alternatives = kTxAlternatives},
    Key{.name = "device",
        .kind = kDevices,
        .help = "the device for NFs placed on: gpu or auto; one of several by its number: cuda:1; of a list each has "
                "some shards",
        .fallback = "auto",
        .minimum = 1,
        .maximum = kMaxShards},
    Key{.name = "on_unsupported",
        .kind = kWord,
        .help = "for NFs that do not say it themselves; default: drop for firewall and ipsec, pass for the others",
        .words = kPassOrDrop},
    Key{.name = "link_local",
        .kind = kWord,
        .help = "for NFs that do not say it themselves",
        .fallback = "pass",
        .words = kPassOrDrop},
    Key{.name = "tenant",
        .kind = kName,
        .help = "whose chain it is in a service that runs those of many; default: a tenant with the chain's name"},
    Key{.name = "shards",
        .kind = kInteger,
        .help =
            "parts that the chain runs in, side by side, each with the packets of some flows; default: auto where rx "
            "is a port, else 1",
        .minimum = 1,
        .maximum = kMaxShards,
        .words = kAuto},
    Key{.name = "tuning",
        .kind = kSection,
        .help = "numbers that change speed, and nothing else",
        .fallback = "{}",
        .keys = kTuning},
    Key{.name = "nfs",
        .kind = kSections,
        .help = "the NFs in order",
        .is_required = true,
        .maximum = plan::kMaxNfs,
        .keys = kNf},
    Key{.name = "graph",
        .kind = kSections,
        .help = "where packets go from rx and from each NF, by the first row that they meet; without: through the NFs "
                "in order",
        .maximum = kMaxSteerRows,
        .keys = kSteerRow},
    Key{.name = "flow",
        .kind = kSection,
        .help = "bounds for the packets that wait in the chain; without: as many as packet memory holds",
        .keys = kFlow},
    Key{.name = "unmatched",
        .kind = kText,
        .help = "where packets go that meet no row of `graph`: the name of an NF, tx, or drop"},
};

constexpr std::array kRoot{
    Key{.name = "apiVersion", .kind = kWord, .help = "version of this format", .is_required = true, .words = kVersions},
    Key{.name = "kind", .kind = kWord, .help = "what the file describes", .is_required = true, .words = kKinds},
    Key{.name = "metadata",
        .kind = kSection,
        .help = "what the chain is called",
        .is_required = true,
        .keys = kMetadata},
    Key{.name = "spec", .kind = kSection, .help = "the chain", .is_required = true, .keys = kSpec},
};

}  // namespace

std::span<const Key> chain_keys() { return kRoot; }

}  // namespace catena::chain
