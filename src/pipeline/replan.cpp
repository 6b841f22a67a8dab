// SPDX-License-Identifier: Apache-2.0
#include "pipeline/replan.hpp"

#include "pipeline/isolation.hpp"
#include "pipeline/nf_builder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>

namespace catena::runtime {
namespace {

bool has_same_files(NfEntry const& entry) {
  return entry.content.has_value() && content_of(entry.config, entry.files) == entry.content;
}

/// Whether a process started with `one` does what a process started with `other` would do. Their files may differ in
/// other NFs.
bool are_alike(nf_process::Setup const& one, nf_process::Setup const& other) {
  const auto numbers = [](nf_process::Setup const& setup) {
    return std::array{setup.slots,           setup.unit_packets,      setup.units_per_launch, setup.launches_in_flight,
                      setup.device_limit_ms, setup.max_batch_delay_us};
  };
  const auto is_same_nf = [](nf_process::NfSetup const& a, nf_process::NfSetup const& b) {
    return a.name == b.name && a.on_gpu == b.on_gpu;
  };
  return std::ranges::equal(one.nfs, other.nfs, is_same_nf) && one.device == other.device &&
         one.ends.live_rx == other.ends.live_rx && one.ends.live_tx == other.ends.live_tx &&
         one.records == other.records && one.alerts == other.alerts && one.sync == other.sync &&
         one.pushdown == other.pushdown && one.methods == other.methods && numbers(one) == numbers(other);
}

/// The segment of an NF.
chain::Segment const& part_with(std::span<const chain::Segment> parts, std::size_t nf) {
  return *std::ranges::find_if(parts, [nf](chain::Segment const& part) { return nf < part.end; });
}

}  // namespace

Replan::Replan(chain::ChainConfig const& now, Pipeline const& running, chain::ChainConfig const& next,
               RunOptions const& options, bool is_shared)
    : now_(&now), running_(&running), next_(&next), kept_(next.nfs.size()), is_unchanged_(next.nfs.size()) {
  const std::vector<std::optional<std::size_t>> same = chain::same_nfs(now, next);
  for (std::size_t nf = 0; nf < next.nfs.size(); ++nf) {
    is_unchanged_[nf] = same[nf].has_value() && has_same_files(running.first_of(*same[nf]));
  }
  for (std::size_t first = 0; first < next.nfs.size() && !is_shared;) {
    const std::size_t end = chain::group_of(next, first).end;
    if (can_keep(first, end, same, options)) {
      std::copy(same.begin() + static_cast<std::ptrdiff_t>(first), same.begin() + static_cast<std::ptrdiff_t>(end),
                kept_.begin() + static_cast<std::ptrdiff_t>(first));
    }
    first = end;
  }
}

/// Whether the NFs from `first` up to `end`, a group of the next chain, can go on. `same`: as chain::same_nfs().
bool Replan::can_keep(std::size_t first, std::size_t end, std::span<const std::optional<std::size_t>> same,
                      RunOptions const& options) const {
  if (!same[first]) {
    return false;
  }
  const chain::NfGroup before = chain::group_of(*now_, *same[first]);
  if (before.first != *same[first] || before.end - before.first != end - first) {
    return false;
  }
  for (std::size_t nf = first; nf < end; ++nf) {
    if (same[nf] != before.first + (nf - first) || !is_unchanged_[nf]) {
      return false;
    }
    chain::NfConfig const& now = running_->first_of(*same[nf]).config;
    if (next_->nfs[nf].isolation != now.isolation || next_->nfs[nf].on != now.on) {
      return false;
    }
  }
  if (next_->nfs[first].isolation != chain::Isolation::kProcess) {
    return next_->nfs[first].on == plan::Processor::kCpu;
  }
  return std::ranges::equal(now_->devices, next_->devices, {}, device::to_string, device::to_string) &&
         are_alike(running_->first_of(before.first).isolated->process().setup(),
                   process_setup({&next_->nfs[first], end - first}, *next_, options, false));
}

bool Replan::fit_to(std::span<const chain::Segment> parts) {
  const auto name_of = [](chain::ChainConfig const& chain, std::optional<std::size_t> nf) {
    return nf ? chain.nfs[*nf].name : std::string();
  };
  std::vector<chain::Segment> before;
  std::ranges::transform(running_->segments(), std::back_inserter(before), &Segment::part);
  bool has_changed = false;
  for (std::size_t nf = 0; nf < kept_.size(); ++nf) {
    if (!kept_[nf]) {
      continue;
    }
    chain::Segment const& now = part_with(before, *kept_[nf]);
    chain::Segment const& next = part_with(parts, nf);
    const bool is_alone = now.shards == 1 && next.shards == 1;
    const bool is_divided_alike =
        now.shards == next.shards && name_of(*now_, now.divided_by) == name_of(*next_, next.divided_by);
    if (now_->shards != next_->shards || (!is_alone && !is_divided_alike)) {
      kept_[nf].reset();
      has_changed = true;
    }
  }
  return has_changed;
}

std::vector<std::string> Replan::removed() const {
  std::vector<std::string> names;
  for (chain::NfConfig const& config : now_->nfs) {
    if (std::ranges::find(next_->nfs, config.name, &chain::NfConfig::name) == next_->nfs.end()) {
      names.push_back(config.name);
    }
  }
  return names;
}

bool Replan::has_moved_nfs() const {
  std::vector<std::size_t> positions;
  for (chain::NfConfig const& config : next_->nfs) {
    const auto found = std::ranges::find(now_->nfs, config.name, &chain::NfConfig::name);
    if (found != now_->nfs.end()) {
      positions.push_back(static_cast<std::size_t>(found - now_->nfs.begin()));
    }
  }
  return !std::ranges::is_sorted(positions);
}

bool is_same_chain(chain::ChainConfig const& now, Pipeline const& running, chain::ChainConfig const& next) {
  return chain::is_same_spec(now, next) &&
         std::ranges::all_of(running.entries(), [](auto const& of_nf) { return has_same_files(*of_nf.front()); });
}

}  // namespace catena::runtime
