// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/keys.hpp"
#include "io/traffic_match.hpp"

#include <catena/core/status.hpp>

#include <array>
#include <string_view>

/// What a chain file says of headers, at a shared port and in a graph.
namespace catena::chain {

/// Words of `protocol`.
inline constexpr std::array<std::string_view, 4> kProtocolNames{"icmp", "tcp", "udp", "esp"};
inline constexpr std::string_view kUntaggedWord = "untagged";

/// Reads the conditions of a section; it may have other keys, too. InvalidArgument, at its place, for one that is none
/// or that no frame meets.
Result<io::TrafficMatch> read_match(FileSection& section);

}  // namespace catena::chain
