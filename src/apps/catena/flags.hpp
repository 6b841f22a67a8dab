// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/catena/commands.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// Options shared by several commands. Their target variables must still exist when the command line is parsed.
namespace catena::cli {

/// The group, in the help of a command, of options for chains with NFs on a GPU.
inline constexpr const char* kGpuGroup = "GPU options";

/// The names of copy engines, for `--engine`.
std::vector<std::string> engine_names();
/// --socket.
void add_socket(CLI::App& command, std::string& socket);
/// --device-servers.
void add_device_servers(CLI::App& command, std::string& servers);
/// The option that is this row of chain::option_keys(), for `options`.
void add_option_key(CLI::App& command, std::string_view name, chain::GivenOptions& options);
/// --share, --parts and --compute-units.
void add_share_options(CLI::App& command, chain::GivenOptions& sharing);
/// The chain file, and all options that are put over it.
void add_chain_options(CLI::App& command, RunArguments& arguments);
/// The same for a start, with its consents.
void add_run_options(CLI::App& command, RunArguments& arguments);
/// Consents that hold for one start or change.
void add_consents(CLI::App& command, Consents& consents);
/// Of the options of `command` and of its own commands: numbers are decimal, where CLI11 takes 010 for 8, and no value
/// is empty, which would be the default. After the last option was added.
void check_values(CLI::App& command);
/// `catena profile`, without its action.
CLI::App* add_profile_command(CLI::App& app, ProfileArguments& arguments);
/// The commands of a service and of its clients. Each sets `status` to its exit status when it is done.
void add_service_commands(CLI::App& app, RunArguments& run, ServiceArguments& service, std::string const& nf_path,
                          int& status);
/// `catena stack`; sets `status` to its exit status when it is done.
void add_stack_commands(CLI::App& app, int& status);

}  // namespace catena::cli
