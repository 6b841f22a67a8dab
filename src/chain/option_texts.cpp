// SPDX-License-Identifier: Apache-2.0
#include "chain/option_texts.hpp"

#include "chain/workers.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace catena::chain {

Result<std::vector<device::DevicePreference>> parse_devices(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t comma = 0; comma != std::string_view::npos; text.remove_prefix(comma + 1)) {
    comma = text.find(',');
    names.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) {
      break;
    }
  }
  return device::parse_preferences(names);
}

Result<std::optional<SharingOptions>> sharing_options_of(std::string const& share, std::string const& parts,
                                                         std::uint32_t compute_units) {
  if (share.empty()) {
    return parts.empty() && compute_units == 0
               ? Result<std::optional<SharingOptions>>(std::nullopt)
               : absl::InvalidArgumentError(
                     "--parts and --compute-units say how NFs share a device; they take --share");
  }
  SharingOptions sharing;
  CATENA_ASSIGN_OR_RETURN(sharing.mode, share::parse_mode(share));
  sharing.compute_units = compute_units;
  if (!parts.empty()) {
    CATENA_ASSIGN_OR_RETURN(sharing.parts, share::parse_parts(parts));
  }
  return sharing;
}

Result<RunOptions> run_options_of(OptionTexts const& texts, ChainConfig& config) {
  RunOptions options;
  if (!texts.rx.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.rx, parse_rx_option(texts.rx));
  }
  if (!texts.tx.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.tx, parse_tx_option(texts.tx));
  }
  if (!texts.device.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.devices, parse_devices(texts.device));
  }
  if (!texts.sync.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.sync.mode, parse_sync_option(texts.sync));
  }
  options.sync.pushdown = texts.pushdown != "off";
  if (!texts.methods.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.sync.methods, parse_methods_option(texts.methods));
  }
  if (texts.profile.empty()) {
    options.profiles = ProfileStore::from_environment();
  } else {
    CATENA_ASSIGN_OR_RETURN(options.sync.profile, load_profile(texts.profile));
    options.profile_path = texts.profile;
  }
  CATENA_ASSIGN_OR_RETURN(options.sharing, sharing_options_of(texts.share, texts.parts, texts.compute_units));
  options.record_path = texts.record;
  options.eve_path = texts.eve;
  options.trace_path = texts.trace;
  options.new_keys = texts.new_keys;
  if (!texts.cores.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.cores, parse_cores(texts.cores));
  }
  options.workers = texts.workers;
  CATENA_RETURN_IF_ERROR(apply(options, config));
  const std::size_t stages = config.shards * (config.nfs.size() + 2);  // where each has an rx and a tx
  if (texts.workers != 0) {
    options.workers = std::min(texts.workers, static_cast<std::uint32_t>(stages));
  } else if (!options.cores.empty()) {
    options.workers = static_cast<std::uint32_t>(std::min(options.cores.size(), stages));
  } else {
    const auto usable = static_cast<std::uint32_t>(usable_cores().size());
    options.workers = default_workers(config.rx, stages, usable);
  }
  return options;
}

}  // namespace catena::chain
