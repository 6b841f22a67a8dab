// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/chain_set.hpp"
#include "service/http_server.hpp"

#include <string>

/// The responses of the service, by the table of routes.
namespace catena::service {

/// For a request from the control socket. The socket identifies the client.
HttpResponse answer_control(ChainSet& chains, std::string const& version, HttpRequest const& request);

/// For a request from the network: only routes with Access::kNetwork exist.
HttpResponse answer_metrics(ChainSet& chains, std::string const& version, HttpRequest const& request);

}  // namespace catena::service
