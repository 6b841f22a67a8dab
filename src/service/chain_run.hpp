// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/run_options.hpp"
#include "core/metrics.hpp"
#include "nf/registry.hpp"
#include "runtime/report.hpp"
#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace catena::runtime {
class Session;
struct Replacement;
}  // namespace catena::runtime

namespace catena::service {

enum class ChainState { kStarting, kRunning, kStopped, kFinished, kFailed };

std::string_view to_string(ChainState state);

/// All of what there is, in order.
inline constexpr ChainState kChainStates[] = {ChainState::kStarting, ChainState::kRunning, ChainState::kStopped,
                                              ChainState::kFinished, ChainState::kFailed};

/// A chain that a service runs: a session, and the thread that makes it, runs it and ends it with the rights of the one
/// who applied the chain. Call order: constructor -> wait_made() -> start() -> stop() -> wait(). Thread rule: any
/// thread.
class ChainRun {
 public:
  /// Begins to make the chain. `registry` must outlive it. `before`: whose ends it is to take over when it starts (see
  /// runtime::Session::create()), and which goes on until then; null: it opens its own.
  ChainRun(chain::ChainConfig config, chain::RunOptions options, Caller caller, nf::Registry const& registry,
           std::shared_ptr<ChainRun> const& before = nullptr);
  /// Stops it and waits for its end; after 10 seconds its thread is left behind.
  ~ChainRun();
  ChainRun(ChainRun const&) = delete;
  ChainRun& operator=(ChainRun const&) = delete;

  /// Returns when the chain is ready to run, and holds its ports and outputs, or never will be. `gone` stops it.
  /// Errors: as Session::create() with the rights of `caller`; as take_rights_of(); Cancelled where it was stopped.
  Status wait_made(std::stop_token const& gone = {});
  /// Packets run from now on. After wait_made(); Cancelled, and none do, where it was stopped; FailedPrecondition, the
  /// same, where the one before has ended by itself.
  Status start();
  /// As runtime::Session::change() and preview_change(), with the rights of the one who applied the chain.
  /// FailedPrecondition, too, where it does not run; ResourceExhausted without a thread for it; Cancelled where
  /// `gone`, or stop(), ends what it waits for.
  Result<std::vector<std::string>> change(chain::ChainConfig next, bool new_keys, std::stop_token const& gone);
  Result<std::vector<std::string>> preview_change(chain::ChainConfig next, std::stop_token const& gone);
  /// As runtime::Session::look_at_traffic(), with the rights of the one who applied the chain; none where it does not
  /// run.
  Result<std::optional<runtime::Replacement>> look_at_traffic();
  /// As runtime::Session::can_be_followed_by().
  Status can_be_followed_by(chain::ChainConfig next);
  /// rx takes no more packets; what is inside is finished. One that is being made waits for nobody any more, and does
  /// not start.
  void stop();
  /// Whether it has ended after at most `limit`, with ports and outputs closed.
  bool wait(std::chrono::milliseconds limit);

  ChainState state() const;
  /// Why it failed; else empty.
  std::string error() const;
  /// So far; after its end, the last one.
  runtime::Report report() const;
  metrics::Snapshot counts() const;
  /// Work on a device never ended: the process must leave without tearing the device down.
  bool abandoned_device() const;

 private:
  struct Shared;
  class Guest;

  template <typename Out>
  Result<Out> with_session(std::function<Result<Out>(runtime::Session&)> const& work);
  template <typename Out>
  Result<Out> with_session(std::stop_token const& gone,
                           std::function<Result<Out>(runtime::Session&, std::stop_token const&)> const& work);

  Caller caller_;
  nf::Registry const& registry_;
  std::shared_ptr<Shared> shared_;  ///< with the thread, which may outlive this
  std::thread thread_;
};

}  // namespace catena::service
