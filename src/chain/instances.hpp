// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/graph.hpp"
#include "nf/registry.hpp"

#include <catena/nf/refusal.hpp>

#include <memory>
#include <span>
#include <vector>

/// Creates NFs from the entries of a chain file.
namespace catena::chain {

/// Which of rx and tx are live, that is, ports.
nf::Ends ends_of(PortConfig const& rx, PortConfig const& tx);

/// A placeholder for a plug-in without its process. It is assumed to read and write everything.
std::unique_ptr<nf::Instance> stand_in_for_plugin(NfConfig const& config);

/// Converts an error from creating an NF: FailedPrecondition becomes InvalidArgument. To the caller of a change,
/// FailedPrecondition would mean that a new chain could have the NF.
Status as_refusal(Status const& of_nf);

/// The NF of an entry other than a plug-in, as shard `shard`. Errors: NotFound for an unknown type, InvalidArgument for
/// `on: gpu` of an NF without a kernel, both with the entry's position; else as the NF's create(), by as_refusal().
Result<std::unique_ptr<nf::Instance>> make_instance(NfConfig const& config, nf::Registry const& registry,
                                                    bool recording, nf::Ends ends, nf::Shard shard = {});

/// OK if the NF can run on a gpu. The error says why not: it has no kernel, or no kernel for this configuration; the
/// latter begins with the entry's position.
Status can_run_on_gpu(NfConfig const& config, nf::Instance& instance);

/// The error for an entry `on: gpu` of a type without a kernel.
Status no_kernel(NfConfig const& config);

/// Another NF of the same entry, besides `first` with shard 0. Errors: as make_instance().
Result<std::unique_ptr<nf::Instance>> replicate(NfConfig const& config, nf::Instance const& first, nf::Shard shard);

/// Each of them, in order.
std::vector<nf::Instance*> pointers_to(std::span<const std::unique_ptr<nf::Instance>> instances);

/// The rules that the NF does not apply.
std::vector<nf::Refusal> refusals_of(nf::Instance& instance);

/// The warnings in the NF's start report: "NF 'vpn': the selector ...".
std::vector<std::string> warnings_of(nf::Instance const& instance);

/// kernel_side() with the entry's position in errors.
Result<nf::KernelSide> make_kernel_side(NfConfig const& config, nf::Instance& instance);

/// The next-node tables of rx and of each NF; empty without a graph. `instances`: all of the chain's. Errors: as
/// NextNodeTable::create(). An NF in another process returns only the outputs pass and alert.
Result<std::vector<NextNodeTable>> next_node_tables(ChainConfig const& config,
                                                    std::span<nf::Instance* const> instances);

}  // namespace catena::chain
