// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/registry.hpp"
#include "service/chain_entry.hpp"
#include "service/spec_history.hpp"
#include "service/user_limits.hpp"
#include "service/validated_spec.hpp"

#include <catena/core/status.hpp>

#include <optional>
#include <stop_token>
#include <string>

namespace catena::service {

/// The specs of chains: read and checked with the rights of their users, the present ones and earlier ones.
/// Any thread.
class ChainSpecs {
 public:
  /// Both must outlive it.
  ChainSpecs(nf::Registry const& registry, SpecHistory const& history) : registry_(registry), history_(history) {}

  /// As service::prepare(), for one request of an unprivileged user at a time, because files take memory and time while
  /// they are read. Cancelled if `gone` ends the wait for this.
  Result<ValidatedSpec> prepare(SpecSource const& spec, RequestOptions const& options, Caller const& caller,
                                std::stop_token const& gone) const;
  /// A revision that the user of the chain may have again. FailedPrecondition if another user applied it; NotFound.
  Result<SpecRevision> revision_of(ApplyRecord const& applied, std::string const& id) const;
  /// The revision for a rollback of the chain: `id`; empty: the one of before. Errors: as revision_of().
  Result<SpecRevision> earlier(ChainEntry const& entry, std::string const& id) const;
  /// The spec of a start of the chain.
  Result<SpecSource> source_of(ApplyRecord const& applied) const;
  /// For a start without a request: revision `id`; empty: the file. Makes `applied` its record.
  Result<ValidatedSpec> prepare_again(ApplyRecord& applied, std::string const& id) const;
  /// The first of these that can run: the spec to return to from a trial, the one of a rollback, the file, the last
  /// spec. `fallback`: why the first one cannot.
  Result<ValidatedSpec> prepare_remembered(ApplyRecord& applied, std::string& fallback) const;
  /// Makes `applied` a trial. FailedPrecondition if the chain could not return to its present spec.
  Status set_trial(std::optional<ChainEntry> const& old, ApplyRecord& applied) const;
  /// Keeps a spec that runs. Its id; empty after an error, which the log has: it costs a way back, and no chain.
  std::string keep(ApplyRecord const& applied, SpecRevision const& revision) const;
  /// The history of a name that was free.
  Status begin_history(std::string const& name) const { return history_.remove(name); }

 private:
  nf::Registry const& registry_;
  SpecHistory const& history_;
  mutable UserTurns turns_;  ///< for reading and checking a file
};

}  // namespace catena::service
