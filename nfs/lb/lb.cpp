// SPDX-License-Identifier: Apache-2.0
#include "lb.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/tcp_state.hpp>
#include <catena/packet/icmp_error.hpp>

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "catena_kernel_lb.hpp"

namespace catena::lb {
namespace {

enum DropReasonId : std::uint32_t { kNoBackend = 0, kFragment = 1 };
constexpr std::array<nf::DropReason, 2> kDropReasons{{
    {"no_backend", "no backend of the service is up"},
    {"fragment",
     "part of a fragmented datagram to a service's address or of a known flow: its other parts have no ports"},
}};

constexpr std::array<nf::ConfigKey, 7> kConfig{{
    {"services", "list of {address, port, protocol, backends}", "",
     "protocol tcp or udp; backends: list of {name, address, port, weight 1..256, state up | drain | down}"},
    {"table_size", "prime 101..1048573", "65537", "entries of each service's Maglev table, at least 100 per backend"},
    {"max_flows", "integer 1..16777216", "1000000", "flows remembered at a time; 64 bytes each"},
    {"max_half_open", "integer 1..max_flows", "half of max_flows",
     "TCP flows whose handshake is not complete; one more evicts the oldest"},
    {"timeouts", "{tcp_opening, tcp_established, tcp_closing, udp}", "30, 7440, 60, 300",
     "seconds without packets after which a flow is forgotten"},
    {"answers_without_flow", "translate | pass", "translate",
     "packets from a backend of one service to unknown clients"},
    {"icmp_errors", "translate | pass", "translate", "ICMP errors about translated packets"},
}};

/// Expired flows that a tick removes at most; packets wait for it.
constexpr std::uint32_t kExpirePerTick = 4096;

/// Packets whose flows are asked for before the first of them is decided: enough to hide the way to memory.
constexpr std::uint32_t kChunk = 32;
/// Equally spaced slots share few sets of the first-level cache: headers are asked for only this far ahead.
constexpr std::uint32_t kHeadersAhead = 4;

constexpr packet::FieldSet kRewritten = packet::fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Checksum,
                                                       packet::kL4Sport, packet::kL4Dport, packet::kL4Checksum);

std::uint64_t hash_of(packet::FlowKey const& flow) {
  const std::uint64_t addresses = std::uint64_t{flow.source.v4()} << 32 | flow.destination.v4();
  const std::uint64_t rest =
      std::uint64_t{flow.source_port} << 32 | std::uint64_t{flow.destination_port} << 16 | flow.protocol;
  return mix(mix(addresses) + rest);
}

std::uint8_t tcp_flags(packet::Packet const& packet) { return packet.is(packet::kTcp) ? packet.l4()[13] : 0; }
bool opens(std::uint8_t flags) { return (flags & (nf::kTcpSyn | nf::kTcpAck)) == nf::kTcpSyn; }

/// Whether a SYN of the client begins another connection: it has done with this one.
bool is_over(Flow const& flow) {
  return (flow.tcp_state & nf::kTcpFinFromInitiator) != 0 || nf::tcp_phase(flow.tcp_state) == nf::TcpPhase::kClosing;
}

Endpoint client_of(Flow const& flow) {
  return {flow.client_address, flow.client_port, flow.is_udp ? packet::kProtocolUdp : packet::kProtocolTcp};
}

bool is_client_of(Flow const& flow, packet::Address const& address, std::uint16_t port) {
  return flow.client_address == address.v4() && flow.client_port == port;
}

std::uint8_t state_after(Flow const& flow, std::uint8_t flags, bool is_from_client) {
  return flow.is_udp ? std::uint8_t{0} : nf::next_tcp_state(flow.tcp_state, {flags, is_from_client});
}
bool is_half_open(std::uint8_t tcp_state, Flow const& flow) {
  return !flow.is_udp && nf::tcp_phase(tcp_state) == nf::TcpPhase::kOpening;
}

void drop(packet::Packet const& packet, DropReasonId reason, nf::Outcome& outcome) {
  outcome.drop(packet, reason);
  if (outcome.recording()) {
    outcome.record(packet, packet::Verdict::kDrop, static_cast<std::int32_t>(reason), "");
  }
}

/// The checksum over the word at `at` after that becomes `word`.
std::uint16_t with_word(std::uint16_t checksum, const std::uint8_t* at, std::uint32_t word) {
  return packet::checksum_update(checksum, packet::load_be16(at), static_cast<std::uint16_t>(word));
}

/// The CPU's translation. `l3`, `l4`: headers of a packet whose action is not kKeep.
void translate(std::uint8_t* l3, std::uint8_t* l4, Aux const& aux) {
  std::uint8_t* address = l3 + (aux.action == kToBackend ? 16 : 12);
  std::uint8_t* port = l4 + (aux.action == kToBackend ? 2 : 0);
  std::uint8_t* l4_checksum = l4 + (aux.is_udp != 0 ? 6 : 16);
  const auto with_address = [&](std::uint16_t sum) {
    return with_word(with_word(sum, address, aux.address >> 16), address + 2, aux.address);
  };

  packet::store_be16(l3 + 10, with_address(packet::load_be16(l3 + 10)));
  const std::uint16_t before = packet::load_be16(l4_checksum);
  if (aux.is_udp == 0 || before != 0) {  // RFC 768: 0 says that the sender made none
    const std::uint16_t after = with_word(with_address(before), port, aux.port);
    packet::store_be16(l4_checksum, aux.is_udp != 0 && after == 0 ? 0xFFFF : after);
  }
  packet::store_be32(address, aux.address);
  packet::store_be16(port, aux.port);
}

FlowLimits part_of(FlowLimits const& limits, nf::Shard shard) {
  return {static_cast<std::uint32_t>(shard.part_of(limits.flows)),
          static_cast<std::uint32_t>(shard.part_of(limits.half_open))};
}

/// What numbers and time-outs of another one have to be the same.
std::array<std::uint32_t, 7> fixed_settings(Settings const& settings) {
  return {static_cast<std::uint32_t>(settings.table_size),
          settings.limits.flows,
          settings.limits.half_open,
          settings.timeouts.tcp_opening,
          settings.timeouts.tcp_established,
          settings.timeouts.tcp_closing,
          settings.timeouts.udp};
}

/// "web-1" as part of a metric's name.
std::string metric_part(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

}  // namespace

Result<std::unique_ptr<nf::Nf>> Lb::create(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(Settings settings, read_settings(config));
  auto table = std::make_shared<ServiceTable>(settings.table_size);
  auto shards = std::make_shared<Shards>(config.shard().count);
  std::unique_ptr<Lb> lb(new Lb(std::move(settings), std::move(table), std::move(shards), config.shard()));
  CATENA_RETURN_IF_ERROR(lb->update(lb->settings_.services));
  return lb;
}

Lb::Lb(Settings settings, std::shared_ptr<ServiceTable> services, std::shared_ptr<Shards> shards, nf::Shard shard)
    : settings_(std::move(settings)),
      shard_(shard),
      shards_(std::move(shards)),
      table_(std::move(services)),
      services_(*table_),
      flows_(part_of(settings_.limits, shard), ServiceTable::kBackendNumbers, settings_.timeouts) {
  shards_->add(table_);
}

Status Lb::update(std::span<const Service> services) {
  CATENA_RETURN_IF_ERROR(
      services_.update(services, [this](std::uint16_t backend) { return flows_.flows_of(backend); }));
  shares_maglev_ = false;
  shards_->tables_changed();
  return absl::OkStatus();
}

Status Lb::prepare_migration(std::span<nf::Nf const* const> before) {
  auto const& first = static_cast<Lb const&>(*before.front());
  if (fixed_settings(first.settings_) != fixed_settings(settings_)) {
    return absl::FailedPreconditionError("its tables, limits or time-outs have changed");
  }
  shards_->divide_as(*first.shards_);
  if (before.size() != shard_.count) {
    return absl::OkStatus();
  }
  // numbers have to be the same, for flows have them. A listed backend may get flows until then, another one only loses
  // them
  auto const& old = static_cast<Lb const&>(*before[shard_.index]);
  ServiceTable next = old.services_.without_counts();
  CATENA_RETURN_IF_ERROR(next.update(settings_.services, [&](std::uint16_t backend) {
    return next.backends()[backend].listed ? 1 : old.flows_.flows_of(backend);
  }));
  services_ = std::move(next);
  shards_->tables_changed();
  return absl::OkStatus();
}

void Lb::migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& /*is_mine*/) {
  if (before.size() != shard_.count) {
    take_flows(before);
    return;
  }
  auto& old = static_cast<Lb&>(*before[shard_.index]);
  flows_ = std::move(old.flows_);
  clock_ = old.clock_;
  has_started_ = old.has_started_;
  flows_not_tracked_ = old.flows_not_tracked_;
  services_.take_counts(old.services_);
}

