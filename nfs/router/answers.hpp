// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/packet/icmp.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

#include "next_hops.hpp"
#include "router.layout.hpp"

/// Packets sent by a router itself, in place of the packets that caused them: ARP (RFC 826), ICMP echo replies and
/// errors.
namespace catena::router {

struct AnswerOptions {
  bool live = false;            ///< rx has ports: packets have an ingress, and an address belongs to its own port
  bool arp = false;             ///< answer ARP, and pass no link control frames
  std::uint32_t icmp_rate = 0;  ///< ICMP errors per second, of all shards; 0: no errors
};

/// The common error budget of the routers of one configuration.
std::shared_ptr<packet::ErrorBudget> make_budget(AnswerOptions const& options);

/// Not thread safe; one per router.
class Answers {
 public:
  /// `budget`: shared with other routers of the same configuration.
  Answers(PortTable const& ports, AnswerOptions const& options, std::shared_ptr<packet::ErrorBudget> budget);

  AnswerOptions const& options() const { return options_; }
  bool has_addresses() const { return !interfaces_.empty(); }

  /// Handles a non-IPv4 frame. With options().arp, an ARP request for an address of the router becomes the reply, and
  /// other link control frames (ARP, STP, LLDP) are dropped; without it they pass unchanged. All other frames are
  /// dropped: a router does not bridge.
  void take_unsupported(packet::Packet const& packet, nf::Outcome& outcome);

  /// Answers a packet that the router does not forward because of `decision`: an echo request to the router, or with an
  /// error giving the reason, if one may be sent. False if the packet is only to be dropped.
  bool answer(packet::Packet const& packet, Decision decision, nf::Outcome& outcome);

  std::vector<nf::Statistic> statistics() const;

 private:
  struct Interface {
    std::uint16_t port;
    std::uint32_t address;
    MacAddress mac;
  };
  Interface const& interface_of(packet::Packet const& packet) const;
  bool answer_arp(packet::Packet const& packet, std::uint8_t* arp) const;
  bool answer_echo(packet::Packet const& packet, nf::Outcome& outcome);

  AnswerOptions options_;
  std::vector<Interface> interfaces_;  ///< ports with an address, by port
  std::shared_ptr<packet::ErrorBudget> budget_;
  std::uint64_t arp_replies_ = 0;
  std::uint64_t echo_replies_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t over_rate_ = 0;
};

}  // namespace catena::router
