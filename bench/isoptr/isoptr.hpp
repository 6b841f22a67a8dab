// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/isoptr/results.hpp"
#include "device/device.hpp"
#include "nf/registry.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// `catena-bench isoptr`: what the checks of pointers in kernels cost, beside figure 15 of "G-NET: Effective GPU
/// Sharing in NFV Systems" (NSDI 2018). The same kernels with their checks and without, in turn in one process.
namespace catena::bench {

struct IsoPtrOptions {
  device::DevicePreference device;
  std::vector<std::string> parts;         ///< names of IsoPtrPart; empty: all
  std::vector<std::string> names;         ///< of kernel_chains() and gnet_chains(); empty: all
  std::vector<std::uint32_t> wire_bytes;  ///< sizes of frames with FCS; empty: 64, 512 and 1518
  std::vector<std::uint32_t> packets;     ///< of a kernel's launch; empty: 4096, as in the chains, and 65536
  double seconds = 0.4;                   ///< of a chain's run; a quarter is warm-up
  double kernel_seconds = 0.03;           ///< of a run of a kernel, which is launched again and again, at least once
  std::uint32_t repeats = 5;              ///< with checks and without, each
  std::string output;                     ///< folder for results.json and README.md; made where it is not there
  std::string data;                       ///< see find_data()
  std::string tuning;                     ///< of the chain files, without braces; empty: that of the benchmark
  bool quick = false;                     ///< one short repeat, smaller launches: for machines without a GPU, and tests
  std::string command;                    ///< for the record
};

/// Runs everything that the options ask for and writes the output folder after every cell. `progress` gets a line for
/// each. A cell that fails has its error in it, and the others go on. Errors:
///   InvalidArgument   an option is out of range or names what there is not
///   NotFound          the data folder is not there
///   Unavailable       there is no device, or a temporary folder cannot be made
///   PermissionDenied  the output cannot be written
Result<IsoPtrResults> run_isoptr(IsoPtrOptions const& options, nf::Registry const& registry,
                                 std::function<void(std::string const&)> const& progress);

}  // namespace catena::bench
