// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/node_table.hpp"

#include <catena/core/decimal.hpp>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace catena::hostcopy {
namespace {

/// N of the name `cpuN`, with `word` cpu.
std::optional<int> number_of(std::filesystem::path const& path, std::string_view word) {
  const std::string name = path.filename().string();
  if (!name.starts_with(word)) {
    return std::nullopt;
  }
  const auto number = parse_decimal(std::string_view(name).substr(word.size()), std::numeric_limits<int>::max());
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

NodeTable NodeTable::read(std::filesystem::path const& folder) {
  NodeTable table;
  std::error_code error;
  for (auto const& each : std::filesystem::directory_iterator(folder, error)) {
    const std::optional<int> cpu = number_of(each.path(), "cpu");
    if (!cpu) {
      continue;
    }
    for (auto const& entry : std::filesystem::directory_iterator(each.path(), error)) {
      if (const std::optional<int> node = number_of(entry.path(), "node")) {
        table.nodes_.emplace(*cpu, *node);
      }
    }
  }
  return table;
}

int NodeTable::node_of(int cpu) const {
  const auto found = nodes_.find(cpu);
  return found == nodes_.end() ? -1 : found->second;
}

}  // namespace catena::hostcopy
