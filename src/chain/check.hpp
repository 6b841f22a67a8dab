// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/named_files.hpp"
#include "chain/run_options.hpp"
#include "nf/registry.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/refusal.hpp>

#include <string>
#include <vector>

namespace catena::chain {

/// The rules of an NF that are not applied.
struct RefusedRules {
  std::string nf;  ///< its name
  std::vector<nf::Refusal> rules;
};

/// Whether Chain::create() would take the chain on a machine that has its devices and ports: reads what it reads, makes
/// the NFs and the device tables of those placed on the gpu, and plans, but opens no port, no device and no output.
/// A capture that is a regular file is opened. The error lists all that is wrong, a line each. `refused` gets an entry
/// for each NF that refuses rules; where they are not null `files` becomes the files that are named, and `warnings`
/// gets what NFs warn of.
Status check(ChainConfig config, RunOptions const& options, nf::Registry const& registry,
             std::vector<RefusedRules>& refused, std::vector<NamedFile>* files = nullptr,
             std::vector<std::string>* warnings = nullptr);

}  // namespace catena::chain
