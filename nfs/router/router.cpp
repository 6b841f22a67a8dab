// SPDX-License-Identifier: Apache-2.0
#include "router.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>

#include "catena_kernel_router.hpp"
#include "checks.hpp"
#include "functions/lpm/dir24_8.hpp"
#include "router.layout.hpp"

namespace catena::router {
namespace {

// Packets looked up at once: enough to keep loads of headers and tables in flight, few enough that a header read for
// the lookup is still near when it is rewritten.
constexpr std::uint32_t kChunk = 64;
constexpr std::uint8_t kPlainHeader = 0x45;  // version 4, no options

/// In the order of Decision.
constexpr std::array<nf::DropReason, 15> kDropReasons{{
    {"ttl_expired", "time to live 0 or 1 on arrival"},
    {"no_route", "no prefix of the routes file matches the destination"},
    {"to_router", "to one of the router's own addresses, and no echo request"},
    {"broadcast", "to 255.255.255.255, or to all hosts of a network at one of the router's ports"},
    {"multicast", "to 224/4, and `multicast` is drop; to 224.0.0/24, which never leaves its link"},
    {"martian_source",
     "from 0/8, 127/8, 169.254/16, 224/4 or 240/4 (RFC 1812, section 5.3.7), from one of the router's own addresses, "
     "or "
     "from the broadcast address of a network at one of its ports"},
    {"martian_destination", "to 0/8, 127/8, 169.254/16 or 240/4"},
    {"bad_checksum", "the header checksum is wrong on arrival"},
    {"other_mac", "the frame is for another station, and `frames` is own"},
    {"arp", "ARP other than a request for one of the router's addresses, and `arp` is answer"},
    {"control_frame", "another control frame of a link (STP, LLDP), and `arp` is answer"},
    {"not_routable", "no IPv4 datagram, and no control frame of a link: a router does not bridge"},
    {"bad_options", "malformed options in the IPv4 header"},
    {"source_route", "a loose or strict source route among the options (RFC 7126, section 4.3)"},
    {"bad_icmp_checksum", "an echo request to the router with a wrong ICMP checksum"},
}};
static_assert(kDropReasons[kToRouter - 1].name == "to_router" && kDropReasons[kOtherMac - 1].name == "other_mac" &&
              kDropReasons[kNotRoutable - 1].name == "not_routable" &&
              kDropReasons[kBadIcmpChecksum - 1].name == "bad_icmp_checksum");

constexpr std::array<nf::ConfigKey, 6> kConfig{{
    {"routes", "file", "", "one `prefix port` per line, port 0..65533; longest prefix wins"},
    {"ports", "list of {port, mac, next_hop_mac, address}", "none",
     "MAC addresses of frames sent through a port; a port without an entry leaves them unchanged. address: the "
     "router's own on the port, as 10.9.0.1/24, optional"},
    {"arp", "answer | pass", "answer where a port has an address",
     "answer: requests for the router's addresses are answered, and no control frame of a link is passed on"},
    {"icmp_rate", "integer 0..1000000", "1000 where a port has an address, else 0",
     "ICMP errors per second (time exceeded, unreachable, parameter problem); 0: off"},
    {"frames", "own | any", "own where rx is live and every port used by a route has a `mac`",
     "own: frames for another station's MAC address are dropped"},
    {"multicast", "drop | forward", "drop", "packets to multicast groups matched by a route"},
}};
constexpr std::int64_t kDefaultIcmpRate = 1000;
constexpr std::int64_t kMaxIcmpRate = 1'000'000;

std::uint64_t mac_value(const std::uint8_t* bytes) {
  return std::uint64_t{packet::load_be16(bytes)} << 32 | packet::load_be32(bytes + 2);
}

std::vector<KernelHop> kernel_hops(std::vector<Hop> const& hops) {
  std::vector<KernelHop> result;
  result.reserve(hops.size());
  for (Hop const& hop : hops) {
    result.push_back({mac_value(hop.macs.data()), mac_value(hop.macs.data() + 6), hop.port,
                      static_cast<u16>(hop.rewrites_macs ? 1 : 0), hop.decision});
  }
  return result;
}

/// Takes a packet that goes on one hop further. `header`: its IPv4 header.
inline void forward(packet::Packet const& packet, std::uint8_t* header, Hop const& hop) {
  --header[8];
  packet::store_be16(header + 10, packet::checksum_update(packet::load_be16(header + 10), 0x0100, 0));
  if (hop.rewrites_macs) {
    // the MAC address of a group follows from the group (RFC 1112, section 6.4): the frame has it
    const std::ptrdiff_t kept = is_multicast(packet::load_be32(header + 16)) ? 6 : 0;
    std::copy(hop.macs.begin() + kept, hop.macs.end(), packet.frame() + kept);
  }
}

}  // namespace

/// Reads what becomes of frames and packets that are not plain unicast to this router.
Result<Router::Options> Router::read_options(nf::Config& config, PortTable const& ports) {
  Options options;
  options.port_entries = ports.size();
  CATENA_ASSIGN_OR_RETURN(const std::string multicast, config.one_of("multicast", {"drop", "forward"}, "drop"));
  options.forwards_multicast = multicast == "forward";
  options.takes_own_where_known = config.ends().live_rx && !config.has("frames");
  CATENA_ASSIGN_OR_RETURN(const std::string frames,
                          config.one_of("frames", {"own", "any"}, options.takes_own_where_known ? "own" : "any"));
  if (frames == "own" && ports.empty() && !options.takes_own_where_known) {
    return config.error("frames", "'frames' is 'own', but no port has a 'mac'; list them under 'ports'");
  }
  for (auto const& [port, entry] : ports) {
    if (frames == "own") {
      options.own_macs.push_back(mac_value(entry.own.data()));
    }
  }
  std::sort(options.own_macs.begin(), options.own_macs.end());
  return options;
}

Result<AnswerOptions> Router::read_answer_options(nf::Config& config, PortTable const& ports) {
  const bool has_address =
      std::any_of(ports.begin(), ports.end(), [](auto const& entry) { return entry.second.address.address != 0; });
  AnswerOptions options;
  options.live = config.ends().live_rx;
  CATENA_ASSIGN_OR_RETURN(const std::string arp,
                          config.one_of("arp", {"answer", "pass"}, has_address ? "answer" : "pass"));
  options.arp = arp == "answer";
  CATENA_ASSIGN_OR_RETURN(const std::int64_t rate,
                          config.integer_or("icmp_rate", has_address ? kDefaultIcmpRate : 0, 0, kMaxIcmpRate));
  const nf::Shard shard = config.shard();
  const bool is_divided = shard.is_alone && rate > 0;
  options.icmp_rate = static_cast<std::uint32_t>(is_divided ? shard.part_of(static_cast<std::uint64_t>(rate)) : rate);
  for (const std::string_view key : {"arp", "icmp_rate"}) {
    const bool answers = key == "arp" ? options.arp : rate > 0;
    if (answers && !has_address) {
      return config.error(key, concat("'", key,
                                      "' asks for answers, but no port has an 'address' to answer from; write "
                                      "e.g. address: 10.9.0.1/24 at a port"));
    }
  }
  return options;
}

/// Lines of the file that say the same; empty if there are none.
std::string Router::warn_of_repeated(std::string const& path, std::span<const lpm::Route> routes) {
  const auto is_repeated = [](lpm::Route const& route) { return route.repeated_on != 0; };
  const auto first = std::find_if(routes.begin(), routes.end(), is_repeated);
  if (first == routes.end()) {
    return {};
  }
  const auto count = std::count_if(first, routes.end(), is_repeated);
  return concat(nf::kWarning, path, ":", first->repeated_on, ": ",
                packet::to_string(packet::Ipv4Prefix{first->address, first->length}), " ", first->port, " is on line ",
                first->line, " already; delete one of the two lines",
                count > 1 ? concat(" (", count, " routes are repeated)") : std::string());
}

Result<std::unique_ptr<nf::Nf>> Router::create(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("routes"));
  CATENA_ASSIGN_OR_RETURN(const PortTable ports, read_port_table(config));
  CATENA_ASSIGN_OR_RETURN(const AnswerOptions answer_options, read_answer_options(config, ports));
  CATENA_ASSIGN_OR_RETURN(Options options, read_options(config, ports));
  CATENA_RETURN_IF_ERROR(config.finish());
  CATENA_ASSIGN_OR_RETURN(std::vector<lpm::Route> routes, lpm::load_routes(path));
  const auto has_mac = [&](lpm::Route const& route) { return ports.contains(route.port); };
  if (options.takes_own_where_known && !std::all_of(routes.begin(), routes.end(), has_mac)) {
    options.own_macs.clear();
  }
  std::string repeated = warn_of_repeated(path, routes);
  const std::vector<lpm::Route> special = special_routes(ports);
  routes = with_special_routes(std::move(routes), special);
  NextHops next_hops(routes, ports);
  CATENA_ASSIGN_OR_RETURN(lpm::Fib fib, lpm::Fib::create(routes, next_hops.numbers()));
  auto tables = std::make_shared<const Tables>(
      Tables{std::move(routes), special.size(), address_table(special), std::move(next_hops), std::move(fib),
             std::move(options), ports, answer_options, make_budget(answer_options), std::move(repeated)});
  return std::unique_ptr<nf::Nf>(new Router(std::move(tables)));
}

