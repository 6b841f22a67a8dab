// SPDX-License-Identifier: Apache-2.0
#include "chain/check.hpp"
#include "chain/error_list.hpp"
#include "cli/commands.hpp"
#include "cli/fail.hpp"
#include "cli/known_nfs.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <utility>
#include <vector>

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

/// How many NFs the chain has.
Result<std::size_t> checked_nfs(RunArguments const& arguments, Refused& refused) {
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config, chain::load_chain(arguments.chain_file));
  const std::size_t nfs = config.nfs.size();
  CATENA_ASSIGN_OR_RETURN(const chain::RunOptions options, chain::run_options_of(arguments, config));
  CATENA_ASSIGN_OR_RETURN(const nf::Registry registry, known_nfs(arguments.nf_path));
  CATENA_RETURN_IF_ERROR(chain::check(std::move(config), options, registry, refused));
  return nfs;
}

}  // namespace

int check(RunArguments const& arguments) {
  Refused refused;
  const Result<std::size_t> nfs = checked_nfs(arguments, refused);
  if (arguments.json) {
    std::cout << nlohmann::ordered_json{{"file", arguments.chain_file},
                                        {"ok", nfs.ok()},
                                        {"errors", chain::errors_of(nfs.status())},
                                        {"refused_rules", to_json(refused)}}
                     .dump(2)
              << '\n';
  } else if (nfs.ok()) {
    std::cout << arguments.chain_file << ": fine, " << *nfs << (*nfs == 1 ? " NF\n" : " NFs\n");
    print(refused, arguments.verbose);
  } else {
    std::cerr << std::string(nfs.status().message()) << '\n';
  }
  return nfs.ok() ? kExitOk : kExitFailed;
}

}  // namespace catena::cli
