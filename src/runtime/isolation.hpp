// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/run_options.hpp"
#include "nf/instance.hpp"
#include "nf/named_files.hpp"
#include "nf/registry.hpp"
#include "nf_process/isolated_nf.hpp"

#include <catena/core/status.hpp>

#include <memory>
#include <vector>

/// What a chain's session has to do with NFs in processes of their own.
namespace catena::runtime {

/// Lets NFs of `chain` have processes, where it has such NFs. NotFound where the program for them is missing.
Status allow_processes(chain::ChainConfig const& chain, chain::RunOptions& options);

/// Whether an NF in a process of its own is placed on a device, or may be: it reaches that through a device server
/// alone.
bool needs_servers(chain::ChainConfig const& chain);

/// Starts the process of an NF, which may write what the configuration names. `registry`: where types come from that
/// are not built in. `collector` is this thread's innermost and gets the files that are written. Errors, with the NF's
/// position: as IsolatedNf::create(); Unavailable where NFs can have no process here; InvalidArgument where `options`
/// or the configuration ask for what such an NF cannot do.
Result<std::unique_ptr<nf::Instance>> make_isolated(chain::NfConfig const& config, chain::RunOptions const& options,
                                                    nf::Registry const& registry, nf::NamedFiles const& collector);

/// What the process makes its NF from, but for the memory.
nf_process::Setup setup_of(chain::NfConfig const& config, chain::ChainConfig const& chain);

}  // namespace catena::runtime
