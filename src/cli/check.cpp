// SPDX-License-Identifier: Apache-2.0
#include "chain/check.hpp"
#include "cli/commands.hpp"
#include "cli/fail.hpp"
#include "cli/known_nfs.hpp"
#include "cli/run_options.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

namespace catena::cli {
namespace {

Result<std::size_t> checked_nfs(RunArguments const& arguments) {
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config, chain::load_chain(arguments.chain_file));
  const std::size_t nfs = config.nfs.size();
  CATENA_ASSIGN_OR_RETURN(const chain::RunOptions options, run_options_of(arguments, nfs + 2));
  CATENA_ASSIGN_OR_RETURN(const nf::Registry registry, known_nfs(arguments.nf_path));
  CATENA_RETURN_IF_ERROR(chain::check(std::move(config), options, registry));
  return nfs;
}

}  // namespace

int check(RunArguments const& arguments) {
  const Result<std::size_t> nfs = checked_nfs(arguments);
  if (arguments.json) {
    std::cout << nlohmann::ordered_json{{"file", arguments.chain_file},
                                        {"ok", nfs.ok()},
                                        {"errors", errors_of(nfs.status())}}
                     .dump(2)
              << '\n';
  } else if (nfs.ok()) {
    std::cout << arguments.chain_file << ": fine, " << *nfs << (*nfs == 1 ? " NF\n" : " NFs\n");
  } else {
    std::cerr << std::string(nfs.status().message()) << '\n';
  }
  return nfs.ok() ? kExitOk : kExitFailed;
}

}  // namespace catena::cli
