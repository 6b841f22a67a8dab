// SPDX-License-Identifier: Apache-2.0
#include "chain/chain.hpp"
#include "cli/commands.hpp"
#include "cli/known_nfs.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

namespace catena::cli {
namespace {

using Refused = std::vector<chain::RefusedRules>;

nlohmann::ordered_json to_json(Refused const& refused) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (chain::RefusedRules const& nf : refused) {
    for (nf::Refusal const& rule : nf.rules) {
      list.push_back(
          {{"nf", nf.nf}, {"file", rule.file}, {"line", rule.line}, {"column", rule.column}, {"reason", rule.reason}});
    }
  }
  return list;
}

/// Warnings; `all`: each refused rule instead of how many there are.
void print(Refused const& refused, bool all) {
  for (chain::RefusedRules const& nf : refused) {
    std::cout << "warning: NF '" << nf.nf << "' does not apply " << nf.rules.size()
              << (nf.rules.size() == 1 ? " rule: " : " rules: ") << nf::reasons_of(nf.rules)
              << (all ? "\n" : "; `catena check -v` lists them\n");
    for (nf::Refusal const& rule : nf.rules) {
      if (all) {
        std::cout << rule.file << ':' << rule.line << ':' << rule.column << ": not applied: " << rule.reason << '\n';
      }
    }
  }
}

}  // namespace

int check(std::string const& chain_file, bool json, bool verbose, std::string const& nf_path) {
  Status status;
  std::size_t nfs = 0;
  Refused refused;
  if (Result<chain::ChainConfig> config = chain::load_chain(chain_file); config.ok()) {
    nfs = config->nfs.size();
    const Result<nf::Registry> registry = known_nfs(nf_path);
    status = registry.ok() ? chain::check(*config, *registry, refused) : registry.status();
  } else {
    status = config.status();
  }
  const std::string message(status.message());
  if (json) {
    std::cout << nlohmann::ordered_json{{"file", chain_file},
                                        {"ok", status.ok()},
                                        {"error", message},
                                        {"refused_rules", to_json(refused)}}
                     .dump(2)
              << '\n';
  } else if (status.ok()) {
    std::cout << chain_file << ": fine, " << nfs << (nfs == 1 ? " NF\n" : " NFs\n");
    print(refused, verbose);
  } else {
    std::cerr << message << '\n';
  }
  return status.ok() ? kExitOk : kExitFailed;
}

}  // namespace catena::cli
