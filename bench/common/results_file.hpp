// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <string_view>

namespace catena::bench {

/// What `read` makes of the results.json at `path`, which a run to go on with has left; it may throw
/// nlohmann::json::exception. Errors: NotFound; InvalidArgument where it is no results.json of `benchmark`.
template <typename Results>
Result<Results> read_results_file(std::string const& path, std::string_view benchmark,
                                  Results (*read)(nlohmann::ordered_json const&)) {
  std::ifstream in(path);
  if (!in) {
    return absl::NotFoundError(concat("there is no ", path, " to resume"));
  }
  const auto json = nlohmann::ordered_json::parse(in, nullptr, false);
  if (json.is_discarded() || !json.is_object() || json.value("benchmark", "") != benchmark) {
    return absl::InvalidArgumentError(concat(path, " is no result of this benchmark"));
  }
  try {
    return read(json);
  } catch (nlohmann::json::exception const& error) {
    return absl::InvalidArgumentError(concat(path, ": ", error.what()));
  }
}

}  // namespace catena::bench
