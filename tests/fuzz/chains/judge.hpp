// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/chains/random_chain.hpp"
#include "fuzz/chains/traffic.hpp"
#include "pipeline/session.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// Runs a chain and compares runs, for the chain fuzzer.
namespace catena::fuzz {

/// All that one run gave.
struct RunOutput {
  std::string capture;
  std::string records;
  std::vector<std::string> flows;  ///< of each NF; empty where it writes none
  runtime::Report report;
  Status status;  ///< of the run; OK where the device is sound
};

/// Runs the chain over in.pcap of `folder`, which has the chain's files too; what it writes there it takes away again.
/// Errors: those of Chain::create(), and of a run on a device that is sound.
Result<RunOutput> run_chain(std::filesystem::path const& folder, FuzzChain const& chain, Variant const& variant,
                            std::string const& device);

/// What is wrong with a run by itself: packets that are not accounted for, slots that did not come back, accesses of a
/// kernel out of bounds, an NF that is not where it was placed. Empty if nothing is.
std::string fault_of(RunOutput const& run, FuzzChain const& chain, std::uint32_t gpu_mask);

/// Where an NF counted something else than `expected`. Empty if nowhere.
std::string nf_difference(runtime::NfReport const& actual, runtime::NfReport const& expected);

/// Where a run differs first from the one on the CPU: packets, records, flows, what NFs counted. Empty if nowhere.
/// `has_order`: packets come out in the order of rx; else they, and their lines, are compared sorted.
std::string difference(RunOutput const& run, RunOutput const& expected, bool has_order);

}  // namespace catena::fuzz
