// SPDX-License-Identifier: Apache-2.0
#include "answers.hpp"

#include <catena/nf/replies.hpp>
#include <catena/packet/ether_type.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/rewrite.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "checks.hpp"

namespace catena::router {
namespace {

constexpr std::uint32_t kMacBytes = 6;
/// Errors that may go out at once, as Linux has it (icmp_msgs_burst).
constexpr std::uint32_t kErrorBurst = 50;

/// An ARP packet for Ethernet and IPv4 (RFC 826), and where its parts are.
constexpr std::uint8_t kArpHead[] = {0, 1, 8, 0, 6, 4, 0};
constexpr std::uint8_t kArpRequest = 1;
constexpr std::uint8_t kArpReply = 2;
constexpr std::uint32_t kArpBytes = 28;
constexpr std::uint32_t kArpOperation = 7;
constexpr std::uint32_t kSenderMac = 8;
constexpr std::uint32_t kSenderAddress = 14;
constexpr std::uint32_t kTargetMac = 18;
constexpr std::uint32_t kTargetAddress = 24;

constexpr std::uint8_t kEchoRequest = 8;

struct NamedError {
  std::string_view name;  ///< in records
  packet::IcmpError error;
};

/// Whether the UDP checksum is right or absent (RFC 768).
bool has_right_udp_checksum(packet::Packet const& packet) {
  const std::uint8_t* udp = packet.l4();
  if (packet::load_be16(udp + packet::kUdpChecksumAt) == 0) {
    return true;
  }
  const std::uint32_t bytes = packet::kUdpBytes + packet.layers().payload_length;
  const std::uint64_t pseudo_header =
      packet::checksum_add(packet.l3() + packet::kIpSourceAt, 8, packet::kProtocolUdp + bytes);
  return packet::checksum_finish(packet::checksum_add(udp, bytes, pseudo_header)) == 0;
}

/// The error about a packet to the router itself, which has no services but echo (RFC 1122, section 3.2.2.1).
std::optional<NamedError> error_of_service(packet::Packet const& packet) {
  if (packet.is(packet::kFragment)) {
    return std::nullopt;
  }
  switch (packet.l3()[9]) {
    case packet::kProtocolIcmp:
      return std::nullopt;
    case packet::kProtocolUdp:
      return packet.is(packet::kUdp) && has_right_udp_checksum(packet)
                 ? std::optional(NamedError{"port_unreachable", packet::kPortUnreachable})
                 : std::nullopt;
    default:
      return NamedError{"protocol_unreachable", packet::kProtocolUnreachable};
  }
}

/// The error about a packet that is not forwarded because of `decision`.
std::optional<NamedError> error_of(packet::Packet const& packet, Decision decision, HeaderOptions const& options) {
  switch (decision) {
    case kTtlExpired:
      return NamedError{"time_exceeded", packet::kTtlExceeded};
    case kNoRoute:
      return NamedError{"net_unreachable", packet::kNetUnreachable};
    case kBadOptions:
      return NamedError{"parameter_problem", packet::parameter_problem(options.problem)};
    case kToRouter:
      return error_of_service(packet);
    default:
      return std::nullopt;
  }
}

std::uint32_t ms_since_midnight(std::uint64_t time_ns) {
  constexpr std::uint64_t kMsPerDay = 86'400'000;
  return static_cast<std::uint32_t>(time_ns / 1'000'000 % kMsPerDay);
}

/// The ARP packet in the frame; null for another frame, and for ARP of other networks.
std::uint8_t* arp_of(packet::Packet const& packet) {
  if (packet.length() < packet::kEthernetBytes) {
    return nullptr;
  }
  const auto [type, end] = packet::ether_type_of(packet.frame(), packet.length());
  std::uint8_t* const arp = packet.frame() + end;
  const bool is_arp = type == packet::kEtherTypeArp && end + kArpBytes <= packet.length() &&
                      std::equal(std::begin(kArpHead), std::end(kArpHead), arp);
  return is_arp ? arp : nullptr;
}

void drop(packet::Packet const& packet, Decision decision, nf::Outcome& outcome) {
  outcome.drop(packet, decision - 1);
  if (outcome.recording()) {
    outcome.record(packet, packet::Verdict::kDrop, static_cast<std::int32_t>(decision - 1), "");
  }
}

}  // namespace

std::shared_ptr<packet::ErrorBudget> make_budget(AnswerOptions const& options) {
  return std::make_shared<packet::ErrorBudget>(options.icmp_rate, std::min(options.icmp_rate, kErrorBurst));
}

Answers::Answers(PortTable const& ports, std::span<const std::uint32_t> no_sources, AnswerOptions const& options,
                 std::shared_ptr<packet::ErrorBudget> budget)
    : options_(options), no_sources_(no_sources), budget_(std::move(budget)) {
  for (auto const& [port, entry] : ports) {
    if (entry.address.address != 0) {
      interfaces_.push_back({port, entry.address.address, entry.own});
      own_.push_back(entry.address.address);
    }
  }
}

/// The interface of a port; the first one where that has no address, or none is known. Precondition: has_addresses().
Answers::Interface const& Answers::interface_of(std::uint16_t port) const {
  const auto found = std::find_if(interfaces_.begin(), interfaces_.end(),
                                  [&](Interface const& interface) { return interface.port == port; });
  return found != interfaces_.end() ? *found : interfaces_.front();
}

bool Answers::is_own(std::uint32_t address) const { return std::ranges::find(own_, address) != own_.end(); }

/// Whether an ARP request is of a host. An answer to a group reaches all hosts of the link, and one to the hardware
/// address 0 likewise, where switches do not know that. A host that wants to use an address has none yet (RFC 5227).
bool Answers::is_of_host(const std::uint8_t* arp) const {
  const std::uint32_t sender = packet::load_be32(arp + kSenderAddress);
  const std::uint32_t wanted = packet::load_be32(arp + kTargetAddress);
  const bool has_hardware = (arp[kSenderMac] & 1U) == 0 && std::any_of(arp + kSenderMac, arp + kSenderAddress,
                                                                       [](std::uint8_t byte) { return byte != 0; });
  return has_hardware && (sender == 0 || check_addresses(sender, wanted, no_sources_, false) != kMartianSource);
}

bool Answers::answer_arp(packet::Packet const& packet, std::uint8_t* arp) const {
  const std::uint32_t wanted = packet::load_be32(arp + kTargetAddress);
  const auto own = std::find_if(interfaces_.begin(), interfaces_.end(), [&](Interface const& interface) {
    return interface.address == wanted && (!options_.live || interface.port == packet.ingress());
  });
  if (arp[kArpOperation] != kArpRequest || own == interfaces_.end() || !is_of_host(arp)) {
    return false;
  }
  std::copy_n(arp + kSenderMac, kMacBytes + 4, arp + kTargetMac);
  std::copy(own->mac.begin(), own->mac.end(), arp + kSenderMac);
  packet::store_be32(arp + kSenderAddress, wanted);
  arp[kArpOperation] = kArpReply;
  std::copy_n(arp + kTargetMac, kMacBytes, packet.frame());
  std::copy(own->mac.begin(), own->mac.end(), packet.frame() + kMacBytes);
  return true;
}

void Answers::take_unsupported(packet::Packet const& packet, nf::Outcome& outcome) {
  if (!packet::is_link_local(packet.layers().flags)) {
    drop(packet, kNotRoutable, outcome);
    return;
  }
  if (!options_.arp) {
    return;
  }
  std::uint8_t* arp = arp_of(packet);
  if (arp != nullptr && answer_arp(packet, arp)) {
    ++arp_replies_;
    nf::note_reply(packet, "arp", outcome);
    outcome.reply(packet);
  } else {
    drop(packet, arp != nullptr ? kArp : kControlFrame, outcome);
  }
}

void Answers::record_hop(packet::Packet const& packet, HeaderOptions const& options, std::uint16_t port) const {
  if (has_addresses()) {
    router::record_hop(packet.l3(), options,
                       {interface_of(port).address, ms_since_midnight(packet.arrival_ns()), own_});
  }
}

Decision Answers::answer_echo(packet::Packet const& packet, HeaderOptions const& options, nf::Outcome& outcome) {
  if (!packet::may_report(packet)) {
    return kToRouter;
  }
  if (!packet::has_right_icmp_checksum(packet)) {
    return kBadIcmpChecksum;
  }
  if (options.end != 0) {
    const std::uint32_t own = packet::load_be32(packet.l3() + packet::kIpDestinationAt);
    router::record_hop(packet.l3(), options, {own, ms_since_midnight(packet.arrival_ns()), own_});
  }
  nf::answer_echo(packet, outcome);
  ++echo_replies_;
  return kForward;
}

bool Answers::send_error(packet::Packet const& packet, Decision decision, HeaderOptions const& options,
                         nf::Outcome& outcome) {
  if (options_.icmp_rate == 0 || !packet::may_report(packet)) {
    return false;
  }
  const std::optional<NamedError> error = error_of(packet, decision, options);
  if (!error) {
    return false;
  }
  if (!budget_->take(packet.arrival_ns())) {
    ++over_rate_;
    return false;
  }
  nf::note_reply(packet, error->name, outcome);
  // from the address that the packet was for, as a host answers, else from that of the port (RFC 1812, section 4.3.2.4)
  const std::uint32_t destination = packet::load_be32(packet.l3() + packet::kIpDestinationAt);
  packet::make_icmp_error(packet, error->error,
                          is_own(destination) ? destination : interface_of(packet.ingress()).address);
  outcome.reply(packet);
  ++errors_;
  return true;
}

Decision Answers::answer(packet::Packet const& packet, Decision decision, HeaderOptions const& options,
                         nf::Outcome& outcome) {
  if (!has_addresses()) {
    return decision;
  }
  const bool is_echo_request = decision == kToRouter && packet.is(packet::kIcmp) && !packet.is(packet::kFragment) &&
                               packet.l4()[0] == kEchoRequest;
  if (is_echo_request) {
    return answer_echo(packet, options, outcome);
  }
  return send_error(packet, decision, options, outcome) ? kForward : decision;
}

std::vector<nf::Statistic> Answers::statistics() const {
  if (interfaces_.empty()) {
    return {};
  }
  return {{"arp_replies", arp_replies_},
          {"echo_replies", echo_replies_},
          {"icmp_errors", errors_},
          {"icmp_errors_over_rate", over_rate_}};
}

}  // namespace catena::router
