// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "gpu/device/remote/server_pool.hpp"
#include "io/sink.hpp"
#include "nf/registry.hpp"
#include "pipeline/device_servers.hpp"
#include "pipeline/losses.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/report.hpp"
#include "service/apply_record.hpp"
#include "service/chain_run.hpp"
#include "service/retries.hpp"
#include "service/state_store.hpp"
#include "service/user_limits.hpp"
#include "service/validated_spec.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace catena::service {

/// A chain as shown to permitted users.
struct ChainView {
  ApplyRecord applied;
  ChainState state = ChainState::kStopped;
  std::string error;                            ///< why it failed; else empty
  std::string quarantine;                       ///< why it may not use its device; else empty
  std::optional<std::chrono::seconds> retry;    ///< until a failed chain is started again; nullopt: it is not
  std::string revision;                         ///< of its spec in the history; empty: it did not run
  std::string fallback;                         ///< why it runs an earlier spec instead of its file; empty: it does not
  std::optional<std::chrono::seconds> confirm;  ///< until it returns to the spec before; nullopt: it does not
  std::optional<runtime::Report> report;        ///< of its last run in this service; nullopt: it did not run
  metrics::Snapshot counts;
};

/// The chains of a service by name, with their permissions and their remembered state. Thread rule: any thread; one
/// operation on a name at a time, a second one is rejected.
///
/// Errors of the operations on a named chain: NotFound if it does not exist, PermissionDenied if it is another user's,
/// Aborted during another operation on it, and the error of the state folder, after which nothing has changed.
class ChainSet {
 public:
  /// `registry` and `servers` must outlive it. `servers`: of the devices of chains; null: devices are opened in this
  /// process. `sharing`: of each device among the NFs of all chains; nullopt: every NF uses the whole device, or as set
  /// by its chain. `servers_for`: the clients of a server; must suit the service's `sharing` (see
  /// runtime::check_servers()).
  ChainSet(nf::Registry const& registry, StateStore store, device::remote::ServerPool* servers,
           std::optional<chain::SharingOptions> sharing, runtime::ServersFor servers_for = runtime::ServersFor::kDevice)
      : registry_(registry),
        store_(std::move(store)),
        servers_(servers),
        sharing_(sharing),
        partition_plans_(sharing_ ? std::make_shared<share::PartitionPlans>(sharing_->mode) : nullptr),
        servers_for_(servers_for) {}

  /// Waits for the starts of start_remembered(), and for the watch.
  ~ChainSet();
  ChainSet(ChainSet const&) = delete;
  ChainSet& operator=(ChainSet const&) = delete;

  /// Maximum number of chains, including stopped ones; and of those of one unprivileged user.
  static constexpr std::size_t kMaxChains = 256;
  static constexpr std::size_t kMaxChainsOfUser = 32;

  /// Starts a chain, or replaces the chain of the same name, and returns when it runs. `name`: the name required in the
  /// file; empty: any. A starting chain is visible to all operations, unless an old chain still runs: then the old one
  /// is.
  /// If all changes are possible in a running chain (see runtime::Session::change()), the old chain continues with
  /// them, and no packet is lost. Else a new chain is created. If it has the same ports, it takes them over from the
  /// old one once it is ready (see runtime::Session::create()), and no packet is lost either.
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
  /// of chains; Unavailable if the old one does not end; as ChainRun::wait_until_ready() (if the old one had ended, the
  /// chain is then a failed one); Cancelled if the start was ended by stop(), remove() or end_all(), or by `gone`: the
  /// client no longer waits. A chain that did not run before is then unchanged.
  struct AppliedChain {
    std::string name;
    bool is_new;
    bool is_changed = false;                ///< it continued, with `changes`
    std::vector<std::string> changes = {};  ///< changed NFs, one per line
    std::string replace_reason = {};        ///< why a running chain was replaced
    runtime::Losses losses = {};            ///< of the replacement of a running chain
  };
  /// FailedPrecondition, too, if options.confirm is set and no chain of this name runs.
  Result<AppliedChain> apply(std::string const& name, SpecSource const& spec, RequestOptions const& options,
                             Caller const& caller, std::stop_token const& gone = {});
  /// The effect of apply(), and its errors, as far as known without doing it.
  Result<AppliedChain> preview(std::string const& name, SpecSource const& spec, RequestOptions const& options,
                               Caller const& caller, std::stop_token const& gone = {}) const;
  /// Applies the spec of a known chain with its file and options, with the rights of its user. `consents`: without
  /// options over the file. Errors: as apply().
  /// start(): nothing for a running chain. After a rollback it has the earlier spec. reload(): the file, as it is now.
  /// restart(): ends the chain, once its spec has been checked, and starts it; packets and NF state are lost.
  Result<AppliedChain> start(std::string const& name, RequestOptions const& consents, Caller const& caller,
                             std::stop_token const& gone = {});
  Result<AppliedChain> reload(std::string const& name, RequestOptions const& consents, Caller const& caller,
                              std::stop_token const& gone = {});
  Result<AppliedChain> restart(std::string const& name, RequestOptions const& consents, Caller const& caller,
                               std::stop_token const& gone = {});
  /// Applies revision `id` of the chain; empty: the one before the present one. NotFound without it; as apply();
  /// FailedPrecondition if a file of it has changed, or another user applied it.
  Result<AppliedChain> rollback(std::string const& name, std::string const& id, RequestOptions consents,
                                Caller const& caller, std::stop_token const& gone = {});
  /// The kept specs of the chain, the newest first.
  Result<std::vector<RevisionInfo>> history(std::string const& name, Caller const& caller) const;
  /// The chain keeps the spec on trial. FailedPrecondition without one.
  Status confirm(std::string const& name, Caller const& caller);
  /// Ends the start or change of another request. FailedPrecondition without one; Unavailable if it does
  /// not end.
  Status cancel(std::string const& name, Caller const& caller);
  /// Ends a chain, or its start; it stays known and is not started again with the service. Unavailable if it does not
  /// end.
  Status stop(std::string const& name, Caller const& caller);
  /// Ends and forgets it. As stop().
  Status remove(std::string const& name, Caller const& caller);

