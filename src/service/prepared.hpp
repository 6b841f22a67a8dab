// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/run_options.hpp"
#include "io/shared_port.hpp"
#include "nf/registry.hpp"
#include "service/applied.hpp"
#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace catena::service {

/// What no two chains can have at a time, or only if it is shared: a port, or a file that is written.
struct Resource {
  std::string name;  ///< as it is said to users
  bool is_shared = false;
  io::PortMember member = {};  ///< of a shared port, the chain there
};

/// A chain that was read and checked, and holds nothing yet.
struct Prepared {
  chain::ChainConfig config;
  chain::RunOptions options;
  std::vector<Resource> resources;
  Caller caller;
  std::string fifo = {};  ///< an output that may wait for its reader; empty: there is none
};

/// Reads and checks a chain file with the rights of `caller`, in a thread of its own.
/// Errors: as load_chain(), run_options_of() and check(); InvalidArgument where packets or lines go through a standard
/// stream, which are the service's; PermissionDenied for a DPDK device that a caller who is not privileged names.
Result<Prepared> prepare(std::string const& file, chain::OptionTexts const& options, Caller const& caller,
                         nf::Registry const& registry);

/// Why two chains cannot have their resources at a time: the first of `a` that clashes with one of `b`, of chain
/// `of_b`, in words; empty: they can.
std::string clash(std::vector<Resource> const& a, std::vector<Resource> const& b, std::string_view of_b);

}  // namespace catena::service
