// SPDX-License-Identifier: Apache-2.0
#include "service/answers.hpp"

namespace catena::service {

unsigned http_status(Status const& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return kHttpNotFound;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
      return 503;
    default:
      return kHttpFailed;
  }
}

HttpResponse error_answer(Status const& status) { return error_response(http_status(status), status); }

HttpResponse json_answer(nlohmann::ordered_json const& body, unsigned status) {
  return {status, body.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
}

}  // namespace catena::service
