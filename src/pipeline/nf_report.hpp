// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "io/source.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::runtime {

/// Packets that an NF passed or dropped without inspection; see nf::UninspectedKind.
struct UninspectedReport {
  std::string reason;
  std::string ether_type;
  std::string verdict;
  std::uint64_t packets = 0;
};

/// The packets of an NF, and its verdicts. in == passed + replies + drops.
struct NfPacketReport {
  std::uint64_t in = 0;
  std::uint64_t passed = 0;
  std::uint64_t alerts = 0;
  std::uint64_t replies = 0;  ///< packets turned into answers by it
  std::uint64_t unsupported = 0;
  std::uint64_t link_local = 0;
  std::vector<UninspectedReport> uninspected;  ///< that occurred
  std::vector<io::NamedCount> drops;           ///< likewise
  std::vector<std::string> drop_help;          ///< the meaning of each of `drops`; empty if unknown
};

/// The ring before an NF, and the flow control by it.
struct NfQueueReport {
  std::uint64_t drops = 0;       ///< packets that did not fit into it; not in NfPacketReport::in
  std::uint64_t slow_downs = 0;  ///< signals to upstream NFs because too many packets wait
  std::uint64_t fasten_ups = 0;  ///< the same when they no longer do
  std::uint64_t pauses = 0;      ///< of the NF itself
  std::uint64_t peak = 0;        ///< peak number of packets in it
};

/// The work of an NF on a device.
struct NfDeviceReport {
  std::uint64_t launches = 0;
  std::uint64_t kernel_faults = 0;
  double bytes_to_device_per_packet = 0;
  double bytes_to_host_per_packet = 0;
  std::string error;  ///< why the NF no longer uses it; empty: without an error
};

/// The process of an NF in a shard.
struct NfProcessReport {
  std::uint32_t shard = 0;
  std::int32_t pid = 0;
};

/// An NF in separate processes.
struct NfIsolationReport {
  std::vector<NfProcessReport> processes;  ///< running ones
  std::uint64_t restarts = 0;
  std::uint64_t refusals = 0;  ///< forbidden write requests
};

struct NfReport {
  std::string name;
  std::string type;
  std::string placement;    ///< "cpu", "gpu", "gpu -> cpu" after a device failed, "process" in a separate one
  double busy_seconds = 0;  ///< as in its StageReport
  NfPacketReport packets;
  NfQueueReport queue;
  NfDeviceReport device;
  NfIsolationReport isolation;
  std::vector<io::NamedCount> statistics;     ///< the NF's own
  std::vector<std::string> lines;             ///< the NF's final report
  std::vector<io::NamedCount> refused_rules;  ///< rules of its files that were not applied, by reason
};

std::uint64_t total(std::vector<io::NamedCount> const& counts);
std::vector<io::NamedCount> named_counts(std::vector<std::pair<std::string, std::uint64_t>> const& counts);
/// Without those of zero.
std::vector<io::NamedCount> nonzero(std::vector<io::NamedCount> counts);

/// The report of the NF `name` from the counts alone.
NfReport report_of(std::string_view name, metrics::Snapshot const& counts);

}  // namespace catena::runtime
