// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Routes files: one `prefix port` per line, e.g. `10.1.0.0/16 3`; `#` starts a comment.
namespace catena::lpm {

inline constexpr std::uint32_t kMaxPort = 65533;
inline constexpr std::size_t kMaxRouteFileBytes = std::size_t{256} << 20;

struct Route {
  std::uint32_t address;  ///< host order, no bit set after `length`
  std::uint32_t line;     ///< in the file, from 1
  std::uint16_t port;
  std::uint8_t length;
  std::uint32_t repeated_on = 0;  ///< the first other line with the same prefix and port; 0: none
};

/// The routes of `text`, sorted by address, then length; a line that repeats another one is the same route. `file` is
/// its name in messages. Pure. InvalidArgument `file:line:column: ...`: a line that is no route, a prefix with bits set
/// after its length, a missing port or one over kMaxPort, a prefix with two ports (the message names both lines), no
/// route at all.
Result<std::vector<Route>> parse_routes(std::string_view text, std::string_view file);

/// The same from a file. NotFound if it cannot be read; InvalidArgument over kMaxRouteFileBytes.
Result<std::vector<Route>> load_routes(std::string const& path);

}  // namespace catena::lpm