namespace {

void save(Endpoint const& endpoint, nf::StateWriter& state) {
  state.put(endpoint.address);
  state.put(endpoint.port);
  state.put(endpoint.protocol);
}

Endpoint load_endpoint(nf::StateReader& state) {
  Endpoint endpoint;
  endpoint.address = state.get<std::uint32_t>();
  endpoint.port = state.get<std::uint16_t>();
  endpoint.protocol = state.get<std::uint8_t>();
  return endpoint;
}

}  // namespace

/// Those that services and backends of another one have here, by theirs; kNone: they are not here.
struct Lb::Numbers {
  std::vector<std::uint16_t> services = {};
  std::vector<std::uint16_t> backends = {};
  std::vector<std::uint64_t> packets = {};  ///< of each of these backends
};

namespace {

std::uint16_t number_in(std::span<const std::uint16_t> numbers, std::uint16_t number) {
  return number < numbers.size() ? numbers[number] : ServiceTable::kNone;
}

}  // namespace

std::uint16_t Lb::backend_at(std::uint16_t service, std::string_view name, Endpoint const& endpoint) const {
  const std::span<const ServiceTable::BackendRecord> here = services_.backends();
  const auto found = std::ranges::find_if(here, [&](ServiceTable::BackendRecord const& backend) {
    return backend.service == service && service != ServiceTable::kNone && backend.name == name &&
           backend.endpoint == endpoint;
  });
  return found == here.end() ? ServiceTable::kNone : static_cast<std::uint16_t>(found - here.begin());
}

