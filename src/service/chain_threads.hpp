// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace catena::service {

/// Work of the service for chains, one at a time for each and in a thread of its own: a chain that hangs delays no
/// other one. Any thread. No other mutex is locked with its mutex.
class ChainThreads {
 public:
  /// Waits for all work.
  ~ChainThreads();
  ChainThreads() = default;
  ChainThreads(ChainThreads const&) = delete;
  ChainThreads& operator=(ChainThreads const&) = delete;

  /// Begins work for a chain; its lines in the log are the chain's. Aborted during earlier work for it;
  /// ResourceExhausted without a thread. Then `work` is destroyed.
  Status run(std::string const& chain, std::function<void()> work);
  bool is_at_work(std::string const& chain) const;
  /// Whether all work ends by then.
  bool wait(std::chrono::steady_clock::time_point until) const;

 private:
  struct Work {
    std::thread thread;
    bool has_ended = false;
  };

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  std::map<std::string, Work> works_;
};

}  // namespace catena::service