  /// Lets a chain use its device again after its kernel crashed it. For privileged callers. FailedPrecondition if it is
  /// not in quarantine.
  Status lift_quarantine(std::string const& name);

  /// Whether the chain exists and is the caller's, or the caller is privileged: the errors of an operation on it.
  Status check_owner(std::string const& name, Caller const& caller) const;

  Result<ChainView> get(std::string const& name, Caller const& caller) const;
  /// The chain file of the last run, as chain::effective_text(). FailedPrecondition before a run in this service.
  Result<std::string> config_of(std::string const& name, Caller const& caller) const;
  /// The chains visible to the caller, by name.
  std::vector<ChainView> list(Caller const& caller) const;

  /// Ports shared by chains now; empty for a caller without access to all chains.
  std::vector<io::SharedPort> shared_ports(Caller const& caller) const {
    return is_privileged(caller) ? switches_->list() : std::vector<io::SharedPort>();
  }

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
  /// Packets inside a chain are finished in a moment, except for an output without a reader.
  static constexpr std::chrono::seconds kEndLimit{10};

  struct PresentSpec {
    std::string revision = {};  ///< see ChainView
    std::string fallback = {};  ///< the same
    std::optional<Retries::Clock::time_point> confirm_until = std::nullopt;
  };
  struct Entry {
    ApplyRecord applied;
    std::vector<Resource> resources;
    std::shared_ptr<ChainRun> run;  ///< null: not started in this service, or not yet
    std::string error;              ///< why it cannot run
    std::string fifo = {};          ///< see Prepared
    std::string config = {};        ///< chain::effective_text() of the run
    bool is_live = false;           ///< its rx is a port, which has no end
    PresentSpec spec = {};
    bool keeps_placement = false;  ///< another placement would lose NF state, as the log has reported
  };
  /// A name reserved by one operation.
  class ChainLock;
  struct Claimed {
    ValidatedSpec* wanted = nullptr;                     ///< the chain that the operation sets up; may be null
    std::shared_ptr<ChainRun> starting = nullptr;        ///< the run that it waits for, and others may stop
    std::shared_ptr<std::stop_source> change = nullptr;  ///< of the change of a running chain; null: no such change
  };
  Result<ValidatedSpec> prepare_in_turn(SpecSource const& spec, RequestOptions const& options, Caller const& caller,
                                        std::stop_token const& gone) const;

