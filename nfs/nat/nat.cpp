// SPDX-License-Identifier: Apache-2.0
#include "nat.hpp"

#include <catena/core/text.hpp>
#include <catena/core/time.hpp>
#include <catena/nf/replies.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/rewrite.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "catena_kernel_nat.hpp"
#include "sharder.hpp"

namespace catena::nat {
namespace {

// Expired mappings that a tick removes at most; packets wait for it.
constexpr std::uint32_t kExpirePerTick = 4096;

// Equally spaced slots share few sets of the first-level cache, and processors do not guess the next one.
constexpr std::uint32_t kPrefetchPackets = 4;

constexpr std::array<nf::DropReason, 7> kDropReasons{{
    {"pool_exhausted", "no free port at the host's external address, or `max_mappings` live"},
    {"no_mapping", "to an external endpoint without a mapping, or an ICMP error about one"},
    {"fragment", "a later fragment of a datagram whose first fragment is unknown"},
    {"malformed", "TCP, UDP or ICMP header cut short, or an unreadable ICMP error"},
    {"unsupported_protocol", "neither TCP, UDP, ICMP echo nor ICMP error"},
    {"inbound_to_inside", "from outside to an inside address"},
    {"spoofed_source", "an inside source address on a port not listed in `inside_ports`"},
}};

constexpr std::array<nf::ConfigKey, 11> kConfig{{
    {"inside", "list of prefixes", "", "prefixes of the internal hosts"},
    {"external", "list of addresses and ranges", "", "their external addresses: 203.0.113.1-203.0.113.4"},
    {"ports", "first-last", "1024-65535", "TCP and UDP ports of each external address"},
    {"max_mappings", "integer 1..16000000", "1000000", "mappings at a time; their memory is allocated at the start"},
    {"inside_ports", "list of integers 0..63", "all",
     "ports of rx on the inside, numbered in the order of its devices"},
    {"max_half_open", "integer 1..max_mappings", "half of max_mappings",
     "TCP mappings whose handshake is not complete; one more evicts the oldest"},
    {"max_sessions", "integer max_mappings..16000000", "5/4 of max_mappings",
     "TCP connections with a state of their own; a mapping has at least one"},
    {"max_sessions_per_mapping", "integer 1..255", "16", "the same of one mapping"},
    {"inbound_to_inside", "drop | pass", "drop", "packets from outside to an inside address"},
    {"echo_rate", "integer 0..1000000", "1000", "answers per second to echo requests to the external addresses"},
    {"timeouts", "{udp, tcp_established, tcp_opening, tcp_closing, icmp}", "300, 7440, 240, 240, 60", "idle seconds"},
}};

constexpr packet::FieldSet kHeaders =
    packet::fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Checksum, packet::kL4Sport, packet::kL4Dport,
                   packet::kL4Checksum, packet::kIcmpHeader);

/// Tells what was translated: the source of an outbound packet, the destination of an inbound one, both of a hairpinned
/// one. The texts are those of the ends before and after.
std::string record_of(Arrival const& arrival, std::string const& source_before, std::string const& source_after,
                      std::string const& destination_before, std::string const& destination_after) {
  const auto translation = [](std::string_view prefix, std::string const& from, std::string const& to) {
    return concat("\"", prefix, "from\":\"", from, "\",\"", prefix, "to\":\"", to, "\"");
  };
  if (!arrival.is_inbound) {
    return translation("", source_before, source_after);
  }
  if (!arrival.is_outbound) {
    return translation("", destination_before, destination_after);
  }
  return concat(translation("", source_before, source_after), ",",
                translation("hairpin_", destination_before, destination_after));
}

/// The record of a packet that is about to become as `aux` says.
std::string record_of(Arrival const& arrival, Aux const& aux) {
  const packet::Address source_before = packet::Address::of_v4(arrival.source.address);
  const packet::Address destination_before = packet::Address::of_v4(arrival.destination.address);
  const packet::Address source = packet::Address::of_v4(aux.source);
  const packet::Address destination = packet::Address::of_v4(aux.destination);
  if (aux.rewrite == kAddresses) {
    return record_of(arrival, to_string(source_before), to_string(source), to_string(destination_before),
                     to_string(destination));
  }
  const std::uint16_t destination_port = aux.rewrite == kEcho ? aux.source_port : aux.destination_port;
  return record_of(arrival, to_string(source_before, arrival.source.port), to_string(source, aux.source_port),
                   to_string(destination_before, arrival.destination.port), to_string(destination, destination_port));
}

/// The record of an ICMP error: what was translated in the datagram that it quotes. There an outbound error's is the
/// destination, an inbound one's the source.
std::string record_of_error(packet::Packet const& packet, Arrival const& arrival, packet::FlowKey const& before,
                            packet::FlowKey const& after) {
  return concat("\"icmp_error\":", packet.l4()[0], ",",
                record_of(arrival, to_string(before.destination, before.destination_port),
                          to_string(after.destination, after.destination_port),
                          to_string(before.source, before.source_port), to_string(after.source, after.source_port)));
}

/// Whether a quoted datagram can have come from, or gone to, a mapped endpoint: echo requests leave one, replies reach
/// one.
bool may_be_from_mapping(packet::Quote const& quote) {
  return quote.flow.protocol != packet::kProtocolIcmp || quote.is_echo_request;
}
bool may_be_to_mapping(packet::Quote const& quote) {
  return quote.flow.protocol != packet::kProtocolIcmp || !quote.is_echo_request;
}

Remote remote_of(Endpoint const& endpoint) { return {endpoint.address, endpoint.port}; }

void set_source(Aux& aux, Endpoint const& source) {
  aux.source = source.address;
  aux.source_port = source.port;
}
void set_destination(Aux& aux, Endpoint const& destination) {
  aux.destination = destination.address;
  aux.destination_port = destination.port;
}
/// Precondition: the packet is of TCP or UDP.
Rewrite rewrite_of(Arrival const& arrival) { return arrival.source.protocol == Protocol::kTcp ? kTcp : kUdp; }

/// Records a packet of TCP or UDP of a mapping, which comes from this side and has `remote` as its peer.
void note(MappingTable& table, Mapping const& mapping, Side from, Remote const& remote, packet::Packet const& packet) {
  if (mapping.first.protocol == Protocol::kTcp) {
    table.note_segment(mapping, from, remote, read_segment(packet));
  } else if (from == Side::kInside) {
    table.note_outbound(mapping);
  }
}

/// As both are in a TCP or UDP header.
std::uint32_t ports_of(Aux const& aux) { return std::uint32_t{aux.source_port} << 16 | aux.destination_port; }

/// The CPU implementation of one packet.
void rewrite(packet::Packet const& packet, Aux const& aux) {
  packet::FieldWriter writer = packet::write_addresses(packet.l3(), aux.source, aux.destination);
  std::uint8_t* l4 = packet.l4();
  switch (aux.rewrite) {
    case kTcp:
      writer.put32(l4, ports_of(aux));
      writer.correct(l4 + packet::kTcpChecksumAt);
      return;
    case kUdp:
      writer.put32(l4, ports_of(aux));
      writer.correct_udp(l4 + packet::kUdpChecksumAt);
      return;
    case kEcho: {
      packet::FieldWriter icmp;  // no pseudo header
      icmp.put16(l4 + packet::kIcmpIdentifierAt, aux.source_port);
      icmp.correct(l4 + packet::kIcmpChecksumAt);
      return;
    }
    default:
      return;
  }
}

}  // namespace