Lb::Numbers Lb::numbers_of(ServiceTable const& before) const {
  Numbers numbers;
  for (ServiceTable::ServiceRecord const& service : before.services()) {
    numbers.services.push_back(services_.service_at(service.endpoint));
  }
  for (ServiceTable::BackendRecord const& backend : before.backends()) {
    numbers.backends.push_back(
        backend_at(number_in(numbers.services, backend.service), backend.name, backend.endpoint));
    numbers.packets.push_back(backend.packets);
  }
  return numbers;
}

std::optional<FlowTable::FlowSlot> Lb::place(Flow& flow, Numbers const& numbers) {
  flow.service = number_in(numbers.services, flow.service);
  flow.backend = number_in(numbers.backends, flow.backend);
  if (flow.service == ServiceTable::kNone || flow.backend == ServiceTable::kNone) {
    return std::nullopt;
  }
  const Endpoint client = client_of(flow);
  Endpoint const& service = services_.services()[flow.service].endpoint;
  Endpoint const& backend = services_.backend(flow.backend).endpoint;
  const packet::FlowKey request = flow_between(client, service);
  const packet::FlowKey response = flow_between(backend, client);
  const std::uint64_t to_backend = hash_of(request);
  const std::uint64_t to_client = hash_of(response);
  return FlowTable::FlowSlot{to_backend, to_client, flow_to_backend(request, to_backend, flow.service),
                             flow_to_client(response, to_client)};
}

