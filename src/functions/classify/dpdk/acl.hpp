// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/flow_key.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "functions/classify/rule.hpp"

struct rte_acl_ctx;

namespace catena::classify {

/// The compressed form of a packet::FlowKey of IPv4 addresses for rte_acl; all values in network order, as in the
/// packet. rte_acl takes one byte and then groups of four.
struct AclKey {
  std::uint8_t protocol;
  std::uint8_t unused[3];
  std::uint32_t src;
  std::uint32_t dst;
  std::uint16_t sport;
  std::uint16_t dport;
};
static_assert(sizeof(AclKey) == 16);
/// Writes the key in place: one that is put together elsewhere and then copied as a whole waits for its own small
/// stores, which cost the firewall a tenth of its time. Precondition: both addresses are IPv4.
inline void write_acl_key(packet::FlowKey const& key, AclKey& to) {
  to.protocol = key.protocol;
  to.src = __builtin_bswap32(key.source.v4());
  to.dst = __builtin_bswap32(key.destination.v4());
  to.sport = __builtin_bswap16(key.source_port);
  to.dport = __builtin_bswap16(key.destination_port);
}

/// The rules of one firewall in rte_acl, which chooses the vector instructions by the CPU. Two tables: one with all
/// rules for packets with ports, and one without port fields for packets without ports, with only the rules that can
/// match such packets. So "has ports" costs a packet nothing, while a separate field would be a whole four-byte step.
/// Lookups are safe from any thread; it must not outlive the EAL.
class Acl {
 public:
  /// At most kMaxRules rules. Starts the EAL if it is not running; Unavailable if it cannot start. ResourceExhausted if
  /// rte_acl cannot hold the rules in the EAL's memory or in its number of tries; Internal for any other refusal.
  static Result<Acl> create(std::span<const Rule> rules);

  /// For each key 1 + the position of the first matching rule, 0 without a match. `keys` point to AclKey; both arrays
  /// have `count` elements.
  void find_with_ports(const std::uint8_t** keys, std::uint32_t* matches, std::uint32_t count) const;
  /// The same for packets without ports; sport and dport of the keys are not read.
  void find_without_ports(const std::uint8_t** keys, std::uint32_t* matches, std::uint32_t count) const;

 private:
  struct Free {
    void operator()(rte_acl_ctx* context) const;
  };
  using Table = std::unique_ptr<rte_acl_ctx, Free>;
  static Result<Table> build(std::span<const Rule> rules, bool with_ports);
  static void find(Table const& table, const std::uint8_t** keys, std::uint32_t* matches, std::uint32_t count);

  Acl(Table with_ports, Table without_ports)
      : with_ports_(std::move(with_ports)), without_ports_(std::move(without_ports)) {}

  Table with_ports_;
  Table without_ports_;  ///< null if no rule is for packets without ports
};

}  // namespace catena::classify
