// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/output_file.hpp"
#include "io/shared_port_registry.hpp"
#include "io/source.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena::io {

/// Packet counts of a sink, read at one moment: sent + all drops == the live packets passed to send().
struct SinkCounts {
  std::uint64_t sent = 0;
  std::vector<NamedCount> drops;  ///< packets not sent, by reason
  std::uint64_t fragments = 0;    ///< frames made by fragmentation; each fragmented packet counts once above
};

/// Destination of packets. Called by one thread at a time, unless noted otherwise.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Sends the packets of `unit` without verdict drop, in order, as fragments if they exceed their MTU
  /// (packet/fragments.hpp). Releases all its slots (to the pool, or to the driver as their new owner), also on
  /// failure. Counts unsent packets. An error ends the run.
  virtual Status send(memory::PacketPool& pool, memory::Unit& unit) = 0;
  /// Called after the last send(). Flushes buffers and gives a port a moment to send its frames; frames then still
  /// unsent by a shared port are drops. DataLoss, with the file, if that fails.
  virtual Status finish() = 0;
  /// Any thread. While packets are sent, the counts are only of about the same moment.
  virtual SinkCounts counts() const = 0;
  /// A later call may count more packets: use counts() for consistent values.
  std::uint64_t sent() const { return counts().sent; }
  std::vector<NamedCount> drops() const { return counts().drops; }
  std::uint64_t fragments() const { return counts().fragments; }
  virtual std::string describe() const = 0;
};

/// All sinks: drop "df_set" (longer than its MTU, and must not be fragmented).
///
/// Writes a pcap file. Its nanosecond stamps are the arrival times of packets (Packet::arrival_ns()), so the same
/// capture or generated traffic gives the same file at any speed. PermissionDenied or NotFound if it cannot be created,
/// or another code for another reason of the system; send() and finish() return DataLoss, with the file, if it cannot
/// be written.
Result<std::unique_ptr<Sink>> open_pcap_sink(std::string const& path);
/// Likewise for an open, started file.
std::unique_ptr<Sink> make_pcap_sink(OutputFile file);
/// Counts and discards packets.
std::unique_ptr<Sink> make_null_sink();

/// A DPDK port as source and sink. `device`: an EAL device string ("net_tap0,iface=tap0", "net_memif0,role=server",
/// "net_af_packet0,iface=veth0", "0000:03:00.0"). Started with one rx and one tx queue, promiscuous. The port is closed
/// when both source and sink are destroyed. `pool` must outlive them, and the sink sends packets of this pool only.
/// Source drops: "too_long" (above kMaxFrameBytes), "backlog_full" (the driver's queue was full), "no_slot" (the driver
/// found no slot), "rx_error". Sink drops: "tx_full" (the port took nothing for a second, or since), "too_short",
/// "too_long" (for the interface's MTU), "tx_error" (taken, but not sent), "no_slot" (no free slot for the fragments of
/// a packet). Errors:
///   NotFound            no driver takes the string, or the device has no port
///   FailedPrecondition  a PCI device needs other EAL start options
///   AlreadyExists       the device is open
///   InvalidArgument     the pool is too small for the driver's needs
///   Unavailable         the driver refuses to be configured or started
struct DpdkPort {
  std::unique_ptr<Source> source;
  std::unique_ptr<Sink> sink;
};
Result<DpdkPort> open_dpdk_port(std::string const& device, memory::PacketPool& pool);

/// Several ports for source and sink, numbered from 0 in the given order; a device in both lists is opened once. The
/// source takes packets from all ports in turn and sets a packet's meta.port to the number of the next port (with two
/// ports, the other one). The packet leaves there unless an NF sets another port. The sink sends a packet out of port
/// meta.port; without such a port it is a drop "no_such_port"; a single port sends every packet. A reply leaves through
/// its ingress port, even if it is not in `tx`, and through port 0 if rx is no port. Source or sink is null if its list
/// is empty.
Result<DpdkPort> open_dpdk_ports(std::vector<std::string> const& rx, std::vector<std::string> const& tx,
                                 memory::PacketPool& pool);

/// Shared ports for a chain without SharedPortRegistry passed to it.
std::shared_ptr<SharedPortRegistry> make_shared_port_registry();

/// The shared ports of a chain.
struct SharedEnds {
  std::shared_ptr<SharedPortRegistry> switches;  ///< null: no port is shared
  bool rx = false;
  bool tx = false;
  std::string chain;                  ///< the chain's name
  std::vector<TrafficMatch> matches;  ///< with `rx`: the traffic for the chain
};

/// Whether the ports themselves can divide arriving traffic into `parts` parts. They need as many queues in each
/// direction, and receive-side scaling with a symmetric key: all packets of a flow, in both directions, arrive in one
/// queue; fragments and ICMP errors are assigned by their addresses alone. False for kernel interfaces. Errors: as
/// opening them if a device does not exist.
Result<bool> can_divide(std::vector<std::string> const& rx, std::vector<std::string> const& tx, std::uint32_t parts);
/// The same ports with a queue in each direction for each of `pools`, and as many sources and sinks. Number i receives
/// from the queues with number i into slots of pool i, and sends packets of that pool. Each may have threads of its
/// own; one clock stamps all packets. The ports in `shared` are attached (see SharedPortRegistry::attach(), also for
/// the errors), with one pool. Drivers' counters for a whole port are in the first one. Without can_divide(), the
/// driver decides the distribution of arriving packets. InvalidArgument for a kernel interface with several pools.
Result<std::vector<DpdkPort>> open_dpdk_ports(std::vector<std::string> const& rx, std::vector<std::string> const& tx,
                                              std::span<memory::PacketPool* const> pools,
                                              SharedEnds const& shared = {});

}  // namespace catena::io
