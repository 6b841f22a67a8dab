// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "io/eal/eal.hpp"
#include "profile/copy_measure.hpp"
#include "stack/copy/engine_table.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace catena::cli {
namespace {

std::string size_text(std::uint32_t bytes) { return fmt::format("{} KiB", bytes / 1024); }

void print(std::vector<profile::EngineCopies> const& engines, profile::CopyMeasureOptions const& options,
           std::optional<profile::CopyThreshold> const& threshold) {
  std::cout << fmt::format("{:<16}", "Gbps, CPU ns");
  for (const std::uint32_t size : options.sizes) {
    std::cout << fmt::format("  {:>16}", size_text(size));
  }
  std::cout << '\n';
  for (profile::EngineCopies const& engine : engines) {
    std::cout << fmt::format("{:<16}", engine.kind.name);
    for (profile::CopyPoint const& point : engine.points) {
      std::cout << fmt::format("  {:>7.1f} {:>8.0f}", point.gbps, point.cpu_ns);
    }
    std::cout << (engine.status.ok() ? "\n" : concat("  ", std::string(engine.status.message()), "\n"));
  }
  std::cout << (threshold ? concat("\nfrom ", size_text(threshold->bytes), " on ", threshold->engine,
                                   " takes less time of the CPU than the CPU's own copies\n")
                          : std::string("\nno engine takes less time of the CPU than the CPU's own copies\n"));
}

nlohmann::ordered_json as_json(std::vector<profile::EngineCopies> const& engines,
                               std::optional<profile::CopyThreshold> const& threshold) {
  nlohmann::ordered_json json;
  json["engines"] = nlohmann::ordered_json::array();
  for (profile::EngineCopies const& engine : engines) {
    nlohmann::ordered_json entry = {
        {"name", std::string(engine.kind.name)},
        {"for_tests", engine.kind.is_for_tests},
        {"error", engine.status.ok() ? nullptr : nlohmann::ordered_json(std::string(engine.status.message()))},
        {"sizes", nlohmann::ordered_json::array()}};
    for (profile::CopyPoint const& point : engine.points) {
      entry["sizes"].push_back({{"bytes", point.bytes}, {"cpu_ns", point.cpu_ns}, {"gbps", point.gbps}});
    }
    json["engines"].push_back(entry);
  }
  json["threshold"] = threshold ? nlohmann::ordered_json{{"engine", threshold->engine}, {"bytes", threshold->bytes}}
                                : nlohmann::ordered_json();
  return json;
}

}  // namespace

int profile_copies(ProfileArguments const& arguments) {
  if (const Status started = eal::start(); !started.ok()) {
    std::cerr << concat("without DPDK's engines: ", std::string(started.message()), "\n");
  }
  const profile::CopyMeasureOptions options;
  const Result<std::vector<profile::EngineCopies>> engines = profile::measure_copies(
      stack::engine_table(), options, [](std::string_view engine) { std::cerr << concat("measuring ", engine, "\n"); });
  if (!engines.ok()) {
    return fail(engines.status(), arguments.json);
  }
  const std::optional<profile::CopyThreshold> threshold = profile::propose_threshold(*engines);
  const std::string json = as_json(*engines, threshold).dump(2);
  if (arguments.json) {
    std::cout << json << '\n';
  } else {
    print(*engines, options, threshold);
  }
  if (!arguments.output.empty()) {
    std::ofstream file(arguments.output);
    file << json << '\n';
    if (!file.flush()) {
      return fail(absl::UnavailableError(concat(arguments.output, ": cannot be written")));
    }
  }
  return kExitOk;
}

}  // namespace catena::cli