Result<std::unique_ptr<nf::Nf>> Nat::create(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(NatConfig read, read_nat_config(config));
  const std::uint32_t shard = read.shard.index;
  return std::make_unique<Nat>(std::make_shared<Shards>(std::move(read)), shard);
}

Result<std::unique_ptr<nf::Nf>> Nat::replicate(std::uint32_t shard) const {
  return std::make_unique<Nat>(shards_, shard);
}

Status Nat::prepare_migration(std::span<nf::Nf const* const> before) {
  Shards const& old = *static_cast<Nat const&>(*before.front()).shards_;
  if (old.config().mappings != shards_->config().mappings) {
    return absl::FailedPreconditionError("its external addresses, ports, limits or time-outs have changed");
  }
  shards_->divide_as(old);
  return absl::OkStatus();
}

void Nat::migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& /*is_mine*/) {
  if (before.size() == shards_->config().shard.count) {
    auto& old = static_cast<Nat&>(*before[shard_]);
    std::swap(mappings_, old.mappings_);
    shards_->take_ports_of(*old.shards_);
    clock_ = old.clock_;
  } else {
    take_tables(before);
  }
  std::vector<FragmentTable const*> fragments;
  for (nf::Nf* const each : before) {
    auto const& old = static_cast<Nat const&>(*each);
    fragments.push_back(&old.fragments_);
    if (shard_ == 0) {
      fragments_.add_evicted(old.fragments_);
      echo_replies_ += old.echo_replies_;
      echo_replies_over_rate_ += old.echo_replies_over_rate_;
    }
  }
  fragments_.take_over(fragments);  // the sharder has forgotten first ones: later ones come to any shard
}

