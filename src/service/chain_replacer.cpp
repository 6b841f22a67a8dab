// SPDX-License-Identifier: Apache-2.0
#include "service/chain_replacer.hpp"

#include "chain/effective.hpp"
#include "chain/machine_check.hpp"
#include "chain/port_kind.hpp"
#include "pipeline/session.hpp"
#include "service/chain_log.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

namespace catena::service {
namespace {

Status not_accepted(std::string const& name, runtime::Losses const& losses) {
  return absl::FailedPreconditionError(
      fmt::format("chain '{}' keeps running unchanged, because its replacement would lose {}. To accept this, use "
                  "`catena apply --accept-loss`",
                  name, fmt::join(runtime::describe(losses), ", ")));
}

Status does_not_end(std::string const& name, std::string const& fifo) {
  return absl::UnavailableError(
      concat("chain '", name, "' did not stop within the limit",
             fifo.empty() ? "" : concat("; its output ", fifo, " is a FIFO and may have no reader")));
}

/// Why a running chain cannot continue as the next one, or be replaced by it without loss; empty for any other error.
std::string obstacle_in(Status const& status) {
  return absl::IsFailedPrecondition(status) ? std::string(status.message()) : std::string();
}

bool is_running(std::optional<ChainEntry> const& old) { return old && old->is_running(); }

/// Why the old chain cannot continue as the new one; empty if it can. A chain runs with the rights and for the tenant
/// of its creation.
std::string obstacle_to(ApplyRecord const& applied, std::optional<ChainEntry> const& old) {
  if (!is_running(old)) {
    return "it is not running";
  }
  const bool is_of_same = old->applied.caller == applied.caller && old->applied.tenant == applied.tenant;
  return is_of_same ? std::string() : "it was applied by another user, or for another tenant";
}

/// The losses of a new chain that starts after the end of the old one.
runtime::Losses losses_of(ValidatedSpec const& validated, ChainEntry const& old, std::string obstacle) {
  // an error: the old chain has ended in the meantime, and its state with it
  return {std::move(obstacle), old.run->restarted_nfs_of(validated.config).value_or(std::vector<std::string>())};
}

/// The running chain goes on with changes, unless something is lost.
void set_losses(runtime::Losses losses, AppliedChain& result) {
  result.is_changed = losses.empty();
  result.replace_reason = losses.packets;
  if (result.replace_reason.empty() && !losses.nf_states.empty()) {
    result.replace_reason = fmt::format("{} cannot move", fmt::join(runtime::describe(losses), ", "));
  }
  result.losses = std::move(losses);
}

/// A running chain does not end for one that cannot open its ports. InvalidArgument.
Status check_devices(chain::ChainConfig const& config) {
  const std::vector<std::string> missing = chain::missing_devices(config);
  return missing.empty() ? absl::OkStatus() : absl::InvalidArgumentError(fmt::format("{}", fmt::join(missing, "\n")));
}

}  // namespace

Status as_callers(Status const& status) {
  const bool keeps =
      status.ok() || absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status) || absl::IsCancelled(status);
  return keeps ? status : absl::InvalidArgumentError(status.message());
}

Status end_run(std::string const& name, ChainRun& run, std::string const& fifo) {
  run.stop();
  return run.wait(kEndLimit) ? absl::OkStatus() : does_not_end(name, fifo);
}

Status ChainReplacer::apply(ApplyRecord const& applied, ValidatedSpec validated, std::optional<ChainEntry> const& old,
                            RequestOptions const& options, std::stop_token const& gone, AppliedChain& result) {
  const SpecRevision revision = make_revision(validated.config.source, validated.files, applied.caller.uid);
  if (!old) {
    CATENA_RETURN_IF_ERROR(specs_.begin_history(applied.name));  // of a chain of another user, perhaps
  } else if (!options.restarts) {
    CATENA_ASSIGN_OR_RETURN(result.is_changed, go_on(applied, validated, *old));
  }
  if (!result.is_changed) {
    CATENA_RETURN_IF_ERROR(replace(applied, std::move(validated), old, gone, result));
  }
  const std::string id = specs_.keep(applied, revision);
  table_.edit(applied.name, [&](ChainEntry& entry) {
    entry.spec.revision = id;
    if (options.confirm.count() != 0) {
      entry.spec.confirm_until = Retries::Clock::now() + options.confirm;
    } else if (options.restarts && old) {
      entry.spec.confirm_until = old->spec.confirm_until;
    }
  });
  return absl::OkStatus();
}

