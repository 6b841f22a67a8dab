// SPDX-License-Identifier: Apache-2.0
#include "chain/chain.hpp"
#include "cli/commands.hpp"
#include "cli/known_nfs.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

namespace catena::cli {

int check(std::string const& chain_file, bool json, std::string const& nf_path) {
  Status status;
  std::size_t nfs = 0;
  if (Result<chain::ChainConfig> config = chain::load_chain(chain_file); config.ok()) {
    nfs = config->nfs.size();
    const Result<nf::Registry> registry = known_nfs(nf_path);
    status = registry.ok() ? chain::check(*config, *registry) : registry.status();
  } else {
    status = config.status();
  }
  const std::string message(status.message());
  if (json) {
    std::cout << nlohmann::ordered_json{{"file", chain_file}, {"ok", status.ok()}, {"error", message}}.dump(2) << '\n';
  } else if (status.ok()) {
    std::cout << chain_file << ": fine, " << nfs << (nfs == 1 ? " NF\n" : " NFs\n");
  } else {
    std::cerr << message << '\n';
  }
  return status.ok() ? kExitOk : kExitFailed;
}

}  // namespace catena::cli
