// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/text_file.hpp>
#include <catena/packet/layers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Whose a frame is that arrives at a port of several chains. Thread rule: pure functions, any thread.
namespace catena::io {

/// As `vlan` of a TrafficMatch: frames without a tag, and those whose tag has a priority and no VLAN (IEEE 802.1Q).
inline constexpr std::uint16_t kUntagged = 0;

/// Port numbers from the first to the last.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool operator==(PortRange const&) const = default;
};

/// Frames that meet each condition given; with none, all frames.
struct TrafficMatch {
  std::optional<std::uint16_t> vlan = {};          ///< of the outer tag
  std::optional<nf::Ipv4Prefix> source = {};       ///< with this and what follows: of the IPv4 header behind the tags
  std::optional<nf::Ipv4Prefix> destination = {};  ///< bits behind the prefix do not count
  std::optional<std::uint8_t> protocol = {};
  /// TCP and UDP, by packet::shown_ports(): not met by a fragment after the first.
  std::optional<PortRange> source_ports = {};
  std::optional<PortRange> destination_ports = {};
  bool operator==(TrafficMatch const&) const = default;
};

/// Whether a frame meets a match.
enum class Met : std::uint8_t {
  kNo,
  kYes,
  kHidden,  ///< it meets all conditions but those over ports, and its ports are hidden: no later match may decide it
};
/// `frame`: `length` bytes; `layers`: what parse() says of them.
Met meets(TrafficMatch const& match, const std::uint8_t* frame, std::uint32_t length, packet::Layers const& layers);

/// "vlan 10, dst 10.1.0.0/16, dport 80"; "everything else" for a match without a condition.
std::string to_string(TrafficMatch const& match);

/// How the frames that meet `a` lie to those that meet `b`, condition by condition.
enum class Overlap {
  kNone,      ///< no frame meets both
  kSame,      ///< each meets both or none
  kInside,    ///< those of `a` are some of `b`
  kAround,    ///< those of `b` are some of `a`
  kCrossing,  ///< there may be frames that meet both, and some that meet one alone
};
Overlap overlap(TrafficMatch const& a, TrafficMatch const& b);

/// Finds whose a frame is among matches of which no two of different owners are the same or cross: a match inside
/// another goes first.
class TrafficTable {
 public:
  struct Entry {
    TrafficMatch match;
    std::size_t owner;
  };
  explicit TrafficTable(std::vector<Entry> entries);

  struct Found {
    std::optional<std::size_t> owner;  ///< none: the frame is to be dropped
    bool is_hidden = false;            ///< for an entry asks for ports that it hides; else as no entry takes it
  };
  /// `frame`: `length` bytes, any value.
  Found owner_of(const std::uint8_t* frame, std::uint32_t length) const;

 private:
  static constexpr std::size_t kVlans = 4096;

  std::vector<Entry> entries_;  ///< those inside others first
  /// Of each VLAN, the positions of the entries that one of its frames may meet; the first list is of VLANs that no
  /// entry names.
  std::vector<std::vector<std::size_t>> lists_{1};
  std::array<std::uint16_t, kVlans> list_of_vlan_{};
  bool needs_layers_ = false;
};

}  // namespace catena::io