/// The mappings of this shard's hosts.
void Nat::take_tables(std::span<nf::Nf* const> before) {
  std::vector<MappingTable const*> tables;
  for (nf::Nf* const each : before) {
    auto const& old = static_cast<Nat const&>(*each);
    tables.push_back(&old.mappings_);
    if (old.clock_.now_ns() > clock_.now_ns()) {
      clock_ = old.clock_;
    }
  }
  const auto is_mine = [this](std::uint32_t address) { return shards_->shard_of_inside(address) == shard_; };
  for (MappingTable::ExternalPort const& port : mappings_.take_over(tables, is_mine)) {
    shards_->move_port(port, shard_);
  }
  for (MappingTable const* const table : shard_ == 0 ? tables : std::vector<MappingTable const*>()) {
    mappings_.add_counts(*table);
  }
}

void Nat::save(nf::StateWriter& state) const {
  mappings_.save(state);
  fragments_.save(state, [&state](AddressPair const& pair) {
    state.put(pair.source);
    state.put(pair.destination);
  });
  clock_.save(state);
}

Status Nat::load(nf::StateReader& state) {
  if (shards_->count() != 1) {
    return absl::FailedPreconditionError("it has several shards");
  }
  MappingTable mappings(mappings_.settings());
  CATENA_RETURN_IF_ERROR(mappings.load(state));
  FragmentTable fragments;
  fragments.load(state, [&state] {
    const auto source = state.get<std::uint32_t>();
    return AddressPair{source, state.get<std::uint32_t>()};
  });
  packet::PacketClock clock;
  clock.load(state);
  if (!state.is_done()) {
    return absl::DataLossError("no state of a NAT");
  }
  std::swap(mappings_, mappings);
  fragments_ = std::move(fragments);
  clock_ = clock;
  return absl::OkStatus();
}

std::unique_ptr<nf::Sharder> Nat::sharder() const { return std::make_unique<NatSharder>(shards_); }

nf::Hints Nat::hints() const {
  nf::Hints hints;
  hints.cr = hints.cw = hints.gr = hints.gw = kHeaders;
  hints.prepare_reads = packet::kIcmpErrorReads | packet::fields(packet::kMetaLayers);  // of echo replies
  hints.prepare_writes =
      packet::fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Checksum, packet::kL4Checksum, packet::kPayload);
  hints.prepare_writes_few = packet::fields(packet::kPayload);  // of ICMP errors, which are marked
  return hints;
}

std::uint64_t Nat::now_s() const { return clock_.now_ns() / kNsPerSecond; }

std::unique_lock<std::mutex> Nat::hold_mappings() const {
  return shards_->count() == 1 ? std::unique_lock<std::mutex>() : std::unique_lock(own_.mutex);
}

/// Gives `work` the table that has the external endpoint. If that is another shard's, ours is released for a moment:
/// nothing that was found in it counts after this.
template <typename Work>
auto Nat::with_table_of(Endpoint const& external, Work work) {
  const std::uint32_t shard = shards_->shard_of_external(external).value_or(shard_);
  if (shard == shard_) {
    return work(mappings_);
  }
  Shards::Table& other = shards_->table(shard);
  own_.mutex.unlock();  // two NATs that wait for each other would wait for ever
  std::lock(own_.mutex, other.mutex);
  const std::lock_guard held(other.mutex, std::adopt_lock);
  return work(other.mappings);
}

void Nat::tick(std::uint64_t now_ns) {
  const std::unique_lock held = hold_mappings();
  mappings_.advance(clock_.advance(now_ns), kExpirePerTick);
}

void Nat::prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& outcome) {
  const std::span<Aux> out = nf::array_of<Aux>(aux);
  is_recording_ = outcome.recording();
  std::array<Arrival, kChunk> arrivals;
  for (std::uint32_t first = 0; first < batch.size(); first += kChunk) {
    const std::uint32_t count = std::min(kChunk, batch.size() - first);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (first + i + kPrefetchPackets < batch.size()) {
        __builtin_prefetch(batch[first + i + kPrefetchPackets].l3(), 1);
      }
      arrivals[i] = classify(batch[first + i], realms_);
    }
    const std::unique_lock held = hold_mappings();  // not for the whole batch: others may wait for it
    bring_near(std::span(arrivals).first(count));
    for (std::uint32_t i = 0; i < count; ++i) {
      decide(batch[first + i], arrivals[i], out[first + i], outcome);
    }
  }
}

