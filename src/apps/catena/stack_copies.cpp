// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/stack_copies.hpp"

#include "apps/catena/flags.hpp"
#include "stack/copy/engine_table.hpp"

#include <catena/core/text.hpp>

namespace catena::cli {
namespace {

chain::CopyThreshold threshold_for(CopyArguments const& arguments) {
  if (arguments.threshold) {
    return {*arguments.threshold, "by --threshold"};
  }
  std::string const& engine = arguments.engines.front();
  if (engine == hostcopy::kCpuEngine) {
    return {chain::CopyThreshold::kDefault, "the default: the engine is the CPU itself"};
  }
  return chain::choose_threshold(chain::ProfileStore::from_environment(), chain::CopyEngine::of(engine),
                                 chain::CopyEngine::of(hostcopy::kCpuEngine));
}

}  // namespace

void add_copy_options(CLI::App& command, CopyArguments& arguments) {
  command.add_option("--copy", arguments.copy, concat("Copies of sent bytes: ", stack::copy_mode_names()))
      ->check([](std::string const& name) {
        return stack::copy_mode_of(name) ? std::string() : concat("one of ", stack::copy_mode_names());
      })
      ->capture_default_str();
  arguments.conditional = {
      {command
           .add_option("--engine", arguments.engines,
                       "With --copy sync, async or full: the engine, as `catena doctor` lists them, and after commas "
                       "the ones that replace it if it is lost")
           ->delimiter(',')
           ->allow_extra_args(false)
           ->check(CLI::IsMember(engine_names()))
           ->capture_default_str(),
       "sync, async or full", &stack::uses_engine},
      {command.add_option("--threshold", arguments.threshold,
                          "With --copy full: bytes from which on the engine copies; default: by the profile of "
                          "`catena profile --copies`, else 1024"),
       "full", [](stack::CopyMode mode) { return mode == stack::CopyMode::kFull; }},
      {command
           .add_option("--poll-at", arguments.poll_at,
                       "With --copy async or full: copies in flight at which engines are polled at once")
           ->capture_default_str(),
       "async or full",
       [](stack::CopyMode mode) { return mode == stack::CopyMode::kAsync || mode == stack::CopyMode::kFull; }}};
}

Status set_copies(CopyArguments const& arguments, stack::StackSettings& settings) {
  settings.tx.mode = *stack::copy_mode_of(arguments.copy);
  settings.tx.poll_at = arguments.poll_at;
  settings.engines = arguments.engines;
  for (CopyArguments::Conditional const& one : arguments.conditional) {
    if (one.option->count() > 0 && !one.is_used_by(settings.tx.mode)) {
      return absl::InvalidArgumentError(
          concat(one.option->get_name(), " has no effect with --copy ", arguments.copy, ": write --copy ", one.modes));
    }
  }
  return absl::OkStatus();
}

Result<std::optional<chain::CopyThreshold>> prepare_copies(CopyArguments const& arguments,
                                                           stack::StackProcessOptions& process) {
  stack::TxOptions& tx = process.settings.tx;
  if (!stack::uses_engine(tx.mode)) {
    return std::nullopt;
  }
  for (std::string const& engine : arguments.engines) {
    CATENA_ASSIGN_OR_RETURN(const hostcopy::EngineKind kind, hostcopy::find_kind(engine, stack::engine_table()));
    if (kind.needs != nullptr) {
      CATENA_ASSIGN_OR_RETURN(process.needs.emplace_back(), kind.needs());
    }
    CATENA_RETURN_IF_ERROR(kind.probe());
  }
  if (tx.mode != stack::CopyMode::kFull) {
    return std::nullopt;
  }
  chain::CopyThreshold threshold = threshold_for(arguments);
  tx.threshold = threshold.bytes;
  return threshold;
}

std::string describe(CopyArguments const& arguments, chain::CopyThreshold const& threshold) {
  std::string const& engine = arguments.engines.front();
  return threshold.bytes == chain::CopyThreshold::kNever
             ? concat("by the CPU, which takes less time than ", engine, " at each size, ", threshold.why,
                      "; --threshold BYTES uses ", engine, " all the same")
             : concat("by ", engine, " from ", threshold.bytes, " B on, ", threshold.why);
}

}  // namespace catena::cli
