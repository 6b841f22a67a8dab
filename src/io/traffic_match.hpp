// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/ipv4_prefix.hpp>
#include <catena/packet/layers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Finds the chain of a frame at a shared port. Thread rule: pure functions, any thread.
namespace catena::io {

/// Value of `vlan` in a TrafficMatch: frames without a tag, and frames with a priority tag without a VLAN (IEEE
/// 802.1Q).
inline constexpr std::uint16_t kUntagged = 0;

/// Port numbers from `first` to `last`, inclusive.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool operator==(PortRange const&) const = default;
};

/// Matches frames that meet each given condition; all frames without a condition.
struct TrafficMatch {
  std::optional<std::uint16_t> vlan = {};         ///< of the outer tag
  std::optional<packet::Ipv4Prefix> source = {};  ///< this and the members below: of the IPv4 header after the tags
  std::optional<packet::Ipv4Prefix> destination = {};  ///< bits after the prefix are ignored
  std::optional<std::uint8_t> protocol = {};
  /// TCP and UDP, by packet::shown_ports(): never met by a fragment after the first.
  std::optional<PortRange> source_ports = {};
  std::optional<PortRange> destination_ports = {};
  bool operator==(TrafficMatch const&) const = default;
};

/// Whether a frame meets a match.
enum class Met : std::uint8_t {
  kNo,
  kYes,
  kHidden,  ///< it meets all conditions except on ports, and its ports are hidden: later matches must not be tried
};
/// `frame`: `length` bytes; `layers`: the result of parse() for them.
Met meets(TrafficMatch const& match, const std::uint8_t* frame, std::uint32_t length, packet::Layers const& layers);

/// "vlan 10, dst 10.1.0.0/16, dport 80"; "everything else" for a match without a condition.
std::string to_string(TrafficMatch const& match);

/// Relation of the frames that meet `a` to the frames that meet `b`, condition by condition.
enum class Overlap {
  kNone,      ///< no frame meets both
  kSame,      ///< both match the same frames
  kInside,    ///< the frames of `a` are a subset of the frames of `b`
  kAround,    ///< the frames of `b` are a subset of the frames of `a`
  kCrossing,  ///< some frames may meet both, and others only one
};
Overlap overlap(TrafficMatch const& a, TrafficMatch const& b);

/// Finds the owner of a frame. No two matches of different owners may be equal or cross; a match inside another has
/// precedence.
class TrafficTable {
 public:
  struct Entry {
    TrafficMatch match;
    std::size_t owner;
  };
  explicit TrafficTable(std::vector<Entry> entries);

  struct Found {
    std::optional<std::size_t> owner;  ///< nullopt: the frame is to be dropped
    bool is_hidden = false;            ///< true: an entry requires ports hidden in the frame; false: no entry matches
  };
  /// `frame`: `length` bytes, any value.
  Found owner_of(const std::uint8_t* frame, std::uint32_t length) const;

 private:
  static constexpr std::size_t kVlans = 4096;

  std::vector<Entry> entries_;  ///< entries inside others first
  /// For each VLAN, the positions of the entries that its frames may meet. The first list is for VLANs without an entry
  /// of their own.
  std::vector<std::vector<std::size_t>> lists_{1};
  std::array<std::uint16_t, kVlans> list_of_vlan_{};
  bool needs_layers_ = false;
};

}  // namespace catena::io
