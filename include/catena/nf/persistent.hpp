// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

namespace catena::nf {

/// What a run is, for NFs whose state outlives it.
struct RunContext {
  bool live_tx = false;  ///< packets leave for a network; else they go to a capture, or nowhere
  /// The operator says that no key of the chain was used before (`catena run --new-keys`). It is about this start, or
  /// this change of a chain: who goes on after it asks again.
  bool new_keys = false;
  /// NFs go on for those of another process: a Portable has Persistent::join() and Portable::prepare_to_load() called,
  /// in place of Persistent::start().
  bool goes_on = false;
};

/// What an Nf implements besides, if its state outlives a run.
class Persistent {
 public:
  virtual ~Persistent() = default;

  /// Before the first packet of a run, once: takes up what an earlier run left. Programs that only inspect a chain do
  /// not call it. Errors say what the operator has to do; the run then does not start. FailedPrecondition: another run
  /// has what this one needs; InvalidArgument: what the configuration asks for cannot be, whatever else runs. What a
  /// run leaves, Nf::finish() writes.
  virtual Status start(RunContext const& context) = 0;
  /// Instead, of an NF that takes the place of another one in a running chain, before Nf::prepare_to_adopt(): the run
  /// as the operator wants it now.
  virtual void join(RunContext const& /*context*/) {}
};

}  // namespace catena::nf
