// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "gpu/device/remote/server_pool.hpp"
#include "io/sink.hpp"
#include "nf/registry.hpp"
#include "pipeline/device_servers.hpp"
#include "pipeline/report.hpp"
#include "service/apply_record.hpp"
#include "service/audit_log.hpp"
#include "service/chain_replacer.hpp"
#include "service/chain_run.hpp"
#include "service/chain_setup.hpp"
#include "service/chain_specs.hpp"
#include "service/chain_table.hpp"
#include "service/chain_watch.hpp"
#include "service/state_store.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace catena::service {

/// A chain as shown to permitted users.
struct ChainView {
  ApplyRecord applied;
  ChainState state = ChainState::kStopped;
  std::string error;                            ///< why it failed; else empty
  std::string quarantine;                       ///< why it may not use its device; else empty
  std::string separation;                       ///< why its user has a device server of his own; else empty
  std::optional<std::chrono::seconds> retry;    ///< until a failed chain is started again; nullopt: it is not
  std::string revision;                         ///< of its spec in the history; empty: it did not run
  std::string fallback;                         ///< why it runs an earlier spec instead of its file; empty: it does not
  std::optional<std::chrono::seconds> confirm;  ///< until it returns to the spec before; nullopt: it does not
  std::uint64_t number = 0;                     ///< of its last run in this service; 0: it did not run
  std::optional<runtime::Report> report;        ///< of its last run in this service; nullopt: it did not run
  metrics::Snapshot counts;
};

/// The operations on the chains of a service. Thread rule: any thread; one operation on a name at a time, a second one
/// is rejected. It has no mutex of its own: each part says which it has (ChainTable, Claims, Retries, ChainThreads).
///
/// Errors of the operations on a named chain: NotFound if it does not exist, PermissionDenied if it is out of the
/// client's reach, Aborted during another operation on it, and the error of the state folder, after which nothing has
/// changed.
class ChainSet {
 public:
  /// `registry` and `audit` must outlive it. The others: see ChainSetup.
  ChainSet(nf::Registry const& registry, StateStore store, AuditLog& audit, device::remote::ServerPool* servers,
           std::optional<chain::SharingOptions> sharing, runtime::ServersFor servers_for = runtime::ServersFor::kDevice)
      : setup_(servers, sharing, servers_for),
        table_(std::move(store)),
        specs_(registry, table_.history()),
        replacer_(registry, table_, specs_, setup_, audit),
        watch_(table_, specs_, replacer_, audit) {}
  ChainSet(ChainSet const&) = delete;
  ChainSet& operator=(ChainSet const&) = delete;

