// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/option_texts.hpp"
#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace catena::service {

/// A chain to run, as requested by its user.
struct ApplyRecord {
  std::string name;
  std::string tenant;
  uid_t tenant_uid = 0;  ///< the first user to apply a chain of the tenant
  std::string file;      ///< absolute
  chain::OptionTexts options;
  Caller caller;
  bool is_stopped = false;  ///< it must not run now

  bool operator==(ApplyRecord const&) const = default;
};

/// The options in a request: an object with the option names of `catena run`, "new_keys" with an underscore.
/// InvalidArgument for an unknown name, a value of another type, and a relative file name: the service has another
/// working folder.
Result<chain::OptionTexts> options_from(nlohmann::ordered_json const& object);
/// The inverse, without options that are not set.
nlohmann::ordered_json to_json(chain::OptionTexts const& options);

/// In the format of the state folder. `new_keys` is not kept: it was true once.
std::string to_state(ApplyRecord const& applied);
/// DataLoss for any text not written by to_state().
Result<ApplyRecord> from_state(std::string const& text);

}  // namespace catena::service
