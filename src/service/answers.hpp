// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/http_server.hpp"

#include <nlohmann/json.hpp>

/// How endpoints respond. Thread rule: any thread.
namespace catena::service {

inline constexpr unsigned kHttpOk = 200;
inline constexpr unsigned kHttpCreated = 201;
inline constexpr unsigned kHttpFirstError = 400;
inline constexpr unsigned kHttpNotFound = 404;
inline constexpr unsigned kHttpFailed = 500;

unsigned http_status(Status const& error);
/// The HTTP status of the error, with the error as JSON.
HttpResponse error_answer(Status const& status);
HttpResponse json_answer(nlohmann::ordered_json const& body, unsigned status = kHttpOk);

}  // namespace catena::service
