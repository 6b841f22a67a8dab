// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_counts.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace catena::runtime {

void add_counts(nf_process::SharedCounts const& of, std::vector<std::uint64_t>& seen, nf::Counters& counters) {
  const std::array<std::pair<std::atomic<std::uint64_t> const*, Counter*>, 9> all{{
      {&of.processed, &counters.processed},
      {&of.unsupported, &counters.unsupported},
      {&of.link_local, &counters.link_local},
      {&of.kernel_faults, &counters.kernel_faults},
      {&of.device_packets, &counters.device_packets},
      {&of.launches, &counters.launches},
      {&of.transfer_packets, &counters.transfers.packets},
      {&of.bytes_to_device, &counters.transfers.bytes_to_device},
      {&of.bytes_to_host, &counters.transfers.bytes_to_host},
  }};
  const std::size_t own = all.size() + 1;  // the last one is the total of the kinds
  seen.resize(own + of.uninspected.size());
  const auto grown = [&seen](std::size_t i, std::atomic<std::uint64_t> const& count) {
    const std::uint64_t now = count.load(std::memory_order_acquire);
    const std::uint64_t before = std::exchange(seen[i], std::max(seen[i], now));
    return seen[i] - before;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    *all[i].second += grown(i, *all[i].first);
  }
  if (grown(all.size(), of.uninspected_total) > 0) {
    for (std::size_t kind = 0; kind < of.uninspected.size(); ++kind) {
      counters.uninspected.count(kind, grown(own + kind, of.uninspected[kind]));
    }
  }
}

}  // namespace catena::runtime
