// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace catena::cli {

/// Sends a request to the service and returns its reply, a JSON object. `socket`: empty for the default. Errors: as
/// service::ask(); the service's own error text, line by line; DataLoss if the reply is not a Catena service's.
Result<nlohmann::ordered_json> ask_service(std::string const& socket, std::string const& method,
                                           std::string const& path, std::string const& body = {});

}  // namespace catena::cli
