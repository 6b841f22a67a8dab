// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <set>

namespace catena::nf {

/// Properties of a run, for NFs whose state outlives it.
struct RunContext {
  bool live_tx = false;  ///< packets leave for a network; else they go to a capture or are discarded
  /// The SPIs whose keys were not used before, as the operator states (`catena run --new-keys`). Valid for this start,
  /// or this change of a chain; a later replacement needs a new statement.
  std::set<std::uint32_t> new_keys = {};
  /// The NFs replace NFs of another process. A Portable then gets Persistent::join() and Portable::prepare_to_load(),
  /// in place of Persistent::start().
  bool continues = false;
  /// The change of a chain is only previewed: Nf::prepare_migration() returns its errors and opens no state, and
  /// Nf::migrate_state() does not follow.
  bool is_trial = false;
};

/// Implemented, besides Nf, by an NF whose state outlives a run.
class Persistent {
 public:
  virtual ~Persistent() = default;

  /// Loads the state left by an earlier run. Called once, before the first packet of a run; programs that only inspect
  /// a chain do not call it. An error names the operator's remedy, and the run then does not start. FailedPrecondition:
  /// another run holds a resource of this one. InvalidArgument: the configuration is impossible, whatever else runs.
  /// Nf::finish() writes the state at the end of a run.
  virtual Status start(RunContext const& context) = 0;
  /// Called instead of start() on an NF that replaces another one in a running chain, before Nf::prepare_migration().
  /// Gets the run as the operator wants it now.
  virtual void join(RunContext const& /*context*/) {}
};

}  // namespace catena::nf
