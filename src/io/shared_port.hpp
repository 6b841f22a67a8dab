// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port.hpp"
#include "io/source.hpp"
#include "io/traffic_match.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// Ports that several chains have at a time: what there is to say of them. Thread rule: pure functions, any thread.
namespace catena::io {

/// A chain at a shared port.
struct PortMember {
  std::string chain;
  std::vector<TrafficMatch> matches;  ///< of what arrives, those are the chain's that meet one; none: it only sends
};

/// What a shared port did since it was opened.
struct SharedPort {
  std::string name;      ///< as shared_name()
  std::string describe;  ///< as Port::describe()
  std::vector<PortMember> members;
  std::uint64_t received = 0;     ///< frames that came from the port, and were dropped here or not
  std::uint64_t unmatched = 0;    ///< frames that no chain wants, and which were dropped
  std::uint64_t malformed = 0;    ///< dropped, as a match asks for ports that they hide
  std::uint64_t left_behind = 0;  ///< of chains that ended before they took them; not in the counts of those
  std::uint64_t too_long = 0;     ///< longer than packet::kMaxFrameBytes, and dropped
  PortCounters port;              ///< of the port itself; what is missed there is nobody's and everybody's
  std::uint64_t busy_ns = 0;      ///< what its thread worked, looking for frames in vain left out
};

/// What it dropped, by reason: before it was known whose it is, and what chains had not taken when they ended.
std::vector<NamedCount> drops_of(SharedPort const& port);

/// "interface eth0" or "device net_ring0": what no two may open at a time.
std::string shared_name(std::string const& device);

/// The first pair of matches of two chains that are the same or cross, so that it would not be clear whose a frame is,
/// in words; empty: there is none.
std::string conflict(PortMember const& a, PortMember const& b);

}  // namespace catena::io
