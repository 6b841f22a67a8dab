// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/output_file.hpp"
#include "io/port_switches.hpp"
#include "io/source.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena::io {

/// What became of packets, read at one moment: sent + every drop == the live packets that send() was given.
struct SinkCounts {
  std::uint64_t sent = 0;
  std::vector<NamedCount> drops;  ///< packets that could not be sent, by reason
  std::uint64_t fragments = 0;    ///< frames that packets were cut into; each such packet counts once above
};

/// Where packets go. Called by one thread at a time, but for what says otherwise.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Sends the packets of `unit` whose verdict is not drop, in order, those with an MTU as fragments where they are
  /// longer (packet/fragments.hpp), and releases all its slots (to the pool, or to the driver that now owns them), also
  /// where it fails. Counts what could not be sent. An error ends the run.
  virtual Status send(memory::PacketPool& pool, memory::Unit& unit) = 0;
  /// After the last send(): writes out what is buffered, and gives a port a moment to send what it has; what a shared
  /// port has then not sent is a drop. DataLoss, with the file, if that fails.
  virtual Status finish() = 0;
  /// By any thread. While packets are sent the counts are of about the same moment.
  virtual SinkCounts counts() const = 0;
  /// Of two calls the second may know of more: take counts() where they must agree.
  std::uint64_t sent() const { return counts().sent; }
  std::vector<NamedCount> drops() const { return counts().drops; }
  std::uint64_t fragments() const { return counts().fragments; }
  virtual std::string describe() const = 0;
};

/// All sinks: drop "df_set" (longer than its MTU, and must not be cut).
///
/// Writes a pcap file (nanosecond stamps: when the packet arrived, see Packet::arrival_ns(); so the same capture or
/// generated traffic gives the same file at any speed). PermissionDenied or NotFound if it cannot be created, another
/// code where the system gives another reason; send() and finish() return DataLoss, with the file, if it cannot be
/// written.
Result<std::unique_ptr<Sink>> open_pcap_sink(std::string const& path);
/// The same into a file that was opened and started.
std::unique_ptr<Sink> make_pcap_sink(OutputFile file);
/// Counts and forgets.
std::unique_ptr<Sink> make_null_sink();

/// A DPDK port as both ends. `device`: an EAL device string ("net_tap0,iface=tap0", "net_memif0,role=server",
/// "net_af_packet0,iface=veth0", "0000:03:00.0"). Started with one queue each way, promiscuous; the port is closed with
/// the second of its ends. `pool` must outlive them, and the packets that the sink sends must be of that pool.
/// Source drops: "too_long" (above kMaxFrameBytes), "backlog_full" (the driver's queue was full), "no_slot" (the driver
/// found no slot), "rx_error". Sink drops: "tx_full" (the port took nothing for a second, or since), "too_short",
/// "too_long" (for the interface's MTU), "tx_error" (taken, but not sent), "no_slot" (no free slot for the fragments of
/// a packet). Errors:
///   NotFound            no driver takes the string, or the device has no port
///   FailedPrecondition  a PCI device needs what the EAL was not started with
///   AlreadyExists       the device is open
///   InvalidArgument     the pool is too small for what the driver keeps
///   Unavailable         the driver refuses to be configured or started
struct DpdkPort {
  std::unique_ptr<Source> source;
  std::unique_ptr<Sink> sink;
};
Result<DpdkPort> open_dpdk_port(std::string const& device, memory::PacketPool& pool);

/// Several ports at each end, numbered from 0 in the order given; a device that both name is opened once. The source
/// takes packets from all in turn, and a packet's meta.port becomes the next port's number (two ports: the other one),
/// which is where it leaves unless an NF says otherwise. The sink sends a packet out of port meta.port; one without
/// such a port is a drop "no_such_port"; with a single port every packet leaves there. A reply leaves through the port
/// that it came in on, whether `tx` names it or not, and through port 0 where rx is no port. An end without devices is
/// null.
Result<DpdkPort> open_dpdk_ports(std::vector<std::string> const& rx, std::vector<std::string> const& tx,
                                 memory::PacketPool& pool);

/// Shared ports, for those that open their own.
std::shared_ptr<PortSwitches> make_port_switches();

/// Which ends of a chain are ports that others have, too.
struct SharedEnds {
  std::shared_ptr<PortSwitches> switches;  ///< null: neither is
  bool rx = false;
  bool tx = false;
  std::string chain;                  ///< whose they are
  std::vector<TrafficMatch> matches;  ///< with `rx`: what the chain takes of what arrives
};

/// Whether the ports can divide what arrives into so many parts by themselves: they have as many queues each way, and
/// all packets of a flow, of both its directions, arrive in one of them, fragments and ICMP errors by their addresses
/// alone (receive-side scaling with a symmetric key). False for interfaces of the kernel. Errors: as opening them where
/// a device is not there.
Result<bool> can_divide(std::vector<std::string> const& rx, std::vector<std::string> const& tx, std::uint32_t parts);
/// The same ports with a queue each way for each of `pools`, and so as many ends: number i takes what arrives in the
/// queues with number i, into slots of pool i, and sends packets of that pool. Each is used by threads of its own; one
/// clock stamps all. What `shared` says is attached (see PortSwitches::attach(), also for the errors), with one pool.
/// What drivers count for a whole port stands with the first. Where not can_divide(), what arrives is spread as the
/// driver likes. InvalidArgument for an interface of the kernel with several pools.
Result<std::vector<DpdkPort>> open_dpdk_ports(std::vector<std::string> const& rx, std::vector<std::string> const& tx,
                                              std::span<memory::PacketPool* const> pools,
                                              SharedEnds const& shared = {});

}  // namespace catena::io
