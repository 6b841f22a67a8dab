// SPDX-License-Identifier: Apache-2.0
#include "service/chain_specs.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace catena::service {

Result<ValidatedSpec> ChainSpecs::prepare(SpecSource const& spec, RequestOptions const& options, Caller const& caller,
                                          std::stop_token const& gone) const {
  if (is_privileged(caller)) {
    return service::prepare(spec, options, caller, registry_);
  }
  CATENA_ASSIGN_OR_RETURN(const UserTurns::Turn turn, turns_.take(caller.uid, gone));
  return service::prepare(spec, options, caller, registry_);
}

Result<SpecRevision> ChainSpecs::revision_of(ApplyRecord const& applied, std::string const& id) const {
  CATENA_ASSIGN_OR_RETURN(SpecRevision revision, history_.load(applied.name, id));
  if (revision.uid != applied.caller.uid) {
    return absl::FailedPreconditionError(concat("revision ", id, " of chain '", applied.name, "' was applied by user ",
                                                revision.uid, ", and the chain is user ", applied.caller.uid,
                                                "'s; apply its file"));
  }
  return revision;
}

Result<SpecSource> ChainSpecs::source_of(ApplyRecord const& applied) const {
  SpecSource spec{applied.file};
  if (!applied.revision.empty()) {
    CATENA_ASSIGN_OR_RETURN(spec.kept, revision_of(applied, applied.revision));
  }
  return spec;
}

Result<ValidatedSpec> ChainSpecs::prepare_again(ApplyRecord& applied, std::string const& id) const {
  SpecSource spec{applied.file};
  if (!id.empty()) {
    CATENA_ASSIGN_OR_RETURN(spec.kept, revision_of(applied, id));
    applied.file = spec.file = spec.kept->source.file;
    applied.options = spec.kept->source.options;
    applied.revision = id;
  }
  CATENA_ASSIGN_OR_RETURN(ValidatedSpec validated, prepare(spec, {applied.options}, applied.caller, {}));
  if (validated.config.name != applied.name) {
    return absl::InvalidArgumentError(concat(applied.file, ": describes chain '", validated.config.name, "' now"));
  }
  applied.tenant = validated.config.tenant;
  return validated;
}

Result<ValidatedSpec> ChainSpecs::prepare_remembered(ApplyRecord& applied, std::string& fallback) const {
  std::vector<std::string> ids;
  for (std::string const& id : {applied.unconfirmed, applied.revision}) {
    if (!id.empty()) {
      ids.push_back(id);
    }
  }
  ids.emplace_back();
  if (!applied.unconfirmed.empty()) {
    spdlog::warn("{}: its last spec was not confirmed", applied.name);
  }
  Status first;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string id = ids[i];
    const bool is_last_choice = i > 0 && ids[i - 1].empty();
    ApplyRecord candidate = applied;
    candidate.unconfirmed.clear();
    candidate.revision.clear();
    Result<ValidatedSpec> validated = prepare_again(candidate, id);
    if (!validated.ok()) {
      first.Update(validated.status());
      if (id.empty()) {  // only now: a history takes time to read
        if (const std::vector<RevisionInfo> kept = history_.list(applied.name); !kept.empty()) {
          ids.push_back(kept.front().id);
        }
      }
      continue;
    }
    if (!first.ok()) {
      fallback = std::string(first.message());
      spdlog::error("{}: its {} cannot run, so {} does: {}", applied.name,
                    ids.front().empty() ? "file" : concat("revision ", ids.front()),
                    id.empty() ? "the file" : concat("revision ", id), fallback);
    } else if (!id.empty()) {
      spdlog::info("{}: revision {} is started", applied.name, id);
    }
    if (!is_last_choice) {  // a mended file counts at the next start
      applied = std::move(candidate);
    }
    return validated;
  }
  return first;
}

/// A chain returns to a spec that runs or, if that is on trial, to the one before. This must be possible now.
Status ChainSpecs::set_trial(std::optional<ChainEntry> const& old, ApplyRecord& applied) const {
  if (!old || !old->is_running() || old->spec.revision.empty()) {
    return absl::FailedPreconditionError(
        concat("chain '", applied.name,
               "' does not run a spec of its history, so it could not return to it; leave out --confirm"));
  }
  applied.unconfirmed = old->applied.unconfirmed.empty() ? old->spec.revision : old->applied.unconfirmed;
  ApplyRecord earlier = applied;
  const Status status = prepare_again(earlier, applied.unconfirmed).status();
  return status.ok() ? status
                     : absl::FailedPreconditionError(concat("chain '", applied.name, "' could not return to its spec: ",
                                                            std::string(status.message()), "; leave out --confirm"));
}

Result<SpecRevision> ChainSpecs::earlier(ChainEntry const& entry, std::string const& id) const {
  std::string wanted = id.empty() ? entry.applied.unconfirmed : id;
  if (wanted.empty()) {
    const std::vector<RevisionInfo> kept = history_.list(entry.applied.name);
    const auto before =
        std::ranges::find_if(kept, [&](RevisionInfo const& revision) { return revision.id != entry.spec.revision; });
    if (before == kept.end()) {
      return absl::NotFoundError(concat("chain '", entry.applied.name, "' has no earlier spec"));
    }
    wanted = before->id;
  }
  return revision_of(entry.applied, wanted);
}

std::string ChainSpecs::keep(ApplyRecord const& applied, SpecRevision const& revision) const {
  const Status saved = history_.save(applied.name, revision, applied.unconfirmed);
  if (!saved.ok()) {
    spdlog::error("{}: its spec is not kept for a rollback: {}", applied.name, std::string(saved.message()));
  }
  return saved.ok() ? revision.id : std::string();
}

}  // namespace catena::service
