// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "nf/instance.hpp"
#include "nf/named_files.hpp"
#include "nf/registry.hpp"
#include "pipeline/isolation/isolated_nf.hpp"
#include "pipeline/run_options.hpp"

#include <catena/core/status.hpp>

#include <memory>
#include <span>
#include <vector>

/// A session's code for NFs in separate processes.
namespace catena::runtime {

/// Prepares `options` for processes if `chain` has NFs for them. Their trial processes get the user, the devices and
/// the number of the chain from `options` as they are now. NotFound if the program for processes is missing.
Status allow_processes(chain::ChainConfig const& chain, RunOptions& options);

/// Whether an NF in a separate process is placed on a device, or may be. It can only reach one through a device server.
bool needs_servers(chain::ChainConfig const& chain);

/// A new NF.
struct MadeNf {
  std::unique_ptr<nf::Instance> instance = nullptr;
  nf_process::IsolatedNf* isolated = nullptr;  ///< the NF of `instance`, if it is in a separate process; else null
  std::vector<nf::NamedFile> files = {};       ///< named by its configuration
  std::vector<nf::NamedKey> keys = {};         ///< its encryption keys
};

/// Starts the process of an NF, or of the NFs of a group (see chain::group_of()). They may write the outputs named by
/// their configurations. `registry`: origin of types that are not built in. `collector` is this thread's innermost and
/// gets the written files. `label`: as in nf_process::ProcessOptions. Errors, with an NF's position: as
/// NfProcess::create() and add(); Unavailable if processes of NFs are impossible here; InvalidArgument if `options` or
/// the configuration need something unsupported for such an NF.
Result<std::vector<MadeNf>> make_isolated(std::span<const chain::NfConfig> group, std::vector<std::string> label,
                                          RunOptions const& options, nf::Registry const& registry,
                                          nf::NamedFiles const& collector);

/// Whether the NF is on a GPU, in a process of its own.
bool is_on_own_gpu(chain::NfConfig const& config);

/// Whether both descriptors are interchangeable: names of drop reasons are taken from the first.
bool are_alike(nf::Descriptor const& one, nf::Descriptor const& other);

/// The process's input for creating its NFs, except the memory.
nf_process::Setup setup_of(std::span<const chain::NfConfig> group, chain::ChainConfig const& chain);

}  // namespace catena::runtime
