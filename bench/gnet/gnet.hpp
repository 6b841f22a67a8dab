// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/gnet/results.hpp"
#include "device/device.hpp"
#include "nf/registry.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// `catena-bench gnet`: how the NFs of a chain share a GPU, beside section 7 of "G-NET: Effective GPU Sharing in NFV
/// Systems" (NSDI 2018): the four ways in turn in one process, over S_a to S_d.
namespace catena::bench {

struct GnetOptions {
  device::DevicePreference device;
  std::vector<std::string> parts;         ///< of "throughput", "latency" and "growing"; empty: all
  std::vector<std::string> chains;        ///< names of sharing_chains(); empty: all
  std::vector<std::uint32_t> wire_bytes;  ///< sizes of frames with FCS; empty: 64 to 1518, six of them
  std::vector<std::uint32_t> units;       ///< numbers of compute units that are shared, 0 for all; empty: 32 and all
  double seconds = 0.4;                   ///< of a run; a quarter is warm-up
  double profile_seconds = 45;            ///< about how long the NFs are measured
  std::uint32_t repeats = 5;
  std::string output;   ///< folder for results.json and README.md; made where it is not there
  std::string data;     ///< see find_data()
  std::string tuning;   ///< of the chain files, without braces; empty: that of the benchmark
  bool resume = false;  ///< goes on with what the output folder has
  bool quick = false;   ///< one short repeat of one size: for machines without a GPU, and tests
  std::string command;  ///< for the record
};

/// Measures the NFs, then runs everything that the options ask for, and writes the output folder after every cell.
/// `progress` gets a line for each. A cell that fails has its error in it, and the others go on. With
/// `resume`, cells that the output folder has are not measured again, but for their time lines; the NFs are. Errors: as
/// run_isoptr(); as profile::measure_nfs(); as read_gnet_results() and check_same().
Result<GnetResults> run_gnet(GnetOptions const& options, nf::Registry const& registry,
                             std::function<void(std::string const&)> const& progress);

}  // namespace catena::bench
