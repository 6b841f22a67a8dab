// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/flow_key.hpp>

#include <cstdint>

/// Flows, per-packet observations, and exported records with their end reason. A flow is the common properties of its
/// packets (RFC 7011, section 2). Packets without ports have 0 for both; ICMP has type * 256 + code as its destination
/// port, the value of icmpTypeCodeIPv4.
namespace catena::monitor {

/// A hash of keys with random seeds, because senders choose the keys. Two FlowHash objects are independent.
class FlowHash {
 public:
  FlowHash();
  std::uint64_t operator()(packet::Ipv4FlowKey const& key) const {
    return fold(fold(key.addresses ^ seeds_[0], key.transport ^ seeds_[1]) ^ seeds_[0], seeds_[2]);
  }

 private:
  /// Combines both halves of the product of two words, which depends on all bits of both.
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  std::uint64_t seeds_[3];
};

/// The monitor's input from one packet.
struct Observation {
  packet::Ipv4FlowKey key;
  std::uint64_t arrival_ns;  ///< as stamped; may decrease from one packet to the next
  std::uint16_t length;      ///< IPv4 total length, bytes
  std::uint16_t tcp_flags;   ///< the 12 bits after the data offset; 0 without a TCP header
  std::uint8_t tos;
};

/// The packet's flow. Precondition: packet.is(packet::kIpv4).
packet::Ipv4FlowKey key_of(packet::Packet const& packet);
/// Precondition: packet.is(packet::kIpv4).
Observation observe(packet::Packet const& packet);

/// flowEndReason, IANA's registry of IPFIX information elements, 136. 3 (end of flow detected) is never used: TCP flows
/// with FIN or RST end by time, as all others.
enum class EndReason : std::uint8_t {
  kIdle = 1,
  kActive = 2,
  kForcedEnd = 4,        ///< the run ended
  kLackOfResources = 5,  ///< evicted from a full table
};

/// One exported record: the packets of a flow since its start, or since its last active time-out.
struct FlowRecord {
  packet::Ipv4FlowKey key;
  std::uint64_t packets;
  std::uint64_t bytes;      ///< sum of IPv4 total lengths
  std::uint64_t first_ns;   ///< earliest and
  std::uint64_t last_ns;    ///< latest stamp of the packets
  std::uint16_t tcp_flags;  ///< OR of all packets
  std::uint8_t tos;         ///< of the first packet
  EndReason end_reason;
  bool operator==(FlowRecord const&) const = default;
};

/// Receives exported records. `clock_ns`: the monitor's clock, which never decreases.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void add(FlowRecord const& record, std::uint64_t clock_ns) = 0;
  /// The clock has advanced by a second or more since the last call.
  virtual void second_passed(std::uint64_t clock_ns) = 0;
};

}  // namespace catena::monitor
