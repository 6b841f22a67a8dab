// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/apply_record.hpp"
#include "service/chain_run.hpp"
#include "service/quotas.hpp"
#include "service/retries.hpp"
#include "service/validated_spec.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::service {

/// The spec of a chain in its history.
struct PresentSpec {
  std::string revision = {};                                               ///< empty: it did not run
  std::string fallback = {};                                               ///< why it runs instead of the chain's file
  std::optional<Retries::Clock::time_point> confirm_until = std::nullopt;  ///< of a trial
};

/// A chain of a service.
struct ChainEntry {
  ApplyRecord applied;
  std::vector<Resource> resources;
  std::shared_ptr<ChainRun> run;  ///< null: not started in this service, or not yet
  std::string error;              ///< why it cannot run
  std::string fifo = {};          ///< see ValidatedSpec
  std::string config = {};        ///< chain::effective_text() of the run
  Amounts amounts = {};           ///< its part in the quotas of its user
  bool is_live = false;           ///< its rx is a port, which has no end
  PresentSpec spec = {};
  bool keeps_placement = false;  ///< another placement would lose NF state, as the log has reported

  /// Whether it has its ports and memory.
  bool holds_resources() const {
    return run != nullptr && (run->state() == ChainState::kStarting || run->state() == ChainState::kRunning);
  }
  bool is_running() const { return run != nullptr && run->state() == ChainState::kRunning; }
};

/// Whether the chain is the caller's: all are, of privileged ones.
inline bool owns(Caller const& caller, ApplyRecord const& applied) {
  return is_privileged(caller) || applied.caller.uid == caller.uid;
}
/// Whether the chain is within the reach of the client.
inline bool reaches(Client const& client, ApplyRecord const& applied) {
  return client.reaches_all || owns(client.caller, applied);
}

}  // namespace catena::service