/// The flows of this shard's clients. The first shard has the counts of all.
void Lb::take_flows(std::span<nf::Nf* const> before) {
  std::vector<FlowTable const*> tables;
  std::vector<Numbers> numbers;
  for (nf::Nf* const each : before) {
    auto const& old = static_cast<Lb const&>(*each);
    tables.push_back(&old.flows_);
    numbers.push_back(numbers_of(old.services_));
    has_started_ = has_started_ || old.has_started_;
    if (old.clock_.now_ns() > clock_.now_ns()) {
      clock_ = old.clock_;
    }
    if (shard_.index == 0) {
      flows_not_tracked_ += old.flows_not_tracked_;
      flows_.add_counts(old.flows_);
      for (std::size_t i = 0; i < numbers.back().backends.size(); ++i) {
        if (const std::uint16_t backend = numbers.back().backends[i]; backend != ServiceTable::kNone) {
          services_.backend(backend).packets += numbers.back().packets[i];
        }
      }
    }
  }
  const auto is_mine = [&](Flow const& flow, std::size_t table) {
    return shards_->shard_of(client_of(flow)) == shard_.index &&
           number_in(numbers[table].backends, flow.backend) != ServiceTable::kNone;  // for others none is evicted
  };
  flows_.take_over(tables, is_mine, [&](Flow& flow, std::size_t table) { return place(flow, numbers[table]); });
}

void Lb::save(nf::StateWriter& state) const {
  for (const std::uint32_t number : fixed_settings(settings_)) {
    state.put(number);
  }
  state.put(services_.services().size());
  for (ServiceTable::ServiceRecord const& service : services_.services()) {
    lb::save(service.endpoint, state);
  }
  state.put(services_.backends().size());
  for (ServiceTable::BackendRecord const& backend : services_.backends()) {
    state.put(std::string_view(backend.name));
    lb::save(backend.endpoint, state);
    state.put(backend.service);
    state.put(backend.packets);
  }
  flows_.save(state);
  clock_.save(state);
  state.put(has_started_);
  state.put(flows_not_tracked_);
}

Lb::Numbers Lb::load_services(nf::StateReader& state) const {
  Numbers numbers;
  const auto services = std::min<std::size_t>(state.get<std::size_t>(), ServiceTable::kServiceNumbers);
  for (std::size_t i = 0; i < services && state.is_sound(); ++i) {
    numbers.services.push_back(services_.service_at(load_endpoint(state)));
  }
  const auto backends = std::min<std::size_t>(state.get<std::size_t>(), ServiceTable::kBackendNumbers);
  for (std::size_t i = 0; i < backends && state.is_sound(); ++i) {
    const std::string name = state.get_text();
    const Endpoint endpoint = load_endpoint(state);
    const auto service = state.get<std::uint16_t>();
    numbers.packets.push_back(state.get<std::uint64_t>());
    numbers.backends.push_back(backend_at(number_in(numbers.services, service), name, endpoint));
  }
  return numbers;
}

Status Lb::load(nf::StateReader& state) {
  bool is_alike = shards_->count() == 1;
  for (const std::uint32_t number : fixed_settings(settings_)) {
    is_alike = state.get<std::uint32_t>() == number && is_alike;
  }
  if (state.is_sound() && !is_alike) {
    return absl::FailedPreconditionError("its tables, limits or time-outs have changed, or it has several shards");
  }
  const Numbers numbers = load_services(state);
  bool is_taken_over = false;
  FlowTable flows(part_of(settings_.limits, shard_), ServiceTable::kBackendNumbers, settings_.timeouts);
  std::swap(flows, flows_);  // where flows are looked for
  const absl::Cleanup as_it_was = [this, &flows, &is_taken_over] {
    if (!is_taken_over) {
      std::swap(flows, flows_);
    }
  };
  const bool has_flows = flows_.load(state, [&](Flow& flow) { return place(flow, numbers); });
  packet::PacketClock clock;
  clock.load(state);
  const auto has_started = state.get<bool>();
  const auto flows_not_tracked = state.get<std::uint64_t>();
  if (!has_flows || !state.is_done()) {
    return absl::DataLossError("no state of a load balancer");
  }
  for (std::size_t i = 0; i < numbers.backends.size(); ++i) {
    if (numbers.backends[i] != ServiceTable::kNone) {
      services_.backend(numbers.backends[i]).packets = numbers.packets[i];
    }
  }
  is_taken_over = true;
  clock_ = clock;
  has_started_ = has_started;
  flows_not_tracked_ = flows_not_tracked;
  return absl::OkStatus();
}

