// SPDX-License-Identifier: Apache-2.0
#include "answers.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/ether_type.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <cstring>

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

/// Says in the record what is about to become a reply; its line is about the packet as it came.
void note_reply(packet::Packet const& packet, std::string_view with, nf::Outcome& outcome) {
  if (outcome.recording()) {
    outcome.record(packet, packet::Verdict::kReply, -1, concat("\"reply\":\"", with, "\""));
  }
}

}  // namespace

std::shared_ptr<packet::ErrorBudget> make_budget(AnswerOptions const& options) {
  return std::make_shared<packet::ErrorBudget>(options.icmp_rate, std::min(options.icmp_rate, kErrorBurst));
}

Answers::Answers(PortTable const& ports, AnswerOptions const& options, std::shared_ptr<packet::ErrorBudget> budget)
    : options_(options), budget_(std::move(budget)) {
  for (auto const& [port, entry] : ports) {
    if (entry.address.address != 0) {
      interfaces_.push_back({port, entry.address.address, entry.own});
    }
  }
}

/// The interface that the packet came in on; the first one where that has no address, or none is known. The address
/// that answers come from (RFC 1812, section 4.3.2.4).
Answers::Interface const& Answers::interface_of(packet::Packet const& packet) const {
  const auto found = std::find_if(interfaces_.begin(), interfaces_.end(),
                                  [&](Interface const& interface) { return interface.port == packet.ingress(); });
  return found != interfaces_.end() ? *found : interfaces_.front();
}

bool Answers::answer_arp(packet::Packet const& packet, std::uint8_t* arp) const {
  const std::uint32_t wanted = packet::load_be32(arp + kTargetAddress);
  const auto own = std::find_if(interfaces_.begin(), interfaces_.end(), [&](Interface const& interface) {
    return interface.address == wanted && (!options_.live || interface.port == packet.ingress());
  });
  if (arp[kArpOperation] != kArpRequest || own == interfaces_.end() || (arp[kSenderMac] & 1U) != 0) {
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
    note_reply(packet, "arp", outcome);
    outcome.reply(packet);
  } else {
    drop(packet, arp != nullptr ? kArp : kControlFrame, outcome);
  }
}

bool Answers::answer_echo(packet::Packet const& packet, nf::Outcome& outcome) {
  const std::uint8_t* request = packet.l4();
  if (!packet.is(packet::kIcmp) || packet.is(packet::kFragment) || request[0] != kEchoRequest || request[1] != 0 ||
      !packet::may_report(packet)) {
    return false;
  }
  note_reply(packet, "echo", outcome);
  packet::make_echo_reply(packet);
  outcome.reply(packet);
  ++echo_replies_;
  return true;
}

bool Answers::answer(packet::Packet const& packet, Decision decision, nf::Outcome& outcome) {
  if (interfaces_.empty()) {
    return false;
  }
  if (decision == kToRouter) {
    return answer_echo(packet, outcome);
  }
  const bool is_told = decision == kTtlExpired || decision == kNoRoute;
  if (!is_told || options_.icmp_rate == 0 || !packet::may_report(packet)) {
    return false;
  }
  if (!budget_->take(packet.arrival_ns())) {
    ++over_rate_;
    return false;
  }
  note_reply(packet, decision == kTtlExpired ? "time_exceeded" : "net_unreachable", outcome);
  packet::make_icmp_error(packet, decision == kTtlExpired ? packet::kTtlExceeded : packet::kNetUnreachable,
                          interface_of(packet).address);
  outcome.reply(packet);
  ++errors_;
  return true;
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
