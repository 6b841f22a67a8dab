// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/option_keys.hpp"
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
  chain::GivenOptions options;
  Caller caller;
  bool is_stopped = false;  ///< it must not run now

  bool operator==(ApplyRecord const&) const = default;
};

/// The options of a request.
struct RequestOptions {
  chain::GivenOptions over_file;
  bool new_keys = false;  ///< a consent for this request: no ApplyRecord has it, so no later start does
};

/// The options in a request: an object with the names of chain::option_keys(), and `new_keys`. InvalidArgument for an
/// unknown name, a value that is not allowed, and a relative file name: the service has another working folder.
Result<RequestOptions> options_from(nlohmann::ordered_json const& object);
/// The inverse, without `new_keys`.
nlohmann::ordered_json to_json(chain::GivenOptions const& options);

/// In the format of the state folder.
std::string to_state(ApplyRecord const& applied);
/// DataLoss for any text not written by to_state().
Result<ApplyRecord> from_state(std::string const& text);

}  // namespace catena::service