/// With a million mappings each lookup misses the caches three times over. Asking for a chunk's memory level by level
/// lets those misses overlap; what is found later does not depend on it. Hashes the endpoints for the lookups, too.
void Nat::bring_near(std::span<Arrival> arrivals) const {
  std::array<std::uint32_t, kChunk> guesses;
  for (Arrival& arrival : arrivals) {
    arrival.hash = mappings_.hash(arrival.is_outbound ? arrival.source : arrival.destination);
    arrival.is_outbound ? mappings_.prefetch_internal_index(arrival.hash)
                        : mappings_.prefetch_external_index(arrival.hash);
  }
  for (std::uint32_t i = 0; i < arrivals.size(); ++i) {
    guesses[i] = arrivals[i].is_outbound ? mappings_.guess_internal(arrivals[i].hash)
                                         : mappings_.guess_external(arrivals[i].hash);
  }
  for (std::uint32_t i = 0; i < arrivals.size(); ++i) {
    if (arrivals[i].is_outbound && guesses[i] != HashIndex::kNone) {
      mappings_.prefetch_neighbours(guesses[i]);
    }
  }
}

void Nat::decide(packet::Packet const& packet, Arrival const& arrival, Aux& aux, nf::Outcome& outcome) {
  mappings_.advance(clock_.advance(packet.arrival_ns()));
  aux = {arrival.source.address, arrival.destination.address, arrival.source.port, arrival.destination.port, kLeave};
  if (answer_echo(packet, arrival, outcome)) {
    return;
  }
  std::string record;
  const Drop drop = translate(packet, arrival, aux, record);
  if (drop != kNotDropped) {
    outcome.drop(packet, drop);
    if (is_recording_) {
      outcome.record(packet, packet::Verdict::kDrop, static_cast<std::int32_t>(drop), "");
    }
    return;
  }
  if (aux.rewrite != kLeave && packet.is(packet::kFragment) && arrival.kind != Kind::kLaterFragment) {
    fragments_.remember(datagram_key(packet), {aux.source, aux.destination}, now_s());
  }
  if (is_recording_ && aux.rewrite != kLeave) {
    record = record_of(arrival, aux);
  }
  if (!record.empty()) {
    outcome.record(packet, packet::Verdict::kPass, -1, std::move(record));
  }
}

/// An external address is one of the NAT: it answers echo requests, whoever sends them (RFC 1122 section 3.2.2.6).
bool Nat::answer_echo(packet::Packet const& packet, Arrival const& arrival, nf::Outcome& outcome) {
  if (arrival.kind != Kind::kEchoRequest || !arrival.is_inbound || !nf::may_answer_echo(packet)) {
    return false;
  }
  if (!echo_budget_.take(clock_.now_ns())) {
    ++echo_replies_over_rate_;
    return false;
  }
  nf::answer_echo(packet, outcome);
  ++echo_replies_;
  return true;
}

Nat::Drop Nat::translate(packet::Packet const& packet, Arrival const& arrival, Aux& aux, std::string& record) {
  switch (arrival.kind) {
    case Kind::kUntouched:
      return kNotDropped;
    case Kind::kToInside:
      return drops_to_inside_ ? kInboundToInside : kNotDropped;
    case Kind::kSpoofed:
      return kSpoofedSource;
    case Kind::kTcpOrUdp:
      return !arrival.is_outbound  ? translate_inbound(packet, arrival, aux)
             : !arrival.is_inbound ? translate_outbound(packet, arrival, aux)
                                   : translate_hairpin(packet, arrival, aux);
    case Kind::kEchoRequest:
    case Kind::kEchoReply:
      return translate_echo(arrival, aux);
    case Kind::kIcmpError:
      return translate_error(packet, arrival, record);
    case Kind::kLaterFragment:
      return follow_first_fragment(packet, aux);
    case Kind::kMalformed:
      return kMalformed;
    default:
      return kUnsupportedProtocol;
  }
}

