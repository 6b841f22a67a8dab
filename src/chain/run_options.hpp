// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/sync_options.hpp"
#include "gpu/device/device.hpp"
#include "plan/sharing/partition_plan.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/persistent.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace catena::chain {

/// How the NFs of a chain share its device: `sharing`.
struct SharingOptions {
  share::Mode mode = share::Mode::kUncoordinated;
  std::optional<share::Parts> parts = std::nullopt;  ///< nullopt: green contexts if the device has them, else blocks
  std::uint32_t compute_units = 0;                   ///< shared by them; 0: all
};

/// The settings of a run, from the keys of the chain file that are about it, and facts about the run. A value:
/// runtime::RunOptions adds the objects of the caller.
struct RunOptions {
  std::string record_path;      ///< empty: no record
  std::string eve_path;         ///< for alerts as EVE JSON lines; empty: not written
  std::string trace_path;       ///< for the timeline of launches from run() (see to_chrome_trace()); empty: not written
  std::string profile_path;     ///< file of sync.profile, which must not be overwritten
  bool keeps_captures = false;  ///< tx and the trace do not replace files of earlier runs: io::OutputBegin::kNextPart
  bool trace = false;           ///< keeps the timeline for traces() without a file
  std::vector<std::uint32_t> cores;       ///< worker i stays on cores[i % size]; empty: anywhere
  std::uint32_t workers = 1;              ///< 0: open, as in parallelism_of()
  std::set<std::uint32_t> new_keys = {};  ///< SPIs whose keys were not used before: for one start
  SyncOptions sync;
  std::optional<SharingOptions> sharing = std::nullopt;  ///< nullopt: every NF uses the whole device
  bool opens_rx = true;       ///< false: the caller supplies the source. The plan is still made for rx
  bool opens_tx = true;       ///< false: the caller supplies the sink
  bool with_records = false;  ///< NFs produce record lines, to be taken from their instances
  /// The liveness of rx and tx for NFs; nullopt: from rx and tx.
  std::optional<nf::Ends> ends = std::nullopt;
  /// The shard of the NFs, if another process has the other shards of the same configuration; nullopt: all are here.
  std::optional<nf::Shard> shard = std::nullopt;
  /// If the NFs are part of the run of another process: its context, of which `new_keys` is ignored.
  std::optional<nf::RunContext> context = std::nullopt;
  std::optional<ProfileStore> profiles = std::nullopt;  ///< has the costs of the opened device; nullopt: sync.profile
};

/// Whether the order of packets of several flows is invisible in the output.
bool hides_order(ChainConfig const& config, RunOptions const& options);

/// The same, and rx is artificial traffic and tx discards it: each shard may make its part of the packets by itself.
bool may_divide_traffic(ChainConfig const& config, RunOptions const& options);

/// Whether the chain has one device, as sharing of a device needs. InvalidArgument, with the position of `sharing` or
/// of its option.
Status check_one_device(ChainConfig const& config);

/// The options of a run of a chain. Reads the cost profile named by the chain. InvalidArgument for a part of a device
/// without a mode of sharing; as load_profile().
Result<RunOptions> run_options_of(ChainConfig const& config);

/// The sharing in options without a chain file: `share`, `parts` and `compute_units`; nullopt without `share`. As
/// put_over(), and as run_options_of().
Result<std::optional<SharingOptions>> sharing_of(GivenOptions const& options);

}  // namespace catena::chain
