// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace catena::cli {

/// What the service answers, which is an object. `socket`: empty: the usual one. Errors: as service::ask(); what the
/// service says is wrong, line by line; DataLoss where the answer is none of a service's.
Result<nlohmann::ordered_json> ask_service(std::string const& socket, std::string const& method,
                                           std::string const& path, std::string const& body = {});

}  // namespace catena::cli
