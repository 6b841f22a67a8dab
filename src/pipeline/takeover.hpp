// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "nf/instance.hpp"
#include "pipeline/device_manager.hpp"
#include "pipeline/ends.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/isolation/process.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/replan.hpp"
#include "pipeline/run_end.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/persistent.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace catena::runtime {

/// The parts of a chain for a takeover: of the running chain, or of the chain that replaces it.
struct TakeoverParts {
  chain::ChainConfig const* config;
  Pipeline* pipeline;
  Ends* ends;
  DeviceManager* devices;
  RunEnd* end;
};

/// Replaces a running chain by the next one: keeps unchanged NFs and processes, pairs the others, ends the running
/// chain, keeps its ports open, and moves the NF state. No packet is lost or reordered: new packets wait until the
/// running chain is empty.
/// Call order: plan() -> pair() -> start() -> wait() -> finish(). By one thread, unless stated otherwise.
class Takeover {
 public:
  /// `next` outlives this, and `before` lives until finish(). `hold` owns `before`; null: the caller keeps it.
  Takeover(TakeoverParts before, TakeoverParts next, std::shared_ptr<void> hold);

  /// The running chain.
  TakeoverParts const& before() const { return before_; }
  /// Decides about the NFs of the next chain, before their creation. It has its layout. `is_shared`: they share a
  /// device.
  Replan& plan(RunOptions const& options, bool is_shared);
  /// As plan() returned it. Between plan() and finish().
  Replan const& replan() const { return *replan_; }
  /// Pairs NFs with the same name and type that keep state, and prepares the migration; processes likewise. The numbers
  /// of shards may differ, but not of processes. `context`:
  /// of the next chain's start, or of its preview. The segments of both chains are complete. Errors: InvalidArgument if
  /// an NF refuses its configuration or its keys; FailedPrecondition if it refuses the state of its pair.
  Status pair(nf::RunContext const& context);
  /// Whether `next` gets its state from an NF in this process: it must not be started.
  bool is_paired(nf::Instance const& next) const;
  /// Names of the NFs that start without their previous state. Any thread, after pair().
  std::vector<std::string> const& restarted() const { return restarted_; }
  /// Ends the running chain, which transfers its ports. FailedPrecondition, without effect, if it has ended already.
  Status start();
  /// Waits until the running chain is empty, and processes have their state. Receives packets meanwhile, which wait
  /// before the first NF; `pauses` is told if too many do. The next chain has all its stages.
  void wait(SourcePauses& pauses);
  /// Moves the state of the NFs. The error of the running chain, if it has ended with packets in flight: their slots
  /// are lost.
  Status finish();
  /// The owner of the running chain, for its end. After finish().
  std::shared_ptr<void> release() { return std::move(hold_); }
  /// Whether the running chain is still needed: true from plan() to finish(). Other threads need a lock held during
  /// finish().
  bool is_pending() const { return replan_.has_value(); }

 private:
  /// An NF of both chains, by shards.
  struct NfPair {
    std::vector<nf::Instance*> next;
    std::vector<nf::Instance*> before;
  };
  struct ProcessPair {
    nf_process::NfProcess* next;
    nf_process::NfProcess* before;
    std::size_t first;  ///< position of its first NF in the next chain
  };
  std::optional<std::size_t> position_before(std::string_view name) const;
  Status pair_nf(std::size_t nf, nf::RunContext const& context);
  void pair_processes(std::size_t first);
  bool is_paired_process(NfEntry const& next) const;
  std::uint32_t slots_for_previous(std::size_t pool) const;
  template <typename Visit>
  void visit_kept_processes(Visit visit) const;
  void take_ports();
  bool poll_rx(bool& is_full);
  void migrate_state();

  TakeoverParts before_;
  TakeoverParts next_;
  std::shared_ptr<void> hold_;
  std::optional<Replan> replan_;
  std::vector<NfPair> nfs_;
  std::vector<ProcessPair> processes_;
  std::vector<std::string> restarted_;
};

}  // namespace catena::runtime
