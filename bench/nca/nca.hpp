// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/chart.hpp"
#include "bench/common/spread.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// `catena-bench nca`: the measurement of draft-perumal-nfvrg-nfv-compute-acceleration-00 with libnca, on this machine.
namespace catena::bench {

struct NcaOptions {
  std::string device = "auto";     ///< as nca_open() takes it
  std::vector<std::string> parts;  ///< of draft, streams, queues, kernel; empty: all
  double seconds = 1;              ///< of each run; a quarter is warm-up
  std::uint32_t repeats = 5;
  std::uint32_t streams = 0;      ///< 0: 4 with CUDA, else 1
  std::uint32_t threads = 0;      ///< that add packets, a stream; 0: 2 with CUDA, else 1
  std::uint32_t queues = 3;       ///< of a stream, which has two buffers more
  std::uint32_t packets = 16384;  ///< of a buffer
  std::string output;             ///< folder for results.json, README.md and the figures; made where it is not there
  std::string data;               ///< folder with strings.txt; empty: Catena's own
  bool quick = false;             ///< one short repeat of few and small buffers: for tests
  std::string command;            ///< for the record
};

struct NcaRepeat {
  double gbps = 0;  ///< of packets, without anything around them
  double mpps = 0;
  double plain_gbps = 0;  ///< of the kernel by itself; part kernel
  double copy = 0;        ///< shares of the time, see Overlap; part queues
  double kernel = 0;
  double hidden = 0;         ///< of the copy time, what a kernel runs in
  double kernel_hidden = 0;  ///< of the kernel time, what a copy runs in
  std::uint64_t buffers = 0;
  std::uint64_t packets = 0;
  std::uint64_t matches = 0;
};

/// What a buffer takes with nothing beside it: one stream that hands over the next one when the last is back.
struct NcaBatch {
  double in_us = 0;      ///< to the device; medians of all buffers
  double kernel_us = 0;  ///< until all functions are done
  double back_us = 0;    ///< results to the host
};

/// Bulk copies of as many bytes as a buffer of packets of 583 bytes has, to the device and one after another.
struct NcaCopies {
  double pinned_gbps = 0;
  double pageable_gbps = 0;
};

/// One measurement and its repeats.
struct NcaCell {
  std::string part;
  std::uint32_t strings = 0;
  std::uint32_t bytes = 0;  ///< of each packet; 0: variable
  std::uint32_t matching_percent = 0;
  std::uint32_t streams = 1;
  std::uint32_t threads = 1;  ///< a stream
  std::uint32_t queues = 3;
  std::vector<NcaRepeat> repeats;
  std::vector<double> hyperscan_gbps;  ///< one core, the same packets
  NcaBatch batch;                      ///< part draft; 0 on "cpu", which copies nothing
  double timeline_us = 0;
  std::vector<TimeRow> timeline;  ///< a row for each buffer in flight; see nca_timeline()
  std::string error;              ///< why it could not be measured, or what came out wrong
};
Spread over(NcaCell const& cell, double NcaRepeat::*value);

struct NcaResults {
  std::string command;
  std::string commit;
  std::string machine;
  std::string device;
  double seconds = 0;
  std::uint32_t buffer_packets = 0;
  NcaCopies copies;  ///< 0 on "cpu"
  std::vector<NcaCell> cells;
  std::vector<std::string> notes;  ///< what was left out, and why

  std::uint64_t failed_cells() const;
};

/// Runs everything that the options ask for and writes the output folder after every cell. `progress` gets a line for
/// each. A cell that fails, or whose results are not Hyperscan's, has that in its error, and the others go on. Errors:
///   InvalidArgument   an option is out of range or names what there is not
///   NotFound          the strings cannot be read
///   Unavailable       no such device, or a temporary folder cannot be made
///   PermissionDenied  the output cannot be written
Result<NcaResults> run_nca_bench(NcaOptions const& options, std::function<void(std::string const&)> const& progress);

}  // namespace catena::bench
