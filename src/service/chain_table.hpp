// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/chain_entry.hpp"
#include "service/claims.hpp"
#include "service/state_store.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::service {

/// The chains of a service by name, in memory and in the state folder, with the owners of names,
/// tenants, ports and outputs. Thread rule: any thread; changes of a chain are for the operation with its name. The
/// mutexes of Claims, Retries, ChainThreads and ChainRun are locked after its own one. No run ends with it.
class ChainTable {
 public:
  explicit ChainTable(StateStore store) : store_(std::move(store)) {}

  /// Maximum number of chains of all users, including stopped ones.
  static constexpr std::size_t kMaxChains = 256;
  void set_quotas(Quotas quotas);
  Quotas quotas() const;

  /// A copy of the chain. NotFound; PermissionDenied if it is out of the client's reach.
  Result<ChainEntry> find(std::string const& name, Client const& client) const;
  /// The chains within the reach of the client, by name.
  std::vector<ChainEntry> list(Client const& client) const;
  std::vector<std::string> names_of(std::function<bool(ChainEntry const&)> const& is_wanted) const;
  std::vector<std::shared_ptr<ChainRun>> runs() const;
  /// Earlier specs. Any thread; to be changed as the chain.
  SpecHistory const& history() const { return store_.history(); }

  /// A reserved name, and the chain when it was reserved.
  struct Held {
    Claims::Claim claim;
    std::optional<ChainEntry> before;
  };
  /// For a chain to set up. PermissionDenied if the chain or its tenant is another user's; AlreadyExists if another
  /// chain has a port or an output of it; ResourceExhausted at the maximum number of chains, and for more than the
  /// user's quotas; Aborted during another operation on the name; Unavailable at the end of the service. Sets
  /// `applied.tenant_uid`.
  Result<Held> reserve(ValidatedSpec const& validated, ApplyRecord& applied);
  /// As reserve(), for a name that is reserved.
  Status want(ValidatedSpec const& validated, ApplyRecord& applied);
  /// The errors of reserve(), and the chain. Does not wait for other operations.
  Result<std::optional<ChainEntry>> check(ValidatedSpec const& validated, Caller const& caller) const;
  /// For an operation on a known chain. As find(); Aborted and Unavailable as reserve().
  Result<Held> hold(std::string const& name, Client const& client);
  /// The start or change awaited by an operation on the chain. As find().
  Result<Claims::Start> start_of(std::string const& name, Client const& client) const;
  Claims& claims() { return claims_; }

  /// Stores the request of a chain to run. Unavailable at the end of the service; the error of the state folder,
  /// without a change.
  Status remember(ApplyRecord const& applied);
  /// Stores a change of the request, and shows it. The error of the state folder, without a change.
  Status update(ApplyRecord applied);
  /// A replaced run counts for its user until its end.
  void put(ChainEntry entry);
  /// Changes a chain that there is.
  void edit(std::string const& name, std::function<void(ChainEntry&)> const& change);
  /// Lets others stop the run while it starts. `is_seen`: and find it in the list. Unavailable at the end of the
  /// service.
  Status announce(ChainEntry const& entry, bool is_seen);
  /// The chain as it was before an operation that has failed; nullopt: it did not exist.
  Status restore(std::string const& name, std::optional<ChainEntry> before);
  /// From the state folder, with its history.
  Status forget(std::string const& name);
  void erase(std::string const& name);

  /// The stored chains that are to run; all of them are in the table then. The log reports unreadable ones.
  std::vector<ApplyRecord> load();
  /// From now on no operation begins. Chains whose rx came to its end are not to begin again with the service.
  void end();
  bool is_ending() const;

 private:
  std::optional<uid_t> tenant_owner(std::string const& tenant) const;
  bool has_others(ValidatedSpec const& validated, Caller const& caller) const;
  Result<std::optional<ChainEntry>> check_here(ValidatedSpec const& validated, Caller const& caller) const;
  Status check_room(ValidatedSpec const& validated, Caller const& caller) const;
  std::vector<std::shared_ptr<ChainRun>> forget_ended();
  Status check_resources(ValidatedSpec const& validated) const;
  Result<ChainEntry> find_here(std::string const& name, Client const& client) const;
  Result<Claims::Claim> claim_here(std::string const& name);
  void want_here(ValidatedSpec const& validated, ApplyRecord& applied);

  StateStore store_;
  Claims claims_;
  mutable std::mutex mutex_;  ///< guards the members, except for `claims_`
  Quotas quotas_;
  std::map<std::string, ChainEntry> chains_;
  std::vector<ChainEntry> replaced_;  ///< by put(), and still holding their resources
  bool is_ending_ = false;
};

}  // namespace catena::service
