// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "interval_set.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// One rule of the supported Snort/Suricata subset, as the parser leaves it.
namespace catena::nids {

enum class Action : std::uint8_t { kAlert, kDrop };
/// `tcp-pkt` is kTcp: without stream state both speak of single packets.
enum class Protocol : std::uint8_t { kIp, kTcp, kUdp, kIcmp };

inline constexpr std::uint32_t kMaxAddress = 0xFFFFFFFFU;
inline constexpr std::uint32_t kMaxPort = 0xFFFFU;
/// No frame that a chain accepts holds a longer content.
inline constexpr std::size_t kMaxContentBytes = 2048;
/// Bounds of offset, depth, within, and of distance in both directions.
inline constexpr std::int32_t kMaxContentRange = 65535;

/// One `content` with its modifiers. Where it may lie (all in bytes of the payload):
///   not relative  start >= offset,              end <= offset + depth
///   relative      start >= previous + distance, end <= previous + distance + within
/// `previous` is the end of the match of the last content before it that is not negated; 0 if there is none.
/// A negated content must have no occurrence there, and does not move `previous`.
struct Content {
  std::string bytes;  ///< in lower case where nocase
  bool nocase = false;
  bool negated = false;
  bool relative = false;
  std::int32_t offset = 0;
  std::optional<std::int32_t> depth;
  std::int32_t distance = 0;
  std::optional<std::int32_t> within;
};

/// Rules share the sets that are equal.
using SharedSet = std::shared_ptr<const IntervalSet>;

struct Rule {
  Action action = Action::kAlert;
  Protocol protocol = Protocol::kIp;
  SharedSet source;
  SharedSet source_ports;
  SharedSet destination;
  SharedSet destination_ports;
  bool both_directions = false;  ///< `<>`
  bool has_flow = false;         ///< names `flow`, which is not evaluated
  std::uint32_t sid = 0;
  std::vector<Content> contents;
};

}  // namespace catena::nids