Nat::Drop Nat::drop_for(packet::QuoteProblem problem) {
  switch (problem) {
    case packet::QuoteProblem::kMalformed:
      return kMalformed;
    case packet::QuoteProblem::kFragment:
      return kFragment;
    default:
      return kNoMapping;
  }
}

/// Finds or creates it; null if it cannot be created. Precondition: the packet is outbound.
Mapping const* Nat::mapping_of_sender(Arrival const& arrival) {
  Mapping const* known = mappings_.find_internal(arrival.source, arrival.hash);
  return known != nullptr ? known : mappings_.create(arrival.source, remote_of(arrival.destination));
}

Nat::Drop Nat::translate_outbound(packet::Packet const& packet, Arrival const& arrival, Aux& aux) {
  Mapping const* sender = mapping_of_sender(arrival);
  if (sender == nullptr) {
    return kPoolExhausted;
  }
  set_source(aux, mappings_.external_of(*sender));
  note(mappings_, *sender, Side::kInside, remote_of(arrival.destination), packet);
  aux.rewrite = rewrite_of(arrival);
  return kNotDropped;
}

Nat::Drop Nat::translate_inbound(packet::Packet const& packet, Arrival const& arrival, Aux& aux) {
  Mapping const* receiver = mappings_.find_external(arrival.destination, arrival.hash);
  if (receiver == nullptr) {
    return kNoMapping;
  }
  set_destination(aux, receiver->internal());
  note(mappings_, *receiver, Side::kOutside, remote_of(arrival.source), packet);
  aux.rewrite = rewrite_of(arrival);
  return kNotDropped;
}

/// The receiver's mapping may be in the table of another shard.
Nat::Drop Nat::translate_hairpin(packet::Packet const& packet, Arrival const& arrival, Aux& aux) {
  return with_table_of(arrival.destination, [&](MappingTable& receivers) {
    // the receiver first: a packet that reaches no host makes no mapping
    if (receivers.find_external(arrival.destination) == nullptr) {
      return kNoMapping;
    }
    Mapping const* sender = mapping_of_sender(arrival);
    if (sender == nullptr) {
      return kPoolExhausted;
    }
    Mapping const* receiver = receivers.find_external(arrival.destination);
    if (receiver == nullptr) {
      return kNoMapping;  // it has given way to the sender's
    }
    const Endpoint external = mappings_.external_of(*sender);
    set_source(aux, external);
    set_destination(aux, receiver->internal());
    note(receivers, *receiver, Side::kOutside, remote_of(external), packet);
    note(mappings_, *sender, Side::kInside, remote_of(arrival.destination), packet);
    aux.rewrite = rewrite_of(arrival);
    return kNotDropped;
  });
}

/// Requests go out and replies come in. An echo has one identifier, which names its sender only, so one to an external
/// address reaches no host and cannot be hairpinned.
Nat::Drop Nat::translate_echo(Arrival const& arrival, Aux& aux) {
  const bool is_request = arrival.kind == Kind::kEchoRequest;
  if (arrival.is_outbound != is_request || arrival.is_inbound == is_request) {
    return kNoMapping;
  }
  if (is_request) {
    Mapping const* sender = mapping_of_sender(arrival);
    if (sender == nullptr) {
      return kPoolExhausted;
    }
    mappings_.note_outbound(*sender);
    set_source(aux, mappings_.external_of(*sender));
  } else {
    Mapping const* receiver = mappings_.find_external(arrival.destination, arrival.hash);
    if (receiver == nullptr) {
      return kNoMapping;
    }
    aux.destination = receiver->internal_address;
    aux.source_port = receiver->internal_port;
  }
  aux.rewrite = kEcho;
  return kNotDropped;
}

std::optional<Endpoint> Nat::internal_of(Endpoint const& external) {
  return with_table_of(external, [&](MappingTable& mappings) {
    Mapping const* mapping = mappings.find_external(external);
    return mapping == nullptr ? std::nullopt : std::optional(mapping->internal());
  });
}

