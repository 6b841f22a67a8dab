// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/graph.hpp"
#include "nf/registry.hpp"

#include <catena/nf/refusal.hpp>

#include <memory>
#include <span>
#include <vector>

/// From the entries of a chain file to NFs.
namespace catena::chain {

/// Which ends of a chain are live: those that are ports.
nf::Ends ends_of(PortConfig const& rx, PortConfig const& tx);

/// What stands for a plug-in where nobody asks its process: it is taken to read and write everything.
std::unique_ptr<nf::Instance> stand_in_for_plugin(NfConfig const& config);

/// What an NF says against what it is made of. FailedPrecondition becomes InvalidArgument: to who asks whether a chain
/// can change it would mean that another chain can have the NF.
Status as_refusal(Status const& of_nf);

/// The NF of an entry that is no plug-in, in the place `shard`. Errors: NotFound for an unknown type, InvalidArgument
/// for `on: gpu` of an NF without a kernel, both with the entry's position; else as the NF's create(), by as_refusal().
Result<std::unique_ptr<nf::Instance>> make_instance(NfConfig const& config, nf::Registry const& registry,
                                                    bool recording, nf::Ends ends, nf::Shard shard = {});

/// Why the NF cannot run on a gpu: it has no kernel, or none for this configuration, whose text begins with the entry's
/// position. OK: it can.
Status can_run_on_gpu(NfConfig const& config, nf::Instance& instance);

/// What is wrong with an entry `on: gpu` of a type without a kernel.
Status no_kernel(NfConfig const& config);

/// Another one of the same entry beside `first`, which has shard 0. Errors: as make_instance().
Result<std::unique_ptr<nf::Instance>> replicate(NfConfig const& config, nf::Instance const& first, nf::Shard shard);

/// The rules that the NF does not apply.
std::vector<nf::Refusal> refusals_of(nf::Instance& instance);

/// The warnings among what the NF says at a start: "NF 'vpn': the selector ...".
std::vector<std::string> warnings_of(nf::Instance const& instance);

/// kernel_side() with the entry's position in errors.
Result<nf::KernelSide> make_kernel_side(NfConfig const& config, nf::Instance& instance);

/// The steering tables of rx and of each NF; none where the chain is a list. `instances`: all of the chain's. Errors:
/// as SteerTable::create(); of what an NF in another process says, pass and alert are all that comes back.
Result<std::vector<SteerTable>> steer_tables(ChainConfig const& config, std::span<nf::Instance* const> instances);

}  // namespace catena::chain
