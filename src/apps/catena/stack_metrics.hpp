// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "service/http_server.hpp"
#include "stack/process/stack_host.hpp"

namespace catena::cli {

/// Answers `GET /metrics` with the last report of a stack in the text format of Prometheus (0.0.4). Other paths: 404.
/// Other methods: 405. Any thread.
service::HttpResponse answer_stack_metrics(stack::StackHost const& host, service::HttpRequest const& request);

}  // namespace catena::cli
