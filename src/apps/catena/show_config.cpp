// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/whole_paths.hpp"
#include "chain/effective.hpp"

#include <iostream>

namespace catena::cli {

int show_config(RunArguments const& arguments) {
  const Result<chain::ChainConfig> config =
      chain::load_chain(arguments.chain_file, with_whole_paths(arguments.options));
  if (!config.ok()) {
    return fail(config.status());
  }
  std::cout << chain::effective_text(*config);
  return kExitOk;
}

}  // namespace catena::cli
