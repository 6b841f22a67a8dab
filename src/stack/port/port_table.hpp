// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "stack/port/port.hpp"

namespace catena::stack {

/// A kind of port.
struct PortKind {
  const char* name;      ///< its key
  const char* describe;  ///< the key's value, and the use of the port
  /// `text`: the key's value. Errors as of the port's own open().
  Result<std::unique_ptr<Port>> (*open)(std::string const& text);
};
std::span<PortKind const> port_kinds();

/// Opens a port by its key and value. InvalidArgument: no such key; the text lists the keys.
Result<std::unique_ptr<Port>> open_port(std::string_view key, std::string const& text);

}  // namespace catena::stack
