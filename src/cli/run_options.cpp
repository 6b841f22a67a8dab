// SPDX-License-Identifier: Apache-2.0
#include "cli/run_options.hpp"

#include <algorithm>
#include <thread>

namespace catena::cli {

Result<chain::RunOptions> run_options_of(RunArguments const& arguments, std::size_t stages) {
  chain::RunOptions options;
  if (!arguments.rx.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.rx, chain::parse_rx_option(arguments.rx));
  }
  if (!arguments.tx.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.tx, chain::parse_tx_option(arguments.tx));
  }
  if (!arguments.device.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.device, device::parse_choice(arguments.device));
  }
  if (!arguments.sync.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.sync.mode, chain::parse_sync_option(arguments.sync));
  }
  options.sync.pushdown = arguments.pushdown != "off";
  if (arguments.profile.empty()) {
    options.profiles = chain::ProfileStore::from_environment();
  } else {
    CATENA_ASSIGN_OR_RETURN(options.sync.profile, chain::load_profile(arguments.profile));
    options.profile_path = arguments.profile;
  }
  options.record_path = arguments.record;
  options.trace_path = arguments.trace;
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  options.workers = std::min(arguments.workers == 0 ? cores : arguments.workers, static_cast<std::uint32_t>(stages));
  return options;
}

}  // namespace catena::cli
