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
/// Decisions about a packet depend on packets with the same client endpoint (address, port and protocol): it is common
/// to all flows looked up or replaced. The flow's hash is unsuitable: a request contains the service's endpoint and its
/// response the backend's. So requests are divided by their source, responses by their destination, and ICMP errors by
/// the client endpoint in their quote. All other decisions use the packet alone.
namespace catena::lb {

/// State shared by the load balancers of one chain. Thread rule: shard_of() from any thread. All other members belong
/// to the thread that sets up and updates the chain; other threads only read them while no update runs.
class Shards {
 public:
  explicit Shards(std::uint32_t count);
  std::uint32_t count() const { return count_; }
  /// The shard of a client endpoint, equal for all sharders. The hash is keyed with a random number, because clients
  /// choose their ports.
  std::uint32_t shard_of(Endpoint const& client) const {
    return static_cast<std::uint32_t>((mix(mix(client.key() ^ key_) + key_) >> 32) * count_ >> 32);
  }

  /// Divides by the key of `other`, and equally if it has as many shards. Before the first packet.
  void divide_as(Shards const& other) { key_ = other.key_; }

  /// Adds another shard's table.
  void add(std::shared_ptr<const ServiceTable> table);
  /// Call it after any table's update.
  void tables_changed();

  /// True if any shard's table has a service, or a backend, at `endpoint`.
  bool has_service_at(Endpoint const& endpoint) const { return services_.find(endpoint) != EndpointIndex::kNone; }
  bool has_backend_at(Endpoint const& endpoint) const { return backends_.find(endpoint) != EndpointIndex::kNone; }

  /// Packets of the backends of `table`, by their number in it, over all shards. Some shards may have forgotten
  /// backends removed by an update. Call it only when no shard is used any more: their counters are not thread safe.
  std::vector<std::uint64_t> packets(ServiceTable const& table) const;

 private:
  std::uint32_t count_;
  std::uint64_t key_;
  std::vector<std::shared_ptr<const ServiceTable>> tables_;
  EndpointIndex services_;
  EndpointIndex backends_;
};

/// Divides packets by the client's endpoint.
class ClientSharder final : public nf::Sharder {
 public:
  /// `translates_errors`: divide ICMP errors by their quote.
  ClientSharder(std::shared_ptr<Shards> shards, bool translates_errors)
      : shards_(std::move(shards)), translates_errors_(translates_errors) {}
  std::optional<std::uint32_t> shard_of(packet::Packet const& packet) override;

 private:
  std::optional<Endpoint> client_of(packet::Packet const& packet) const;
  std::optional<Endpoint> client_of(packet::FlowKey const& flow) const;

  std::shared_ptr<Shards> shards_;
  bool translates_errors_;
};

}  // namespace catena::lb