  Result<SpecRevision> revision_of(ApplyRecord const& applied, std::string const& id) const;
  Result<SpecSource> spec_of(ApplyRecord const& applied) const;
  Result<ValidatedSpec> prepare_again(ApplyRecord& applied, std::string const& id) const;
  Result<ValidatedSpec> prepare_remembered(ApplyRecord& applied, std::string& fallback) const;
  static Caller rights_for(ApplyRecord const& applied, Caller const& caller);
  static bool is_lasting(Status const& status);
  Status need_confirmation(std::optional<Entry> const& old, ApplyRecord& applied) const;
  void keep_revision(ApplyRecord const& applied, SpecRevision const& revision, std::chrono::seconds confirm);
  void return_unconfirmed();
  void return_to_earlier(ApplyRecord const& on_trial);
  Status try_earlier(ApplyRecord const& on_trial);
  std::optional<uid_t> tenant_owner(std::string const& tenant) const;
  bool has_others(ValidatedSpec const& validated, Caller const& caller) const;
  Status check_chain_lock(ValidatedSpec const& validated, Caller const& caller) const;
  Status check_room(Caller const& caller) const;
  Status check_resources(ValidatedSpec const& validated) const;
  static bool is_running(std::optional<Entry> const& old);
  static std::string obstacle_to(ApplyRecord const& applied, std::optional<Entry> const& old);
  Result<bool> change(ApplyRecord const& applied, ValidatedSpec const& validated, Entry const& old,
                      std::stop_token const& gone, AppliedChain& result);
  /// The end of apply(); the caller has reserved the name.
  Status change_or_replace(ApplyRecord const& applied, ValidatedSpec validated, std::optional<Entry> const& old,
                           RequestOptions const& options, std::stop_token const& gone, AppliedChain& result);
  /// As apply(); the caller has reserved the name.
  Status replace(ApplyRecord const& applied, ValidatedSpec validated, std::optional<Entry> const& old,
                 std::stop_token const& gone, AppliedChain& result);
  struct Swap {
    Status status = {};
    bool is_done = false;       ///< the old chain is gone, whether or not the new one runs
    std::string obstacle = {};  ///< why no takeover is possible, and the old chain continues; empty: no obstacle
    std::vector<std::string> restarted_nfs = {};  ///< NFs whose state a takeover loses
  };
  Status run_again(Entry const& old, Status const& status);
  Swap make_and_swap(ApplyRecord const& applied, ValidatedSpec validated, std::optional<Entry> const& old,
                     std::stop_token const& gone);
  Swap take_over(ApplyRecord const& applied, ValidatedSpec validated, Entry const& old, std::stop_token const& gone);
  static runtime::Losses losses_of(ValidatedSpec const& validated, Entry const& old, std::string obstacle);
  /// The run replaced by a starting chain.
  struct Before {
    std::shared_ptr<ChainRun> run;  ///< null: nothing ran in this service
    std::string fifo;               ///< see Prepared
    bool ends_first = false;
    bool is_taken_over = false;  ///< the new run takes over its ports, and it ends then
  };
  Swap start_and_swap(ApplyRecord const& applied, ValidatedSpec validated, Before const& before,
                      std::stop_token const& gone = {});
  void set_starting(std::string const& name, std::shared_ptr<ChainRun> run,
                    std::shared_ptr<std::stop_source> change = nullptr);
  Status preview_replacement(ApplyRecord const& applied, ValidatedSpec validated, std::optional<Entry> const& old,
                             std::stop_token const& gone, AppliedChain& result) const;
  Status set_up(ApplyRecord const& applied, ValidatedSpec& validated) const;
  Status announce(Entry const& entry, bool is_seen);
  void withdraw(Entry const& entry);
  static Status end(std::string const& name, ChainRun& run, std::string const& fifo);
  Swap given_up(ApplyRecord applied, Status status);
  Status abort_start(std::string const& name, std::unique_lock<std::mutex>& lock);
  Status share_device(ValidatedSpec& validated) const;
  void put(Entry entry);
  void start_again(ApplyRecord applied);
  void work_in_thread(std::string const& name, ChainLock chain_lock, std::function<void()> work);
  void join_ended_starts();
  static bool is_retried(Entry const& entry);
  void retry_failed();
  bool has_chain_locks() const;
  void remember_finished();
  void watch();
  void replan(std::string const& name, std::shared_ptr<ChainRun> const& run);
  std::vector<std::shared_ptr<ChainRun>> runs() const;
  std::vector<std::shared_ptr<ChainRun>> starting_runs() const;
  Result<Entry> known(std::string const& name, Caller const& caller) const;
  Result<Entry> entry_for(std::string const& name, Caller const& caller) const;
  ChainView view_of(Entry const& entry, std::optional<std::chrono::seconds> retry) const;

  nf::Registry const& registry_;
  StateStore store_;
  device::remote::ServerPool* servers_;
  std::optional<chain::SharingOptions> sharing_;
  std::shared_ptr<share::PartitionPlans> partition_plans_;  ///< of all chains; null without sharing_
  runtime::ServersFor servers_for_;
  mutable UserTurns turns_;  ///< for reading and checking a file
  std::shared_ptr<io::SharedPortRegistry> switches_ = io::make_shared_port_registry();
  mutable std::mutex mutex_;  ///< guards the following members, and store_
  std::map<std::string, Entry> chains_;
  bool is_ending_ = false;
  Retries retries_;
  std::map<std::string, std::thread> starting_;  ///< by name of the chain; one whose name is free has ended
  runtime::Pause watch_pause_;
  std::thread watch_;
  mutable std::mutex chain_locks_mutex_;    ///< guards the following members; locked after mutex_
  std::map<std::string, Claimed> claimed_;  ///< names reserved by an operation
  std::condition_variable chain_lock_ended_;
};

}  // namespace catena::service
