// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chain/copy_profile.hpp"
#include "stack/process/stack_process.hpp"

/// The copies of `catena stack run`: their options, engine and threshold.
namespace catena::cli {

struct CopyArguments {
  std::string copy = "cpu";
  std::vector<std::string> engines{"cpu"};  ///< a later one replaces a lost one
  std::optional<std::uint32_t> threshold;
  std::uint32_t poll_at = stack::TxOptions().poll_at;
  /// An option that only some modes use.
  struct Conditional {
    CLI::Option* option;
    std::string_view modes;  ///< as a user writes them
    bool (*is_used_by)(stack::CopyMode);
  };
  std::vector<Conditional> conditional;
};

/// --copy, --engine, --threshold and --poll-at.
void add_copy_options(CLI::App& command, CopyArguments& arguments);
/// Sets mode, engine and poll_at. InvalidArgument: an option is given that the mode does not use.
Status set_copies(CopyArguments const& arguments, stack::StackSettings& settings);
/// Gives the process the needs of its engines, if its mode uses them, and the threshold, if its mode has one: this is
/// returned. May start threads of drivers. Errors: as EngineKind::needs() and EngineKind::probe().
Result<std::optional<chain::CopyThreshold>> prepare_copies(CopyArguments const& arguments,
                                                           stack::StackProcessOptions& process);
/// By the first engine: "by cuda from 16384 B on, by the profile measured 2026-11-29"
std::string describe(CopyArguments const& arguments, chain::CopyThreshold const& threshold);

}  // namespace catena::cli
