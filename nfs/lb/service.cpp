// SPDX-License-Identifier: Apache-2.0
#include "service.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/timeouts.hpp>

#include <algorithm>
#include <set>

#include "maglev.hpp"

namespace catena::lb {
namespace {

constexpr std::size_t kMaxNameBytes = 63;
constexpr std::int64_t kMaxTimeoutSeconds = 1000000;

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
           c == '.';
  };
  return !text.empty() && text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), allowed);
}

/// Whether one host can have the address: not 0.0.0.0/8, multicast, reserved or broadcast (RFC 6890).
bool is_host_address(std::uint32_t address) { return address >> 24 != 0 && address < 0xE0000000; }

std::string no_host_address(std::uint32_t address) {
  return concat("'address' is ", to_string(packet::Address::of_v4(address)),
                ", which no host can have; write its unicast address");
}

/// Looks through the services one after another and stops at the first mistake.
class Examination {
 public:
  Examination(std::span<const Service> services, std::uint32_t table_size)
      : services_(services), table_size_(table_size) {
    for (Service const& service : services) {
      endpoints_.insert(service.endpoint.key());
    }
  }

  std::optional<Mistake> run() {
    if (services_.empty() || services_.size() > kMaxServices) {
      return Mistake{{}, {}, "services", concat(services_.size(), " services; allowed: 1 to ", kMaxServices)};
    }
    for (std::size_t i = 0; i < services_.size(); ++i) {
      if (auto mistake = check_service(services_[i])) {
        mistake->service = i;
        return mistake;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<Mistake> check_service(Service const& service) {
    if (!is_host_address(service.endpoint.address)) {
      return mistake("address", no_host_address(service.endpoint.address));
    }
    if (!seen_services_.insert(service.endpoint.key()).second) {
      return mistake("address", concat("service ", to_string(service.endpoint), " is listed twice; write it once"));
    }
    if (service.backends.empty()) {
      return mistake("backends", concat("service ", to_string(service.endpoint), " has no backend; name at least one"));
    }
    if (service.backends.size() > table_size_ / kEntriesPerBackend) {
      const auto needed = static_cast<std::uint32_t>(std::min<std::size_t>(service.backends.size(), kMaxBackends));
      return mistake("backends",
                     concat(service.backends.size(), " backends need a table of at least ", kEntriesPerBackend,
                            " entries each; write 'table_size: ", next_prime(needed * kEntriesPerBackend), "'"));
    }
    backends_ += service.backends.size();
    if (backends_ > kMaxBackends) {
      return mistake("backends", concat("more than ", kMaxBackends, " backends in all services together"));
    }
    std::set<std::string_view> names;
    std::set<std::uint64_t> endpoints;
    for (std::size_t i = 0; i < service.backends.size(); ++i) {
      if (auto found = check_backend(service, service.backends[i], names, endpoints)) {
        found->backend = i;
        return found;
      }
    }
    return std::nullopt;
  }

  std::optional<Mistake> check_backend(Service const& service, Backend const& backend,
                                       std::set<std::string_view>& names, std::set<std::uint64_t>& endpoints) const {
    if (!is_name(backend.name)) {
      return mistake("name", concat("a backend's name has 1 to ", kMaxNameBytes, " letters, digits, '.', '_' or '-'"));
    }
    if (!names.insert(backend.name).second) {
      return mistake("name", concat("the service has a backend '", backend.name, "' already; write each name once"));
    }
    if (!is_host_address(backend.address)) {
      return mistake("address", no_host_address(backend.address));
    }
    const Endpoint endpoint{backend.address, backend.port, service.endpoint.protocol};
    if (backend.port == 0 || backend.weight == 0 || backend.weight > kMaxWeight) {
      return mistake("port", concat("backend '", backend.name, "' needs a port from 1 to 65535 and a weight from 1 to ",
                                    kMaxWeight));
    }
    if (endpoints_.contains(endpoint.key())) {
      return mistake("address",
                     concat(to_string(endpoint), " is a service; a backend must be another address or port"));
    }
    if (!endpoints.insert(endpoint.key()).second) {
      return mistake("address", concat("the service has a backend at ", to_string(endpoint),
                                       " already; give one of them the weight of both"));
    }
    return std::nullopt;
  }

  static Mistake mistake(std::string_view key, std::string message) { return {{}, {}, key, std::move(message)}; }

  std::span<const Service> services_;
  std::uint32_t table_size_;
  std::set<std::uint64_t> endpoints_;  // of all services
  std::set<std::uint64_t> seen_services_;
  std::size_t backends_ = 0;
};

Result<Backend> read_backend(nf::Config& config, std::uint16_t service_port) {
  Backend backend;
  CATENA_ASSIGN_OR_RETURN(backend.name, config.string("name"));
  CATENA_ASSIGN_OR_RETURN(backend.address, config.ipv4_address("address"));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t port, config.integer_or("port", service_port, 1, 65535));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t weight, config.integer_or("weight", 1, 1, kMaxWeight));
  CATENA_ASSIGN_OR_RETURN(const std::string state, config.one_of("state", {"up", "drain", "down"}, "up"));
  CATENA_RETURN_IF_ERROR(config.finish());
  backend.port = static_cast<std::uint16_t>(port);
  backend.weight = static_cast<std::uint32_t>(weight);
  backend.state = state == "up" ? BackendState::kUp : state == "drain" ? BackendState::kDrain : BackendState::kDown;
  return backend;
}

/// A service with the sections that its backends were read from, for the positions of errors.
struct ReadService {
  Service service;
  std::vector<nf::Config> backends;
};

Result<ReadService> read_service(nf::Config& config) {
  ReadService read;
  Endpoint& endpoint = read.service.endpoint;
  CATENA_ASSIGN_OR_RETURN(endpoint.address, config.ipv4_address("address"));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t port, config.integer("port", 1, 65535));
  CATENA_ASSIGN_OR_RETURN(const std::string protocol, config.one_of("protocol", {"tcp", "udp"}));
  CATENA_ASSIGN_OR_RETURN(read.backends, config.sections("backends"));
  CATENA_RETURN_IF_ERROR(config.finish());
  endpoint.port = static_cast<std::uint16_t>(port);
  endpoint.protocol = protocol == "tcp" ? packet::kProtocolTcp : packet::kProtocolUdp;
  for (nf::Config& section : read.backends) {
    CATENA_ASSIGN_OR_RETURN(Backend backend, read_backend(section, endpoint.port));
    read.service.backends.push_back(std::move(backend));
  }
  return read;
}

