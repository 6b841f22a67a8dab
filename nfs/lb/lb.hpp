// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/nf/portable.hpp>
#include <catena/packet/packet_clock.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "flow_table.hpp"
#include "lb.layout.hpp"
#include "service_table.hpp"
#include "shards.hpp"

/// Layer-4 load balancer. A service is an address, port and protocol used by clients; its backends serve the requests.
///
///   client -> service    The flow's backend, if the flow is known, else that of the service's Maglev table for the
///                        hash of the 5-tuple. Destination address and port become the backend's.
///   backend -> client    Source address and port become the service's, if the flow is known, or if the backend belongs
///                        to one service only.
///   ICMP errors          About either: the quoted datagram is translated back, and so is the error (RFC 5508).
///   anything else        Passes unchanged.
///
/// One packet: 198.51.100.7:40000 -> 203.0.113.10:80, backend web2 at 10.0.0.2:8080. It leaves as 198.51.100.7:40000 ->
/// 10.0.0.2:8080, and the response 10.0.0.2:8080 -> 198.51.100.7:40000 leaves with the source 203.0.113.10:80.
///
/// A flow keeps its backend while the backend is up or draining. The flow ends by its time-out, which depends on the
/// state of its TCP connection, when its backend is down, or with a SYN after a client's FIN or an RST: the client
/// reuses the port. prepare() owns all state; rewriting uses only the packet and its Aux. prepare() itself rewrites
/// ICMP errors, which are rare and contain a header that is not a field.
namespace catena::lb {

class Lb final : public nf::Nf, public nf::Portable {
 public:
  /// Errors: as read_settings().
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  /// Activates `services` for the packets of later batches; flows stay with backends that are not down. Call it while
  /// no batch is between prepare() and complete(). With several shards, call it on each of them with the same services
  /// while no packet is between sharder and complete(), so that all shards apply the same services to the same packets.
  /// Errors, which change nothing: as ServiceTable::update().
  Status update(std::span<const Service> services);

  /// Divides by the client's endpoint; see shards.hpp.
  std::unique_ptr<nf::Sharder> sharder() const override;
  /// The replica has a copy of the current services, but shares the Maglev tables.
  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;

  /// FailedPrecondition if tables, limits or time-outs differ; else as update().
  Status prepare_migration(std::span<nf::Nf const* const> before) override;
  /// Flows stay with backends that are not down. In another number of shards flows of unlisted services and backends
  /// end.
  void migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& is_mine) override;

  void save(nf::StateWriter& state) const override;
  /// Flows of unlisted services and backends end. FailedPrecondition: as prepare_migration(), or with several shards.
  Status load(nf::StateReader& state) override;

  nf::Hints hints() const override;
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  Result<nf::KernelSide> kernel_side() const override;
  void tick(std::uint64_t now_ns) override;
  std::vector<std::string> start_report() const override;
  /// Covers all shards; only the first shard reports. Call it when no shard is used any more.
  std::vector<std::string> end_report() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  enum class Side : std::uint8_t { kNeither, kClient, kBackend, kFragmentToService, kIcmpError };
  /// Classification of a packet by its headers alone.
  struct Sighting {
    packet::FlowKey flow;
    std::uint64_t hash;     // of the flow; for kClient and kBackend
    Side side;              // sender of the packet
    std::uint16_t service;  // for kClient
  };

  /// `settings`: of the chain; its limits cover all shards. `services`: this shard's own.
  Lb(Settings settings, std::shared_ptr<ServiceTable> services, std::shared_ptr<Shards> shards, nf::Shard shard);

  /// Sets the time at the first packet or tick.
  void start_clock(std::uint64_t stamp_ns);
  Sighting inspect(packet::Packet const& packet) const;
  void decide(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome);
  void decide_from_client(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome);
  void decide_from_backend(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome);
  /// Backend for an unknown flow, which is added if space permits; ServiceTable::kNone if no backend is up.
  std::uint16_t start_flow(Sighting const& seen, std::uint8_t tcp_flags);
  void translate_error(packet::Packet const& packet, nf::Outcome& outcome);
  /// The known flow of a request from a client to a service, or of a response from a backend to a client, or kNone.
  /// `hash`: of the request or response.
  FlowTable::Id flow_to_backend(packet::FlowKey const& request, std::uint64_t hash, std::uint16_t service);
  FlowTable::Id flow_to_client(packet::FlowKey const& response, std::uint64_t hash);

  struct Numbers;
  Numbers load_services(nf::StateReader& state) const;
  Numbers numbers_of(ServiceTable const& before) const;
  std::uint16_t backend_at(std::uint16_t service, std::string_view name, Endpoint const& endpoint) const;
  /// Changes the numbers of a flow of another table; nullopt if its service or backend is not here.
  std::optional<FlowTable::FlowSlot> place(Flow& flow, Numbers const& numbers);
  void take_flows(std::span<nf::Nf* const> before);

  Settings settings_;
  nf::Shard shard_;
  std::shared_ptr<Shards> shards_;
  std::shared_ptr<ServiceTable> table_;
  ServiceTable& services_;      // *table_
  bool shares_maglev_ = false;  // with the first shard, which reports their memory
  FlowTable flows_;
  bool has_started_ = false;
  packet::PacketClock clock_;
  std::uint64_t flows_not_tracked_ = 0;
};

}  // namespace catena::lb

/// The NF's descriptor, type `lb`.
catena::nf::Descriptor const& catena_nf_lb();