/// An error goes to the source of the datagram that it quotes. One that goes out quotes what came in to an internal
/// endpoint; one that comes in quotes what went out from an external one; a hairpinned one is both. Errors leave
/// mappings and their time-outs as they are (RFC 4787 REQ-12).
Nat::Drop Nat::translate_error(packet::Packet const& packet, Arrival const& arrival, std::string& record) {
  const std::variant<packet::Quote, packet::QuoteProblem> read = packet::read_quote(packet);
  if (packet::QuoteProblem const* problem = std::get_if<packet::QuoteProblem>(&read)) {
    return drop_for(*problem);
  }
  packet::Quote const& quote = std::get<packet::Quote>(read);
  const packet::Address destination = packet::Address::of_v4(arrival.destination.address);
  if (quote.flow.source != destination) {
    return kMalformed;
  }
  packet::QuoteEnds ends{quote.flow, packet::Address::of_v4(arrival.source.address), destination};
  if (arrival.is_inbound) {
    const std::optional<Endpoint> sender = may_be_from_mapping(quote) ? internal_of(sender_of(quote)) : std::nullopt;
    if (!sender) {
      return kNoMapping;
    }
    ends.flow.source = ends.outer_destination = packet::Address::of_v4(sender->address);
    ends.flow.source_port = sender->port;
  }
  if (arrival.is_outbound) {
    Mapping const* receiver = may_be_to_mapping(quote) ? mappings_.find_internal(receiver_of(quote)) : nullptr;
    if (receiver == nullptr) {
      return kNoMapping;
    }
    ends.flow.destination = ends.outer_source = packet::Address::of_v4(mappings_.external_of(*receiver).address);
    ends.flow.destination_port = receiver->external_port;
  }
  if (is_recording_) {
    record = record_of_error(packet, arrival, quote.flow, ends.flow);
  }
  packet::rewrite_error(packet, quote, ends);
  packet.mark_rewritten();
  return kNotDropped;
}

/// Only the first fragment has ports. One that overtakes it is dropped, not kept: hosts send the first one first, and
/// keeping others would be an attacker's way to fill memory.
Nat::Drop Nat::follow_first_fragment(packet::Packet const& packet, Aux& aux) const {
  const std::optional<AddressPair> addresses = fragments_.find(datagram_key(packet), now_s());
  if (!addresses) {
    return kFragment;
  }
  aux.source = addresses->source;
  aux.destination = addresses->destination;
  aux.rewrite = kAddresses;
  return kNotDropped;
}

void Nat::compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> /*results*/) {
  const std::span<const Aux> in = nf::array_of<Aux>(aux);
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (in[i].rewrite != kLeave) {
      rewrite(batch[i], in[i]);
    }
  }
}

Result<nf::KernelSide> Nat::kernel_side() const {
  nf::KernelSide side;
  side.spec.source = catena_kernel_nat();
  side.spec.name = "nat";
  return side;
}

std::vector<std::string> Nat::start_report() const {
  MappingTable::Settings const& settings = shards_->config().mappings;  // of all shards: reports of one speak for all
  constexpr std::size_t kMegabyte = 1'000'000;
  const std::size_t bytes = shards_->memory_bytes() + shards_->count() * fragments_.memory_bytes();
  return {concat(settings.external_addresses.size(), " external addresses with ports ", settings.ports.first, " to ",
                 settings.ports.last, ", at most ", settings.max_mappings, " mappings in ",
                 (bytes + kMegabyte - 1) / kMegabyte, " MB")};
}

std::size_t Nat::memory_bytes() const { return mappings_.memory_bytes() + fragments_.memory_bytes(); }

std::vector<nf::Statistic> Nat::statistics() const {
  const std::unique_lock held = hold_mappings();
  const MappingTable::Counts counts = mappings_.counts();
  return {{"mappings", counts.live},
          {"mappings_peak", counts.peak},
          {"mappings_created", counts.created},
          {"mappings_expired", counts.expired},
          {"half_open", counts.half_open},
          {"half_open_evicted", counts.half_open_evicted},
          {"sessions", mappings_.session_counts().live},
          {"sessions_replaced", mappings_.session_counts().replaced},
          {"sessions_shared", mappings_.session_counts().shared},
          {"fragments_evicted", fragments_.evicted()},
          {"echo_replies", echo_replies_},
          {"echo_replies_over_rate", echo_replies_over_rate_},
          {"memory_bytes", memory_bytes()}};
}

}  // namespace catena::nat

catena::nf::Descriptor const& catena_nf_nat() {
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "nat",
      .help = "Network address and port translation of TCP, UDP and ICMP (RFC 4787, 5382, 5508)",
      .needs = catena::packet::kIpv4,
      .drop_reasons = catena::nat::kDropReasons,
      .config = catena::nat::kConfig,
      .aux_bytes = sizeof(catena::nat::Aux),
      .result_bytes = 0,
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kOwn,
      .create = &catena::nat::Nat::create,
  };
  return kDescriptor;
}
