// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "endpoint.hpp"
#include "service_table.hpp"

/// Several load balancers with one configuration, each with the packets of some clients.
///
/// What a load balancer decides depends on the packets of the same client end (address, port and protocol): all flows
/// that it looks up or replaces have that in common. The flow's hash would not do: a request has the service's end and
/// its answer the backend's. So requests are divided by their source, answers by their destination, and ICMP errors by
/// the client end in what they quote. All else is decided from the packet alone.
namespace catena::lb {

/// What the load balancers of one chain share. Thread rule: shard_of() from any thread. All else
/// belongs to the thread that sets the chain up and updates it; the others only read it, while that does not happen.
class Shards {
 public:
  explicit Shards(std::uint32_t count);
  std::uint32_t count() const { return count_; }
  /// The shard of a client's end, the same for every divider. The hash is keyed with a random number, because clients
  /// choose their ports.
  std::uint32_t shard_of(Endpoint const& client) const {
    return static_cast<std::uint32_t>((mix(mix(client.key() ^ key_) + key_) >> 32) * count_ >> 32);
  }

  /// Another shard's table.
  void add(std::shared_ptr<const ServiceTable> table);
  /// To be called after an update of any.
  void tables_changed();

  /// Whether any shard's table has a service there, or a backend.
  bool has_service_at(Endpoint const& endpoint) const { return services_.find(endpoint) != EndpointIndex::kNone; }
  bool has_backend_at(Endpoint const& endpoint) const { return backends_.find(endpoint) != EndpointIndex::kNone; }

  /// Packets of the backends of `table`, by their number in it, over all shards. Backends that an update removed may be
  /// forgotten by some. Only when no shard is called any more: their counts are not for several threads.
  std::vector<std::uint64_t> packets(ServiceTable const& table) const;

 private:
  std::uint32_t count_;
  std::uint64_t key_;
  std::vector<std::shared_ptr<const ServiceTable>> tables_;
  EndpointIndex services_;
  EndpointIndex backends_;
};

/// Divides packets by the client's end.
class ClientDivider final : public nf::Divider {
 public:
  /// `translates_errors`: whether ICMP errors go by what they quote.
  ClientDivider(std::shared_ptr<Shards> shards, bool translates_errors)
      : shards_(std::move(shards)), translates_errors_(translates_errors) {}
  std::optional<std::uint32_t> shard_of(packet::Packet const& packet) override;

 private:
  std::optional<Endpoint> client_of(packet::Packet const& packet) const;
  std::optional<Endpoint> client_of(Endpoint const& source, Endpoint const& destination) const;

  std::shared_ptr<Shards> shards_;
  bool translates_errors_;
};

}  // namespace catena::lb
