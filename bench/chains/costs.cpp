// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/costs.hpp"

#include "chain/chain_file.hpp"

#include <chrono>
#include <utility>

namespace catena::bench {

Result<profile::NfMeasurements> measure_costs(PaperChain const& chain, ChainText text,
                                              std::vector<std::uint32_t> const& wire_bytes, double seconds,
                                              chain::CostProfile const& profile, device::Device& device,
                                              Workplace const& workplace) {
  CATENA_ASSIGN_OR_RETURN(text.sa_file, write_sa(workplace.data, workplace.folder, spi_of(0), 1));
  CATENA_ASSIGN_OR_RETURN(const chain::ChainConfig config,
                          chain::parse_chain(chain_text(chain, text), (workplace.data / "costs.yaml").string()));
  profile::NfMeasureOptions options;
  options.packet_bytes.clear();
  for (const std::uint32_t bytes : wire_bytes) {
    options.packet_bytes.push_back(bytes - kFcsBytes);
  }
  options.limit = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  chain::SyncOptions sync;
  sync.profile = profile;
  return profile::measure_nfs(device, config, *workplace.registry, sync, options,
                              [](profile::MeasureProgress const&) {});
}

}  // namespace catena::bench
