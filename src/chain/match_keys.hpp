// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/keys.hpp"
#include "io/traffic_match.hpp"

#include <catena/core/status.hpp>

#include <array>
#include <string_view>

/// The header conditions of a chain file, for shared ports and graphs.
namespace catena::chain {

/// Words of `protocol`.
inline constexpr std::array<std::string_view, 4> kProtocolNames{"icmp", "tcp", "udp", "esp"};
inline constexpr std::string_view kUntaggedWord = "untagged";

/// Reads the conditions of a section, which may have other keys, too. InvalidArgument, at its place, for an invalid
/// condition or one met by no frame.
Result<io::TrafficMatch> read_match(FileSection& section);

}  // namespace catena::chain
