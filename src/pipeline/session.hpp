// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "nf/registry.hpp"
#include "pipeline/auto_placement.hpp"
#include "pipeline/device_manager.hpp"
#include "pipeline/ends.hpp"
#include "pipeline/flow_control.hpp"
#include "pipeline/gpu_sharing.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/report.hpp"
#include "pipeline/run_end.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/takeover.hpp"
#include "pipeline/telemetry.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace catena::runtime {

class Session;

/// A running session to be replaced by a new one.
struct PreviousPipeline {
  Session* session = nullptr;
  std::shared_ptr<void> hold = nullptr;  ///< owns the session; null: the caller keeps it longer than the new one
};

/// The expected result of a replacement.
struct ReplacementPreview {
  std::vector<std::string> changes = {};    ///< as Session::changes(), without start reports
  std::vector<std::string> restarted = {};  ///< as Session::restarted_nfs()
};

/// A chain ready to run: files read, NFs created, device opened, kernels compiled.
/// Call order: create() -> start() if needed -> run() once. stop(), progress(), report() and counts() may be called
/// from any thread while it runs.
class Session {
 public:
  /// Errors: as load_chain(), check_files() and the NFs' create(); Unavailable if the requested device is missing;
  /// NotFound, with the position, for an unknown NF type; the system's error if an output cannot be created. A failed
  /// call has changed no file, because outputs are opened last. Waits for NF processes and for the readers of FIFO
  /// outputs. `give_up` aborts the wait: Cancelled.
  ///
  /// `before`: a running session to be replaced. It must have the same `options`. start() ends it; the new session then
  /// takes over its ports, its packet memory, unchanged NFs (see Replan), the state of other NFs in both chains, and
  /// its counts. No packet is lost or reordered: new packets wait until the packets in `before` have left. More errors
  /// with `before`: FailedPrecondition, with the reason, if it cannot be replaced; InvalidArgument if an NF refuses its
  /// configuration or its keys.
  static Result<std::unique_ptr<Session>> create(chain::ChainConfig config, RunOptions const& options,
                                                 nf::Registry const& registry, std::stop_token const& give_up = {},
                                                 std::optional<PreviousPipeline> before = std::nullopt);
  /// The changes and losses if create() replaces `before` by such a session. Errors of create(), as far as known
  /// without ports, without new processes, and without effect on `before`.
  static Result<ReplacementPreview> preview_replacement(chain::ChainConfig config, RunOptions const& options,
                                                        nf::Registry const& registry, std::stop_token const& give_up,
                                                        PreviousPipeline before);
  ~Session();

  /// Whether `next` is this chain: its file says the same, and the files of its NFs have the same contents. Unavailable
  /// if the session before this one has not ended yet. Any thread, while run() runs.
  Result<bool> is_same(chain::ChainConfig const& next);
  /// Of a session that replaces another, the differences: a line for each NF that is new or changed, with its start
  /// report, for each removed NF, and for other keys of the file. Before start().
  std::vector<std::string> changes() const { return takeover_ ? describe_changes(true) : std::vector<std::string>(); }
  /// The NFs that restart without their state if a session of `next` starts after the end of this one, by name. NFs
  /// that keep their state between runs are not among them. Any thread, while run() runs.
  std::vector<std::string> restarted_nfs_of(chain::ChainConfig const& next, nf::Registry const& registry);
  /// NFs whose state in the previous session is lost, by name.
  std::vector<std::string> restarted_nfs() const {
    return takeover_ ? takeover_->restarted() : std::vector<std::string>();
  }
  /// Information for the user before packets run: device, placements, NFs' start reports. Warnings first.
  std::vector<std::string> start_report() const;
  /// The plan of transfers between host and device, of several devices the first; nullopt without a device.
  std::optional<plan::Plan> plan() const;
  /// Starts to receive, in place of the previous session if any. run() calls start() if the caller has not.
  /// FailedPrecondition, without effect, if the previous session has already ended.
  Status start();
  /// Runs until the source ends or stop() is called. Returns the error of a failed stage; report() then covers the run
  /// up to this error. Outputs are flushed in every case; DataLoss if this fails.
  Status run();
  /// At the end of run(), keeps the state of nf::Portable NFs instead of finishing them: another process replaces this
  /// one. Any thread, while run() runs.
  void release_nfs();
  /// Whether another session has replaced this one or is replacing it.
  bool is_followed() const { return end_.is_passed_on(); }
  /// Returns a new placement of the NFs `on: auto` if the packet size has changed since their placement and the model
  /// predicts a gain of more than a tenth; else nullopt. A session with the result can replace this one. Call it every
  /// TrafficWatch::kPeriod while run() runs, by one thread at a time. After a change of size it creates NFs, which may
  /// take as long as create(). Errors: as chain::place().
  Result<std::optional<Replacement>> sample_traffic(nf::Registry const& registry);
  /// Ends run(): rx takes no more packets, and the chain finishes the packets in flight. Async-signal safe.
  void stop() { end_.stop(); }
  /// All counts, now.
  metrics::Snapshot counts() const { return telemetry_.counts(); }
  RunProgress progress() const { return telemetry_.progress(); }
  /// The counts now, with their context. After run() it has the NFs' final reports.
  Report report() const;
  /// NF number `nf` of the chain, in its first shard. The session owns it. Read only.
  nf::Instance& instance(std::size_t nf) const { return *pipeline_.first_of(nf).instance; }
  /// After run(): time spans of each stage, if traced.
  std::vector<StageTrace> traces() const { return telemetry_.traces(); }
  /// After run(): whether a device still has unfinished work. The process must then exit without closing the device.
  bool abandoned_device() const { return devices_.abandoned(); }

