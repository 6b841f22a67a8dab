// SPDX-License-Identifier: Apache-2.0
#include "pipeline/new_nfs.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace catena::runtime {

Status NewNfs::make(NfBuilder const& builder, std::span<const chain::NfConfig> group, std::uint32_t shards,
                    nf::NamedFiles const& collector) {
  is_isolated = group.front().isolation == chain::Isolation::kProcess;
  CATENA_ASSIGN_OR_RETURN(std::vector<MadeNf> made, builder.make(group, collector));
  std::vector<nf::Instance*> of_first;
  for (MadeNf& nf : made) {
    files.push_back(std::move(nf.files));
    keys.push_back(std::move(nf.keys));
    of_first.push_back(nf.instance.get());
    instances.emplace_back().push_back(std::move(nf.instance));
  }
  for (std::uint32_t shard = 1; shard < shards; ++shard) {
    CATENA_ASSIGN_OR_RETURN(auto others, builder.replicate(group, of_first, {shard, shards}));
    for (std::size_t i = 0; i < group.size(); ++i) {
      instances[i].push_back(std::move(others[i]));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> NewNfs::describe() const {
  std::vector<std::string> lines;
  for (auto const& of_nf : instances) {
    // an NF in a process has no report before the process has made it
    const std::vector<std::string> details =
        is_isolated && !has_started ? std::vector<std::string>() : of_nf.front()->nf().start_report();
    lines.push_back(
        concat(of_nf.front()->name(), details.empty() ? "" : ": ", fmt::format("{}", fmt::join(details, "; "))));
  }
  return lines;
}

}  // namespace catena::runtime
