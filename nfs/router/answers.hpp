// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/packet/icmp.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "header_options.hpp"
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
  /// `no_sources`: in the form of is_in_table(), and outlives this object. `budget`: shared with other routers of the
  /// same configuration.
  Answers(PortTable const& ports, std::span<const std::uint32_t> no_sources, AnswerOptions const& options,
          std::shared_ptr<packet::ErrorBudget> budget);

  AnswerOptions const& options() const { return options_; }
  bool has_addresses() const { return !interfaces_.empty(); }

  /// Handles a non-IPv4 frame. With options().arp, an ARP request of a host for an address of the router becomes the
  /// reply, and other link control frames (ARP, STP, LLDP) are dropped; without it they pass unchanged. All other
  /// frames are dropped: a router does not bridge.
  void take_unsupported(packet::Packet const& packet, nf::Outcome& outcome);

  /// Answers a packet that the router does not forward because of `decision`: an echo request to the router, or with an
  /// error giving the reason, if one may be sent. `options`: of its header. Returns kForward if it is answered, else
  /// the reason to drop it.
  Decision answer(packet::Packet const& packet, Decision decision, HeaderOptions const& options, nf::Outcome& outcome);

  /// Records the router in the options of a packet that leaves by `port`. Without addresses the packet stays as it is.
  void record_hop(packet::Packet const& packet, HeaderOptions const& options, std::uint16_t port) const;

  std::vector<nf::Statistic> statistics() const;

 private:
  struct Interface {
    std::uint16_t port;
    std::uint32_t address;
    MacAddress mac;
  };
  Interface const& interface_of(std::uint16_t port) const;
  bool is_own(std::uint32_t address) const;
  bool is_of_host(const std::uint8_t* arp) const;
  bool answer_arp(packet::Packet const& packet, std::uint8_t* arp) const;
  Decision answer_echo(packet::Packet const& packet, HeaderOptions const& options, nf::Outcome& outcome);
  bool send_error(packet::Packet const& packet, Decision decision, HeaderOptions const& options, nf::Outcome& outcome);

  AnswerOptions options_;
  std::vector<Interface> interfaces_;  ///< ports with an address, by port
  std::vector<std::uint32_t> own_;     ///< the addresses
  std::span<const std::uint32_t> no_sources_;
  std::shared_ptr<packet::ErrorBudget> budget_;
  std::uint64_t arp_replies_ = 0;
  std::uint64_t echo_replies_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t over_rate_ = 0;
};

}  // namespace catena::router
