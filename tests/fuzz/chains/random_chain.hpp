// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/planning.hpp"
#include "fuzz/chains/fault.hpp"
#include "fuzz/chains/random.hpp"
#include "fuzz/chains/random_nf.hpp"
#include "fuzz/chains/traffic.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Random chains for the chain fuzzer, and the files that they name.
namespace catena::fuzz {

/// What must not change what comes out: where NFs are, what moves how, in which portions, and in how many shards.
struct Variant {
  std::uint32_t gpu_mask = 0;  ///< bit i: NF i is placed on the gpu
  chain::SyncOptions sync;
  std::string sync_options;  ///< the same as options of `catena run`, without the profile
  chain::Tuning tuning;
  std::uint32_t workers = 1;
  std::uint32_t shards = 1;
  std::optional<DeviceFault> fault;  ///< what comes out may differ then, as far as docs/failures.md allows
};

/// Nodes of a graph that are no NF.
inline constexpr std::size_t kRxNode = SIZE_MAX;
inline constexpr std::size_t kTxNode = SIZE_MAX - 1;
inline constexpr std::size_t kDropNode = SIZE_MAX - 2;

/// A row of a graph. NFs have the numbers of their places in the chain.
struct FuzzRow {
  std::size_t from = kRxNode;
  std::string conditions;  ///< YAML, as "match: {protocol: tcp}"; empty: none
  std::size_t to = kTxNode;
  bool is_mirror = false;
};

struct FuzzChain {
  std::vector<FuzzNf> nfs;
  std::vector<FuzzRow> rows;      ///< of a graph; none: packets go from each NF to the next
  std::string spec;               ///< further lines of `spec:`
  std::uint32_t growing_nfs = 0;  ///< of those at the front, where what comes after them is what matters
};

FuzzChain make_chain(Random& random);
/// NFs and rows between them. Those that see the order of packets of several flows stand where all come on one way.
FuzzChain make_graph(Random& random);
/// NFs that make packets longer, and then those that read or change whole packets: for Traffic::kFull. What a launch
/// then carries is more than what rx takes, and packets begin where little is left in front of them.
FuzzChain make_growing_chain(Random& random);
/// Takes the placement and the ways to synchronize from `like`, if given: its programs are compiled already.
Variant make_variant(Random& random, FuzzChain const& chain, Variant const* like);
/// `like` on a device that fails on the way, with a pool that wraps many times meanwhile.
Variant make_faulty(Random& random, Variant const& like);
/// A chain of `tunnels` ipsec NFs that encrypt, to make traffic for those that decrypt.
FuzzChain make_tunnels(Random& random, std::uint32_t tunnels);

/// As its chain file calls NF number `nf`.
std::string nf_name(FuzzChain const& chain, std::size_t nf);
/// The chain without NF number `nf`: what went there goes to tx.
FuzzChain without_nf(FuzzChain chain, std::size_t nf);

/// The file, in the folder of the chain file, to which NF number `nf` writes flows, where it is a monitor.
std::string flows_file(std::size_t nf);

/// The chain file. `device`: "none" for the run on the CPU.
std::string chain_text(FuzzChain const& chain, Variant const& variant, std::string const& device);

}  // namespace catena::fuzz
