// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/named_files.hpp"
#include "chain/placing.hpp"
#include "chain/segments.hpp"
#include "nf/named_files.hpp"
#include "nf/registry.hpp"
#include "pipeline/device_manager.hpp"
#include "pipeline/device_side.hpp"
#include "pipeline/device_stage.hpp"
#include "pipeline/ends.hpp"
#include "pipeline/flow_control.hpp"
#include "pipeline/gpu_sharing.hpp"
#include "pipeline/host_stages.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/report.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/telemetry.hpp"
#include "pipeline/topology.hpp"
#include "pipeline/traffic_watch.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
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

/// The chain with a better placement for the current traffic.
struct Replacement {
  chain::ChainConfig config;
  RunOptions options;
  std::string why;  ///< a sentence for the log
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
  /// takes over its ports, its packet memory, and the state of NFs in both chains. No packet is lost or reordered: new
  /// packets wait until the packets in `before` have left. More errors with `before`: FailedPrecondition, with the
  /// reason, if it cannot be replaced; InvalidArgument if an NF refuses its configuration or its keys.
  static Result<std::unique_ptr<Session>> create(chain::ChainConfig config, RunOptions const& options,
                                                 nf::Registry const& registry, std::stop_token const& give_up = {},
                                                 std::optional<PreviousPipeline> before = std::nullopt);
  ~Session();

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
  /// Replaces the NFs that differ in `next`, in their configuration or in the content of their files. The new NFs
  /// process packets received after the change, the old NFs the earlier packets. No packet is lost or delayed. The new
  /// NFs take over the state of the old ones (see Nf::migrate_state()). Returns a line for each new NF, with its start
  /// report. Called while run() runs, by one thread at a time. Takes as long as create() for the new NFs.
  /// After an error nothing has changed:
  ///   FailedPrecondition  a change in `next` is impossible in a running chain; the message names it. Use a new session
  ///                       with `before`
  ///   Aborted             a new NF cannot take over the old NF's state. Use a new session after the end of this one;
  ///                       its NF starts without the state
  ///   Unavailable         the device is lost, or too many earlier changes wait for packets: for NFs with state one
  ///                       change may wait
  ///   others              as create()
  /// `new_keys`: as in RunOptions, for keys of this change. `give_up`: as in create().
  Result<std::vector<std::string>> change(chain::ChainConfig next, nf::Registry const& registry, bool new_keys = false,
                                          std::stop_token const& give_up = {});
  /// At the end of run(), keeps the state of nf::Portable NFs instead of finishing them: another process replaces this
  /// one. Any thread, while run() runs.
  void release_nfs();
  /// Whether another session has replaced this one or is replacing it.
  bool is_followed() const { return end_ == End::kPassedOn; }
  /// Checks whether a session with `next` could replace this one, without creating it: FailedPrecondition with the
  /// reason if not. create() may still find another reason.
  Status can_be_followed_by(chain::ChainConfig next);
  /// Result and errors of change(), without changing the chain: opens nothing and takes over no state.
  Result<std::vector<std::string>> preview_change(chain::ChainConfig next, nf::Registry const& registry,
                                                  std::stop_token const& give_up = {});
  /// Returns a new placement of the NFs `on: auto` if the packet size has changed since their placement and the model
  /// predicts a gain of more than a tenth; else nullopt. A session with the result can replace this one. Call it every
  /// TrafficWatch::kPeriod while run() runs, by one thread at a time. After a change of size it creates NFs, which may
  /// take as long as create(). Errors: as chain::place().
  Result<std::optional<Replacement>> sample_traffic(nf::Registry const& registry);
  /// Ends run(): rx takes no more packets, and the chain finishes the packets in flight. Async-signal safe.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  /// All counts, now.
  metrics::Snapshot counts() const { return telemetry_.counts(); }
  RunProgress progress() const { return telemetry_.progress(); }
  /// The counts now, with their context. After run() it has the NFs' final reports.
  Report report() const;
  /// NF number `nf` of the chain, in its first shard. The session owns it. Read only.
  nf::Instance& instance(std::size_t nf) const { return *first_of(nf).instance; }
  /// After run(): time spans of each stage, if traced.
  std::vector<StageTrace> traces() const { return telemetry_.traces(); }
  /// After run(): whether a device still has unfinished work. The process must then exit without closing the device.
  bool abandoned_device() const { return devices_.abandoned(); }

