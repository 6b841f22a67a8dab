// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/diagnostics.hpp"
#include "nf/instance.hpp"
#include "nf/named_files.hpp"
#include "nf/registry.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/replan.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/takeover.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/persistent.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

namespace catena::runtime {

/// Creates the NFs of a chain from their entries, in this process or in processes of their own. One thread at a time.
class NfBuilder {
 public:
  /// All outlive this. `options.processes.give_up` aborts the start of processes. The NFs are for the ports and shards
  /// of `chain`. `replan`: of the chain that this one replaces, if any; else null.
  NfBuilder(chain::ChainConfig const& chain, RunOptions const& options, nf::Registry const& registry,
            Replan* replan = nullptr)
      : chain_(&chain), options_(&options), registry_(&registry), replan_(replan) {}

  /// Creates the NF of an entry, or the NFs of a group in one process, for the first shard. `collector`: this thread's
  /// innermost. Errors: as chain::make_instance(), or make_isolated().
  Result<std::vector<MadeNf>> make(std::span<const chain::NfConfig> group, nf::NamedFiles const& collector) const;
  /// Creates the same NFs for another shard; `first`: of the first shard. Errors: as make(); DataLoss if a process
  /// reports other NFs.
  Result<std::vector<MadeNf>> replicate(std::span<const chain::NfConfig> group, std::span<nf::Instance* const> first,
                                        nf::Shard shard) const;
  /// Creates all NFs of the chain, or keeps them, in all shards, and checks their files and keys. The entries of
  /// plug-ins have their types. Errors of all NFs are in one; also as chain::check_files(), chain::check_keys(),
  /// chain::check_new_keys() and chain::data_path_of(); Cancelled. `flow_key`: of the pipeline.
  Result<Pipeline> make_all(std::uint64_t flow_key) const;

 private:
  Result<std::vector<NfEntry>> make_first() const;
  MadeNf keep(chain::NfConfig const& config, NfEntry const& before) const;
  NfEntry entry_of(chain::NfConfig config, MadeNf made, chain::Diagnostics& diagnostics) const;
  Result<Pipeline> divide(std::vector<NfEntry> first, std::uint64_t flow_key) const;
  Status replicate_segment(std::span<const NfEntry> first, std::uint32_t shard, Segment& segment) const;

  chain::ChainConfig const* chain_;
  RunOptions const* options_;
  nf::Registry const* registry_;
  Replan* replan_;
};

/// The run of the chain as its NFs see it. `new_keys`: of this start or change.
nf::RunContext run_context_of(chain::ChainConfig const& chain, RunOptions const& options,
                              std::set<std::uint32_t> const& new_keys);

/// Input of the process with the NFs of `group`, for the first shard. `is_shared`: the chain's NFs share their GPU.
nf_process::Setup process_setup(std::span<const chain::NfConfig> group, chain::ChainConfig const& chain,
                                RunOptions const& options, bool is_shared);
/// Sets the input of all processes of a chain that are not kept.
void prepare_processes(Pipeline const& pipeline, chain::ChainConfig const& chain, RunOptions const& options,
                       bool is_shared);

/// Starts the NFs with state that outlives the run, and all processes, after prepare_processes(). NFs paired in
/// `takeover` get their state later, and kept ones have started; null: no chain is replaced. Errors: the NFs' own, with
/// their position; with `takeover` as as_not_beside().
Status start_nfs(Pipeline const& pipeline, nf::RunContext const& context, Takeover const* takeover);

}  // namespace catena::runtime
