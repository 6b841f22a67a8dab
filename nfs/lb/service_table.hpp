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

/// The services in force, with a Maglev table each. Services and backends have numbers that stay the same as long as
/// flows use them, through every update(). A copy counts packets of its own, and shares the Maglev tables until the
/// next update().
class ServiceTable {
 public:
  static constexpr std::uint16_t kNone = EndpointIndex::kNone;
  // Removed services and backends hold their numbers while they have flows: there are more numbers than may be listed.
  static constexpr std::uint32_t kServiceNumbers = 2 * kMaxServices;
  static constexpr std::uint32_t kBackendNumbers = 2 * kMaxBackends;

  struct ServiceRecord {
    Endpoint endpoint;
    bool listed = false;  ///< false: the last update() did not name it; flows may still use it
    MaglevTable maglev;   ///< over its backends that are up
  };
  struct BackendRecord {
    std::string name;
    Endpoint endpoint;
    std::uint16_t service = kNone;
    std::uint32_t weight = 1;
    BackendState state = BackendState::kDown;  ///< kDown where not listed
    bool listed = false;
    std::uint64_t packets = 0;  ///< counted by whoever forwards, both directions
  };
  /// How many flows a backend has, by its number.
  using FlowCount = std::function<std::uint32_t(std::uint16_t)>;

  /// `table_size`: entries of each Maglev table; a prime.
  explicit ServiceTable(std::uint32_t table_size) : table_size_(table_size) {}

  /// Puts `services` in the place of all that are in force. A service keeps its number if its endpoint stays, a backend
  /// if its name, address and port stay. Backends that are not named any more count as down. On error nothing changes:
  ///   InvalidArgument    find_mistake() finds one
  ///   ResourceExhausted  so many removed ones still have flows that numbers run out
  Status update(std::span<const Service> services, FlowCount const& flows_of);

  /// The same as it is for who updates it: what others count meanwhile is not read, and 0.
  ServiceTable without_counts() const;
  /// The packets of the backends of `before`, whose numbers are the same here.
  void take_counts(ServiceTable const& before);

  /// The service at `endpoint`, or kNone.
  std::uint16_t service_at(Endpoint const& endpoint) const { return by_endpoint_.find(endpoint); }
  /// Whether some service has this address and protocol, at any port.
  bool has_service_address(std::uint32_t address, std::uint8_t protocol) const {
    return addresses_.find({address, 0, protocol}) != kNone;
  }
  /// Whether a backend, listed or not, is at `endpoint`.
  bool has_backend_at(Endpoint const& endpoint) const { return backend_endpoints_.find(endpoint) != kNone; }
  /// The backend at `endpoint` where it is a listed one of one service only, so that what it sends can be of no other;
  /// else kNone.
  std::uint16_t only_backend_at(Endpoint const& endpoint) const { return only_backends_.find(endpoint); }
  /// The backend of `service` for a new flow, or kNone if none is up.
  std::uint16_t choose(std::uint16_t service, std::uint64_t flow_hash) const {
    MaglevTable const& table = services_[service].maglev;
    return table.empty() ? kNone : table.find(flow_hash);
  }

  std::span<const ServiceRecord> services() const { return services_; }
  std::span<const BackendRecord> backends() const { return backends_; }
  BackendRecord& backend(std::uint16_t number) { return backends_[number]; }

  /// Memory of records, bytes, and that of the Maglev tables.
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
  EndpointIndex only_backends_;      // listed ones whose endpoint no other service lists
};

}  // namespace catena::lb