Result<std::unique_ptr<nf::Nf>> Router::replicate(std::uint32_t /*shard*/) const {
  return std::unique_ptr<nf::Nf>(new Router(tables_));
}

nf::Hints Router::hints() const {
  Options const& options = tables_->options;
  const packet::FieldSet macs =
      options.port_entries > 0 ? packet::fields(packet::kEthDst, packet::kEthSrc) : packet::kNoFields;
  const packet::FieldSet checked_mac = options.own_macs.empty() ? packet::kNoFields : packet::fields(packet::kEthDst);
  const packet::FieldSet rewritten = packet::fields(packet::kIpv4Ttl, packet::kIpv4Checksum);
  const packet::FieldSet header = packet::fields(
      packet::kIpv4Version, packet::kIpv4Tos, packet::kIpv4Length, packet::kIpv4Id, packet::kIpv4Fragment,
      packet::kIpv4Ttl, packet::kIpv4Protocol, packet::kIpv4Checksum, packet::kIpv4Src, packet::kIpv4Dst);
  nf::Hints hints;
  hints.cr = header | checked_mac;
  hints.cw = packet::fields(packet::kMetaPort) | rewritten | macs;
  // the kernel gives back every header field it may write, so it must know what a packet has that it leaves unchanged
  hints.gr = header | checked_mac | macs;
  hints.gw = hints.cw;
  hints.complete_reads = hints.cr | packet::fields(packet::kMetaPort, packet::kIpv4Options);
  hints.complete_writes = hints.cw;  // packets with options
  if (answers_.has_addresses()) {
    hints.complete_reads |= packet::kIcmpErrorReads;
    hints.complete_writes |= packet::fields(packet::kIpv4Options);
  }
  if (answers_.options().arp) {
    hints.prepare_reads = packet::kFrameFields;  // take_unsupported()
  }
  return hints;
}

