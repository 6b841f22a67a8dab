// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

/// The command line itself: what is typed wrong, help, completion and manual page, all from the tree of commands.
namespace catena::cli {

/// What is wrong with a command line that CLI11 refused, and what was probably meant: "there is no command 'rum'; did
/// you mean 'run'?". Empty where CLI11's own message says enough. `words`: the command line without the program.
std::string usage_error(CLI::App const& app, std::vector<std::string> const& words);

/// `catena help COMMAND...`: the help of that command. False if there is none.
bool print_help(CLI::App const& app, std::vector<std::string> const& command);

/// A script that completes commands and options of `app` in `shell`: "bash", "zsh" or "fish".
std::string completion_script(CLI::App const& app, std::string const& shell);

/// The manual page, section 1, in the man macros of roff.
std::string manual_page(CLI::App const& app, std::string const& version);

}  // namespace catena::cli
