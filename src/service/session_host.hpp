// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "pipeline/report.hpp"
#include "pipeline/session.hpp"
#include "service/run_lifecycle.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

namespace catena::service {

/// The results of a session after its end.
struct SessionResults {
  runtime::Report report;
  metrics::Snapshot counts;
  bool abandoned_device = false;
};

/// A session between the thread of its chain, which makes, runs and ends it, and other threads, which start, stop and
/// ask it. Call order: made() -> run(), by the chain's thread; all else by any thread, at any time.
class SessionHost {
 public:
  explicit SessionHost(std::string name);
  SessionHost(SessionHost const&) = delete;
  SessionHost& operator=(SessionHost const&) = delete;

  /// Takes the session, or the reason why it could not be made.
  void made(Result<std::unique_ptr<runtime::Session>> created);
  /// Waits for start() or stop(), runs the session, waits for its guests, and ends it. Without effect if it could
  /// not be made.
  void run();

  std::string const& name() const { return lifecycle_.name(); }
  /// Stopped by stop().
  std::stop_token give_up() const { return give_up_.get_token(); }
  /// Returns after made(). The error given to it; Cancelled after stop().
  Status wait_until_made();
  /// Lets the session run. After wait_until_made(). Errors: as runtime::Session::start(); Cancelled after stop().
  Status start();
  void stop();
  /// Whether the session ends within `limit`.
  bool wait(std::chrono::milliseconds limit);

  ChainState state() const;
  /// Why it failed; else empty.
  std::string error() const;
  /// Of the session; after its end, its results.
  runtime::Report report() const;
  metrics::Snapshot counts() const;
  bool abandoned_device() const;
  /// As runtime::Session::changes() and restarted_nfs(). After wait_until_made().
  runtime::ReplacementPreview replacement() const;

  /// Keeps a running session from ending while it lives.
  class Guest {
   public:
    explicit Guest(std::shared_ptr<SessionHost> host);
    ~Guest();
    Guest(Guest const&) = delete;
    Guest& operator=(Guest const&) = delete;

    /// Null: the session does not run.
    runtime::Session* session() const { return session_; }

   private:
    std::shared_ptr<SessionHost> host_;
    runtime::Session* session_;
  };

 private:
  runtime::Session* enter();
  void leave();
  void log_start() const;
  void log_end() const;
  Status run_session();
  void end(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;  ///< guards all of it
  std::condition_variable changed_;
  RunLifecycle lifecycle_;
  std::unique_ptr<runtime::Session> session_;  ///< null after the end
  std::uint32_t guests_ = 0;
  std::stop_source give_up_;
  SessionResults results_;                   ///< after the end
  runtime::ReplacementPreview replacement_;  ///< of the session
};

}  // namespace catena::service
