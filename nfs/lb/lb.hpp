// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <vector>

#include "flow_table.hpp"
#include "lb.layout.hpp"
#include "service_table.hpp"

/// Layer-4 load balancer. A service is an address, port and protocol that clients use; its backends do the work.
///
///   client -> service    The flow's backend, if the flow is known, else that of the service's Maglev table for the
///   hash
///                        of the 5-tuple. Destination address and port become the backend's.
///   backend -> client    Source address and port become the service's, if the flow is known.
///   anything else        Passes unchanged.
///
/// One packet: 198.51.100.7:40000 -> 203.0.113.10:80, backend web2 at 10.0.0.2:8080. It leaves as 198.51.100.7:40000 ->
/// 10.0.0.2:8080, and the answer 10.0.0.2:8080 -> 198.51.100.7:40000 leaves with the source 203.0.113.10:80.
///
/// A flow keeps its backend while that is up or drains. It ends with its time-out, which a FIN or RST shortens, when
/// its backend is down, and with a SYN after a FIN or RST: a client that uses a port again. All state is in prepare():
/// the rewriting needs nothing but the packet and its Aux.
namespace catena::lb {

class Lb final : public nf::Nf {
 public:
  /// Errors: as read_settings().
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  /// Puts `services` in force for the packets of later batches; flows stay with backends that are not down. To be
  /// called while no batch is between prepare() and complete(). Errors, which change nothing: as
  /// ServiceTable::update().
  Status update(std::span<const Service> services);

  nf::Hints hints() const override;
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(packet::Batch const& batch, std::span<const std::byte> aux, std::span<const std::byte> results,
                nf::SpillView const* spill, std::uint32_t first_row, nf::Outcome& outcome) override;
  Result<nf::KernelSide> kernel_side() const override;
  std::vector<std::string> start_report() const override;
  std::vector<std::string> end_report() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  enum class Side : std::uint8_t { kNeither, kClient, kBackend, kFragmentToService };
  /// What the headers alone say about a packet.
  struct Sighting {
    Endpoint source;
    Endpoint destination;
    std::uint64_t hash;     // of the 5-tuple; for kClient and kBackend
    Side side;              // where it comes from
    std::uint16_t service;  // for kClient
  };

  explicit Lb(Settings const& settings);

  Sighting look_at(packet::Packet const& packet) const;
  void decide(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome);
  void decide_from_client(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome);
  void decide_from_backend(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome);
  /// Backend of a flow that is not known, now remembered if there is room; ServiceTable::kNone if none is up.
  std::uint16_t start_flow(Sighting const& seen, bool closes);

  ServiceTable services_;
  FlowTable flows_;
  std::uint64_t flows_not_tracked_ = 0;
};

}  // namespace catena::lb

/// The NF's descriptor, type `lb`.
catena::nf::Descriptor const& catena_nf_lb();
