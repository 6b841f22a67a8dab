// SPDX-License-Identifier: Apache-2.0
#include "chain/workers.hpp"

#include "io/interface.hpp"

#include <sched.h>
#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

namespace catena::chain {
namespace {

/// "3" or "2-5".
bool parse_range(std::string_view text, std::uint32_t& first, std::uint32_t& last) {
  constexpr std::uint64_t kMaxCore = CPU_SETSIZE - 1;
  const std::size_t dash = text.find('-');
  const std::optional<std::uint64_t> low = parse_decimal(text.substr(0, dash), kMaxCore);
  const std::optional<std::uint64_t> high =
      dash == std::string_view::npos ? low : parse_decimal(text.substr(dash + 1), kMaxCore);
  first = static_cast<std::uint32_t>(low.value_or(0));
  last = static_cast<std::uint32_t>(high.value_or(0));
  return low && high && first <= last;
}

/// Where the kernel has the interface of rx it works as much as we do.
std::uint32_t cores_beside_kernel(PortConfig const& rx, std::uint32_t cores) {
  const bool by_kernel = std::any_of(rx.devices.begin(), rx.devices.end(),
                                     [](std::string const& device) { return !io::interface_of(device).empty(); });
  return std::max(1U, by_kernel ? cores / 2 : cores);
}

/// Of its NFs, in one shard.
std::uint32_t processes_of(ChainConfig const& config) {
  std::uint32_t processes = 0;
  for (std::size_t nf = 0; nf < config.nfs.size(); nf = group_of(config, nf).end) {
    processes += config.nfs[nf].isolation == Isolation::kProcess ? 1 : 0;
  }
  return processes;
}

}  // namespace

std::vector<std::uint32_t> usable_cores() {
  std::vector<std::uint32_t> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) {
        cores.push_back(core);
      }
    }
  }
  return cores;
}

Result<std::vector<std::uint32_t>> parse_cores(std::string_view text) {
  const std::vector<std::uint32_t> usable = usable_cores();
  const auto wrong = [&](std::string_view what) {
    std::string list;
    for (const std::uint32_t core : usable) {
      list += concat(list.empty() ? "" : ",", core);
    }
    return absl::InvalidArgumentError(
        concat("'", text, "': ", what, "; write cores as 0,2-5; this process may use: ", list));
  };
  std::vector<std::uint32_t> cores;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    if (!parse_range(rest.substr(0, comma), first, last)) {
      return wrong(
          concat("'", rest.substr(0, comma), "' is no core and no range", leading_zeros_advice(rest.substr(0, comma))));
    }
    for (std::uint32_t core = first; core <= last; ++core) {
      if (std::find(cores.begin(), cores.end(), core) != cores.end()) {
        return wrong(concat("core ", core, " is listed twice"));
      }
      if (!std::binary_search(usable.begin(), usable.end(), core)) {
        return wrong(concat("core ", core, " is not one of them"));
      }
      cores.push_back(core);
    }
    if (comma == std::string_view::npos) {
      return cores;
    }
    rest.remove_prefix(comma + 1);
  }
}

std::uint32_t default_workers(PortConfig const& rx, std::size_t stages, std::uint32_t cores) {
  return std::min(cores_beside_kernel(rx, cores), static_cast<std::uint32_t>(stages));
}

std::uint32_t auto_shards(ChainConfig const& config, bool own_ends, std::uint32_t cores) {
  const auto is_any = [&config](plan::Processor on) {
    return std::any_of(config.nfs.begin(), config.nfs.end(),
                       [on](NfConfig const& nf) { return nf.is_auto || nf.on == on; });
  };
  cores = cores_beside_kernel(config.rx, cores);
  // dividing costs rx what a device would gain
  std::uint32_t shards = 1;
  if (own_ends) {
    shards = is_any(plan::Processor::kGpu) ? cores / 4 : cores;
  } else if (is_any(plan::Processor::kCpu) && cores > 2) {
    shards = cores - 2;
  }
  shards /= 1 + processes_of(config);  // each has a core, in each shard
  const auto least = static_cast<std::uint32_t>(std::max<std::size_t>(1, config.devices.size()));
  const auto most = static_cast<std::uint32_t>(memory::kMaxQueues / std::max<std::size_t>(1, queues_of(config)));
  return std::max(least, std::min({shards, kMaxShards, most}));
}

}  // namespace catena::chain
