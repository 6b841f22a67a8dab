// SPDX-License-Identifier: Apache-2.0
#include "shards.hpp"

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
  if (const packet::PacketFlow flow = packet::flow_of(packet.frame(), packet.layers()); flow.has_ports) {
    return client_of(flow.key);
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
  return client_of(quote->flow.reversed());
}

std::optional<Endpoint> ClientSharder::client_of(packet::FlowKey const& flow) const {
  if (shards_->has_service_at(receiver_of(flow))) {
    return sender_of(flow);
  }
  return shards_->has_backend_at(sender_of(flow)) ? std::optional(receiver_of(flow)) : std::nullopt;
}

}  // namespace catena::lb
