// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "answers.hpp"
#include "functions/lpm/dpdk/fib.hpp"
#include "functions/lpm/route_file.hpp"
#include "next_hops.hpp"

/// IPv4 forwarding (RFC 1812, section 5.2.1), in this order:
///   1. A frame not addressed to the router (if it knows): drop `other_mac`.
///   2. A wrong header checksum: `bad_checksum`. Source or destination that must not be forwarded: `martian_source`,
///      `multicast`, `broadcast`, `martian_destination`. Sources are in a hash table, too: the router's own addresses
///      and the broadcast addresses of its networks.
///   3. The longest matching prefix of ipv4.dst gives the output port. The router's own addresses and broadcast
///      addresses of its networks are routes of length 32 that give a decision instead: `to_router`, `broadcast`.
///   4. TTL <= 1: drop `ttl_expired`, regardless of the route. No route: drop `no_route`.
///   5. TTL - 1, header checksum by RFC 1624, meta.port. A port with an entry in the port table gives the frame its
///      MAC addresses (only eth.src to a multicast group); else they stay.
/// A dropped packet keeps its bytes. complete() may answer a packet that would be dropped (answers.hpp).
///
/// Kernels do not see options, so compute() leaves a packet with options to complete(): it takes the same steps, drops
/// malformed options and source routes after step 3, and records the router in the options (header_options.hpp).
///
/// The checksum: TTL is the high byte of its word, so equation 3 of RFC 1624 adds ~m + m' = 0xFEFF for any value of the
/// word: HC' = ~(~HC + 0xFEFF). The sum is never zero, so the result is never 0xFFFF, as in RFC 1071 for any header
/// with its version in it.
///
/// One packet: 10.1.2.3 against `10.0.0.0/8 1`, `10.1.0.0/16 3`: port 3; TTL 64, checksum 0x63c4 become 63, 0x64c4.
///
/// CPU: rte_fib. Kernel: router.kernel.cpp over the table of dir24_8.hpp.
namespace catena::router {

class Router final : public nf::Nf {
 public:
  /// Errors: as load_routes(), read_port_table() and Fib::create().
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  nf::Hints hints() const override;
  /// The replica uses the same tables, even if the routes file has changed.
  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  /// True if both use the same tables in memory.
  bool shares_tables_with(Router const& other) const { return tables_ == other.tables_; }
  void take_unsupported(packet::Packet const& packet, nf::Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  Result<nf::KernelSide> kernel_side() const override;
  std::vector<std::string> start_report() const override;
  std::vector<nf::Statistic> statistics() const override { return answers_.statistics(); }

 private:
  /// Configuration besides routes.
  struct Options {
    std::size_t port_entries = 0;
    bool forwards_multicast = false;
    bool takes_own_where_known = false;   ///< not configured: only if every port used by a route has an entry
    std::vector<std::uint64_t> own_macs;  ///< sorted; empty: accepts frames to any address
  };
  /// Immutable. Thread rule: any number of threads.
  struct Tables {
    std::vector<lpm::Route> routes;         ///< of the file, and special_routes()
    std::size_t special_routes;             ///< number of special ones
    std::vector<std::uint32_t> no_sources;  ///< address_table() of the special ones
    NextHops next_hops;
    lpm::Fib fib;
    Options options;
    PortTable ports;
    AnswerOptions answers;
    std::shared_ptr<packet::ErrorBudget> budget;
    std::string repeated;  ///< start_report()'s warning of routes that are in the file twice; empty: none are
  };
  explicit Router(std::shared_ptr<const Tables> tables)
      : tables_(std::move(tables)), answers_(tables_->ports, tables_->no_sources, tables_->answers, tables_->budget) {}
  static std::string warn_of_repeated(std::string const& path, std::span<const lpm::Route> routes);
  static Result<Options> read_options(nf::Config& config, PortTable const& ports);
  static Result<AnswerOptions> read_answer_options(nf::Config& config, PortTable const& ports);
  static std::uint32_t decide(packet::Packet const& packet, const std::uint8_t* header, std::uint32_t header_bytes,
                              Tables const& tables, Hop const& hop);
  std::uint32_t process_options(packet::Packet const& packet, HeaderOptions& options) const;
  void finish(packet::Packet const& packet, std::uint32_t decision, HeaderOptions const& options, nf::Outcome& outcome);

  std::shared_ptr<const Tables> tables_;
  Answers answers_;
};

}  // namespace catena::router

catena::nf::Descriptor const& catena_nf_router();
