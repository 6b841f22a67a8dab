// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/chain_set.hpp"
#include "service/http_server.hpp"

#include <string>

/// The responses of the service. docs/service.md is the reference of the resources.
namespace catena::service {

/// For a request from the control socket. The socket identifies the client.
HttpResponse answer_control(ChainSet& chains, std::string const& version, HttpRequest const& request);

/// For a request from the network: only GET /metrics exists.
HttpResponse answer_metrics(ChainSet const& chains, std::string const& version, HttpRequest const& request);

}  // namespace catena::service
