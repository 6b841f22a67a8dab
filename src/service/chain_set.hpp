// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/metrics.hpp"
#include "device/remote/server_pool.hpp"
#include "io/sink.hpp"
#include "nf/registry.hpp"
#include "runtime/pause.hpp"
#include "runtime/report.hpp"
#include "service/applied.hpp"
#include "service/chain_run.hpp"
#include "service/prepared.hpp"
#include "service/state_store.hpp"
#include "service/user_limits.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace catena::service {

/// A chain as those see it who may.
struct ChainView {
  Applied applied;
  ChainState state = ChainState::kStopped;
  std::string error;                      ///< why it failed; else empty
  std::string quarantine;                 ///< why it may not use its device; else empty
  std::optional<runtime::Report> report;  ///< of its last run in this service; none: there was none
  metrics::Snapshot counts;
};

/// The chains of a service by name: who may do what with them, and what is remembered of them. Thread rule: any thread;
/// one operation on a name at a time, a second is refused.
///
/// Errors of the operations that name a chain: NotFound where there is none, PermissionDenied where it is another
/// user's, Aborted while another operation on it is going on, and what the state folder says, in which case nothing
/// was done.
class ChainSet {
 public:
  /// `registry` and `servers` must outlive it. `servers`: of the devices that chains use; null: they are opened in this
  /// process. `sharing`: how NFs of all chains share each device; none: every NF takes all of it, or what its chain
  /// says. `servers_for`: who shares a server; the service's `sharing` goes with it (see chain::check_servers()).
  ChainSet(nf::Registry const& registry, StateStore store, device::remote::ServerPool* servers,
           std::optional<chain::SharingOptions> sharing, chain::ServersFor servers_for = chain::ServersFor::kDevice)
      : registry_(registry),
        store_(std::move(store)),
        servers_(servers),
        sharing_(std::move(sharing)),
        servers_for_(servers_for) {}

  /// Waits for those that start_remembered() starts, and for the watch.
  ~ChainSet();
  ChainSet(ChainSet const&) = delete;
  ChainSet& operator=(ChainSet const&) = delete;

  /// Chains that there may be, stopped ones counted; and those of one user who is not privileged.
  static constexpr std::size_t kMaxChains = 256;
  static constexpr std::size_t kMaxChainsOfUser = 32;

  /// Starts a chain, or replaces the one of that name, and returns when it runs. `name`: what the file must call it;
  /// empty: any. A chain that is being started is there for all operations, but where an old one runs on meanwhile:
  /// then that is.
  /// Where no more has changed than what a running chain can have changed (see runtime::Session::change()), the old one
  /// goes on with that, and no packet is lost. Else there is a new one. Where that has the same ends, it takes them
  /// over from the old one when it is made (see runtime::Session::create()), and no packet is lost either.
  ///
  /// Else the old chain goes on until the new one has its ports, NFs and outputs. Where both want the same port or
  /// output, it ends after the new one was checked and before that is made.
  ///
  /// Errors, after which the old chain runs as before, if not said otherwise: InvalidArgument for what is wrong with
  /// the file and the options; PermissionDenied where the chain or its tenant is another user's, and for what the
  /// caller may not open; AlreadyExists where another chain has a port or an output that it wants; ResourceExhausted
  /// where there are as many as may be; Unavailable where the old one does not end; as ChainRun::wait_made() (if the
  /// old one had ended, the chain is then a failed one); Cancelled where stop(), remove() or end_all() ended the start,
  /// or `gone`: nobody waits for it any more. A chain that did not run before is then as it was.
  struct AppliedChain {
    std::string name;
    bool is_new;
    bool is_changed = false;                ///< it went on, with `changes`
    std::vector<std::string> changes = {};  ///< NFs that are others now, a line each
    std::string why_anew = {};              ///< why one that ran is another one now
    std::string why_lossy = {};             ///< why packets were lost with that; empty: none were
  };
  Result<AppliedChain> apply(std::string const& name, std::string const& file, chain::OptionTexts const& options,
                             Caller const& caller, std::stop_token const& gone = {});
  /// What apply() would do, and its errors, as far as that can be known without doing it.
  Result<AppliedChain> preview(std::string const& name, std::string const& file, chain::OptionTexts const& options,
                               Caller const& caller, std::stop_token const& gone = {}) const;
  /// Ends a chain, or its start; it stays known and is not started again with the service. Unavailable where it does
  /// not end.
  Status stop(std::string const& name, Caller const& caller);
  /// Ends and forgets it. As stop().
  Status remove(std::string const& name, Caller const& caller);

  /// Lets a chain back to the device whose kernel took it down. FailedPrecondition where it is not in quarantine.
  Status lift_quarantine(std::string const& name, Caller const& caller);

  Result<ChainView> get(std::string const& name, Caller const& caller) const;
  /// Those that the caller may see, by name.
  std::vector<ChainView> list(Caller const& caller) const;

