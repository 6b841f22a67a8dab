// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/io/source.hpp"

namespace catena::dataplane {

/// Where packets go. Called by one thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Sends the packets of `unit` whose verdict is not drop, in order, and releases all its slots (to the pool, or to
  /// the driver that now owns them). Counts what could not be sent. An error ends the run.
  virtual Status send(PacketPool& pool, Unit& unit) = 0;
  /// Writes out what is buffered. DataLoss, with the file, if that fails.
  virtual Status finish() = 0;
  virtual std::uint64_t sent() const = 0;
  virtual std::vector<NamedCount> drops() const = 0;
  virtual std::string describe() const = 0;
};

/// Writes a pcap file (nanosecond stamps; the arrival order number in ns since 1970, so that the same packets give
/// the same file at any speed). PermissionDenied or NotFound if it cannot be created.
Result<std::unique_ptr<Sink>> open_pcap_sink(std::string const& path);
/// Counts and forgets.
std::unique_ptr<Sink> make_null_sink();

/// A DPDK port as both ends. `device`: an EAL device string ("net_tap0,iface=tap0", "net_memif0,role=server",
/// "net_af_packet0,iface=veth0", "0000:03:00.0"). Started with one queue each way, promiscuous.
/// NotFound if no driver takes the string; FailedPrecondition if a PCI device needs what the EAL was not started with.
struct DpdkPort {
  std::unique_ptr<Source> source;
  std::unique_ptr<Sink> sink;
};
Result<DpdkPort> open_dpdk_port(std::string const& device, PacketPool& pool);

}  // namespace catena::dataplane
