// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/alert.hpp>
#include <catena/nf/outcome.hpp>
#include <catena/packet/batch.hpp>
#include <catena/packet/flow_key.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include "nf/instance.hpp"

namespace catena::nf {

/// A packet as received by rx, for the lines about it. Stored on arrival, because later headers are not usable. An NF
/// may have rewritten them, and whether the host has the newest ones depends on placement and plan.
struct Arrival {
  std::uint64_t packet = 0;   ///< its number, as Packet::index()
  std::uint64_t time_ns = 0;  ///< ns since 1970, as Packet::arrival_ns()
  /// packet::LayerFlags. Ports hold with kPorts, ICMP type and code with kIcmp.
  std::uint16_t flags = 0;
  /// Without kIpv4: after all tags; 0 if the frame is too short for one.
  std::uint16_t ether_type = 0;
  /// Addresses and protocol hold: of the IPv4 header, or without kIpv4 of an IPv4 or IPv6 header after all tags. That
  /// is for people, as nothing checks that header but its version.
  bool has_addresses = false;
  std::uint8_t icmp_type = 0;
  std::uint8_t icmp_code = 0;
  packet::FlowKey flow = {};
};
/// Precondition: no NF has had the packet yet. Thread rule: pure.
Arrival arrival_of(packet::Packet const& packet);

/// "2013-05-02T20:20:36.633914000Z": UTC of `time_ns` (ns since 1970) with nine digits. Thread rule: pure.
std::string utc_of(std::uint64_t time_ns);

/// One line of `--record`, without the line end:
/// {"packet":17,"nf":"fw","verdict":"drop","reason":"denied","rule":103}. With `arrival` the member "packet" is
/// followed by ts, by ethertype if parse() found no IPv4, and by src dst proto sport dport if the packet has them.
/// Thread rule: pure.
std::string format_record(Instance const& instance, RecordLine const& line, Arrival const* arrival = nullptr);

/// One line of `--eve`, without the line end: an alert event with the members of Suricata's EVE, and `chain`, `nf` and,
/// if parse() found no IPv4, `ethertype`.
/// `numbers_frames`: packet numbers are frame numbers of a capture. Thread rule: pure.
std::string format_eve(std::string_view chain, Instance const& instance, AlertLine const& line, Arrival const* arrival,
                       bool numbers_frames);

}  // namespace catena::nf
