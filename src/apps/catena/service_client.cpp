// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/service_client.hpp"

#include "service/client.hpp"
#include "service/listen.hpp"

#include <catena/core/text.hpp>

namespace catena::cli {

Result<nlohmann::ordered_json> ask_service(std::string const& socket, std::string const& method,
                                           std::string const& path, std::string const& body) {
  std::string at = socket;
  if (at.empty()) {
    CATENA_ASSIGN_OR_RETURN(at, service::default_socket());
  }
  CATENA_ASSIGN_OR_RETURN(const service::Answer answer, service::ask(at, method, path, body));
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(answer.body, nullptr, false);
  constexpr long kFirstError = 300;
  if (answer.status >= kFirstError && json.is_object() && json.contains("error") && json["error"].is_string()) {
    return absl::FailedPreconditionError(json["error"].get<std::string>());
  }
  if (answer.status >= kFirstError || !json.is_object()) {
    return absl::DataLossError(concat(at, ": unexpected answer for a service of Catena, with status ", answer.status));
  }
  return json;
}

}  // namespace catena::cli
