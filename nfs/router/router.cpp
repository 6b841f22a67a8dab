// SPDX-License-Identifier: Apache-2.0
#include "router.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>

#include "dataplane/eal/eal.hpp"
#include "dir24_8.hpp"
#include "router.layout.hpp"

extern const catena::kernel::SourceFile catena_kernel_router[];
extern const unsigned catena_kernel_router_count;

namespace catena::router {
namespace {

// Packets looked up at once: enough to keep loads of headers and tables in flight, few enough that a header read for
// the lookup is still near when it is rewritten.
constexpr std::uint32_t kChunk = 64;

constexpr std::array<nf::DropReason, 2> kDropReasons{{
    {"ttl_expired", "time to live 0 or 1 on arrival"},
    {"no_route", "no prefix of the routes file matches the destination"},
}};

constexpr std::array<nf::ConfigKey, 2> kConfig{{
    {"routes", "file", "", "`prefix port` a line, port 0..65533; longest prefix wins"},
    {"ports", "list of {port, mac, next_hop_mac}", "none",
     "MAC addresses of frames that leave through a port; a port without an entry leaves them unchanged"},
}};

std::uint64_t mac_value(const std::uint8_t* bytes) {
  return std::uint64_t{packet::load_be16(bytes)} << 32 | packet::load_be32(bytes + 2);
}

std::vector<KernelHop> kernel_hops(std::vector<Hop> const& hops) {
  std::vector<KernelHop> result;
  result.reserve(hops.size());
  for (Hop const& hop : hops) {
    result.push_back(
        {mac_value(hop.macs.data()), mac_value(hop.macs.data() + 6), hop.port, hop.rewrites_macs ? 1U : 0U});
  }
  return result;
}

/// Takes a packet that goes on one hop further. `header`: its IPv4 header.
inline void forward(packet::Packet const& packet, std::uint8_t* header, Hop const& hop) {
  --header[8];
  packet::store_be16(header + 10, packet::checksum_update(packet::load_be16(header + 10), 0x0100, 0));
  if (hop.rewrites_macs) {
    std::copy(hop.macs.begin(), hop.macs.end(), packet.frame());
  }
}

}  // namespace

Result<std::unique_ptr<nf::Nf>> Router::create(nf::Config& config) {
  CATENA_RETURN_IF_ERROR(dataplane::require_eal("router"));
  CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("routes"));
  CATENA_ASSIGN_OR_RETURN(const PortTable ports, read_port_table(config));
  CATENA_RETURN_IF_ERROR(config.finish());
  CATENA_ASSIGN_OR_RETURN(std::vector<Route> routes, load_routes(path));
  NextHops next_hops(routes, ports);
  CATENA_ASSIGN_OR_RETURN(Fib fib, Fib::create(routes, next_hops));
  return std::unique_ptr<nf::Nf>(new Router(std::move(routes), std::move(next_hops), std::move(fib), ports.size()));
}

nf::Hints Router::hints() const {
  const packet::FieldSet macs = port_entries_ > 0 ? packet::fields(packet::kEthDst, packet::kEthSrc) : 0;
  const packet::FieldSet rewritten = packet::fields(packet::kIpv4Ttl, packet::kIpv4Checksum);
  nf::Hints hints;
  hints.cr = packet::fields(packet::kIpv4Dst) | rewritten;
  hints.cw = packet::fields(packet::kMetaPort) | rewritten | macs;
  // the kernel gives back every header field it may write, so it must know what a packet has that it leaves unchanged
  hints.gr = packet::fields(packet::kIpv4Dst) | rewritten | macs;
  hints.gw = hints.cw;
  hints.complete_reads = packet::fields(packet::kMetaPort);
  return hints;
}

