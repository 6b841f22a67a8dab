// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "io/source.hpp"
#include "pipeline/nf_report.hpp"

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

/// The device of a chain, and its plan of transfers.
struct DeviceReport {
  std::string name;                 ///< of several, all names; "none": no device is used
  std::string note;                 ///< why no device is used, or not the first choice of `device: auto`
  std::uint64_t losses = 0;         ///< of a device that can return
  std::uint64_t returns = 0;        ///< to use, after a loss
  bool cpu_instead_of_gpu = false;  ///< NFs placed on the gpu ran on the CPU for lack of a device
  std::string sync;                 ///< how packets were kept in step with the device; empty without a device
  std::string costs_from;           ///< the cost profile of the plan
};

/// How NFs share the device.
struct SharingReport {
  std::string mode;               ///< empty: each takes all of it
  std::uint64_t changes = 0;      ///< how often parts were reassigned
  std::vector<PartReport> parts;  ///< the current ones
};

struct RxReport {
  std::string port;
  std::uint64_t seen = 0;
  std::uint64_t received = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t backlog_full = 0;  ///< polls of rx without a free slot
  std::uint64_t slots_in_use = 0;  ///< slots not returned to the pool; a live port keeps some in its queues
  std::vector<io::NamedCount> drops;
  std::uint64_t offered_per_second = 0;  ///< packet rate wanted from rx; 0: as many as the chain takes
};

struct TxReport {
  std::string port;
  std::uint64_t sent = 0;
  std::uint64_t fragments = 0;  ///< frames of fragmented packets
  std::vector<io::NamedCount> drops;
  Histogram latency;  ///< time from rx to tx, ns
};

/// How the work of a chain was divided.
struct WorkReport {
  std::uint32_t workers = 1;
  std::vector<StageReport> stages;  ///< rx, each NF, tx
  std::vector<ShardReport> shards;  ///< empty if only one
};

/// A run so far, or its end. At its end, in and copies == sent + every drop.
struct Report {
  std::string error;  ///< why the run ended; empty: without an error
  std::string chain;
  bool has_flow = false;  ///< the chain file has the key `flow`
  double seconds = 0;
  DeviceReport device;
  SharingReport sharing;
  RxReport rx;
  TxReport tx;
  std::vector<NfReport> nfs;
  std::vector<ClassifierReport> classifiers;  ///< of a graph
  WorkReport work;

  std::uint64_t dropped() const;
  /// Received, on average over the run; 0 before it.
  double packets_per_second() const;
  double bits_per_second() const;
  /// Copies of packets made by a graph.
  std::uint64_t mirrored() const;
  /// rx.seen + mirrored() == tx.sent + dropped().
  bool accounted() const;
};

/// Reports from the counts alone: of the whole chain, except its NFs; and of the branch after an NF or rx.
Report report_of(metrics::Snapshot const& counts);
ClassifierReport report_of_classifier(std::string_view from, metrics::Snapshot const& counts);

/// `text` on separate lines, each after `columns` spaces; starts with a line feed. Empty for no text.
std::string indented(std::string_view text, std::size_t columns);

/// For people, and one JSON object for programs.
std::string to_text(Report const& report);
/// Busy time of each stage, a line each, to find the slowest.
std::string stages_text(Report const& report);
std::string to_json(Report const& report);

}  // namespace catena::runtime
