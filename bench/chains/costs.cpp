// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/costs.hpp"

#include "chain/chain_file.hpp"
#include "chain/nf_costs.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace catena::bench {
namespace {

Result<chain::ChainConfig> config_of_copy(PaperChain const& chain, ChainText text, std::uint32_t copy,
                                          Workplace const& workplace) {
  CATENA_ASSIGN_OR_RETURN(text.sa_file, write_sa(workplace.data, workplace.folder, spi_of(copy), 1));
  return chain::parse_chain(chain_text(chain, text), (workplace.data / "costs.yaml").string());
}

/// The entries of `known`, which are there already, once more under another key.
template <class Entry>
void add_under(chain::NfKey const& other, chain::NfKey const& known, std::vector<Entry>& entries) {
  for (std::size_t i = 0, count = entries.size(); i < count; ++i) {
    if (entries[i].key == known) {
      entries.push_back(entries[i]);
      entries.back().key = other;
    }
  }
}

}  // namespace

Result<profile::NfMeasurements> measure_costs(PaperChain const& chain, ChainText const& text,
                                              std::vector<std::uint32_t> const& wire_bytes, double seconds,
                                              chain::CostProfile const& profile, device::Device& device,
                                              Workplace const& workplace, std::uint32_t copies) {
  CATENA_ASSIGN_OR_RETURN(const chain::ChainConfig config, config_of_copy(chain, text, 0, workplace));
  profile::NfMeasureOptions options;
  options.packet_bytes.clear();
  for (const std::uint32_t bytes : wire_bytes) {
    options.packet_bytes.push_back(bytes - kFcsBytes);
  }
  options.limit = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  chain::SyncOptions sync;
  sync.profile = profile;
  CATENA_ASSIGN_OR_RETURN(
      profile::NfMeasurements measured,
      profile::measure_nfs(device, config, *workplace.registry, sync, options, [](profile::MeasureProgress const&) {}));
  for (std::uint32_t copy = 1; copy < copies; ++copy) {
    CATENA_ASSIGN_OR_RETURN(const chain::ChainConfig other, config_of_copy(chain, text, copy, workplace));
    for (std::size_t nf = 0; nf < config.nfs.size(); ++nf) {
      CATENA_ASSIGN_OR_RETURN(const chain::NfKey known, chain::key_of_unmade(config.nfs[nf], {}));
      CATENA_ASSIGN_OR_RETURN(const chain::NfKey key, chain::key_of_unmade(other.nfs[nf], {}));
      if (key != known) {
        add_under(key, known, measured.nfs);
        add_under(key, known, measured.on_cpu);
      }
    }
  }
  return measured;
}

}  // namespace catena::bench
