// SPDX-License-Identifier: Apache-2.0
#include "service/service.hpp"

#include "io/eal/eal.hpp"
#include "service/control.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <thread>
#include <utility>

namespace catena::service {

namespace {

/// DPDK starts once, so with all PCI devices that there may be.
Status start_eal(std::vector<std::string> const& pci) {
  std::vector<std::string> arguments;
  for (std::string const& device : pci) {
    if (arguments.empty()) {
      arguments.emplace_back("--in-memory");
    }
    arguments.push_back(concat("--allow=", device));
  }
  return eal::start(arguments);
}

/// Null where the program of the servers is missing, which is an error where they are to keep tenants apart.
Result<std::unique_ptr<device::remote::ServerPool>> make_servers(std::optional<chain::SharingOptions> const& sharing,
                                                                 runtime::ServersFor servers_for) {
  const Result<std::string> program = device::remote::find_server_program();
  if (!program.ok() && servers_for != runtime::ServersFor::kDevice) {
    return program.status();
  }
  if (!program.ok()) {
    spdlog::warn("devices are opened in this process, and a kernel that traps takes it down: {}",
                 std::string(program.status().message()));
    return nullptr;
  }
  return std::make_unique<device::remote::ServerPool>(
      device::remote::ServerPool::Options{*program, runtime::server_limits(sharing)});
}

}  // namespace

Result<std::unique_ptr<Service>> Service::start(ServiceOptions const& options, nf::Registry const& registry) {
  CATENA_ASSIGN_OR_RETURN(auto audit, AuditLog::open(options.audit));
  CATENA_ASSIGN_OR_RETURN(ControlSocket socket, ControlSocket::open(options.socket));
  CATENA_ASSIGN_OR_RETURN(StateStore store, StateStore::open(options.state_folder));
  CATENA_ASSIGN_OR_RETURN(auto servers, make_servers(options.sharing, options.servers_for));
  std::unique_ptr<Service> service(
      new Service(options, std::move(audit), std::move(socket), registry, std::move(store), std::move(servers)));
  CATENA_RETURN_IF_ERROR(service->read_quotas());
  CATENA_RETURN_IF_ERROR(service->read_roles());
  const Controlled controlled{service->chains_, *service->audit_, service->roles_, options.version};
  if (!options.metrics.empty()) {
    CATENA_ASSIGN_OR_RETURN(const int metrics, listen_tcp(options.metrics));
    CATENA_ASSIGN_OR_RETURN(service->metrics_, HttpServer::start(metrics, [controlled](auto const& request) {
                              return answer_metrics(controlled, request);
                            }));
  }
  // what a process has once is started with the rights of the service, and not with those of whose chain comes first
  if (const Status eal = start_eal(options.pci); !eal.ok()) {
    CATENA_RETURN_IF_ERROR(options.pci.empty() ? absl::OkStatus() : eal);
    spdlog::warn("{}", std::string(eal.message()));
  }
  // before the first request: who asks for a chain finds what is remembered
  service->chains_.start_remembered();
  service->chains_.start_watch();
  CATENA_ASSIGN_OR_RETURN(service->control_,
                          HttpServer::start(service->socket_.release(), [controlled](auto const& request) {
                            return answer_control(controlled, request);
                          }));
  return service;
}

Status Service::read_quotas() {
  if (quotas_.empty()) {
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(Quotas quotas, Quotas::load(quotas_));
  chains_.set_quotas(std::move(quotas));
  return absl::OkStatus();
}

bool Service::end(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  control_->quiesce();
  const bool chains_ended = chains_.end_all(limit);
  constexpr std::chrono::milliseconds kTick{10};
  while (control_->requests() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kTick);
  }
  if (!chains_ended || control_->requests() > 0) {
    return false;
  }
  control_.reset();
  metrics_.reset();
  return true;
}

}  // namespace catena::service
