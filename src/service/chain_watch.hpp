// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/pause.hpp"
#include "service/audit_log.hpp"
#include "service/chain_replacer.hpp"
#include "service/chain_specs.hpp"
#include "service/chain_table.hpp"
#include "service/chain_threads.hpp"
#include "service/retries.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

namespace catena::service {

/// Acts of a service without a request: retries, returns to earlier specs, new placements. The watch decides when; the
/// work has a thread of the chain, with the name reserved. Any thread, except as stated.
class ChainWatch {
 public:
  /// All must outlive it.
  ChainWatch(ChainTable& table, ChainSpecs const& specs, ChainReplacer& replacer, AuditLog& audit)
      : table_(table), specs_(specs), replacer_(replacer), audit_(audit) {}
  /// Waits for all its work.
  ~ChainWatch();
  ChainWatch(ChainWatch const&) = delete;
  ChainWatch& operator=(ChainWatch const&) = delete;

  /// As ChainSet::start_remembered() and start_watch().
  void start_remembered();
  void start();
  /// Begins no more work.
  void end() { pause_.end(); }
  /// Whether all work has ended by then.
  bool wait(std::chrono::steady_clock::time_point until) const { return threads_.wait(until); }

  /// Until a failed chain is started again; nullopt: it is not.
  std::optional<std::chrono::seconds> retry_of(std::string const& name) const {
    return retries_.left(name, Retries::Clock::now());
  }
  /// A user has stopped or removed the chain.
  void forget(std::string const& name) { retries_.forget(name); }

 private:
  void watch();
  void retry_failed();
  void return_unconfirmed();
  void sample_traffic();
  void start_in_thread(ApplyRecord const& applied, Claims::Claim claim);
  void start_again(ApplyRecord applied);
  Status start_spec(ApplyRecord& applied, std::string& fallback);
  void return_to_earlier(ApplyRecord const& on_trial);
  Status try_earlier(ApplyRecord const& on_trial);
  void replan(std::string const& name);

  ChainTable& table_;
  ChainSpecs const& specs_;
  ChainReplacer& replacer_;
  AuditLog& audit_;
  Retries retries_;
  ChainThreads threads_;
  runtime::Pause pause_;
  std::thread thread_;
};

}  // namespace catena::service
