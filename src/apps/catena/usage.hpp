// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

/// The command line itself: usage errors, help, completion and manual page, all from the tree of commands.
namespace catena::cli {

/// Adds an example to the help of each command. Call it after the last command was added.
void add_examples(CLI::App& app);

/// Explains a command line refused by CLI11 and suggests a correction: "there is no command 'rum'; did you mean
/// 'run'?". Empty if CLI11's own message suffices. `words`: the command line without the program.
std::string usage_error(CLI::App const& app, std::vector<std::string> const& words);

/// `catena help COMMAND...`: prints the help of the command. False if it does not exist.
bool print_help(CLI::App const& app, std::vector<std::string> const& command);

/// A shell script for the completion of commands and options of `app`. `shell`: "bash", "zsh" or "fish".
std::string completion_script(CLI::App const& app, std::string const& shell);

/// The manual page, section 1, in the man macros of roff.
std::string manual_page(CLI::App const& app, std::string const& version);

}  // namespace catena::cli
