// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/option_texts.hpp"
#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace catena::service {

/// What somebody wants to run, as he asked for it.
struct Applied {
  std::string name;
  std::string tenant;
  uid_t tenant_uid = 0;  ///< who first applied a chain of the tenant
  std::string file;      ///< absolute
  chain::OptionTexts options;
  Caller caller;
  bool is_stopped = false;  ///< it is not to run now

  bool operator==(Applied const&) const = default;
};

/// The options of a request: an object with the names that `catena run` has for them, "new_keys" with an underscore.
/// InvalidArgument for a name that is none, a value of another type, and a file that is not named from the root folder:
/// the service has another working folder.
Result<chain::OptionTexts> options_from(nlohmann::ordered_json const& object);
/// The same object again, without what was not given.
nlohmann::ordered_json to_json(chain::OptionTexts const& options);

/// As the state folder keeps it. `new_keys` is not kept: it was true once.
std::string to_state(Applied const& applied);
/// DataLoss for anything that to_state() does not write.
Result<Applied> from_state(std::string const& text);

}  // namespace catena::service
