// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <vector>

#include "fib.hpp"
#include "next_hops.hpp"
#include "route_file.hpp"

/// IPv4 forwarding (RFC 1812, section 5.2.1), in this order:
///   1. TTL <= 1: drop `ttl_expired`. Comes first, so that a packet at the end of its life is never `no_route`.
///   2. The longest prefix that matches ipv4.dst gives the output port; none: drop `no_route`.
///   3. TTL - 1, header checksum by RFC 1624, meta.port. A port with an entry in the port table gives the frame its
///      MAC addresses; else they stay.
/// A dropped packet keeps its bytes.
///
/// The checksum: TTL is the high byte of its word, so equation 3 of RFC 1624 adds ~m + m' = 0xFEFF whatever the word
/// was: HC' = ~(~HC + 0xFEFF). The sum is never zero, so the result is never 0xFFFF, which is also what RFC 1071
/// gives over any header with its version in it; a wrong checksum stays wrong by the same amount.
///
/// One packet: 10.1.2.3 against `10.0.0.0/8 1`, `10.1.0.0/16 3`: port 3; TTL 64, checksum 0x63c4 become 63, 0x64c4.
///
/// CPU: rte_fib. Kernel: router.kernel.cpp over the table of dir24_8.hpp.
namespace catena::router {

class Router final : public nf::Nf {
 public:
  /// Errors: as load_routes(), read_port_table() and Fib::create(); FailedPrecondition where the EAL does not run.
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  nf::Hints hints() const override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(packet::Batch const& batch, std::span<const std::byte> aux, std::span<const std::byte> results,
                nf::SpillView const* spill, std::uint32_t first_row, nf::Outcome& outcome) override;
  Result<nf::KernelSide> kernel_side() const override;
  std::vector<std::string> start_report() const override;

 private:
  Router(std::vector<Route> routes, NextHops next_hops, Fib fib, std::size_t port_entries)
      : routes_(std::move(routes)),
        next_hops_(std::move(next_hops)),
        fib_(std::move(fib)),
        port_entries_(port_entries) {}

  std::vector<Route> routes_;
  NextHops next_hops_;
  Fib fib_;
  std::size_t port_entries_;
};

}  // namespace catena::router

catena::nf::Descriptor const& catena_nf_router();
