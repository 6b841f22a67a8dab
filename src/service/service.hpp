// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/registry.hpp"
#include "pipeline/device_servers.hpp"
#include "service/audit_log.hpp"
#include "service/chain_set.hpp"
#include "service/http_server.hpp"
#include "service/listen.hpp"
#include "service/own_work.hpp"
#include "service/roles.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::service {

struct ServiceOptions {
  std::string socket;
  std::string state_folder;
  std::string metrics;  ///< address and port; empty: not served
  std::string version;
  std::string quotas;                                           ///< file; empty: the built-in ones
  std::string roles;                                            ///< file; empty: all users are owners
  std::string audit;                                            ///< file; empty: see AuditLog
  std::vector<std::string> pci;                                 ///< devices allowed for chains, as named in chain files
  std::optional<chain::SharingOptions> sharing = std::nullopt;  ///< see ChainSet
  runtime::ServersFor servers_for = runtime::ServersFor::kDevice;
};

/// Runs the chains of users, controlled over a socket. One thread at a time.
class Service {
 public:
  /// Listens, then starts the remembered chains. `registry` must outlive it. The signals that end the process must be
  /// blocked by now: the service's threads must not get them.
  /// Errors: as AuditLog::open(), Quotas::load(), Roles::load(), ControlSocket::open(), StateStore::open() and
  /// listen_tcp(); as eal::start() with PCI devices.
  static Result<std::unique_ptr<Service>> start(ServiceOptions const& options, nf::Registry const& registry);
  Service(Service const&) = delete;
  Service& operator=(Service const&) = delete;

  /// Reads the file of quotas again. Its errors, after which the earlier ones hold. Any thread.
  Status read_quotas();
  /// The same for the file of roles.
  Status read_roles() { return roles_.read(); }

  /// Takes no more requests and ends all chains. False if not all is done within `limit`: a chain or a request waits
  /// for another program, or a device is still at work. The process must then exit without destroying this object.
  bool end(std::chrono::milliseconds limit);

 private:
  Service(ServiceOptions const& options, std::unique_ptr<AuditLog> audit, ControlSocket socket,
          nf::Registry const& registry, StateStore store, std::unique_ptr<device::remote::ServerPool> servers)
      : quotas_(options.quotas),
        roles_(options.roles),
        audit_(std::move(audit)),
        servers_(std::move(servers)),
        socket_(std::move(socket)),
        chains_(registry, std::move(store), *audit_, servers_.get(), options.sharing, options.servers_for) {}

  std::string quotas_;  ///< file; empty: the built-in ones
  RolesFile roles_;
  OwnWork own_work_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<device::remote::ServerPool> servers_;  ///< null: their program is missing
  ControlSocket socket_;
  ChainSet chains_;
  std::unique_ptr<HttpServer> control_;
  std::unique_ptr<HttpServer> metrics_;
};

}  // namespace catena::service
