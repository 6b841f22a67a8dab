// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "chain/copy_profile.hpp"
#include "profile/copy_measure.hpp"
#include "stack/copy/engine_table.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace catena::cli {
namespace {

using chain::CopyEngine;
using chain::CopyProfile;
using chain::MeasuredCopies;

std::string size_text(std::uint32_t bytes) { return fmt::format("{} KiB", bytes / 1024); }

/// From which size on `catena stack run --copy full` uses an engine by these figures; nullopt: never, or not measured.
std::optional<std::uint32_t> threshold_of(profile::EngineCopies const& engine,
                                          std::vector<profile::EngineCopies> const& all) {
  for (profile::EngineCopies const& other : all) {
    if (other.kind.name == hostcopy::kCpuEngine) {
      return chain::least_paying_bytes(engine.points, other.points);
    }
  }
  return std::nullopt;
}

void print(std::vector<profile::EngineCopies> const& engines, profile::CopyMeasureOptions const& options) {
  std::cout << fmt::format("{:<16}", "Gbps, CPU ns");
  for (const std::uint32_t size : options.sizes) {
    std::cout << fmt::format("  {:>16}", size_text(size));
  }
  std::cout << "  threshold\n";
  for (profile::EngineCopies const& engine : engines) {
    std::cout << fmt::format("{:<16}", engine.kind.name);
    for (chain::CopyPoint const& point : engine.points) {
      std::cout << fmt::format("  {:>7.1f} {:>8.0f}", point.gbps, point.cpu_ns);
    }
    const std::optional<std::uint32_t> threshold = threshold_of(engine, engines);
    std::cout << "  "
              << (!engine.status.ok() ? std::string(engine.status.message())
                  : threshold         ? size_text(*threshold)
                                      : "-")
              << '\n';
  }
  const std::optional<profile::ProposedThreshold> proposed = profile::propose_threshold(engines);
  std::cout << (proposed ? concat("\nfrom ", size_text(proposed->bytes), " on ", proposed->engine,
                                  " takes less time of the CPU than the CPU's own copies\n")
                         : std::string("\nno engine takes less time of the CPU than the CPU's own copies\n"));
}

nlohmann::ordered_json as_json(std::vector<profile::EngineCopies> const& engines, std::string const& file) {
  nlohmann::ordered_json json;
  json["engines"] = nlohmann::ordered_json::array();
  for (profile::EngineCopies const& engine : engines) {
    const std::optional<std::uint32_t> threshold = threshold_of(engine, engines);
    nlohmann::ordered_json entry = {
        {"name", std::string(engine.kind.name)},
        {"for_tests", engine.kind.is_for_tests},
        {"error", engine.status.ok() ? nullptr : nlohmann::ordered_json(std::string(engine.status.message()))},
        {"threshold", threshold ? nlohmann::ordered_json(*threshold) : nullptr},
        {"sizes", nlohmann::ordered_json::array()}};
    for (chain::CopyPoint const& point : engine.points) {
      entry["sizes"].push_back({{"bytes", point.bytes}, {"cpu_ns", point.cpu_ns}, {"gbps", point.gbps}});
    }
    json["engines"].push_back(entry);
  }
  const std::optional<profile::ProposedThreshold> proposed = profile::propose_threshold(engines);
  json["threshold"] = proposed ? nlohmann::ordered_json{{"engine", proposed->engine}, {"bytes", proposed->bytes}}
                               : nlohmann::ordered_json();
  json["file"] = file;
  return json;
}

/// The engines to be measured: one with that of the CPU, whose copies it is compared with; empty: all.
Result<std::vector<hostcopy::EngineKind>> kinds_for(std::string const& engine) {
  std::vector<hostcopy::EngineKind> table = stack::engine_table();
  if (!engine.empty()) {
    CATENA_RETURN_IF_ERROR(hostcopy::find_kind(engine, table).status());
    std::erase_if(table, [&engine](hostcopy::EngineKind const& kind) {
      return kind.name != engine && kind.name != hostcopy::kCpuEngine;
    });
  }
  return table;
}

/// Adds what was measured to the profile in `file`, which keeps its other engines if it is this machine's.
Status save(std::vector<profile::EngineCopies> const& engines, std::string const& file) {
  if (file.empty()) {
    return absl::UnavailableError("no folder for the profile: set HOME, or use --output FILE");
  }
  CopyProfile profile = CopyProfile::of_this_machine();
  if (Result<CopyProfile> before = chain::load_copy_profile(file);
      before.ok() && before->processor == profile.processor) {
    profile = *std::move(before);
  }
  for (profile::EngineCopies const& engine : engines) {
    if (engine.status.ok()) {
      keep(profile, MeasuredCopies{CopyEngine::of(engine.kind.name), chain::now_as_text(), engine.points});
    }
  }
  return chain::save_copy_profile(profile, file);
}

}  // namespace

int profile_copies(ProfileArguments const& arguments) {
  const Result<std::vector<hostcopy::EngineKind>> kinds = kinds_for(arguments.engine);
  if (!kinds.ok()) {
    return fail(kinds.status(), arguments.json);
  }
  const profile::CopyMeasureOptions options;
  const Result<std::vector<profile::EngineCopies>> engines = profile::measure_copies(
      *kinds, options, [](std::string_view engine) { std::cerr << concat("measuring ", engine, "\n"); });
  if (!engines.ok()) {
    return fail(engines.status(), arguments.json);
  }
  const std::string file =
      arguments.output.empty()
          ? chain::ProfileStore::from_environment().file_of_copies(CopyProfile::of_this_machine().processor).string()
          : arguments.output;
  const Status saved = save(*engines, file);
  if (arguments.json) {
    std::cout << as_json(*engines, saved.ok() ? file : "").dump(2) << '\n';
  } else {
    print(*engines, options);
    if (saved.ok()) {
      std::cout << concat("\nsaved     ", file, "\n");
    }
  }
  const Status measured = arguments.engine.empty() ? absl::OkStatus() : engines->back().status;
  return !measured.ok() ? fail(measured) : saved.ok() ? kExitOk : fail(saved);
}

}  // namespace catena::cli
