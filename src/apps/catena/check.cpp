// SPDX-License-Identifier: Apache-2.0
#include "chain/check.hpp"

#include <catena/core/text.hpp>

#include "apps/catena/check_kernel.hpp"
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/known_nfs.hpp"
#include "apps/catena/profile_option.hpp"
#include "apps/catena/style.hpp"
#include "chain/diagnostics.hpp"
#include "chain/error_list.hpp"
#include "chain/layout.hpp"
#include "chain/machine_check.hpp"
#include "chain/planning.hpp"
#include "chain/port_kind.hpp"
#include "pipeline/isolation.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::cli {
namespace {

using Refused = std::vector<chain::RefusedRules>;

/// What a check finds beside errors.
struct Checked {
  std::size_t nfs = 0;                     ///< of the chain
  std::vector<std::string> warnings = {};  ///< of what is allowed and not wise
  Refused refused;
  std::optional<chain::Placement> placement;                          ///< where an NF is `on: auto`
  std::vector<std::pair<std::string, static_check::Report>> kernels;  ///< by the NF's name
};

nlohmann::ordered_json to_json(Refused const& refused) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (chain::RefusedRules const& nf : refused) {
    for (nf::Refusal const& rule : nf.rules) {
      list.push_back({{"nf", nf.nf},
                      {"file", rule.file},
                      {"line", rule.line},
                      {"column", rule.column},
                      {"reason", rule.reason},
                      {"detail", rule.detail}});
    }
  }
  return list;
}

/// Numbers of rules, by the NF's name.
nlohmann::ordered_json counts_of(Refused const& refused) {
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  for (chain::RefusedRules const& nf : refused) {
    counts[nf.nf] = {{"applied", nf.applied}, {"of", nf.applied + nf.rules.size()}};
  }
  return counts;
}

/// How many rules each NF applies, and which it does not; `all`: each refused rule.
void print(Refused const& refused, bool all) {
  for (chain::RefusedRules const& nf : refused) {
    std::cout << "NF '" << nf.nf << "' applies " << nf.applied << " of " << nf.applied + nf.rules.size() << " rules\n";
    if (nf.rules.empty()) {
      continue;
    }
    std::cout << "warning: NF '" << nf.nf << "' does not apply " << nf.rules.size()
              << (nf.rules.size() == 1 ? " rule: " : " rules: ") << nf::reasons_of(nf.rules)
              << (all ? "\n" : "; `catena check -v` lists them\n");
    for (nf::Refusal const& rule : nf.rules) {
      if (all) {
        std::cout << to_string(rule) << '\n';
      }
    }
  }
}

void print(std::optional<chain::Placement> const& placement) {
  for (std::string const& line : placement ? chain::describe(*placement) : std::vector<std::string>()) {
    std::cout << line << '\n';
  }
}

/// The kernels of the NFs on the gpu, as the chain's plan compiles them.
Status check_kernels(chain::ChainConfig const& config, chain::SyncOptions const& options, nf::Registry const& registry,
                     Checked& checked) {
  for (chain::NfConfig const& nf : config.nfs) {
    if (nf.on == plan::Processor::kGpu) {
      CATENA_ASSIGN_OR_RETURN(const auto programs, chain::adapted_programs(config, options, registry, nf.name));
      // the others move packets, and are the framework's
      CATENA_ASSIGN_OR_RETURN(static_check::Report report, static_check::check_kernel(programs.front().source));
      checked.kernels.emplace_back(nf.name, std::move(report));
    }
  }
  return absl::OkStatus();
}

Status check_chain(RunArguments const& arguments, Checked& checked) {
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config,
                          chain::load_chain(arguments.chain_file, arguments.options, chain::environment_variables()));
  checked.nfs = config.nfs.size();
  CATENA_ASSIGN_OR_RETURN(chain::RunOptions of_arguments, chain::run_options_of(config));
  of_arguments.new_keys = arguments.new_keys;
  runtime::RunOptions options{std::move(of_arguments)};
  CATENA_RETURN_IF_ERROR(runtime::allow_processes(config, options));
  CATENA_ASSIGN_OR_RETURN(const nf::Registry registry, known_nfs(arguments.nf_path));
  CATENA_ASSIGN_OR_RETURN(options.sync.profile, profile_for(config));
  const Result<chain::ChainLayout> layout = layout_for(config, options, registry, checked.placement);
  if (layout.ok()) {
    config = chain::with_layout(std::move(config), *layout);
    if (arguments.kernels) {
      CATENA_RETURN_IF_ERROR(check_kernels(config, options.sync, registry, checked));
    }
  }
  checked.warnings = chain::flow_warnings(config);
  // no error: the chain may be for another machine
  std::ranges::move(chain::missing_devices(config), std::back_inserter(checked.warnings));
  chain::Diagnostics diagnostics;
  // says all that is wrong with a chain whose NFs cannot be placed
  diagnostics.add(
      chain::check(config, options, options.processes.try_out, registry, checked.refused, nullptr, &checked.warnings));
  if (diagnostics.empty()) {
    diagnostics.add(layout.status());
  }
  if (diagnostics.empty() && config.rx.kind->rx.verify != nullptr) {
    diagnostics.add(config.rx.kind->rx.verify(config.rx));
  }
  return diagnostics.status();
}

}  // namespace

int check(RunArguments const& arguments) {
  Checked checked;
  const Status status = check_chain(arguments, checked);
  const bool kernels_pass = std::ranges::all_of(checked.kernels, [](auto const& kernel) { return kernel.second.ok(); });
  if (arguments.json) {
    nlohmann::ordered_json result{{"file", arguments.chain_file},
                                  {"ok", status.ok() && kernels_pass},
                                  {"errors", chain::errors_of(status)},
                                  {"warnings", checked.warnings},
                                  {"refused_rules", to_json(checked.refused)}};
    if (!checked.refused.empty()) {
      result["rules"] = counts_of(checked.refused);
    }
    if (arguments.kernels) {
      result["kernels"] = nlohmann::ordered_json::object();
      for (auto const& [nf, report] : checked.kernels) {
        result["kernels"][nf] = to_json(report);
      }
    }
    if (checked.placement) {
      result["placement"] = chain::to_json(*checked.placement);
    }
    print_json(std::cout, result);
  } else {
    if (status.ok()) {
      print(checked.refused, arguments.verbose);
      std::cout << arguments.chain_file << ": fine, " << checked.nfs << (checked.nfs == 1 ? " NF\n" : " NFs\n");
      for (std::string const& warning : checked.warnings) {
        std::cout << "WARNING " << warning << '\n';
      }
      print(checked.placement);
    } else {
      std::cerr << std::string(status.message()) << '\n';
    }
    for (auto const& [nf, report] : checked.kernels) {
      print(report, concat("kernel of NF '", nf, "'"));
    }
  }
  return status.ok() && kernels_pass ? kExitOk : kExitFailed;
}

}  // namespace catena::cli