std::unique_ptr<nf::Sharder> Lb::sharder() const {
  return std::make_unique<ClientSharder>(shards_, settings_.translates_errors);
}

Result<std::unique_ptr<nf::Nf>> Lb::replicate(std::uint32_t shard) const {
  std::unique_ptr<Lb> lb(
      new Lb(settings_, std::make_shared<ServiceTable>(services_), shards_, {shard, shards_->count()}));
  lb->shares_maglev_ = true;
  return lb;
}

nf::Hints Lb::hints() const {
  nf::Hints hints;
  hints.cr = hints.cw = hints.gr = hints.gw = kRewritten;
  hints.prepare_reads = packet::fields(packet::kIpv4Protocol, packet::kIpv4Src, packet::kIpv4Dst, packet::kL4Sport,
                                       packet::kL4Dport, packet::kTcpFlags, packet::kMetaLayers);
  if (settings_.translates_errors) {
    hints.prepare_reads |= packet::fields(packet::kIpv4Checksum, packet::kIpv4Fragment, packet::kL4Checksum,
                                          packet::kIcmpHeader, packet::kPayload);
    hints.prepare_writes = packet::fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Checksum,
                                          packet::kL4Checksum, packet::kPayload);
    hints.prepare_writes_few = packet::fields(packet::kPayload);  // of ICMP errors, which are marked
  }
  return hints;
}

void Lb::prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) {
  const auto out = nf::array_of<Aux>(aux);
  if (!has_started_ && batch.size() > 0) {
    start_clock(batch[0].arrival_ns());
  }
  std::array<Sighting, kChunk> seen;
  for (std::uint32_t first = 0; first < batch.size(); first += kChunk) {
    const std::uint32_t count = std::min(kChunk, batch.size() - first);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (first + i + kHeadersAhead < batch.size()) {
        __builtin_prefetch(batch[first + i + kHeadersAhead].frame(), 1);
      }
      seen[i] = inspect(batch[first + i]);
      if (seen[i].hash != 0) {
        flows_.prefetch_buckets(seen[i].hash);
      }
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (seen[i].hash != 0) {
        flows_.prefetch_flow(seen[i].hash);
      }
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      decide(batch[first + i], seen[i], out[first + i], outcome);
    }
  }
}

Lb::Sighting Lb::inspect(packet::Packet const& packet) const {
  const packet::PacketFlow flow = packet::flow_of(packet.frame(), packet.layers());
  const auto sighting = [&flow](Side side, std::uint64_t hash = 0, std::uint16_t service = 0) {
    return Sighting{flow.key, hash, side, service};
  };
  if (packet.is(packet::kFragment) && services_.has_service_address(flow.key.destination.v4(), flow.key.protocol)) {
    return sighting(Side::kFragmentToService);
  }
  if (!flow.has_ports) {
    const bool is_error =
        settings_.translates_errors && packet.is(packet::kIcmp) && packet::is_icmp_error(packet.l4()[0]);
    return sighting(is_error ? Side::kIcmpError : Side::kNeither);
  }
  if (const std::uint16_t service = services_.service_at(receiver_of(flow.key)); service != ServiceTable::kNone) {
    return sighting(Side::kClient, hash_of(flow.key), service);
  }
  return services_.has_backend_at(sender_of(flow.key)) ? sighting(Side::kBackend, hash_of(flow.key))
                                                       : sighting(Side::kNeither);
}

