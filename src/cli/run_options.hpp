// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "cli/commands.hpp"

namespace catena::cli {

/// What the command line says of a run of a chain. InvalidArgument says what is allowed.
Result<chain::RunOptions> run_options_of(RunArguments const& arguments, chain::ChainConfig const& config);

}  // namespace catena::cli
