// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/metrics.hpp"
#include "io/source.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace catena::runtime {

/// A moment of a run, for the live line.
struct RunProgress {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;
  double part_done = -1;  ///< as io::Source::part_done()
};

struct NfReport {
  std::string name;
  std::string type;
  std::string placement;  ///< "cpu", "gpu", "gpu -> cpu" after a device failed, "process" in one of its own
  std::uint64_t in = 0;
  std::uint64_t passed = 0;
  std::uint64_t alerts = 0;
  std::uint64_t replies = 0;  ///< packets that it turned into answers; in == passed + replies + drops
  std::uint64_t unsupported = 0;
  std::uint64_t link_local = 0;
  std::uint64_t kernel_faults = 0;
  std::uint64_t launches = 0;          ///< on a device
  std::uint64_t queue_drops = 0;       ///< packets that did not fit into its ring; not in `in`
  std::uint64_t slow_downs = 0;        ///< signals to who is in front of it that too many packets wait for it
  std::uint64_t fasten_ups = 0;        ///< that they no longer do
  std::uint64_t pauses = 0;            ///< times that it paused itself
  std::uint64_t most_waiting = 0;      ///< packets that were seen in its ring
  std::uint64_t process_restarts = 0;  ///< of an NF in a process of its own
  std::uint64_t process_refusals = 0;  ///< writes that it asked for and may not do
  std::vector<io::NamedCount> drops;   ///< those that happened
  double busy_seconds = 0;             ///< as that of its StageReport
  double bytes_to_device_per_packet = 0;
  double bytes_to_host_per_packet = 0;
  std::string device_error;
  std::vector<io::NamedCount> statistics;     ///< the NF's own
  std::vector<std::string> lines;             ///< what the NF says at the end
  std::vector<io::NamedCount> refused_rules;  ///< rules of its files that were not applied, by reason
};

/// What became of packets where they go several ways.
struct SteeringReport {
  std::string from;                      ///< an NF, or rx
  std::vector<io::NamedCount> to;        ///< packets that went to NFs and tx
  std::vector<io::NamedCount> mirrored;  ///< copies that did
  std::vector<io::NamedCount> drops;     ///< those that happened
};

/// How long a stage worked: the time of its polls that had something to do, on whichever worker. What a device does
/// meanwhile is not in it.
struct StageReport {
  std::string name;
  double busy_seconds = 0;
};

/// What one of several shards did.
struct ShardReport {
  std::uint64_t packets = 0;  ///< that its first NF was given
  double busy_seconds = 0;    ///< of the stages of its NFs, together
};

/// The part of a device that an NF has, where NFs share it.
struct PartReport {
  std::string nf;
  std::uint32_t units = 0;           ///< as GpuSharing::Allocation
  std::uint32_t launch_packets = 0;  ///< at most
  std::string text;                  ///< for people
  bool is_taken = true;              ///< the NF keeps to it by now
};

/// A run so far, or its end: then in and copies == sent + every drop.
struct Report {
  std::string error;  ///< why the run ended; empty: it did what it should
  std::string chain;
  std::string device;                 ///< the device that did the work, or "none"
  std::string device_note;            ///< why there is none, or not the first choice of `device: auto`
  std::uint64_t device_losses = 0;    ///< of one that can come back
  std::uint64_t device_returns = 0;   ///< after which it was in use again
  bool cpu_instead_of_gpu = false;    ///< NFs placed on the gpu ran on the CPU because there is no device
  std::string sync;                   ///< how packets were kept in step with the device; empty where there is none
  std::string costs_from;             ///< the cost profile that the plan was made by
  std::string sharing;                ///< how NFs share the device; empty: each takes all of it
  std::uint64_t sharing_changes = 0;  ///< how often parts were handed out anew
  std::vector<PartReport> parts;      ///< as they are now
  std::string rx;
  std::string tx;
  std::uint32_t workers = 1;
  std::uint64_t seen = 0;
  std::uint64_t received = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t sent = 0;
  std::uint64_t backlog_full = 0;  ///< polls in which rx had to wait for a slot
  std::uint64_t slots_in_use = 0;  ///< slots that did not come back to the pool; a live port keeps some in its queues
  std::vector<io::NamedCount> rx_drops;
  std::vector<io::NamedCount> tx_drops;
  std::uint64_t tx_fragments = 0;  ///< frames that packets were cut into
  std::vector<NfReport> nfs;
  std::vector<SteeringReport> steerings;  ///< of a graph
  std::vector<StageReport> stages;        ///< rx, each NF, tx
  std::vector<ShardReport> shards;        ///< empty where there is one
  double seconds = 0;
  std::uint64_t offered_per_second = 0;  ///< packets that rx was told to bring; 0: as many as the chain takes
  Histogram latency;                     ///< times from rx to tx, ns

  std::uint64_t dropped() const;
  /// Copies of packets that a graph made.
  std::uint64_t mirrored() const;
  /// seen + mirrored() == sent + dropped().
  bool accounted() const;
};

/// What a report takes from the counts alone: of the whole chain, but for its NFs; of the NF `name`; and of what leaves
/// an NF, or rx, by several ways.
Report report_of(metrics::Snapshot const& counts);
NfReport report_of(std::string_view name, metrics::Snapshot const& counts);
SteeringReport steering_of(std::string_view from, metrics::Snapshot const& counts);

/// `text` on lines of its own, `columns` spaces in front of each; begins with a line feed. Empty for no text.
std::string indented(std::string_view text, std::size_t columns);

/// For people, and one JSON object for programs.
std::string to_text(Report const& report);
/// How long each stage was busy, a line each, for people who look for the slowest.
std::string stages_text(Report const& report);
std::string to_json(Report const& report);

}  // namespace catena::runtime