void Lb::start_clock(std::uint64_t stamp_ns) {
  flows_.advance(clock_.advance(stamp_ns));
  has_started_ = true;
}

void Lb::tick(std::uint64_t now_ns) {
  if (!has_started_) {
    start_clock(now_ns);
  }
  flows_.advance(clock_.advance(now_ns), kExpirePerTick);
}

void Lb::decide(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome) {
  flows_.advance(clock_.advance(packet.arrival_ns()));
  switch (seen.side) {
    case Side::kClient:
      return decide_from_client(packet, seen, aux, outcome);
    case Side::kBackend:
      return decide_from_backend(packet, seen, aux, outcome);
    case Side::kFragmentToService:
      return drop(packet, kFragment, outcome);
    case Side::kIcmpError:
      aux.action = kKeep;
      return translate_error(packet, outcome);
    case Side::kNeither:
      aux.action = kKeep;
  }
}

FlowTable::Id Lb::flow_to_backend(packet::FlowKey const& request, std::uint64_t hash, std::uint16_t service) {
  return flows_.find(hash, [&](Flow const& candidate) {
    return candidate.service == service && is_client_of(candidate, request.source, request.source_port);
  });
}

FlowTable::Id Lb::flow_to_client(packet::FlowKey const& response, std::uint64_t hash) {
  return flows_.find(hash, [&](Flow const& candidate) {
    return is_client_of(candidate, response.destination, response.destination_port) &&
           services_.backend(candidate.backend).endpoint == sender_of(response);
  });
}

void Lb::decide_from_client(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome) {
  const std::uint8_t flags = tcp_flags(packet);
  FlowTable::Id flow = flow_to_backend(seen.flow, seen.hash, seen.service);
  if (flow != FlowTable::kNone) {
    const bool starts_again = opens(flags) && is_over(flows_[flow]);
    if (starts_again || services_.backend(flows_[flow].backend).state == BackendState::kDown) {
      flows_.erase(flow);
      flow = FlowTable::kNone;
    }
  }
  std::uint16_t number = ServiceTable::kNone;
  if (flow != FlowTable::kNone) {
    number = flows_[flow].backend;
    flows_.touch(flow, state_after(flows_[flow], flags, true));
  } else {
    number = start_flow(seen, flags);
  }
  if (number == ServiceTable::kNone) {
    return drop(packet, kNoBackend, outcome);
  }
  ServiceTable::BackendRecord& backend = services_.backend(number);
  ++backend.packets;
  aux = {.address = backend.endpoint.address,
         .port = backend.endpoint.port,
         .backend = number,
         .action = kToBackend,
         .is_udp = packet.is(packet::kUdp),
         .unused = 0};
}

std::uint16_t Lb::start_flow(Sighting const& seen, std::uint8_t tcp_flags) {
  const std::uint16_t number = services_.choose(seen.service, seen.hash);
  if (number == ServiceTable::kNone || (tcp_flags & nf::kTcpRst) != 0) {
    return number;  // a RST begins nothing
  }
  const bool is_udp = seen.flow.protocol == packet::kProtocolUdp;
  flows_.make_room(is_udp);
  Endpoint const& backend = services_.backend(number).endpoint;
  Flow flow;
  flow.client_address = seen.flow.source.v4();
  flow.client_port = seen.flow.source_port;
  flow.service = seen.service;
  flow.backend = number;
  flow.is_udp = is_udp;
  flow.tcp_state = state_after(flow, tcp_flags, true);
  const packet::FlowKey response = flow_between(backend, sender_of(seen.flow));
  const std::uint64_t to_client = hash_of(response);
  const FlowTable::Id twin = flow_to_client(response, to_client);
  if (flows_.insert(flow, seen.hash, to_client, twin) == FlowTable::kNone) {
    ++flows_not_tracked_;
  }
  return number;
}