void Router::take_unsupported(packet::Packet const& packet, nf::Outcome& outcome) {
  answers_.take_unsupported(packet, outcome);
}

/// Decision about a packet. `hop`: its next hop.
inline std::uint32_t Router::decide(packet::Packet const& packet, const std::uint8_t* header,
                                    std::uint32_t header_bytes, Tables const& tables, Hop const& hop) {
  Options const& options = tables.options;
  const std::uint32_t src = packet::load_be32(header + 12);
  const std::uint32_t dst = packet::load_be32(header + 16);
  if (!options.own_macs.empty()) {
    const bool to_group = options.forwards_multicast && is_multicast(dst) && (packet.frame()[0] & 1U) != 0;
    if (!to_group && !std::binary_search(options.own_macs.begin(), options.own_macs.end(), mac_value(packet.frame()))) {
      return kOtherMac;
    }
  }
  if (!checksum_is_right(header, header_bytes)) {
    return kBadChecksum;
  }
  const std::uint32_t decision = check_addresses(src, dst, tables.no_sources, options.forwards_multicast);
  if (decision != kForward) {
    return decision;
  }
  const bool at_its_end = header[8] <= 1 && (hop.decision == kForward || hop.decision == kNoRoute);
  return at_its_end ? kTtlExpired : hop.decision;
}

void Router::compute(packet::Batch const& batch, std::span<const std::byte>, std::span<std::byte> results) {
  RouteResult* decisions = nf::array_of<RouteResult>(results).data();
  const Hop* hops = tables_->next_hops.hops().data();
  Tables const& tables = *tables_;
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
    tables.fib.lookup(addresses.data(), numbers.data(), count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const packet::Packet packet = batch[first + i];
      Hop const& hop = hops[numbers[i]];
      const std::uint32_t decision =
          headers[i][0] == kPlainHeader ? decide(packet, headers[i], packet::kIpv4MinBytes, tables, hop) : kHasOptions;
      if (decision == kForward) {
        forward(packet, headers[i], hop);
        packet.set_port(hop.port);
      } else {
        packet.set_port(0);
      }
      decisions[first + i].decision = decision;
    }
  }
}

/// Decides about a packet with options and forwards it if nothing opposes. `options`: read if the decision depends on
/// them.
std::uint32_t Router::process_options(packet::Packet const& packet, HeaderOptions& options) const {
  std::uint8_t* header = packet.l3();
  std::uint32_t address = packet::load_be32(header + 16);
  std::uint64_t number = 0;
  tables_->fib.lookup(&address, &number, 1);
  Hop const& hop = tables_->next_hops.hops()[number];
  const std::uint32_t decision = decide(packet, header, (header[0] & 0x0FU) * 4U, *tables_, hop);
  if (decision != kForward && decision != kTtlExpired && decision != kNoRoute && decision != kToRouter) {
    return decision;
  }
  options = parse_options(header);
  if (options.source_route != 0) {
    return kSourceRoute;  // even if malformed: an error would have to take the route back (RFC 1812, section 4.3.2.6)
  }
  if (options.problem != 0) {
    return kBadOptions;
  }
  if (decision == kForward) {
    answers_.record_hop(packet, options, hop.port);
    forward(packet, header, hop);
    packet.set_port(hop.port);
  }
  return decision;
}

