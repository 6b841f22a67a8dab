// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/planning.hpp"
#include "fuzz/chains/random.hpp"
#include "fuzz/chains/traffic.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// Random chains for the chain fuzzer, and the files that they name.
namespace catena::fuzz {

/// One NF of a chain file.
struct FuzzNf {
  std::string type;
  std::string config;     ///< YAML flow text; file names are relative to the folder of the chain file
  std::string more = {};  ///< further keys beside `type`, ", key: value"
  bool has_kernel = true;
};

/// What must not change what comes out: where NFs are, what moves how, and in which portions.
struct Variant {
  std::uint32_t gpu_mask = 0;  ///< bit i: NF i is placed on the gpu
  chain::SyncOptions sync;
  std::string sync_options;  ///< the same as options of `catena run`, without the profile
  std::string tuning;        ///< "{...}"
  std::uint32_t workers = 1;
};

struct FuzzChain {
  std::vector<FuzzNf> nfs;
  std::string spec;  ///< further lines of `spec:`
};

FuzzChain make_chain(Random& random);
/// Takes the placement and the ways to synchronize from `like`, if given: its programs are compiled already.
Variant make_variant(Random& random, FuzzChain const& chain, Variant const* like);
/// A chain of `tunnels` ipsec NFs that encrypt, to make traffic for those that decrypt.
FuzzChain make_tunnels(Random& random, std::uint32_t tunnels);

/// Writes the files that the chains name into `folder`.
Status write_chain_files(std::filesystem::path const& folder);

/// The file, in the folder of the chain file, to which NF number `nf` writes flows, where it is a monitor.
std::string flows_file(std::size_t nf);

/// The chain file. `device`: "none" for the run on the CPU.
std::string chain_text(FuzzChain const& chain, Variant const& variant, std::string const& device);

}  // namespace catena::fuzz