void Lb::decide_from_backend(packet::Packet const& packet, Sighting const& seen, Aux& aux, nf::Outcome& outcome) {
  const FlowTable::Id flow = flow_to_client(seen.flow, seen.hash);
  const std::uint16_t number = flow != FlowTable::kNone            ? flows_[flow].backend
                               : settings_.translates_without_flow ? services_.only_backend_at(sender_of(seen.flow))
                                                                   : ServiceTable::kNone;
  if (number == ServiceTable::kNone) {
    aux.action = kKeep;
    return;
  }
  if (packet.is(packet::kFragment)) {
    return drop(packet, kFragment, outcome);
  }
  std::uint16_t service_number = services_.backend(number).service;
  if (flow != FlowTable::kNone) {
    service_number = flows_[flow].service;
    const std::uint8_t state = state_after(flows_[flow], tcp_flags(packet), false);
    // a backend that sends its SYN/ACK again and again keeps no flow whose client never was
    is_half_open(state, flows_[flow]) ? flows_.note(flow, state) : flows_.touch(flow, state);
  }
  ++services_.backend(number).packets;
  Endpoint const& service = services_.services()[service_number].endpoint;
  aux = {.address = service.address,
         .port = service.port,
         .backend = number,
         .action = kToClient,
         .is_udp = packet.is(packet::kUdp),
         .unused = 0};
}

/// An error goes to the source of the datagram that it quotes. One to a service quotes what left in the service's name;
/// one to a client quotes what went to a backend. An error comes from the service's address if it is about a backend,
/// whoever behind us sent it (RFC 5508 REQ-5). Errors leave flows and their time-outs as they are (RFC 4787 REQ-12).
void Lb::translate_error(packet::Packet const& packet, nf::Outcome& outcome) {
  const std::variant<packet::Quote, packet::QuoteProblem> read = packet::read_quote(packet);
  packet::Quote const* quote = std::get_if<packet::Quote>(&read);
  const packet::FlowKey error = packet::flow_without_ports(packet.l3());
  if (quote == nullptr || quote->flow.protocol == packet::kProtocolIcmp || quote->flow.source != error.destination) {
    return;
  }
  const packet::FlowKey answered = quote->flow.reversed();  // the flow whose packets the error's receiver gets
  const std::uint64_t hash = hash_of(answered);
  packet::QuoteEnds ends{quote->flow, error.source, error.destination};
  std::uint16_t number = ServiceTable::kNone;
  if (const std::uint16_t service = services_.service_at(receiver_of(answered)); service != ServiceTable::kNone) {
    const FlowTable::Id flow = flow_to_backend(answered, hash, service);
    number = flow != FlowTable::kNone ? flows_[flow].backend : services_.choose(service, hash);
    if (number == ServiceTable::kNone) {
      return drop(packet, kNoBackend, outcome);
    }
    Endpoint const& backend = services_.backend(number).endpoint;
    ends.flow.source = ends.outer_destination = packet::Address::of_v4(backend.address);
    ends.flow.source_port = backend.port;
  } else {
    const FlowTable::Id flow = flow_to_client(answered, hash);
    number = flow != FlowTable::kNone            ? flows_[flow].backend
             : settings_.translates_without_flow ? services_.only_backend_at(sender_of(answered))
                                                 : ServiceTable::kNone;
    if (number == ServiceTable::kNone) {
      return;
    }
    const std::uint16_t known = flow != FlowTable::kNone ? flows_[flow].service : services_.backend(number).service;
    Endpoint const& end = services_.services()[known].endpoint;
    ends.flow.destination = ends.outer_source = packet::Address::of_v4(end.address);
    ends.flow.destination_port = end.port;
  }
  packet::rewrite_error(packet, *quote, ends);
  packet.mark_rewritten();
  if (outcome.recording()) {
    outcome.record(
        packet, packet::Verdict::kPass, -1,
        concat("\"icmp_error\":", packet.l4()[0], ",\"backend\":\"", services_.backends()[number].name, "\""));
  }
}