 private:
  struct Entry {
    chain::NfConfig config;
    std::unique_ptr<nf::Instance> instance;
    DeviceStage* device_stage = nullptr;             ///< null: on the CPU
    PacketStage* stage = nullptr;                    ///< null: an earlier NF in the same process has the stage
    std::optional<chain::NfKey> key = std::nullopt;  ///< set if the NF's cost is needed
    std::vector<nf::NamedFile> files = {};           ///< the files read by create()
    std::vector<nf::NamedKey> keys = {};             ///< the encryption keys read by create()
    /// Configuration and file contents at creation; nullopt if the files could not be read a second time.
    std::optional<Content> content = std::nullopt;
  };
  /// New NFs of change(): for one position of the chain, or for a group in one process.
  struct PendingReplacements;
  /// A part of the chain for the packets of some flows, with its own NFs, stages and queues.
  struct Shard {
    Shard() = default;
    Shard(Shard&&) = default;
    Shard(Shard const&) = delete;
    std::vector<Entry> nfs;
    std::deque<memory::UnitQueue> queues;  ///< numbered as in the segment's topology
  };
  /// Consecutive NFs with the same sharding.
  struct Segment {
    chain::Segment part;
    Topology topology;
    std::vector<Shard> shards = {};               ///< at least one
    std::unique_ptr<SplitOrder> order = nullptr;  ///< of several shards with one source, for the merge
  };
  static constexpr const char* kNobodyOnGpu = "no NF of the chain is placed on the gpu";
  explicit Session(RunOptions const& options)
      : devices_(options.open_device), telemetry_(options.trace || !options.trace_path.empty()) {}
  /// An NF that replaces an NF of the previous session.
  struct NextNf {
    nf::Instance* instance;
    nf::Instance* before;
  };
  /// A process that replaces a process of the previous session.
  struct NextProcess {
    nf_process::NfProcess* process;
    nf_process::NfProcess* before;
    std::size_t first;  ///< position of its first NF
  };
  bool transfer_ports(std::vector<nf::Instance const*> migrated, std::vector<nf_process::NfProcess*> const& processes);
  bool is_divided_by_nf() const;
  Entry const* divider_of(std::size_t nf) const;
  bool is_divided_as_before(std::size_t nf, std::size_t theirs) const;
  bool reopen_files_of_previous(std::size_t nf);
  void find_next_processes(std::size_t first);
  bool continues_as_process(std::size_t nf) const;
  Status check_before() const;
  Status find_next_nfs(bool new_keys);
  Status take_over();
  std::uint32_t slots_for_previous(std::size_t pool) const;
  Result<std::unique_lock<std::mutex>> lock_settled();
  void take_ports(Session& before);
  void finish_nfs(Status& status, bool is_passed_on);
  Status run_to_end();
  Status can_change() const;
  Result<std::vector<PendingReplacements>> make_replacements(chain::ChainConfig& next, nf::Registry const& registry,
                                                             std::stop_token const& give_up);
  Result<std::vector<PendingReplacements>> make_checked_replacements(chain::ChainConfig& next,
                                                                     nf::Registry const& registry,
                                                                     std::stop_token const& give_up);
  Status make_replacements_of(std::size_t first, chain::ChainConfig const& next, nf::Registry const& registry,
                              std::stop_token const& give_up, nf::NamedFiles const& of_nfs, PendingReplacements& made);
  std::vector<chain::KeysOfNf> keys_with(std::span<const PendingReplacements> all,
                                         chain::ChainConfig const& next) const;
  Status check_replacements(PendingReplacements const& made) const;
  Status prepare_migration(PendingReplacements& made, bool new_keys) const;
  Status attach_replacements(PendingReplacements& made);
  Status start_replacements(PendingReplacements& made, chain::ChainConfig const& next, bool new_keys);
  static std::vector<std::string> describe_replacements(std::span<const PendingReplacements> all);
  void publish(std::vector<PendingReplacements> all, chain::ChainConfig const& next);
  std::size_t waiting_replacements() const;
  void reclaim_replaced();
  std::unique_lock<std::mutex> admit_recovery();
  nf_process::Setup setup_of_group(std::span<const chain::NfConfig> group, chain::ChainConfig const& config,
                                   bool is_any_elsewhere) const;
  nf::RunContext run_context(bool new_keys) const;
  bool wants_device() const;
  /// Calls `visit(shard, entry)` for every NF of every shard, segment by segment.
  template <typename Visit>
  void for_each_entry(Visit visit) const {
    for (Segment const& segment : segments_) {
      for (std::size_t shard = 0; shard < segment.shards.size(); ++shard) {
        for (Entry const& entry : segment.shards[shard].nfs) {
          visit(shard, entry);
        }
      }
    }
  }
  std::vector<nf::Instance*> first_instances() const;
  Entry const& first_of(std::size_t nf) const { return *entries_[nf].front(); }
  Status place_nfs(nf::Registry const& registry, RunOptions const& options);
  Status make_nfs(nf::Registry const& registry, RunOptions const& options);
  Status make_process(nf::Registry const& registry, RunOptions const& options, nf::NamedFiles const& of_nfs,
                      std::vector<Entry>& first);
  Status make_segments(nf::Registry const& registry, RunOptions const& options, std::vector<Entry> first);
  static Status replicate(nf::Registry const& registry, RunOptions const& options, std::span<const Entry> first,
                          std::uint32_t shard, Segment& segment);
  static Status replicate_process(nf::Registry const& registry, RunOptions const& options, std::span<const Entry> first,
                                  std::vector<Entry>& nfs);
  Status make_pools(RunOptions const& options);
  Ends const* ends_before() const;
  Status open_devices();
  Status resolve_unit_packets(RunOptions const& options);
  Status make_device_sides();
  bool has_isolated_on_gpu() const;
  static bool is_elsewhere(Entry const& entry);
  Fetch fetch_for(nf::Instance const& instance, std::size_t position) const;
  Status make_sharing(RunOptions const& options, std::shared_ptr<device::Device> const& device);
  GpuSharing::Traffic traffic() const;
  void prepare_processes();
  std::uint64_t waiting_for(std::size_t nf) const;
  Status start_nfs(bool new_keys);
  Status make_stages(RunOptions const& options, std::stop_token const& give_up);
  void add_rx(RecordLog* lines);
  Status add_nf_stages(Segment& segment, RecordLog* lines);
  Status add_nf_stage(Segment& segment, std::size_t shard, std::size_t number, RecordLog* lines);
  FlowPaths flow_paths();
  void add_classifier_stage(Segment& segment, std::size_t shard, std::size_t node, RecordLog* lines);
  bool has_classifiers() const;
  void add_process_stage(Segment& segment, std::size_t shard, std::size_t first, nf_process::NfProcess& process,
                         RecordLog* lines);
  ShardMap shard_map_of(Segment const& segment) const;
  Splitter splitter_to(Segment& segment, RecordLog* lines);
  Merger merger_of(Segment& segment, RecordLog* lines);
  void add_tx(RecordLog* lines);
  void group_by_shard();
  void add_host_stage(std::unique_ptr<HostStage> stage, std::string_view shard = {});
  CountedParts counted_parts() const;
  Status work();
  Status work_on(std::size_t group, std::size_t groups);
  std::string describe_shards() const;
  static std::string_view placement_of(Entry const& entry);
  NfReport report_of(std::size_t nf, metrics::Snapshot const& counts) const;

