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

namespace {

Status put_sharing_over(std::string const& share, std::string const& parts, std::uint32_t compute_units,
                        SharingConfig& sharing) {
  if (!share.empty()) {
    CATENA_ASSIGN_OR_RETURN(sharing.mode, share::parse_mode(share));
  }
  if (!parts.empty()) {
    CATENA_ASSIGN_OR_RETURN(sharing.parts, share::parse_parts(parts));
  }
  sharing.compute_units = compute_units == 0 ? sharing.compute_units : compute_units;
  return absl::OkStatus();
}

Status put_over(OptionTexts const& texts, RunConfig& run) {
  const auto put_file = [](std::string const& path, const char* option, FileName& file) {
    if (!path.empty()) {
      file = {path, option};
    }
  };
  put_file(texts.record, "--record", run.outputs.record);
  put_file(texts.eve, "--eve", run.outputs.eve);
  put_file(texts.trace, "--trace", run.outputs.trace);
  put_file(texts.profile, "--profile", run.transfers.profile);
  if (!texts.sync.empty()) {
    CATENA_ASSIGN_OR_RETURN(run.transfers.mode, parse_sync_option(texts.sync));
  }
  if (!texts.pushdown.empty()) {
    run.transfers.pushdown = texts.pushdown != "off";
  }
  if (!texts.methods.empty()) {
    CATENA_ASSIGN_OR_RETURN(run.transfers.methods, parse_methods_option(texts.methods));
  }
  if (!texts.cores.empty()) {
    CATENA_ASSIGN_OR_RETURN(run.cores, parse_cores(texts.cores));
  }
  run.workers = texts.workers == 0 ? run.workers : texts.workers;
  return put_sharing_over(texts.share, texts.parts, texts.compute_units, run.sharing);
}

Result<std::optional<SharingOptions>> sharing_options_of(SharingConfig const& sharing) {
  if (sharing.mode) {
    return SharingOptions{*sharing.mode, sharing.parts, sharing.compute_units};
  }
  return sharing.parts || sharing.compute_units != 0
             ? absl::InvalidArgumentError("'parts' and 'compute_units' of 'sharing' take 'mode', as --share has it")
             : Result<std::optional<SharingOptions>>(std::nullopt);
}

}  // namespace

Result<std::optional<SharingOptions>> sharing_options_of(std::string const& share, std::string const& parts,
                                                         std::uint32_t compute_units) {
  SharingConfig sharing;
  CATENA_RETURN_IF_ERROR(put_sharing_over(share, parts, compute_units, sharing));
  return sharing_options_of(sharing);
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
  CATENA_RETURN_IF_ERROR(put_over(texts, config.run));
  RunConfig const& run = config.run;
  options.sync.mode = run.transfers.mode;
  options.sync.pushdown = run.transfers.pushdown;
  options.sync.methods = run.transfers.methods;
  if (run.transfers.profile.path.empty()) {
    options.profiles = ProfileStore::from_environment();
  } else {
    CATENA_ASSIGN_OR_RETURN(options.sync.profile, load_profile(run.transfers.profile.path));
    options.profile_path = run.transfers.profile.path;
  }
  CATENA_ASSIGN_OR_RETURN(options.sharing, sharing_options_of(run.sharing));
  options.record_path = run.outputs.record.path;
  options.eve_path = run.outputs.eve.path;
  options.trace_path = run.outputs.trace.path;
  options.new_keys = texts.new_keys;
  options.cores = run.cores;
  options.workers = run.workers;
  CATENA_RETURN_IF_ERROR(apply(options, config));
  const std::size_t stages = config.shards * (config.nfs.size() + 2);  // where each has an rx and a tx
  if (run.workers != 0) {
    options.workers = std::min(run.workers, static_cast<std::uint32_t>(stages));
  } else if (!options.cores.empty()) {
    options.workers = static_cast<std::uint32_t>(std::min(options.cores.size(), stages));
  } else {
    const auto usable = static_cast<std::uint32_t>(usable_cores().size());
    options.workers = default_workers(config.rx, stages, usable);
  }
  return options;
}

}  // namespace catena::chain