Status ChainReplacer::preview(ApplyRecord const& applied, ValidatedSpec validated, std::optional<ChainEntry> const& old,
                              std::stop_token const& gone, AppliedChain& result) const {
  if (!old) {
    return absl::OkStatus();
  }
  if (obstacle_to(applied, old).empty()) {
    CATENA_ASSIGN_OR_RETURN(result.is_changed, old->run->is_same(validated.config));
  }
  return result.is_changed ? absl::OkStatus() : preview_replacement(applied, std::move(validated), old, gone, result);
}

/// Sets the changes and the losses of the replacement of `old`.
Status ChainReplacer::preview_replacement(ApplyRecord const& applied, ValidatedSpec validated,
                                          std::optional<ChainEntry> const& old, std::stop_token const& gone,
                                          AppliedChain& result) const {
  CATENA_RETURN_IF_ERROR(as_callers(setup_.set_up(applied, validated)));
  std::string obstacle = obstacle_to(applied, old);
  if (!is_running(old)) {
    result.replace_reason = std::move(obstacle);
    return absl::OkStatus();
  }
  CATENA_RETURN_IF_ERROR(check_devices(validated.config));
  if (obstacle.empty()) {
    Result<runtime::ReplacementPreview> preview =
        old->run->preview_replacement(validated.config, validated.options, gone);
    if (preview.ok()) {
      result.changes = std::move(preview->changes);
      set_losses({.nf_states = std::move(preview->restarted)}, result);
      return absl::OkStatus();
    }
    obstacle = obstacle_in(preview.status());
    if (obstacle.empty()) {
      return absl::IsUnavailable(preview.status()) ? preview.status() : as_callers(preview.status());
    }
  }
  set_losses(losses_of(validated, *old, std::move(obstacle)), result);
  return absl::OkStatus();
}

/// Has a running chain go on unchanged, as that of the spec. False: the spec differs from the running chain.
Result<bool> ChainReplacer::go_on(ApplyRecord const& applied, ValidatedSpec const& validated, ChainEntry const& old) {
  if (!obstacle_to(applied, old).empty()) {
    return false;
  }
  const Result<bool> is_same = old.run->is_same(validated.config);
  if (!is_same.ok() || !*is_same) {
    return absl::IsUnavailable(is_same.status()) ? is_same : false;
  }
  CATENA_RETURN_IF_ERROR(table_.remember(applied));
  ChainEntry same = old;
  same.applied = applied;
  same.resources = validated.resources;
  same.fifo = validated.fifo;
  same.amounts = amounts_of(validated.config, validated.options);
  same.config = chain::effective_text(validated.config);
  same.spec.fallback.clear();
  same.spec.confirm_until.reset();
  table_.put(same);
  return true;
}

Status ChainReplacer::replace(ApplyRecord const& applied, ValidatedSpec validated, std::optional<ChainEntry> const& old,
                              std::stop_token const& gone, AppliedChain& result) {
  if (!validated.options.new_keys.empty() && !validated.accepts_loss) {
    // a refused request must not leave states for its keys, which would need no consent later
    CATENA_RETURN_IF_ERROR(preview_replacement(applied, validated, old, gone, result));
    if (!result.losses.empty()) {
      return not_accepted(applied.name, result.losses);
    }
  }
  CATENA_RETURN_IF_ERROR(table_.remember(applied));
  const bool was_running = is_running(old);
  const bool restarts = validated.restarts;
  Swap swap{.obstacle = restarts ? "it is restarted" : obstacle_to(applied, old)};
  if (swap.obstacle.empty()) {
    swap = take_over(applied, validated, *old, gone);
    result.changes = swap.changes;
    set_losses({.nf_states = swap.restarted_nfs}, result);
  }
  if (!swap.obstacle.empty() && is_running(old)) {
    set_losses(losses_of(validated, *old, swap.obstacle), result);
  } else if (!swap.obstacle.empty()) {
    result.is_changed = false;
    result.replace_reason = swap.obstacle;
  }
  if (!result.losses.empty() && !validated.accepts_loss) {
    swap = {not_accepted(applied.name, result.losses)};
  } else if (!swap.obstacle.empty()) {
    for (std::string const& loss : runtime::describe(result.losses)) {
      spdlog::warn("{}: the replacement loses {}", applied.name, loss);
    }
    swap = make_and_swap(applied, std::move(validated), old, gone);
  }
  if (swap.is_done) {
    const bool has_failed = !swap.status.ok() && !absl::IsCancelled(swap.status) && !restarts;
    return has_failed && old && was_running ? run_again(*old, swap.status) : swap.status;
  }
  // as it was; if this fails too, the next start of the service says what is wrong with the chain
  const Status undone = table_.restore(applied.name, old);
  if (!old) {
    chain_log()->forget(applied.name);
  }
  return undone.ok() ? swap.status
                     : Status(swap.status.code(),
                              concat(std::string(swap.status.message()), "\n", std::string(undone.message())));
}

