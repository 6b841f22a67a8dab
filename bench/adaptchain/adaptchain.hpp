// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/adaptchain/modes.hpp"
#include "bench/adaptchain/results.hpp"
#include "device/device.hpp"
#include "nf/registry.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// `catena-bench adaptchain`: the comparisons of AdaptChain's section VI, on this machine.
namespace catena::bench {

/// As many copies of the chain as are fastest: for each measurement of throughput tried by itself.
inline constexpr std::uint32_t kBestReplicas = 0;
inline constexpr std::uint32_t kMaxTriedReplicas = 3;

struct PaperOptions {
  device::DevicePreference device;
  std::vector<std::string> chains;        ///< empty: all
  std::vector<std::uint32_t> wire_bytes;  ///< sizes of frames with FCS; empty: those of the paper
  std::vector<std::string> parts;         ///< names of Part; empty: all
  double seconds = 2;                     ///< of each run; a quarter is warm-up
  std::uint32_t repeats = 5;
  std::vector<std::string> modes;          ///< names of SyncMode; empty: all
  std::uint32_t replicas = kBestReplicas;  ///< copies of the chain, each with threads of its own
  std::string output;   ///< folder for results.json, README.md and the figures; made where it is not there
  std::string data;     ///< see find_data()
  std::string tuning;   ///< of the chain files, without braces; empty: that of the benchmark
  bool resume = false;  ///< goes on with what the output folder has
  bool quick = false;   ///< one short repeat of two sizes, smaller launches: for machines without a GPU, and tests
  std::string command;  ///< for the record
};

/// Frames with FCS, as in the paper's figures.
inline constexpr std::uint32_t kPaperWireBytes[] = {64, 128, 256, 512, 1024, 1518};
/// Frames of the latency runs, with FCS; the paper does not say which it took.
inline constexpr std::uint32_t kLatencyWireBytes = 1024;
inline constexpr double kLatencyGbps[] = {10, 100};
/// Of the latency runs, those that a time line is drawn of.
inline constexpr const char* kTimelineChain = "C4";
inline constexpr const char* kTimelineMode = kAdaptive;
inline constexpr std::uint32_t kUnitSizes[] = {4, 16, 64, 256, 1024};

/// Runs everything that the options ask for and writes the output folder after every cell. With `resume` tables that
/// are there as a whole are kept. `progress` gets a line for each. A cell that fails has its error in it, and the
/// others go on. Errors:
///   InvalidArgument   an option is out of range or names what there is not
///   NotFound          the data folder is not there
///   Unavailable       a temporary folder cannot be made
///   PermissionDenied  the output cannot be written
///   FailedPrecondition  the results to resume are of another commit, or were measured with other options
Result<Results> run_paper(PaperOptions const& options, nf::Registry const& registry,
                          std::function<void(std::string const&)> const& progress);

}  // namespace catena::bench