Result<std::uint32_t> read_table_size(nf::Config& config) {
  constexpr std::int64_t kDefault = 65537;
  CATENA_ASSIGN_OR_RETURN(const std::int64_t value,
                          config.integer_or("table_size", kDefault, kMinTableSize, kMaxTableSize));
  const auto size = static_cast<std::uint32_t>(value);
  if (!is_prime(size)) {
    return config.error("table_size",
                        concat("'table_size' is ", size, ", not a prime; the next one is ", next_prime(size)));
  }
  return size;
}

Result<Timeouts> read_timeouts(nf::Config& config) {
  Timeouts timeouts;
  CATENA_RETURN_IF_ERROR(nf::read_timeouts(config,
                                           {{"tcp_opening", &timeouts.tcp_opening},
                                            {"tcp_established", &timeouts.tcp_established},
                                            {"tcp_closing", &timeouts.tcp_closing},
                                            {"udp", &timeouts.udp}},
                                           kMaxTimeoutSeconds));
  return timeouts;
}

/// Whether `key` says `translate`, as it does unless it is written.
Result<bool> read_translate_or_pass(nf::Config& config, std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::string what, config.one_of(key, {"translate", "pass"}, "translate"));
  return std::string_view(what) == "translate";
}

}  // namespace

std::optional<Mistake> find_mistake(std::span<const Service> services, std::uint32_t table_size) {
  return Examination(services, table_size).run();
}

Result<Settings> read_settings(nf::Config& config) {
  Settings settings{};
  CATENA_ASSIGN_OR_RETURN(settings.table_size, read_table_size(config));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t max_flows, config.integer_or("max_flows", 1000000, 1, kMaxFlowsLimit));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t half_open,
                          config.integer_or("max_half_open", std::max<std::int64_t>(1, max_flows / 2), 1, max_flows));
  CATENA_ASSIGN_OR_RETURN(settings.timeouts, read_timeouts(config));
  CATENA_ASSIGN_OR_RETURN(settings.translates_without_flow, read_translate_or_pass(config, "answers_without_flow"));
  CATENA_ASSIGN_OR_RETURN(settings.translates_errors, read_translate_or_pass(config, "icmp_errors"));
  CATENA_ASSIGN_OR_RETURN(std::vector<nf::Config> sections, config.sections("services"));
  CATENA_RETURN_IF_ERROR(config.finish());
  settings.limits = {static_cast<std::uint32_t>(max_flows), static_cast<std::uint32_t>(half_open)};
  std::vector<std::vector<nf::Config>> backends;
  for (nf::Config& section : sections) {
    CATENA_ASSIGN_OR_RETURN(ReadService read, read_service(section));
    settings.services.push_back(std::move(read.service));
    backends.push_back(std::move(read.backends));
  }
  if (const auto mistake = find_mistake(settings.services, settings.table_size)) {
    nf::Config const& place = !mistake->service   ? config
                              : !mistake->backend ? sections[*mistake->service]
                                                  : backends[*mistake->service][*mistake->backend];
    return place.error(mistake->key, mistake->message);
  }
  return settings;
}

}  // namespace catena::lb