void Lb::compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> /*results*/) {
  const auto in = nf::array_of<Aux>(aux);
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (in[i].action != kKeep) {
      const packet::Packet packet = batch[i];
      translate(packet.l3(), packet.l4(), in[i]);
    }
  }
}

void Lb::complete(nf::Completion const& completion) {
  packet::Batch const& batch = completion.batch();
  nf::Outcome& outcome = completion.outcome();
  if (!outcome.recording()) {
    return;
  }
  const auto in = completion.aux<Aux>();
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (in[i].action != kKeep) {
      outcome.record(batch[i], packet::Verdict::kPass, -1,
                     concat("\"backend\":\"", services_.backends()[in[i].backend].name, "\""));
    }
  }
}

Result<nf::KernelSide> Lb::kernel_side() const {
  nf::KernelSide side;
  side.spec.source = catena_kernel_lb();
  side.spec.name = "lb";
  return side;
}

std::vector<std::string> Lb::start_report() const {
  std::size_t services = 0;
  for (ServiceTable::ServiceRecord const& service : services_.services()) {
    services += service.listed ? 1 : 0;
  }
  std::array<std::size_t, 3> by_state{};
  for (ServiceTable::BackendRecord const& backend : services_.backends()) {
    by_state[static_cast<std::size_t>(backend.state)] += backend.listed ? 1 : 0;
  }
  return {concat(services, services == 1 ? " service; backends: " : " services; backends: ", by_state[0], " up, ",
                 by_state[1], " draining, ", by_state[2], " down; memory ",
                 (services_.record_bytes() + services_.maglev_bytes() + shard_.count * flows_.bytes()) >> 20, " MiB")};
}

std::vector<std::string> Lb::end_report() const {
  std::vector<std::string> lines;
  if (shard_.index != 0) {
    return lines;
  }
  const std::vector<std::uint64_t> packets = shards_->packets(services_);
  const auto backends = services_.backends();
  for (std::size_t i = 0; i < services_.services().size(); ++i) {
    std::uint64_t total = 0;
    for (std::size_t j = 0; j < backends.size(); ++j) {
      total += backends[j].service == i ? packets[j] : 0;
    }
    std::string line = concat(to_string(services_.services()[i].endpoint), ": ", total, " packets");
    for (std::size_t j = 0; j < backends.size(); ++j) {
      if (backends[j].service == i && total > 0) {
        const double percent = 100.0 * static_cast<double>(packets[j]) / static_cast<double>(total);
        line += fmt::format(", {} {:.1f} %", backends[j].name, percent);
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<nf::Statistic> Lb::statistics() const {
  std::vector<nf::Statistic> result{
      {"flows", flows_.size()},
      {"flows_created", flows_.created()},
      {"flows_expired", flows_.expired()},
      {"flows_evicted", flows_.evicted()},
      {"half_open", flows_.half_open()},
      {"flows_not_tracked", flows_not_tracked_},
      {"memory_bytes", services_.record_bytes() + (shares_maglev_ ? 0 : services_.maglev_bytes()) + flows_.bytes()},
  };
  std::map<std::string, std::uint64_t> packets;
  for (ServiceTable::BackendRecord const& backend : services_.backends()) {
    packets[concat("backend_", metric_part(backend.name), "_packets")] += backend.packets;
  }
  for (auto const& [name, count] : packets) {
    result.push_back({name, count});
  }
  return result;
}

}  // namespace catena::lb

catena::nf::Descriptor const& catena_nf_lb() {
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "lb",
      .help = "Layer-4 load balancer: Maglev hashing over weighted backends, flows stay with theirs",
      .needs = catena::packet::kIpv4,
      .drop_reasons = catena::lb::kDropReasons,
      .config = catena::lb::kConfig,
      .aux_bytes = sizeof(catena::lb::Aux),
      .result_bytes = 0,
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kOwn,
      .create = &catena::lb::Lb::create,
  };
  return kDescriptor;
}
