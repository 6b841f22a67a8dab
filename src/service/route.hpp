// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/caller.hpp"
#include "service/http_server.hpp"
#include "service/roles.hpp"

#include <span>
#include <string>
#include <string_view>

/// The control interface as a table of routes. A new endpoint is a function in a file of endpoints/ and a row in
/// routes.cpp: dispatch, permissions, the methods and paths in errors, and its command of `catena` follow from the row.
/// Thread rule: any thread.
namespace catena::service {

class AuditLog;
class ChainSet;

/// A request that has been matched to a row.
struct Exchange {
  ChainSet& chains;
  AuditLog const& audit;
  std::string const& version;  ///< of the program
  HttpRequest const& request;
  Client const& client;
  std::string name;  ///< of the chain; empty without NAME in the path
};

/// A command of `catena` that sends the request. Routes with and without NAME may share a command: its name is then
/// optional.
struct RouteCommand {
  bool is_of_nf = false;       ///< `catena nf WORD` and not `catena WORD`
  std::string_view word = {};  ///< empty: no command
  std::string_view help = {};  ///< empty: in the other row of the command
  std::string_view done = {};  ///< the output, with {name} and {state} of the chain; empty: the answer as a table
  bool takes_consents = false;
  bool takes_revision = false;  ///< optional, after the name
};

/// A row of the table.
struct Route {
  std::string_view method;
  std::string_view path;  ///< NAME: the name of a chain
  Role least;             ///< see may_use()
  HttpResponse (*handler)(Exchange const& exchange);
  std::string_view operation;     ///< that changes something, for the audit; empty: it only reads
  std::string_view help;          ///< of the answer, for docs/service.md
  std::string_view refusal = {};  ///< with least role kRoot: the error for other roles
  RouteCommand command = {};
  bool is_for_network = false;  ///< also over TCP, for every client with the rights of the service
  bool makes_chain = false;     ///< the chain need not exist

  bool has_name() const { return path.find("/NAME") != std::string_view::npos; }
};

/// All routes. Those of one path are in the order of its Allow header.
std::span<const Route> routes();

/// "/v1/chains/NAME" with the escaped name of a chain.
std::string resource_path(std::string_view path, std::string const& name);

}  // namespace catena::service
