// SPDX-License-Identifier: Apache-2.0
#include "header_options.hpp"

#include <catena/packet/headers.hpp>
#include <catena/packet/rewrite.hpp>

#include <algorithm>

namespace catena::router {
namespace {

using packet::load_be32;
using packet::store_be32;

enum Type : std::uint8_t {
  kEnd = 0,
  kNop = 1,
  kRecordRoute = 7,
  kTimestamp = 68,
  kLooseSourceRoute = 131,
  kStrictSourceRoute = 137,
  kRouterAlert = 148,
};
/// What a timestamp option asks for: the low half of its byte 3. The high half counts missing entries.
enum TimestampFlag : std::uint8_t { kTimeOnly = 0, kAddressAndTime = 1, kTimeOfGiven = 3 };

// bytes of an option: type, length, pointer to the next entry, counted from 1; of a timestamp also the flags
constexpr std::uint32_t kLengthAt = 1;
constexpr std::uint32_t kPointerAt = 2;
constexpr std::uint32_t kFlagsAt = 3;
constexpr std::uint8_t kMaxMissing = 15;
constexpr std::uint32_t kAddressBytes = 4;
constexpr std::uint32_t kNoProblem = 0;

bool is_full(const std::uint8_t* option) { return option[kPointerAt] > option[kLengthAt]; }
std::uint8_t flag_of(const std::uint8_t* timestamp) { return timestamp[kFlagsAt] & 0x0FU; }
std::uint32_t missing_in(const std::uint8_t* timestamp) { return timestamp[kFlagsAt] >> 4; }

/// Bytes of an entry of a timestamp; 0 for an unknown flag, whose data stay as they are.
std::uint32_t entry_bytes(const std::uint8_t* timestamp) {
  switch (flag_of(timestamp)) {
    case kTimeOnly:
      return 4;
    case kAddressAndTime:
    case kTimeOfGiven:
      return kAddressBytes + 4;
    default:
      return 0;
  }
}

/// The first wrong byte of an option with data of `entry` bytes after `head` bytes, from its begin; kNoProblem.
std::uint32_t problem_of_list(const std::uint8_t* option, std::uint32_t head, std::uint32_t entry) {
  if (option[kLengthAt] < head) {
    return kLengthAt;
  }
  const bool is_low = option[kPointerAt] <= head;
  const bool is_astride = !is_full(option) && option[kPointerAt] + entry > option[kLengthAt] + 1U;
  return is_low || is_astride ? kPointerAt : kNoProblem;
}

std::uint32_t problem_of_timestamp(const std::uint8_t* option) {
  constexpr std::uint32_t kHead = 4;
  if (option[kLengthAt] < kHead) {
    return kLengthAt;
  }
  const std::uint32_t problem = problem_of_list(option, kHead, std::max(entry_bytes(option), 4U));
  const bool overflows = is_full(option) && flag_of(option) != kTimeOfGiven && missing_in(option) == kMaxMissing;
  return problem == kNoProblem && overflows ? kFlagsAt : problem;
}

/// The first wrong byte of an option whose length is inside the header, from its begin; kNoProblem.
std::uint32_t problem_of(const std::uint8_t* option) {
  constexpr std::uint32_t kHead = 3;
  constexpr std::uint8_t kAlertBytes = 4;
  switch (option[0]) {
    case kRecordRoute:
      return problem_of_list(option, kHead, kAddressBytes);
    case kLooseSourceRoute:
    case kStrictSourceRoute:
      return problem_of_list(option, kHead, 0);
    case kTimestamp:
      return problem_of_timestamp(option);
    case kRouterAlert:
      return option[kLengthAt] < kAlertBytes ? kLengthAt : kNoProblem;
    default:
      return kNoProblem;
  }
}

/// Where a position of this type of option is noted; null for other types.
std::uint8_t* position_of(std::uint8_t type, HeaderOptions& options) {
  switch (type) {
    case kRecordRoute:
      return &options.record_route;
    case kTimestamp:
      return &options.timestamp;
    case kLooseSourceRoute:
    case kStrictSourceRoute:
      return &options.source_route;
    default:
      return nullptr;
  }
}

void record_time(std::uint8_t* option, HopRecord const& hop) {
  std::uint8_t* entry = option + option[kPointerAt] - 1;
  const std::uint8_t flag = flag_of(option);
  if (is_full(option)) {
    option[kFlagsAt] = static_cast<std::uint8_t>(option[kFlagsAt] + (flag == kTimeOfGiven ? 0 : 0x10));
    return;
  }
  const std::uint32_t bytes = entry_bytes(option);
  if (bytes == 0 || (flag == kTimeOfGiven && std::ranges::find(hop.own, load_be32(entry)) == hop.own.end())) {
    return;
  }
  if (flag == kAddressAndTime) {
    store_be32(entry, hop.address);
  }
  store_be32(entry + bytes - 4, hop.time_ms);
  option[kPointerAt] = static_cast<std::uint8_t>(option[kPointerAt] + bytes);
}

}  // namespace

HeaderOptions parse_options(const std::uint8_t* header) {
  HeaderOptions options;
  const std::uint32_t header_bytes = (header[0] & 0x0FU) * 4U;
  std::uint32_t at = packet::kIpv4MinBytes;
  while (at < header_bytes && header[at] != kEnd) {
    const std::uint8_t* option = header + at;
    if (option[0] == kNop) {
      ++at;
      continue;
    }
    const bool is_inside = at + 2 <= header_bytes && option[kLengthAt] >= 2 && at + option[kLengthAt] <= header_bytes;
    std::uint8_t* position = position_of(option[0], options);
    if (!is_inside || (position != nullptr && *position != 0)) {
      options.problem = static_cast<std::uint8_t>(at);
      return options;
    }
    if (const std::uint32_t problem = problem_of(option); problem != kNoProblem) {
      options.problem = static_cast<std::uint8_t>(at + problem);
      return options;
    }
    if (position != nullptr) {
      *position = static_cast<std::uint8_t>(at);
    }
    at += option[kLengthAt];
  }
  options.end = static_cast<std::uint8_t>(at);
  return options;
}

void record_hop(std::uint8_t* header, HeaderOptions const& options, HopRecord const& hop) {
  const std::uint32_t header_bytes = (header[0] & 0x0FU) * 4U;
  if (options.record_route != 0 && !is_full(header + options.record_route)) {
    std::uint8_t* option = header + options.record_route;
    store_be32(option + option[kPointerAt] - 1, hop.address);
    option[kPointerAt] = static_cast<std::uint8_t>(option[kPointerAt] + kAddressBytes);
  }
  if (options.timestamp != 0) {
    record_time(header + options.timestamp, hop);
  }
  std::fill(header + options.end, header + header_bytes, std::uint8_t{kEnd});
  packet::store_be16(header + packet::kIpChecksumAt, 0);
  packet::store_be16(header + packet::kIpChecksumAt,
                     packet::checksum_finish(packet::checksum_add(header, header_bytes)));
}

}  // namespace catena::router
