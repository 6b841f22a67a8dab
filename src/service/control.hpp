// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/chain_set.hpp"
#include "service/http_server.hpp"

#include <string>

/// What the service answers. docs/service.md is the reference of the resources.
namespace catena::service {

/// A request that came over the control socket. Who asks is asked of the socket.
HttpResponse answer_control(ChainSet& chains, std::string const& version, HttpRequest const& request);

/// A request that came over the network: nothing but GET /metrics is there.
HttpResponse answer_metrics(ChainSet const& chains, std::string const& version, HttpRequest const& request);

}  // namespace catena::service
