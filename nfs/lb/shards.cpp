// SPDX-License-Identifier: Apache-2.0
#include "shards.hpp"

#include <catena/packet/headers.hpp>
#include <catena/packet/icmp_error.hpp>

#include <map>
#include <random>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

namespace catena::lb {
namespace {

/// What tells a backend from all others, in every table.
using BackendKey = std::tuple<std::uint64_t, std::uint64_t, std::string_view>;

BackendKey key_of(ServiceTable const& table, ServiceTable::BackendRecord const& backend) {
  return {table.services()[backend.service].endpoint.key(), backend.endpoint.key(), backend.name};
}

}  // namespace

Shards::Shards(std::uint32_t count) : count_(count) {
  std::random_device random;
  key_ = std::uint64_t{random()} << 32 | random();
}

void Shards::add(std::shared_ptr<const ServiceTable> table) {
  tables_.push_back(std::move(table));
  tables_changed();
}

void Shards::tables_changed() {
  std::vector<EndpointIndex::Entry> services;
  std::vector<EndpointIndex::Entry> backends;
  for (auto const& table : tables_) {
    for (ServiceTable::ServiceRecord const& service : table->services()) {
      if (service.listed) {
        services.push_back({service.endpoint, 0});
      }
    }
    for (ServiceTable::BackendRecord const& backend : table->backends()) {
      backends.push_back({backend.endpoint, 0});
    }
  }
  services_ = EndpointIndex(services);
  backends_ = EndpointIndex(backends);
}

std::vector<std::uint64_t> Shards::packets(ServiceTable const& table) const {
  std::map<BackendKey, std::uint64_t> by_key;
  for (auto const& each : tables_) {
    for (ServiceTable::BackendRecord const& backend : each->backends()) {
      by_key[key_of(*each, backend)] += backend.packets;
    }
  }
  std::vector<std::uint64_t> packets;
  for (ServiceTable::BackendRecord const& backend : table.backends()) {
    packets.push_back(by_key[key_of(table, backend)]);
  }
  return packets;
}

std::optional<std::uint32_t> ClientSharder::shard_of(packet::Packet const& packet) {
  const std::optional<Endpoint> client = client_of(packet);
  return client ? std::optional(shards_->shard_of(*client)) : std::nullopt;
}

std::optional<Endpoint> ClientSharder::client_of(packet::Packet const& packet) const {
  const std::uint8_t* l3 = packet.l3();
  if (packet::has_whole_ports(packet.layers().flags)) {
    const packet::Ports ports = packet::load_ports(packet.l4());
    return client_of({packet::load_be32(l3 + 12), ports.source, l3[9]},
                     {packet::load_be32(l3 + 16), ports.destination, l3[9]});
  }
  if (!translates_errors_ || !packet.is(packet::kIcmp) || !packet::is_icmp_error(packet.l4()[0])) {
    return std::nullopt;
  }
  const auto read = packet::read_quote(packet);
  auto const* quote = std::get_if<packet::Quote>(&read);
  if (quote == nullptr) {
    return std::nullopt;
  }
  // it goes with what its receiver got: the quoted datagram the other way round
  return client_of({quote->destination.address, quote->destination.port, quote->protocol},
                   {quote->source.address, quote->source.port, quote->protocol});
}

std::optional<Endpoint> ClientSharder::client_of(Endpoint const& source, Endpoint const& destination) const {
  if (shards_->has_service_at(destination)) {
    return source;
  }
  return shards_->has_backend_at(source) ? std::optional(destination) : std::nullopt;
}

}  // namespace catena::lb
