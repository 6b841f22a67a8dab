// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/fields.hpp>
#include <catena/packet/packet_clock.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>

/// ICMP errors (RFC 792), made in place of the packets they report, for Outcome::reply().
namespace catena::packet {

struct IcmpError {
  std::uint8_t type;
  std::uint8_t code;
  std::uint32_t rest = 0;  ///< bytes 4 to 7 of the header, host order
};

inline constexpr IcmpError kNetUnreachable{3, 0};
inline constexpr IcmpError kHostUnreachable{3, 1};
inline constexpr IcmpError kProtocolUnreachable{3, 2};
inline constexpr IcmpError kPortUnreachable{3, 3};
inline constexpr IcmpError kAdministrativelyProhibited{3, 13};  ///< RFC 1812, section 5.2.7.1
inline constexpr IcmpError kTtlExceeded{11, 0};
/// RFC 792. `at`: first wrong byte, from the begin of the IPv4 header.
constexpr IcmpError parameter_problem(std::uint8_t at) { return {12, 0, std::uint32_t{at} << 24}; }
/// RFC 1191, section 4. `mtu`: bytes of the largest datagram accepted by the next hop.
constexpr IcmpError fragmentation_needed(std::uint16_t mtu) { return {3, 4, mtu}; }

/// The reads of the functions below. A step that calls them must have these fields in its hints.
inline constexpr FieldSet kIcmpErrorReads = kFrameFields;

/// Whether an ICMP error may be sent about this packet (RFC 1122, section 3.2.2; RFC 1812, section 4.3.2.7). False for
/// an ICMP message other than the queries of RFC 1122 (echo, timestamp, information, address mask), as an unknown one
/// may be an error; for a fragment other than the first, a frame or a datagram for more than one host, and a source
/// that is no single host (0/8, 127/8, multicast, 240/4). Only the caller can detect a directed broadcast.
bool may_report(Packet const& packet);

/// Whether the checksum of the ICMP message is right (RFC 1122, section 3.2.2: else it is discarded). Precondition:
/// kIcmp, no fragment.
bool has_right_icmp_checksum(Packet const& packet);

/// Turns the packet into the ICMP error `error` about it, from IPv4 address `source` (host order). Swaps the Ethernet
/// addresses, keeps VLAN tags, and quotes as much of the datagram as fits into 576 bytes (RFC 1812, section 4.3.2.3).
/// Precedence "internetwork control", the TOS bits of the packet (section 4.3.2.5), TTL 64, DF. Sets offset, length and
/// layers, and clears the MTU of set_mtu(). Does not reverse a source route. Precondition: may_report().
void make_icmp_error(Packet const& packet, IcmpError const& error, std::uint32_t source);

/// Turns an ICMP echo request into the echo reply (RFC 1122, section 3.2.2.6). Swaps the Ethernet and IPv4 addresses
/// and sets TTL 64; options stay unchanged. Updates the checksums by RFC 1624, so a wrong one stays wrong.
/// Precondition: kIcmp, type 8.
void make_echo_reply(Packet const& packet);

/// Rate limit for ICMP errors (RFC 1812, section 4.3.2.8): `burst` at once, then `per_second`. Its time is a
/// PacketClock of the arrival times of packets, so a capture gives the same replies at any speed, and no stamp stops
/// the budget. Any thread: shards of an NF share one. If the budget is empty, take() costs one load.
class ErrorBudget {
 public:
  ErrorBudget(std::uint32_t per_second, std::uint32_t burst)
      : per_second_(per_second), burst_(burst), tokens_ns_(std::uint64_t{burst} * kNsPerSecond) {}
  /// Takes one for a packet with this stamp (ns since 1970); false if the budget is empty. Stamps that go back add
  /// nothing.
  bool take(std::uint64_t stamp_ns);

 private:
  static constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  bool take_locked(std::uint64_t stamp_ns);

  std::uint64_t per_second_;
  std::uint64_t burst_;
  /// The budget is empty for stamps less than PacketClock::kSlackNs before this one; 0: they take the lock, which the
  /// clock needs to count stamps far back.
  std::atomic<std::uint64_t> next_stamp_ns_{0};
  std::mutex mutex_;         ///< protects the members below
  std::uint64_t tokens_ns_;  ///< in 1 / kNsPerSecond of an error
  PacketClock clock_;
};

}  // namespace catena::packet
