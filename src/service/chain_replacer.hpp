// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/registry.hpp"
#include "pipeline/losses.hpp"
#include "service/audit_log.hpp"
#include "service/chain_setup.hpp"
#include "service/chain_specs.hpp"
#include "service/chain_table.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace catena::runtime {
struct Replacement;
}  // namespace catena::runtime

namespace catena::service {

/// The effect of an apply.
struct AppliedChain {
  std::string name;
  bool is_new;
  bool is_changed = false;                 ///< a running chain continues with `changes`, without a loss
  std::vector<std::string> changes = {};   ///< as runtime::Session::changes()
  std::string replace_reason = {};         ///< why it does not
  runtime::Losses losses = {};             ///< of the replacement of a running chain
  std::vector<std::string> warnings = {};  ///< of its spec
  Amounts amounts = {};                    ///< its part in the quotas of its user
  std::optional<Amounts> quotas = {};      ///< of its user, in a preview; nullopt: without limits
};

/// Packets inside a chain are finished in a moment, except for an output without a reader.
inline constexpr std::chrono::seconds kEndLimit{10};

/// Unavailable if the run does not end within kEndLimit. `fifo`: see ValidatedSpec.
Status end_run(std::string const& name, ChainRun& run, std::string const& fifo);

/// InvalidArgument for an error of a file or of options, but PermissionDenied, ResourceExhausted and Cancelled stay.
Status as_callers(Status const& status);

/// Starts chains, and changes or replaces running ones: with the name reserved and no mutex locked by the caller. Any
/// thread.
class ChainReplacer {
 public:
  /// All must outlive it.
  ChainReplacer(nf::Registry const& registry, ChainTable& table, ChainSpecs const& specs, ChainSetup const& setup,
                AuditLog& audit)
      : registry_(registry), table_(table), specs_(specs), setup_(setup), audit_(audit) {}

  /// The end of ChainSet::apply(). `old`: the chain of this name.
  Status apply(ApplyRecord const& applied, ValidatedSpec validated, std::optional<ChainEntry> const& old,
               RequestOptions const& options, std::stop_token const& gone, AppliedChain& result);
  /// The end of ChainSet::preview(): no name is reserved.
  Status preview(ApplyRecord const& applied, ValidatedSpec validated, std::optional<ChainEntry> const& old,
                 std::stop_token const& gone, AppliedChain& result) const;
  /// Starts a known chain that does not run.
  Status start(ApplyRecord const& applied, ValidatedSpec validated);
  /// Replaces a running chain by itself with another placement, and the log reports it; not if NF state is lost.
  void move(ChainEntry const& entry, runtime::Replacement replacement);

 private:
  struct Swap {
    Status status = {};
    bool is_done = false;       ///< the old chain is gone, whether or not the new one runs
    std::string obstacle = {};  ///< why no takeover is possible, and the old chain continues; empty: no obstacle
    std::vector<std::string> restarted_nfs = {};  ///< NFs whose state a takeover loses
    std::vector<std::string> changes = {};        ///< of a takeover
  };
  /// The run replaced by a starting chain.
  struct Before {
    std::shared_ptr<ChainRun> run;  ///< null: nothing ran in this service
    std::string fifo;               ///< see ValidatedSpec
    bool ends_first = false;
    bool is_taken_over = false;  ///< the new run takes over its ports, and it ends then
  };

  Result<bool> go_on(ApplyRecord const& applied, ValidatedSpec const& validated, ChainEntry const& old);
  Status replace(ApplyRecord const& applied, ValidatedSpec validated, std::optional<ChainEntry> const& old,
                 std::stop_token const& gone, AppliedChain& result);
  Status run_again(ChainEntry const& old, Status const& status);
  Swap make_and_swap(ApplyRecord const& applied, ValidatedSpec validated, std::optional<ChainEntry> const& old,
                     std::stop_token const& gone);
  Swap take_over(ApplyRecord const& applied, ValidatedSpec validated, ChainEntry const& old,
                 std::stop_token const& gone);
  Swap start_and_swap(ApplyRecord const& applied, ValidatedSpec validated, Before const& before,
                      std::stop_token const& gone = {});
  Status preview_replacement(ApplyRecord const& applied, ValidatedSpec validated, std::optional<ChainEntry> const& old,
                             std::stop_token const& gone, AppliedChain& result) const;
  void withdraw(ChainEntry const& entry);
  Swap given_up(ApplyRecord applied, Status status);

  nf::Registry const& registry_;
  ChainTable& table_;
  ChainSpecs const& specs_;
  ChainSetup const& setup_;
  AuditLog& audit_;  ///< of acts without a request
};

}  // namespace catena::service
