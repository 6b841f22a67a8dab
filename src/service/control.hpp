// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/audit_log.hpp"
#include "service/chain_set.hpp"
#include "service/http_server.hpp"
#include "service/roles.hpp"

#include <string>

/// The responses of the service, by the table of routes.
namespace catena::service {

/// The service of the requests.
struct Controlled {
  ChainSet& chains;
  AuditLog& audit;
  RolesFile const& roles;
  std::string version;
};

/// For a request from the control socket. The socket identifies the client. A request of a route with an operation is
/// audited, whatever its answer, except for a dry run.
HttpResponse answer_control(Controlled const& service, HttpRequest const& request);

/// For a request from the network: only routes for the network exist.
HttpResponse answer_metrics(Controlled const& service, HttpRequest const& request);

}  // namespace catena::service
