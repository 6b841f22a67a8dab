// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/service_client.hpp"
#include "apps/catena/whole_paths.hpp"
#include "chain/effective.hpp"

#include <catena/core/text.hpp>

#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

namespace catena::cli {
namespace {

/// A missing file, too, whose error is more help than the one of a service.
bool is_file(std::string const& name) {
  std::error_code error;
  return (std::filesystem::exists(name, error) && !std::filesystem::is_directory(name, error)) ||
         name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
}

Result<std::string> config_of_service(RunArguments const& arguments, std::string const& socket) {
  if (!arguments.options.empty()) {
    return absl::InvalidArgumentError(concat(
        "'", arguments.chain_file, "' is no file, and a chain of the service has the options it was applied with"));
  }
  const std::string path = service::resource_path("/v1/chains/NAME/config", arguments.chain_file);
  CATENA_ASSIGN_OR_RETURN(const nlohmann::ordered_json answer, ask_service(socket, "GET", path));
  return answer.value("config", "");
}

Result<std::string> config_of_file(RunArguments const& arguments) {
  CATENA_ASSIGN_OR_RETURN(
      const chain::ChainConfig config,
      chain::load_chain(arguments.chain_file, with_whole_paths(arguments.options), chain::environment_variables()));
  return chain::effective_text(config);
}

}  // namespace

int show_config(RunArguments const& arguments, std::string const& socket) {
  const Result<std::string> config =
      is_file(arguments.chain_file) ? config_of_file(arguments) : config_of_service(arguments, socket);
  if (!config.ok()) {
    return fail(config.status());
  }
  std::cout << *config;
  return kExitOk;
}

}  // namespace catena::cli
