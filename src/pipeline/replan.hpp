// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/change.hpp"
#include "chain/segments.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run_options.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace catena::runtime {

/// What becomes of the NFs of a running chain in the chain that replaces it. An NF is unchanged if its entry in the
/// file and the contents of all files read by it are unchanged. The next chain keeps an unchanged NF as it is, with its
/// tables, its state and its process, unless it runs on a device or its surroundings have changed. One thread at a
/// time.
class Replan {
 public:
  /// Decides for the NFs of `next`, which has its layout. `running`: the NFs of the chain `now`. Both outlive this.
  /// Reads the files of the NFs. `is_shared`: the NFs share a device, and all are created again.
  Replan(chain::ChainConfig const& now, Pipeline const& running, chain::ChainConfig const& next,
         RunOptions const& options, bool is_shared);

  Pipeline const& running() const { return *running_; }
  /// The position in the running chain of NF number `nf` of the next one, if it is kept.
  std::optional<std::size_t> kept(std::size_t nf) const { return kept_[nf]; }
  /// Whether NF number `nf` of the next chain is unchanged, kept or not.
  bool is_unchanged(std::size_t nf) const { return is_unchanged_[nf]; }
  /// Keeps no NF whose packets would be divided among shards in another way, or among another number of them. `parts`:
  /// the segments of the next chain. Whether that changes the decision for any NF.
  bool fit_to(std::span<const chain::Segment> parts);
  /// The names of the NFs that only the running chain has.
  std::vector<std::string> removed() const;
  /// Whether NFs of both chains are in another order.
  bool has_moved_nfs() const;
  /// The keys of `spec` that differ, except `nfs`.
  std::vector<std::string> changed_keys() const { return chain::changed_keys(*now_, *next_); }

 private:
  bool can_keep(std::size_t first, std::size_t end, std::span<const std::optional<std::size_t>> same,
                RunOptions const& options) const;

  chain::ChainConfig const* now_;
  Pipeline const* running_;
  chain::ChainConfig const* next_;
  std::vector<std::optional<std::size_t>> kept_;
  std::vector<bool> is_unchanged_;
};

/// Whether the chain of the file `next` is the running one: the files say the same, and the contents of all files read
/// by NFs are unchanged.
bool is_same_chain(chain::ChainConfig const& now, Pipeline const& running, chain::ChainConfig const& next);

}  // namespace catena::runtime