/// Drops or answers a packet that is not forwarded.
void Router::finish(packet::Packet const& packet, std::uint32_t decision, HeaderOptions const& options,
                    nf::Outcome& outcome) {
  const Decision left = answers_.answer(packet, static_cast<Decision>(decision), options, outcome);
  if (left == kForward) {
    return;
  }
  outcome.drop(packet, left - 1);
  if (outcome.recording()) {
    outcome.record(packet, packet::Verdict::kDrop, static_cast<std::int32_t>(left - 1), "");
  }
}

void Router::complete(nf::Completion const& completion) {
  packet::Batch const& batch = completion.batch();
  nf::Outcome& outcome = completion.outcome();
  const std::span<const RouteResult> decisions = completion.results<RouteResult>();
  std::uint32_t any = kForward;
  for (RouteResult const& result : decisions) {
    any |= result.decision;
  }
  if (any == kForward && !outcome.recording()) {
    return;
  }
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const packet::Packet packet = batch[i];
    HeaderOptions options;
    std::uint32_t decision = decisions[i].decision;
    if (decision == kHasOptions) {
      decision = process_options(packet, options);
    }
    if (decision != kForward) {
      finish(packet, decision, options, outcome);
    } else if (outcome.recording()) {
      outcome.record(packet, packet::Verdict::kPass, -1, concat("\"port\":", packet.port()));
    }
  }
}

Result<nf::KernelSide> Router::kernel_side() const {
  nf::KernelSide side;
  side.spec.source = catena_kernel_router();
  side.spec.name = "router";

  Tables const& tables = *tables_;
  nf::StateBuilder state(sizeof(State));
  State header{};
  const auto add_table = [&]<typename Entry>(lpm::LookupTable<Entry>& where) {
    const lpm::Dir24_8<Entry> table = lpm::build_dir24_8<Entry>(tables.routes, tables.next_hops.numbers());
    where.tbl24 = state.add(std::span(table.tbl24));
    where.tbl8 = state.add(std::span(table.tbl8));
  };
  const std::size_t numbered = std::max(lpm::count_groups(tables.routes), tables.next_hops.hops().size());
  header.routes.is_wide = numbered > lpm::entry_limit(16) ? 1 : 0;
  if (header.routes.is_wide != 0) {
    add_table(header.routes.wide);
  } else {
    add_table(header.routes.narrow);
  }
  const std::vector<KernelHop> hops = kernel_hops(tables.next_hops.hops());
  header.hops = state.add(std::span(hops));
  header.own_macs = state.add(std::span(tables.options.own_macs));
  header.no_sources = state.add(std::span(tables.no_sources));
  header.forwards_multicast = tables.options.forwards_multicast ? 1 : 0;
  side.state = state.finish(header);
  return side;
}

std::vector<std::string> Router::start_report() const {
  const auto is_port = [](Hop const& hop) { return hop.decision == kForward; };
  std::vector<Hop> const& hops = tables_->next_hops.hops();
  const auto ports = std::count_if(hops.begin(), hops.end(), is_port);
  std::vector<std::string> lines{concat(tables_->routes.size() - tables_->special_routes, " routes to ", ports,
                                        " ports, MAC addresses for ", tables_->options.port_entries)};
  lines.push_back(concat(tables_->options.own_macs.empty()
                             ? "takes frames to any MAC address (`frames: own` is the default of live ports)"
                             : "takes frames to its own MAC addresses alone",
                         answers_.options().arp ? "; answers ARP" : "; passes ARP on",
                         answers_.options().icmp_rate > 0
                             ? concat("; sends ICMP errors, at most ", answers_.options().icmp_rate, " per second")
                             : std::string("; sends no ICMP errors")));
  if (!tables_->repeated.empty()) {
    lines.push_back(tables_->repeated);
  }
  return lines;
}

}  // namespace catena::router

catena::nf::Descriptor const& catena_nf_router() {
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "router",
      .help = "IPv4 forwarding by longest prefix: output port, TTL, MAC addresses",
      .needs = catena::packet::kIpv4,
      .takes_unsupported = true,
      .drop_reasons = catena::router::kDropReasons,
      .config = catena::router::kConfig,
      .aux_bytes = 0,
      .result_bytes = sizeof(catena::router::RouteResult),
      .has_kernel = true,
      // an answer is made of its packet alone; of how many errors there are a second each shard has a part
      .sharding = catena::nf::Sharding::kPacket,
      .create = &catena::router::Router::create,
  };
  return kDescriptor;
}
