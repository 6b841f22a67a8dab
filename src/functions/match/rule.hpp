// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/interval_set.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// One rule of the supported Snort/Suricata subset, as returned by the parser.
namespace catena::match {

enum class Action : std::uint8_t { kAlert, kDrop };
/// `tcp-pkt` is kTcp: without stream state both mean single packets.
enum class Protocol : std::uint8_t { kIp, kTcp, kUdp, kIcmp };

inline constexpr std::uint32_t kMaxAddress = 0xFFFFFFFFU;
inline constexpr std::uint32_t kMaxPort = 0xFFFFU;
/// No payload of an IPv4 packet is longer.
inline constexpr std::uint32_t kMaxPayloadBytes = 0xFFFFU;
/// No frame that a chain accepts holds a longer content.
inline constexpr std::size_t kMaxContentBytes = 2048;
/// Bounds of offset, depth, within, and of distance in both directions.
inline constexpr std::int32_t kMaxContentRange = 65535;

/// `isdataat:N,relative` after a content: at least `bytes` bytes of payload follow `previous`; if negated, fewer do.
struct DataAt {
  std::int32_t bytes = 0;
  bool negated = false;
};

/// One `content` with its modifiers. Its allowed positions (all in bytes of the payload):
///   not relative  start >= offset,              end <= offset + depth
///   relative      start >= previous + distance, end <= previous + distance + within
///   at_end        in addition, end == length of the payload
/// `previous` is the end of the match of the last content before it, negated ones left out; 0 without such a content. A
/// negated content must have no occurrence at these positions, and does not move `previous`. `startswith` is a depth of
/// the content's length.
struct Content {
  std::string bytes;  ///< in lower case if nocase
  bool nocase = false;
  bool negated = false;
  bool relative = false;
  bool at_end = false;  ///< `endswith`
  std::int32_t offset = 0;
  std::optional<std::int32_t> depth;
  std::int32_t distance = 0;
  std::optional<std::int32_t> within;
  std::vector<DataAt> data_after;  ///< `isdataat` with `relative` between this content and the next
};

/// Rules share equal sets.
using SharedSet = std::shared_ptr<const IntervalSet>;

/// `flags`: a condition on the flags of a TCP header (its byte 13). Flags in `ignored` count as not set. Without any
/// flag to check, kNotAll matches if some flag is set, kAny never, the other modes if no flag is set, and nothing is
/// ignored.
struct TcpFlags {
  enum class Mode : std::uint8_t {
    kExactly,  ///< these and no others
    kAll,      ///< `+`: these, and maybe others
    kAny,      ///< `*`: at least one of them
    kNotAll,   ///< `!`: at least one of them is not set
  };
  Mode mode = Mode::kExactly;
  std::uint8_t flags = 0;
  std::uint8_t ignored = 0;
  bool match(std::uint8_t header) const;
};

/// Conditions of a rule beside its header and contents. Null sets are no conditions.
struct Conditions {
  SharedSet payload_bytes;  ///< `dsize`, and `isdataat` counted from the start of the payload
  SharedSet icmp_type;
  SharedSet icmp_code;
  std::vector<TcpFlags> tcp_flags;  ///< all must match
};

/// The members of a rule for alerts.
struct RuleLabels {
  std::string message;
  std::string classtype;
  std::optional<std::uint32_t> priority;
  std::uint32_t generator = 1;  ///< `gid`
  std::uint32_t revision = 0;
};

struct Rule {
  Action action = Action::kAlert;
  Protocol protocol = Protocol::kIp;
  SharedSet source;
  SharedSet source_ports;
  SharedSet destination;
  SharedSet destination_ports;
  bool both_directions = false;  ///< `<>`
  bool has_flow = false;         ///< has the option `flow`, which is not evaluated
  std::uint32_t sid = 0;
  RuleLabels labels;
  Conditions conditions;
  std::vector<Content> contents;
  bool needs_payload = false;                 ///< has contents or isdataat: an empty payload never matches
  std::optional<std::size_t> search_content;  ///< the content of `fast_pattern`; not negated
};

}  // namespace catena::match
