// SPDX-License-Identifier: Apache-2.0
#include "service/user_keys.hpp"

#include "nf/integer.hpp"

#include <catena/core/text.hpp>

#include <limits>
#include <optional>

namespace catena::service {

Result<std::uint32_t> id_of_key(nf::Config const& rows, std::string const& key, std::string_view kind) {
  // the greatest number means "no user" to the kernel
  const std::optional<std::int64_t> id = nf::parse_integer(key);
  if (!id || *id < 0 || *id >= std::numeric_limits<std::uint32_t>::max()) {
    return rows.error(key, concat("'", key, "' is no ", kind, " ID; allowed: the number of a ", kind, ", as 1000"));
  }
  return static_cast<std::uint32_t>(*id);
}

}  // namespace catena::service