 private:
  explicit Session(RunOptions const& options)
      : devices_(options.open_device), telemetry_(options.trace || !options.trace_path.empty()) {}
  /// A session being made. Its end comes before that of the lock.
  struct Draft {
    std::unique_lock<std::mutex> as_it_is = {};        ///< keeps the previous session unchanged
    std::shared_ptr<device::Device> shared = nullptr;  ///< as in make_nfs()
    std::unique_ptr<Session> session = nullptr;
  };
  static Result<Draft> with_nfs(chain::ChainConfig config, RunOptions options, nf::Registry const& registry,
                                std::stop_token const& give_up, std::optional<PreviousPipeline> before);
  Status check_kept_folders(nf::Registry const& registry) const;
  Status make_nfs(RunOptions& options, nf::Registry const& registry, std::shared_ptr<device::Device>& shared);
  Status make_resources(device::Device* shared);
  Status open(nf::RunContext const& context, std::stop_token const& give_up);
  TakeoverParts takeover_parts() { return {&config_, &pipeline_, &ends_, &devices_, &end_}; }
  Status can_replace(Session const& before) const;
  Result<std::unique_lock<std::mutex>> lock_settled();
  Status take_over();
  void finish_nfs(Status& status);
  Status run_to_end(bool& is_empty);
  bool wants_device() const;
  chain::Machine machine(RunOptions const& options) const;
  Status resolve(nf::Registry const& registry, RunOptions const& options);
  Status open_devices();
  GpuSharing::Traffic traffic() const;
  std::uint64_t waiting_for(std::size_t nf) const;
  CountedParts counted_parts() const;
  EarlierCounts::IsShared shared_series(Session const& before) const;
  std::vector<std::string> describe_changes(bool with_reports) const;
  static std::string_view placement_of(NfEntry const& entry);
  NfReport report_of(std::size_t nf, metrics::Snapshot const& counts) const;
  void describe_device(DeviceReport& report) const;
  std::vector<ClassifierReport> classifier_reports(metrics::Snapshot const& counts) const;
  std::vector<ShardReport> shard_reports(metrics::Snapshot const& counts) const;

  chain::ChainConfig config_;  ///< of make_nfs() on with the layout
  RunOptions options_;         ///< without new_keys: it applies to one start only
  AutoPlacement placement_;
  std::atomic<bool> is_started_{false};
  RunEnd end_;
  Ends ends_;
  Pipeline pipeline_;
  DeviceManager devices_;
  std::optional<Takeover> takeover_;  ///< of a session that replaces another
  std::unique_ptr<FlowControl> flow_;
  Telemetry telemetry_;
  std::mutex nfs_mutex_;  ///< held while the NFs are replaced, or a device is bound again
};

}  // namespace catena::runtime