  /// Starts a chain, or replaces the chain of the same name, and returns when it runs. `name`: the name required in the
  /// file; empty: any. A starting chain is visible to all operations, unless an old chain still runs: then the old one
  /// is.
  /// If the running chain has the same spec and files of NFs, nothing happens. Else a new chain is created.
  /// If it has the same ports, it takes them over from the old one once it is ready (see runtime::Session::create()),
  /// and no packet is lost.
  ///
  /// Else the old chain continues until the new one has its ports, NFs and outputs. If both need the same port or
  /// output, the old one ends after the check of the new one and before its creation. If the new one then cannot be
  /// created, the old spec is started again.
  ///
  /// A replacement with known losses (see runtime::Losses) needs RequestOptions::accepts_loss. A chain that does not
  /// run has nothing to lose.
  ///
  /// Errors, after which the old chain runs as before unless stated: InvalidArgument for errors in the file and the
  /// options; PermissionDenied if the chain or its tenant is another user's, and for anything that the caller may not
  /// open; AlreadyExists if another chain has a port or an output of this one; FailedPrecondition, with the
  /// losses, for a replacement without the consent to them; ResourceExhausted at the maximum number
  /// of chains and beyond the quotas of the user; Unavailable if the old one does not end; as
  /// ChainRun::wait_until_ready() (if the old one had ended, the chain is then a failed one); Cancelled if the start
  /// was ended by stop(), remove() or end_all(), or by `gone`: the client no longer waits. A chain that did not run
  /// before is then unchanged. FailedPrecondition, too, if options.confirm is set and no chain of this name runs.
  Result<AppliedChain> apply(std::string const& name, SpecSource const& spec, RequestOptions const& options,
                             Caller const& caller, std::stop_token const& gone = {});
  /// The effect of apply(), and its errors, as far as known without doing it.
  Result<AppliedChain> preview(std::string const& name, SpecSource const& spec, RequestOptions const& options,
                               Caller const& caller, std::stop_token const& gone = {}) const;
  /// Applies the spec of a known chain with its file and options, with the rights of its user. `consents`: without
  /// options over the file. Errors: as apply(). An operator starts the last spec alone, so that no other text gets the
  /// rights of the chain's user: FailedPrecondition if a file has changed since; PermissionDenied with new_keys.
  /// start(): nothing for a running chain. After a rollback it has the earlier spec. reload(): the file, as it is now.
  /// restart(): ends the chain, once its spec has been checked, and starts it; packets and NF state are lost.
  Result<AppliedChain> start(std::string const& name, RequestOptions const& consents, Client const& client,
                             std::stop_token const& gone = {});
  Result<AppliedChain> reload(std::string const& name, RequestOptions const& consents, Client const& client,
                              std::stop_token const& gone = {});
  Result<AppliedChain> restart(std::string const& name, RequestOptions const& consents, Client const& client,
                               std::stop_token const& gone = {});
  /// Applies revision `id` of the chain; empty: the one before the present one. NotFound without it; as apply();
  /// FailedPrecondition if a file of it has changed, or another user applied it.
  Result<AppliedChain> rollback(std::string const& name, std::string const& id, RequestOptions consents,
                                Client const& client, std::stop_token const& gone = {});
  /// The kept specs of the chain, the newest first.
  Result<std::vector<RevisionInfo>> history(std::string const& name, Client const& client) const;
  /// The chain keeps the spec on trial. FailedPrecondition without one.
  Status confirm(std::string const& name, Client const& client);
  /// Ends the start or change of another request. FailedPrecondition without one; Unavailable if it does
  /// not end.
  Status cancel(std::string const& name, Client const& client);
  /// Ends a chain, or its start; it stays known and is not started again with the service. Unavailable if it does not
  /// end.
  Status stop(std::string const& name, Client const& client);
  /// Ends and forgets it. As stop(); with the error of the state folder it has ended.
  Status remove(std::string const& name, Client const& client);

  /// Lets a chain use its device again after its kernel crashed it. For privileged callers. FailedPrecondition if it is
  /// not in quarantine.
  Status lift_quarantine(std::string const& name);

  /// Whether the chain exists within the reach of the client: the errors of an operation on it.
  Status check_reach(std::string const& name, Client const& client) const;

  Result<ChainView> get(std::string const& name, Client const& client) const;
  /// The chain file of the last run, as chain::effective_text(). FailedPrecondition before a run in this service.
  Result<std::string> config_of(std::string const& name, Client const& client) const;
  /// The chains within the reach of the client, by name.
  std::vector<ChainView> list(Client const& client) const;

  /// Ports shared by chains now; empty for a client without access to all chains.
  std::vector<io::SharedPort> shared_ports(Client const& client) const {
    return client.reaches_all ? setup_.shared_ports() : std::vector<io::SharedPort>();
  }

  /// From now on; chains that run continue beyond them.
  void set_quotas(Quotas quotas);
  Quotas quotas() const { return table_.quotas(); }
  /// Begins to start the chains not stopped before the service ended, each with the rights of its user, and in its own
  /// thread: a start may wait for the reader of an output. A chain that does not start becomes a failed chain.
  void start_remembered();
  /// Begins to start failed chains again, with growing pauses (Retries): chains whose start failed, and chains with a
  /// port as rx that ended with an error, because an interface, a device or a receiver may return. Also begins to check
  /// the incoming traffic. A chain with NFs `on: auto` is replaced by a chain with another placement if
  /// it is worthwhile, and the log reports it. Call once.
  void start_watch();
  /// Ends all chains; whether they and all operations ended within `limit` and no device is left at work. If not, the
  /// set must not be destroyed.
  bool end_all(std::chrono::milliseconds limit);

 private:
  /// apply(), asked for by user `asker`, with the rights of `caller`.
  Result<AppliedChain> apply_for(uid_t asker, std::string const& name, SpecSource const& spec,
                                 RequestOptions const& options, Caller const& caller, std::stop_token const& gone);
  Result<ChainTable::Held> hold_ended(std::string const& name, Client const& client);
  Status limit_start(ChainEntry const& entry, RequestOptions& options, Client const& client) const;
  ChainView view_of(ChainEntry const& entry) const;

  ChainSetup setup_;
  ApplyRate applies_;
  ChainTable table_;

  ChainSpecs specs_;
  ChainReplacer replacer_;
  ChainWatch watch_;
};

}  // namespace catena::service