  /// Ports that chains share now; none for a caller who may not see all chains.
  std::vector<io::SharedPort> shared_ports(Caller const& caller) const {
    return is_privileged(caller) ? switches_->list() : std::vector<io::SharedPort>();
  }

  /// Begins to start what was not stopped when the service ended, each with the rights of the one who applied it, and
  /// in a thread of its own: one may wait for somebody who reads its output. What does not start becomes a failed
  /// chain.
  void start_remembered();
  /// Begins to look at what packets come: chains whose NFs are `on: auto` go on as others that are placed for them,
  /// where that is worth it, and the log says so. Once.
  void start_watch();
  /// Ends all chains; whether they and all operations did so within `limit` and no device is left at work. If not, the
  /// set must not be taken down.
  bool end_all(std::chrono::milliseconds limit);

 private:
  struct Entry {
    Applied applied;
    std::vector<Resource> resources;
    std::shared_ptr<ChainRun> run;  ///< null: it was not started in this service, or not yet
    std::string error;              ///< why it cannot be
    std::string fifo = {};          ///< see Prepared
  };
  /// A name that one operation has for itself.
  class Claim;
  struct Claimed {
    Prepared* wanted = nullptr;                    ///< what the operation wants to have; may be null
    std::shared_ptr<ChainRun> starting = nullptr;  ///< what it waits for, and others may stop
  };
  Result<Prepared> prepare_in_turn(std::string const& file, chain::OptionTexts const& options, Caller const& caller,
                                   std::stop_token const& gone) const;

  std::optional<uid_t> tenant_owner(std::string const& tenant) const;
  bool has_others(Prepared const& prepared, Caller const& caller) const;
  Status check_claim(Prepared const& prepared, Caller const& caller) const;
  Status check_room(Caller const& caller) const;
  Status check_resources(Prepared const& prepared) const;
  /// The old chain as it is to become, where it can become that; else why not.
  static Status can_change(Applied const& applied, std::optional<Entry> const& old);
  Result<bool> change(Applied const& applied, Prepared const& prepared, Entry const& old, std::stop_token const& gone,
                      AppliedChain& result);
  /// As apply(); the caller has the name.
  Status replace(Applied const& applied, Prepared prepared, std::optional<Entry> const& old,
                 std::stop_token const& gone, AppliedChain& result);
  struct Swap {
    Status status;
    bool is_done = false;  ///< the old chain is no more, whether or not the new one runs
  };
  Swap make_and_swap(Applied const& applied, Prepared prepared, std::optional<Entry> const& old,
                     std::stop_token const& gone);
  Swap take_over(Applied const& applied, Prepared prepared, Entry const& old, std::stop_token const& gone);
  /// What a chain that starts takes the place of.
  struct Before {
    std::shared_ptr<ChainRun> run;  ///< null: nothing that ran in this service
    std::string fifo;               ///< see Prepared
    bool ends_first = false;
    bool is_taken_over = false;  ///< its ends are, and it ends with that
  };
  Swap start_and_swap(Applied const& applied, Prepared prepared, Before const& before,
                      std::stop_token const& gone = {});
  void set_starting(std::string const& name, std::shared_ptr<ChainRun> run);
  Status set_up(Applied const& applied, Prepared& prepared);
  Status announce(Entry const& entry, bool is_seen);
  void withdraw(Entry const& entry);
  static Status end(std::string const& name, ChainRun& run, std::string const& fifo);
  Swap given_up(Applied applied, Status status);
  Status give_up_start(std::string const& name, std::unique_lock<std::mutex>& lock);
  Status share_device(Prepared& prepared);
  void put(Entry entry);
  void start_again(Applied const& applied);
  bool has_claims() const;
  void remember_finished();
  void watch();
  void place_anew(std::string const& name, std::shared_ptr<ChainRun> const& run);
  std::vector<std::shared_ptr<ChainRun>> runs() const;
  std::vector<std::shared_ptr<ChainRun>> starting_runs() const;
  Result<Entry> entry_for(std::string const& name, Caller const& caller) const;
  ChainView view_of(Entry const& entry) const;

  nf::Registry const& registry_;
  StateStore store_;
  device::remote::ServerPool* servers_;
  std::optional<chain::SharingOptions> sharing_;
  chain::ServersFor servers_for_;
  mutable UserTurns turns_;  ///< to have a file read and checked
  std::shared_ptr<io::PortSwitches> switches_ = io::make_port_switches();
  mutable std::mutex mutex_;  ///< of what follows, and of store_
  std::map<std::string, Entry> chains_;
  bool is_ending_ = false;
  std::vector<std::thread> starting_;
  runtime::Pause watch_pause_;
  std::thread watch_;
  mutable std::mutex claims_mutex_;         ///< of what follows; taken after mutex_
  std::map<std::string, Claimed> claimed_;  ///< names that an operation has
  std::condition_variable claim_ended_;
};

}  // namespace catena::service