  chain::ChainConfig config_;
  RunOptions options_;  ///< without new_keys: it applies to one start only
  std::uint32_t workers_ = 1;
  std::uint64_t flow_key_ = 0;  ///< of flow_hash()
  std::vector<std::uint32_t> cores_;
  std::optional<chain::Placement> placement_;  ///< if an NF is `on: auto`
  chain::Location place_;                      ///< of placement_
  chain::SyncOptions placed_with_;             ///< likewise
  std::optional<TrafficWatch> traffic_watch_;  ///< likewise
  bool has_chosen_units_ = false;              ///< the session chose the unit size
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> is_started_{false};
  /// How the session ended.
  enum class End : std::uint8_t { kOpen, kByItself, kPassedOn };
  std::atomic<End> end_{End::kOpen};
  std::vector<nf::Instance const*> migrated_;  ///< NFs whose state the next session took
  Status outcome_;                             ///< result of run(); valid if has_ended_
  bool is_empty_ = false;                      ///< no packet is in flight; valid if has_ended_
  Ends ends_;
  std::vector<chain::NextNodeTable> tables_;  ///< of a graph: of rx, and of its NFs
  std::vector<Segment> segments_;             ///< at least one
  std::vector<std::vector<Entry*>> entries_;  ///< of each NF of the chain: one for each of its shards
  DeviceManager devices_;
  std::optional<PreviousPipeline> before_;   ///< until this session has taken over from it
  std::vector<NextNf> next_nfs_;             ///< while before_ is set
  std::vector<NextProcess> next_processes_;  ///< likewise for processes
  std::vector<std::string> restarted_nfs_;   ///< NFs that start without the previous state
  std::unique_ptr<FlowControl> flow_;
  Telemetry telemetry_;
  std::vector<std::unique_ptr<PacketStage>> stages_;
  std::vector<RxStage*> rx_;  ///< as many as sources, and as sinks
  std::vector<TxStage*> tx_;
  std::vector<ReshardStage*> reshard_stages_;
  std::vector<CountedParts::Branch> classifiers_;
  std::mutex change_mutex_;                ///< for bindings of the stages, and for taking replacements
  std::atomic<std::uint32_t> version_{0};  ///< of the NFs, for units received by rx
  /// Replaced instances whose descriptors are still in use.
  std::vector<std::unique_ptr<nf::Instance>> kept_;
};

}  // namespace catena::runtime
