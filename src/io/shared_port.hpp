// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port.hpp"
#include "io/source.hpp"
#include "io/traffic_match.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// Ports shared by several chains: their members, counters and names. Thread rule: pure functions, any thread.
namespace catena::io {

/// A chain at a shared port.
struct PortMember {
  std::string chain;
  std::vector<TrafficMatch> matches;  ///< the chain gets the arriving frames that meet any of them; empty: it only
                                      ///< sends
};

/// State and counters of a shared port since it was opened.
struct SharedPort {
  std::string name;      ///< as shared_name()
  std::string describe;  ///< as Port::describe()
  std::vector<PortMember> members;
  std::uint64_t received = 0;     ///< frames received from the port, including dropped ones
  std::uint64_t unmatched = 0;    ///< dropped frames without a matching chain
  std::uint64_t malformed = 0;    ///< dropped because a match requires ports that are hidden in the frame
  std::uint64_t left_behind = 0;  ///< not taken by chains that ended; not in the counters of these chains
  std::uint64_t too_long = 0;     ///< dropped because they are longer than packet::kMaxFrameBytes
  PortCounters port;              ///< of the port itself; frames missed there belong to no particular chain
  std::uint64_t busy_ns = 0;      ///< working time of its thread, without polls that found no frame
};

/// Its drops by reason: frames dropped without a known chain, and frames not taken by chains that ended.
std::vector<NamedCount> drops_of(SharedPort const& port);

/// "interface eth0" or "device net_ring0". Only one port with this name may be open at a time.
std::string shared_name(std::string const& device);

/// Describes the first pair of matches of two chains that are equal or cross, which makes the chain of a frame
/// ambiguous. Empty if no such pair exists.
std::string conflict(PortMember const& a, PortMember const& b);

}  // namespace catena::io
