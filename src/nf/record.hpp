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
  /// packet::LayerFlags. Addresses and protocol hold with kIpv4, ports with kPorts, ICMP type and code with kIcmp.
  std::uint16_t flags = 0;
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
/// followed by ts and, if the packet has them, by src dst proto sport dport. Thread rule: pure.
std::string format_record(Instance const& instance, RecordLine const& line, Arrival const* arrival = nullptr);

/// One line of `--eve`, without the line end: an alert event with the members of Suricata's EVE, and `chain` and `nf`.
/// `numbers_frames`: packet numbers are frame numbers of a capture. Thread rule: pure.
std::string format_eve(std::string_view chain, Instance const& instance, AlertLine const& line, Arrival const* arrival,
                       bool numbers_frames);

}  // namespace catena::nf
