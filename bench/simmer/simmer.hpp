// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/simmer/results.hpp"
#include "device/device.hpp"
#include "nf/registry.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// `catena-bench simmer`: back-pressure beside rings that drop, for chains whose NFs share a GPU, beside section 4 of
/// "Simmer: Rate Proportional Scheduling to Reduce Packet Drops in vGPU Based NF Chains" (ICPP 2022).
namespace catena::bench {

struct SimmerOptions {
  device::DevicePreference device;
  std::vector<std::string> parts;  ///< of "alone", "sizes", "qt", "dynamic", "sharing", "own" and "long"; empty: all
  std::vector<std::uint32_t> wire_bytes;  ///< sizes of frames with FCS; empty: 128 to 1472, five of them
  std::vector<double> qts;                ///< of part "qt"; empty: 1.5, then 2 to 4
  std::uint32_t compute_units = 0;        ///< that NFs without parts share; 0: all
  double seconds = 0.6;                   ///< of a run; a quarter is warm-up
  std::uint32_t repeats = 5;
  std::string output;   ///< folder for results.json and README.md; made where it is not there
  std::string data;     ///< see find_data()
  std::string tuning;   ///< of the chain files, without braces; empty: that of the benchmark
  bool quick = false;   ///< one short repeat of less: for machines without a GPU, and tests
  std::string command;  ///< for the record
};

/// Runs everything that the options ask for, and writes the output folder after every cell. What NFs do alone, by which
/// loads are chosen, is always measured. `progress` gets a line for each cell. A cell that fails has its error in it,
/// and the others go on. Errors: as run_gnet(); NotFound where a program for the processes of NFs is missing.
Result<SimmerResults> run_simmer(SimmerOptions const& options, nf::Registry const& registry,
                                 std::function<void(std::string const&)> const& progress);

}  // namespace catena::bench
