// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/fail.hpp"

#include "apps/catena/style.hpp"
#include "chain/error_list.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

namespace catena::cli {

int fail(Status const& status, bool json, std::ostream& out) {
  std::cerr << "catena: " << std::string(status.message()) << '\n';
  if (json) {
    print_json(out, {{"ok", false}, {"errors", chain::errors_of(status)}});
  }
  return kExitFailed;
}

}  // namespace catena::cli
