// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <nlohmann/json_fwd.hpp>

namespace catena::chain {

/// The lines of an error as objects: file, line and column (null if not in the line), and the message.
nlohmann::ordered_json errors_of(Status const& status);

}  // namespace catena::chain
