// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/option_keys.hpp"
#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <set>
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
  bool is_stopped = false;       ///< it must not run now
  std::string revision = {};     ///< the earlier spec to run, after a rollback; empty: the file
  std::string unconfirmed = {};  ///< the revision to return to unless this one is confirmed; empty: it is confirmed

  bool operator==(ApplyRecord const&) const = default;
};

/// Maximum of RequestOptions::confirm, in seconds: a day.
inline constexpr std::uint32_t kMaxConfirmSeconds = 86'400;

/// The options of a request.
struct RequestOptions {
  chain::GivenOptions over_file;
  // consents for this request: no ApplyRecord has them, so no later start does
  std::set<std::uint32_t> new_keys = {};  ///< SPIs whose keys were not used before
  bool accepts_loss = false;              ///< the replacement of a running chain may lose packets and NF state
  std::chrono::seconds confirm{0};        ///< limit for the confirmation of this request; 0: without
  bool restarts = false;                  ///< a running chain ends before the new one is created; not of users
  std::string only_revision = {};         ///< the only spec that may be applied; empty: any; not of users
};

/// The options in a request: an object with the names of chain::option_keys(), and the consents `new_keys` and
/// `accept_loss`. InvalidArgument for an unknown name, a value that is not allowed, and a relative file name: the
/// service has another working folder.
Result<RequestOptions> options_from(nlohmann::ordered_json const& object);
/// The inverse, without the consents.
nlohmann::ordered_json to_json(chain::GivenOptions const& options);

/// In the format of the state folder.
std::string to_state(ApplyRecord const& applied);
/// DataLoss for any text not written by to_state().
Result<ApplyRecord> from_state(std::string const& text);

}  // namespace catena::service