ChainReplacer::Swap ChainReplacer::make_and_swap(ApplyRecord const& applied, ValidatedSpec validated,
                                                 std::optional<ChainEntry> const& old, std::stop_token const& gone) {
  if (Status ready = setup_.set_up(applied, validated); !ready.ok()) {
    return {std::move(ready), false};
  }
  Before before{old ? old->run : nullptr, old ? old->fifo : std::string()};
  if (Status found = is_running(old) ? check_devices(validated.config) : absl::OkStatus(); !found.ok()) {
    return {std::move(found), false};
  }
  before.ends_first = before.run != nullptr &&
                      (validated.restarts || !clash(validated.resources, old->resources, applied.name).empty());
  if (Status ended = before.ends_first ? end_run(applied.name, *before.run, before.fifo) : absl::OkStatus();
      !ended.ok()) {
    return {std::move(ended), false};
  }
  return start_and_swap(applied, std::move(validated), before, gone);
}

ChainReplacer::Swap ChainReplacer::take_over(ApplyRecord const& applied, ValidatedSpec validated, ChainEntry const& old,
                                             std::stop_token const& gone) {
  if (Status ready = setup_.set_up(applied, validated); !ready.ok()) {
    return {std::move(ready), false};
  }
  validated.options.processes.chain = old.run->number();  // processes that go on have it
  return start_and_swap(applied, std::move(validated), {old.run, old.fifo, false, true}, gone);
}

ChainReplacer::Swap ChainReplacer::start_and_swap(ApplyRecord const& applied, ValidatedSpec validated,
                                                  Before const& before, std::stop_token const& gone) {
  bool old_is_gone = before.run == nullptr || before.ends_first;
  const bool accepts_loss = validated.accepts_loss;
  std::string config = chain::effective_text(validated.config);
  const bool is_live = validated.config.rx.kind->is_live;
  const Amounts amounts = amounts_of(validated.config, validated.options);
  const ChainEntry entry{
      applied,
      std::move(validated.resources),
      std::make_shared<ChainRun>(std::move(validated.config), std::move(validated.options), applied.caller, registry_,
                                 before.is_taken_over ? before.run : nullptr),
      {},
      std::move(validated.fifo),
      std::move(config),
      amounts,
      is_live};
  if (Status announced = table_.announce(entry, old_is_gone); !announced.ok()) {
    return {std::move(announced), before.ends_first};
  }
  Status status = entry.run->wait_until_ready(gone);
  if (before.is_taken_over && absl::IsFailedPrecondition(status)) {
    return {.obstacle = std::string(status.message())};
  }
  std::vector<std::string> restarted = status.ok() ? entry.run->restarted_nfs() : std::vector<std::string>();
  if (!restarted.empty() && !accepts_loss) {
    withdraw(entry);
    return {.restarted_nfs = std::move(restarted)};
  }
  if (!status.ok() && !absl::IsCancelled(status)) {
    spdlog::error("{}: does not start: {}", applied.name, std::string(status.message()));
    if (before.ends_first) {
      table_.put({applied, {}, nullptr, std::string(status.message())});
    }
    return {as_callers(status), before.ends_first};
  }
  if (status.ok() && !old_is_gone && !before.is_taken_over) {
    if (Status ended = end_run(applied.name, *before.run, before.fifo); !ended.ok()) {
      return {std::move(ended), false};
    }
    old_is_gone = true;
  }
  if (status.ok()) {
    status = entry.run->start();
  }
  if (before.is_taken_over && absl::IsFailedPrecondition(status)) {
    withdraw(entry);
    return {.obstacle = std::string(status.message())};
  }
  if (!status.ok()) {
    spdlog::info("{}", std::string(status.message()));
    const bool is_undone = gone.stop_requested() && before.run == nullptr;
    return old_is_gone && !is_undone ? given_up(applied, std::move(status)) : Swap{std::move(status), false};
  }
  for (std::string const& change : entry.run->changes()) {
    spdlog::info("{}: changed: {}", applied.name, change);
  }
  table_.put(entry);
  if (before.is_taken_over) {  // in vain if its output is full: it counts as one of its user's until it ends
    constexpr std::chrono::seconds kUsualEnd{1};
    before.run->wait(kUsualEnd);
  }
  return {absl::OkStatus(), true, {}, std::move(restarted), entry.run->changes()};
}

