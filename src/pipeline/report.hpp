// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "io/source.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace catena::runtime {

/// Progress of a run, for the live line.
struct RunProgress {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;
  double part_done = -1;  ///< as io::Source::part_done()
};

/// Packets that an NF passed or dropped without inspection; see nf::UninspectedKind.
struct UninspectedReport {
  std::string reason;
  std::string ether_type;
  std::string verdict;
  std::uint64_t packets = 0;
};

/// The process of an NF in a shard.
struct NfProcessReport {
  std::uint32_t shard = 0;
  std::int32_t pid = 0;
};

struct NfReport {
  std::string name;
  std::string type;
  std::string placement;  ///< "cpu", "gpu", "gpu -> cpu" after a device failed, "process" in a separate one
  std::uint64_t in = 0;
  std::uint64_t passed = 0;
  std::uint64_t alerts = 0;
  std::uint64_t replies = 0;  ///< packets turned into answers by it; in == passed + replies + drops
  std::uint64_t unsupported = 0;
  std::uint64_t link_local = 0;
  std::vector<UninspectedReport> uninspected;  ///< that occurred
  std::uint64_t kernel_faults = 0;
  std::uint64_t launches = 0;                   ///< on a device
  std::uint64_t queue_drops = 0;                ///< packets that did not fit into its ring; not in `in`
  std::uint64_t slow_downs = 0;                 ///< signals to upstream NFs because too many packets wait
  std::uint64_t fasten_ups = 0;                 ///< the same when they no longer do
  std::uint64_t pauses = 0;                     ///< of the NF itself
  std::uint64_t peak_queue = 0;                 ///< peak number of packets in its ring
  std::vector<NfProcessReport> processes = {};  ///< running ones of an NF in separate processes
  std::uint64_t process_restarts = 0;           ///< of an NF in a separate process
  std::uint64_t process_refusals = 0;           ///< forbidden write requests
  std::vector<io::NamedCount> drops;            ///< that occurred
  std::vector<std::string> drop_help;           ///< the meaning of each of `drops`; empty if unknown
  double busy_seconds = 0;                      ///< as in its StageReport
  double bytes_to_device_per_packet = 0;
  double bytes_to_host_per_packet = 0;
  std::string device_error;
  std::vector<io::NamedCount> statistics;     ///< the NF's own
  std::vector<std::string> lines;             ///< the NF's final report
  std::vector<io::NamedCount> refused_rules;  ///< rules of its files that were not applied, by reason
};

/// Counts of packets at a branch.
struct ClassifierReport {
  std::string from;                      ///< an NF, or rx
  std::vector<io::NamedCount> to;        ///< packets sent to NFs and tx
  std::vector<io::NamedCount> mirrored;  ///< copies sent to them
  std::vector<io::NamedCount> drops;     ///< that occurred
};

/// Busy time of a stage: of its polls with work, on any worker. Time of a device is not included.
struct StageReport {
  std::string name;
  double busy_seconds = 0;
};

/// Work of one of several shards.
struct ShardReport {
  std::uint64_t packets = 0;  ///< given to its first NF
  double busy_seconds = 0;    ///< of the stages of its NFs, in total
};

/// An NF's partition of a shared device.
struct PartReport {
  std::string nf;
  std::uint32_t units = 0;           ///< as GpuSharing::Allocation
  std::uint32_t launch_packets = 0;  ///< at most
  std::string text;                  ///< for people
  bool is_taken = true;              ///< the NF uses it by now
};

/// A run so far, or its end. At its end, in and copies == sent + every drop.
struct Report {
  std::string error;  ///< why the run ended; empty: without an error
  std::string chain;
  std::string device;                 ///< the device used, or "none"
  std::string device_note;            ///< why no device is used, or not the first choice of `device: auto`
  std::uint64_t device_losses = 0;    ///< of a device that can return
  std::uint64_t device_returns = 0;   ///< to use, after a loss
  bool cpu_instead_of_gpu = false;    ///< NFs placed on the gpu ran on the CPU for lack of a device
  std::string sync;                   ///< how packets were kept in step with the device; empty without a device
  std::string costs_from;             ///< the cost profile of the plan
  std::string sharing;                ///< how NFs share the device; empty: each takes all of it
  std::uint64_t sharing_changes = 0;  ///< how often parts were reassigned
  std::vector<PartReport> parts;      ///< the current ones
  std::string rx;
  std::string tx;
  std::uint32_t workers = 1;
  std::uint64_t seen = 0;
  std::uint64_t received = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t sent = 0;
  std::uint64_t backlog_full = 0;  ///< polls of rx without a free slot
  std::uint64_t slots_in_use = 0;  ///< slots not returned to the pool; a live port keeps some in its queues
  std::vector<io::NamedCount> rx_drops;
  std::vector<io::NamedCount> tx_drops;
  std::uint64_t tx_fragments = 0;  ///< frames of fragmented packets
  std::vector<NfReport> nfs;
  std::vector<ClassifierReport> classifiers;  ///< of a graph
  std::vector<StageReport> stages;            ///< rx, each NF, tx
  std::vector<ShardReport> shards;            ///< empty if only one
  bool has_flow = false;                      ///< the chain file has the key `flow`
  double seconds = 0;
  std::uint64_t offered_per_second = 0;  ///< packet rate wanted from rx; 0: as many as the chain takes
  Histogram latency;                     ///< time from rx to tx, ns

  std::uint64_t dropped() const;
  /// Received, on average over the run; 0 before it.
  double packets_per_second() const;
  double bits_per_second() const;
  /// Copies of packets made by a graph.
  std::uint64_t mirrored() const;
  /// seen + mirrored() == sent + dropped().
  bool accounted() const;
};

std::uint64_t total(std::vector<io::NamedCount> const& counts);

/// Reports from the counts alone: of the whole chain, except its NFs; of the NF `name`; and of the branch after an NF
/// or rx.
Report report_of(metrics::Snapshot const& counts);
NfReport report_of(std::string_view name, metrics::Snapshot const& counts);
ClassifierReport report_of_classifier(std::string_view from, metrics::Snapshot const& counts);

/// `text` on separate lines, each after `columns` spaces; starts with a line feed. Empty for no text.
std::string indented(std::string_view text, std::size_t columns);

/// For people, and one JSON object for programs.
std::string to_text(Report const& report);
/// Busy time of each stage, a line each, to find the slowest.
std::string stages_text(Report const& report);
std::string to_json(Report const& report);

}  // namespace catena::runtime
