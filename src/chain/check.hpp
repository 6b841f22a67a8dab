// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/named_files.hpp"
#include "chain/run_options.hpp"
#include "nf/registry.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/refusal.hpp>

#include <functional>
#include <string>
#include <vector>

namespace catena::chain {

/// The rules of an NF's files.
struct RefusedRules {
  std::string nf;                  ///< its name
  std::size_t applied = 0;         ///< number of rules
  std::vector<nf::Refusal> rules;  ///< not applied
};

/// Creates the NF of a plug-in with the settings of its chain, as a trial. Errors: the NF's own.
using TryOut = std::function<Status(NfConfig const&, ChainConfig const&)>;

/// Whether Chain::create() would accept the chain on a machine with its devices and ports. Reads the same files,
/// creates the NFs and the device tables of the NFs on the gpu, and plans, but opens no port, no device and no output.
/// A capture in a regular file is opened. The error lists all problems, one per line. `refused` gets one element per NF
/// with rules. Plug-ins are checked by `try_out`, or not at all if it is null. If not null, `files` is set to
/// the named files, and `warnings` gets the warnings of the NFs.
Status check(ChainConfig config, RunOptions const& options, TryOut const& try_out, nf::Registry const& registry,
             std::vector<RefusedRules>& refused, std::vector<NamedFile>* files = nullptr,
             std::vector<std::string>* warnings = nullptr);

}  // namespace catena::chain
