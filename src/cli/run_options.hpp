// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "cli/commands.hpp"

namespace catena::cli {

/// The `--device` of a command line: one, or several with commas between them. As device::parse_preferences().
Result<std::vector<device::DevicePreference>> parse_devices(std::string_view text);

/// What the command line says of a run of a chain; chooses its shards where the file leaves their number open.
/// InvalidArgument says what is allowed.
Result<chain::RunOptions> run_options_of(RunArguments const& arguments, chain::ChainConfig& config);

}  // namespace catena::cli