void Router::compute(packet::Batch const& batch, std::span<const std::byte>, std::span<std::byte> results) {
  RouteResult* decisions = nf::array_of<RouteResult>(results).data();
  const Hop* hops = next_hops_.hops().data();
  std::array<std::uint8_t*, kChunk> headers;
  std::array<std::uint32_t, kChunk> addresses;
  std::array<std::uint64_t, kChunk> numbers;
  for (std::uint32_t first = 0; first < batch.size(); first += kChunk) {
    const std::uint32_t count = std::min(kChunk, batch.size() - first);
    for (std::uint32_t i = 0; i < count; ++i) {
      headers[i] = batch[first + i].l3();
      addresses[i] = packet::load_be32(headers[i] + 16);
    }
    // while the tables are read, the headers of the next chunk come near: a pool is larger than the caches
    for (std::uint32_t i = first + kChunk; i < std::min(first + 2 * kChunk, batch.size()); ++i) {
      __builtin_prefetch(batch[i].l3(), 1);
    }
    fib_.lookup(addresses.data(), numbers.data(), count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const packet::Packet packet = batch[first + i];
      Hop const& hop = hops[numbers[i]];
      const std::uint32_t decision = headers[i][8] <= 1 ? kTtlExpired : numbers[i] == kNoHop ? kNoRoute : kForward;
      decisions[first + i].decision = decision;
      if (decision == kForward) {
        forward(packet, headers[i], hop);
        packet.set_port(hop.port);
      } else {
        packet.set_port(0);
      }
    }
  }
}

void Router::complete(packet::Batch const& batch, std::span<const std::byte>, std::span<const std::byte> results,
                      nf::SpillView const*, std::uint32_t, nf::Outcome& outcome) {
  const std::span<const RouteResult> decisions = nf::array_of<RouteResult>(results);
  std::uint32_t any = kForward;
  for (RouteResult const& result : decisions) {
    any |= result.decision;
  }
  if (any == kForward && !outcome.recording()) {
    return;
  }
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const packet::Packet packet = batch[i];
    if (decisions[i].decision == kForward) {
      if (outcome.recording()) {
        outcome.record(packet, packet::Verdict::kPass, -1, concat("\"port\":", packet.port()));
      }
      continue;
    }
    const std::uint32_t reason = decisions[i].decision - 1;
    outcome.drop(packet, reason);
    if (outcome.recording()) {
      outcome.record(packet, packet::Verdict::kDrop, static_cast<std::int32_t>(reason), "");
    }
  }
}

Result<nf::KernelSide> Router::kernel_side() const {
  nf::KernelSide side;
  side.spec.source = {catena_kernel_router, catena_kernel_router_count};
  side.spec.kernel = "router";
  side.spec.reads = hints().gr;
  side.spec.writes = hints().gw;
  side.spec.result_bytes = sizeof(RouteResult);

  nf::StateBuilder state(sizeof(State));
  State header{};
  const auto add_table = [&]<typename Entry>(LookupTable<Entry>& where) {
    const Dir24_8<Entry> table = build_dir24_8<Entry>(routes_, next_hops_);
    where.tbl24 = state.add(std::span(table.tbl24));
    where.tbl8 = state.add(std::span(table.tbl8));
  };
  header.is_wide = std::max(count_groups(routes_), next_hops_.hops().size()) > entry_limit(16) ? 1 : 0;
  if (header.is_wide != 0) {
    add_table(header.wide);
  } else {
    add_table(header.narrow);
  }
  const std::vector<KernelHop> hops = kernel_hops(next_hops_.hops());
  header.hops = state.add(std::span(hops));
  side.state = state.finish(header);
  return side;
}

std::vector<std::string> Router::start_report() const {
  return {
      concat(routes_.size(), " routes to ", next_hops_.hops().size() - 1, " ports, MAC addresses for ", port_entries_)};
}

}  // namespace catena::router

catena::nf::Descriptor const& catena_nf_router() {
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "router",
      .help = "IPv4 forwarding by longest prefix: output port, TTL, MAC addresses",
      .needs = catena::packet::kIpv4,
      .drop_reasons = catena::router::kDropReasons,
      .config = catena::router::kConfig,
      .aux_bytes = 0,
      .result_bytes = sizeof(catena::router::RouteResult),
      .has_kernel = true,
      .create = &catena::router::Router::create,
  };
  return kDescriptor;
}