/// Ends a run that was made and does not start, and with it what it holds of the one before.
void ChainReplacer::withdraw(ChainEntry const& entry) {
  table_.claims().set_start(entry.applied.name, {});  // the entry has it, too
  entry.run->stop();
  entry.run->wait(kEndLimit);
}

/// What becomes of a chain whose start was given up: it is stopped, or if the service ends, starts again with it.
ChainReplacer::Swap ChainReplacer::given_up(ApplyRecord applied, Status status) {
  applied.is_stopped = !table_.is_ending();
  if (applied.is_stopped) {
    applied.unconfirmed.clear();
  }
  table_.put({applied, {}, nullptr, {}});
  if (const Status saved = table_.update(applied); !saved.ok()) {
    status = saved;
  }
  return {std::move(status), true};
}

/// After the end of a chain for a new one that cannot be created. The error of that, with what became of the chain.
Status ChainReplacer::run_again(ChainEntry const& old, Status const& status) {
  ApplyRecord applied = old.applied;
  const auto start = [&]() -> Status {
    CATENA_ASSIGN_OR_RETURN(const ValidatedSpec validated, specs_.prepare_again(applied, old.spec.revision));
    CATENA_RETURN_IF_ERROR(table_.remember(applied));
    CATENA_RETURN_IF_ERROR(make_and_swap(applied, validated, std::nullopt, {}).status);
    table_.edit(applied.name, [&old](ChainEntry& entry) { entry.spec = old.spec; });
    return absl::OkStatus();
  };
  const Status again = start();
  audit_.add_own("fallback", applied.name, old.spec.revision, again);
  const std::string outcome =
      again.ok() ? "the chain has been started again with its earlier spec; packets were lost meanwhile"
                 : concat("its earlier spec does not start either: ", std::string(again.message()));
  spdlog::error("{}: {}", applied.name, outcome);
  return {status.code(), concat(std::string(status.message()), "\n", outcome)};
}

Status ChainReplacer::start(ApplyRecord const& applied, ValidatedSpec validated) {
  SpecRevision revision = make_revision(validated.config.source, validated.files, applied.caller.uid);
  CATENA_RETURN_IF_ERROR(make_and_swap(applied, std::move(validated), std::nullopt, {}).status);
  const std::string id = specs_.keep(applied, revision);
  table_.edit(applied.name, [&id](ChainEntry& entry) { entry.spec.revision = id; });
  return absl::OkStatus();
}

void ChainReplacer::move(ChainEntry const& entry, runtime::Replacement replacement) {
  std::string const& name = entry.applied.name;
  const Swap swap = start_and_swap(entry.applied,
                                   {std::move(replacement.config), std::move(replacement.options), entry.resources,
                                    entry.applied.caller, entry.fifo},
                                   {entry.run, entry.fifo, false, true});
  if (swap.is_done) {
    table_.edit(name, [&entry](ChainEntry& moved) { moved.spec = entry.spec; });
    audit_.add_own("place", name, entry.spec.revision, absl::OkStatus());
    spdlog::info("{}: placement changed: {}", name, replacement.why);
  } else if (!swap.restarted_nfs.empty()) {
    spdlog::warn("{}: placement not changed ({}), now and later, because this would lose {}", name, replacement.why,
                 fmt::join(runtime::describe({.nf_states = swap.restarted_nfs}), ", "));
    table_.edit(name, [](ChainEntry& kept) { kept.keeps_placement = true; });
  } else {
    spdlog::warn("{}: placement not changed ({}): {}", name, replacement.why,
                 swap.obstacle.empty() ? std::string(swap.status.message()) : swap.obstacle);
  }
}

}  // namespace catena::service
