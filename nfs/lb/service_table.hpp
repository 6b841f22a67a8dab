// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "endpoint.hpp"
#include "maglev.hpp"
#include "service.hpp"

namespace catena::lb {

/// The active services, with a Maglev table each. Services and backends keep their numbers through every update() as
/// long as flows use them. A copy counts its own packets, and shares the Maglev tables until the next update().
class ServiceTable {
 public:
  static constexpr std::uint16_t kNone = EndpointIndex::kNone;
  // Removed services and backends hold their numbers while they have flows: more numbers exist than may be listed.
  static constexpr std::uint32_t kServiceNumbers = 2 * kMaxServices;
  static constexpr std::uint32_t kBackendNumbers = 2 * kMaxBackends;

  struct ServiceRecord {
    Endpoint endpoint;
    bool listed = false;  ///< false: not in the last update(); flows may still use it
    MaglevTable maglev;   ///< over its backends that are up
  };
  struct BackendRecord {
    std::string name;
    Endpoint endpoint;
    std::uint16_t service = kNone;
    std::uint32_t weight = 1;
    BackendState state = BackendState::kDown;  ///< kDown if not listed
    bool listed = false;
    std::uint64_t packets = 0;  ///< counted by the forwarding code, both directions
  };
  /// Number of flows of a backend, by backend number.
  using FlowCount = std::function<std::uint64_t(std::uint16_t)>;

  /// `table_size`: entries of each Maglev table; a prime.
  explicit ServiceTable(std::uint32_t table_size) : table_size_(table_size) {}

  /// Replaces all active services by `services`. A service keeps its number if its endpoint is unchanged, a backend if
  /// its name, address and port are unchanged. Backends missing from `services` are down. On error nothing changes:
  ///   InvalidArgument    find_mistake() finds one
  ///   ResourceExhausted  too many removed ones still have flows: no number is free
  Status update(std::span<const Service> services, FlowCount const& flows_of);

  /// A copy for the updating thread. Packet counts, written by other threads, are not read and are 0 in the copy.
  ServiceTable without_counts() const;
  /// Copies the packet counts of the backends of `before`, which have the same numbers here.
  void take_counts(ServiceTable const& before);

  /// The service at `endpoint`, or kNone.
  std::uint16_t service_at(Endpoint const& endpoint) const { return by_endpoint_.find(endpoint); }
  /// True if a service has this address and protocol, at any port.
  bool has_service_address(std::uint32_t address, std::uint8_t protocol) const {
    return addresses_.find({address, 0, protocol}) != kNone;
  }
  /// True if a backend, listed or not, is at `endpoint`.
  bool has_backend_at(Endpoint const& endpoint) const { return backend_endpoints_.find(endpoint) != kNone; }
  /// The backend at `endpoint` if it is listed, and by one service only, so that its packets belong to that service;
  /// else kNone.
  std::uint16_t only_backend_at(Endpoint const& endpoint) const { return only_backends_.find(endpoint); }
  /// The backend of `service` for a new flow, or kNone if no backend is up.
  std::uint16_t choose(std::uint16_t service, std::uint64_t flow_hash) const {
    MaglevTable const& table = services_[service].maglev;
    return table.empty() ? kNone : table.find(flow_hash);
  }

  std::span<const ServiceRecord> services() const { return services_; }
  std::span<const BackendRecord> backends() const { return backends_; }
  BackendRecord& backend(std::uint16_t number) { return backends_[number]; }

  /// Memory of the records, and of the Maglev tables, in bytes.
  std::uint64_t record_bytes() const;
  std::uint64_t maglev_bytes() const;

 private:
  struct Draft;  // numbers for an update that may still fail

  Result<Draft> number(std::span<const Service> services, FlowCount const& flows_of) const;
  void apply(std::span<const Service> services, Draft const& draft);
  void rebuild_maglev(std::uint16_t service);
  void rebuild_indexes();

  std::uint32_t table_size_;
  std::vector<ServiceRecord> services_;
  std::vector<BackendRecord> backends_;
  EndpointIndex by_endpoint_;        // listed services
  EndpointIndex addresses_;          // the same with port 0
  EndpointIndex backend_endpoints_;  // all backends
  EndpointIndex only_backends_;      // listed backends with an endpoint unique among services
};

}  // namespace catena::lb
