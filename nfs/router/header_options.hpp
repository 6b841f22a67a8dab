// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

/// IPv4 options, as a router treats them (RFC 791, section 3.1; RFC 1812, sections 4.2.2.1 and 5.3.13). Pure functions
/// of a header whose length is correct. Positions are in bytes from the start of the header.
namespace catena::router {

struct HeaderOptions {
  std::uint8_t problem = 0;       ///< first wrong byte, as a parameter problem reports it; 0: all are correct
  std::uint8_t source_route = 0;  ///< loose or strict; 0: no such option, and below
  std::uint8_t record_route = 0;
  std::uint8_t timestamp = 0;
  std::uint8_t end = 0;  ///< end of the list; padding follows
};

/// Reads the options up to the first wrong byte: a length beyond the header or too short for the option, a pointer that
/// is too low or whose entry does not fit, a second source route, record route or timestamp, or a timestamp that cannot
/// count another missing entry. Other types may have any content.
HeaderOptions parse_options(const std::uint8_t* header);

/// A router that a packet passes.
struct HopRecord {
  std::uint32_t address;               ///< to record, host order
  std::uint32_t time_ms;               ///< since midnight UT
  std::span<const std::uint32_t> own;  ///< all addresses of the router: a timestamp may ask for one of them
};

/// Records the hop in the record route and timestamp options as far as they have space, counts a missing timestamp,
/// clears the padding and computes the header checksum. `options`: from parse_options(), without a problem.
void record_hop(std::uint8_t* header, HeaderOptions const& options, HopRecord const& hop);

}  // namespace catena::router
