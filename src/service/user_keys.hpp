// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace catena::service {

/// The ID of a user or group, from a key of a file of users. `kind`: "user" or "group". InvalidArgument at the key, for
/// any text that is no such number. Any thread.
Result<std::uint32_t> id_of_key(nf::Config const& rows, std::string const& key, std::string_view kind);

}  // namespace catena::service
