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
#include <span>
#include <vector>

/// What a chain's session has to do with NFs in processes of their own.
namespace catena::runtime {

/// Lets NFs of `chain` have processes, where it has such NFs. NotFound where the program for them is missing.
Status allow_processes(chain::ChainConfig const& chain, chain::RunOptions& options);

/// Whether an NF in a process of its own is placed on a device, or may be: it reaches that through a device server
/// alone.
bool needs_servers(chain::ChainConfig const& chain);

struct Isolated {
  std::unique_ptr<nf::Instance> instance;
  std::vector<nf::NamedFile> files;  ///< that its configuration says are written
  std::vector<nf::NamedKey> keys;    ///< that it encrypts with
};

/// Starts the process of an NF, or of the NFs of a group (see chain::group_of()), which may write what their
/// configurations name. `registry`: where types come from that are not built in. `collector` is this thread's innermost
/// and gets the files that are written. Errors, with an NF's position: as NfProcess::create() and add(); Unavailable
/// where NFs can have no process here; InvalidArgument where `options` or the configuration ask for what such an NF
/// cannot do.
Result<std::vector<Isolated>> make_isolated(std::span<const chain::NfConfig> group, chain::RunOptions const& options,
                                            nf::Registry const& registry, nf::NamedFiles const& collector);

/// Null: the NF is in this process.
inline nf_process::IsolatedNf* as_isolated(nf::Instance& instance) {
  return dynamic_cast<nf_process::IsolatedNf*>(&instance.nf());
}

/// Whether what is said of the one can be said of the other: names of drop reasons are taken from the first.
bool are_alike(nf::Descriptor const& one, nf::Descriptor const& other);

/// What the process makes its NFs from, but for the memory.
nf_process::Setup setup_of(std::span<const chain::NfConfig> group, chain::ChainConfig const& chain);

}  // namespace catena::runtime
