// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "chain/chain_file.hpp"
#include "nf/registry.hpp"
#include "pipeline/report.hpp"
#include "pipeline/run_options.hpp"
#include "service/caller.hpp"
#include "service/run_lifecycle.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace catena::runtime {
class Session;
struct Replacement;
struct ReplacementPreview;
}  // namespace catena::runtime

namespace catena::service {

class SessionHost;

/// A chain run by a service: a session, and the thread that creates, runs and ends it with the rights of the chain's
/// user. Call order: constructor -> wait_until_ready() -> start() -> stop() -> wait(). Thread rule: any thread.
class ChainRun {
 public:
  /// Begins to create the chain. `registry` must outlive it. `before`: the run whose ports it takes over when it starts
  /// (see runtime::Session::create()), and which continues until then; null: it opens its own ports.
  ChainRun(chain::ChainConfig config, runtime::RunOptions options, Caller caller, nf::Registry const& registry,
           std::shared_ptr<ChainRun> const& before = nullptr);
  /// Stops it and waits for its end; after 10 seconds its thread is detached.
  ~ChainRun();
  ChainRun(ChainRun const&) = delete;
  ChainRun& operator=(ChainRun const&) = delete;

  /// Returns when the chain is ready to run, with its ports and outputs, or has failed. `gone` stops it. Errors: as
  /// Session::create() with the rights of `caller`; as take_rights_of(); ResourceExhausted without a thread for it;
  /// Cancelled if it was stopped.
  Status wait_until_ready(std::stop_token const& gone = {});
  /// Starts receiving packets. After wait_until_ready(). Cancelled, without starting, if it was stopped;
  /// FailedPrecondition, likewise, if the previous run has ended by itself.
  Status start();
  /// As runtime::Session::is_same(), with the rights of the chain's user. FailedPrecondition, too, if it does not run;
  /// ResourceExhausted without a thread for it.
  Result<bool> is_same(chain::ChainConfig const& next);
  /// As runtime::Session::sample_traffic(), with the rights of the chain's user; nullopt if it does not run.
  Result<std::optional<runtime::Replacement>> sample_traffic();
  /// As runtime::Session::preview_replacement(), with the rights of the chain's user; other errors as is_same();
  /// Cancelled if `gone`, or stop(), ends a wait.
  Result<runtime::ReplacementPreview> preview_replacement(chain::ChainConfig next, runtime::RunOptions const& options,
                                                          std::stop_token const& gone);
  /// As runtime::Session::restarted_nfs_of(), with the rights of the chain's user; other errors as is_same().
  Result<std::vector<std::string>> restarted_nfs_of(chain::ChainConfig const& next);
  /// As runtime::Session::changes() and restarted_nfs(). After wait_until_ready().
  std::vector<std::string> changes() const;
  std::vector<std::string> restarted_nfs() const;
  /// rx takes no more packets; packets in the chain are finished. A chain still being created stops waiting, and does
  /// not start.
  void stop();
  /// Whether it ends within `limit`, with ports and outputs closed.
  bool wait(std::chrono::milliseconds limit);

  /// As in the arguments of its processes.
  std::uint64_t number() const { return number_; }
  ChainState state() const;
  /// Why it failed; else empty.
  std::string error() const;
  /// Current; after its end, the last one.
  runtime::Report report() const;
  metrics::Snapshot counts() const;
  /// Work on a device never ended: the process must exit without destroying the device.
  bool abandoned_device() const;

 private:
  template <typename Out>
  Result<Out> with_session(std::function<Result<Out>(runtime::Session&)> const& work);
  template <typename Out>
  Result<Out> with_session(std::stop_token const& gone,
                           std::function<Result<Out>(runtime::Session&, std::stop_token const&)> const& work);

  Caller caller_;
  std::uint64_t number_;
  nf::Registry const& registry_;
  std::shared_ptr<SessionHost> host_;  ///< shared with the thread, which may outlive this
  std::thread thread_;
};

}  // namespace catena::service
