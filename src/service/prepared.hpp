// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/run_options.hpp"
#include "nf/registry.hpp"
#include "service/applied.hpp"
#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <string>
#include <vector>

namespace catena::service {

/// A chain that was read and checked, and holds nothing yet.
struct Prepared {
  chain::ChainConfig config;
  chain::RunOptions options;
  /// What no two chains can have at a time, as it is said to users: ports, and files that are written.
  std::vector<std::string> resources;
};

/// Reads and checks a chain file with the rights of `caller`, in a thread of its own.
/// Errors: as load_chain(), run_options_of() and check(); InvalidArgument where packets or lines go through a standard
/// stream, which are the service's; PermissionDenied for a DPDK device that a caller who is not privileged names.
Result<Prepared> prepare(std::string const& file, chain::OptionTexts const& options, Caller const& caller,
                         nf::Registry const& registry);

/// The first that both have; empty: none.
std::string common_resource(Prepared const& a, std::vector<std::string> const& b);

}  // namespace catena::service
