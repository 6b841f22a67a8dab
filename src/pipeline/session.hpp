// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/metrics.hpp"
#include "base/core/trace.hpp"
#include "chain/chain_file.hpp"
#include "chain/named_files.hpp"
#include "chain/placing.hpp"
#include "chain/segments.hpp"
#include "io/shared_ends.hpp"
#include "nf/named_files.hpp"
#include "nf/registry.hpp"
#include "pipeline/chrome_trace.hpp"
#include "pipeline/classifier_stage.hpp"
#include "pipeline/congestion_hook.hpp"
#include "pipeline/device_recovery.hpp"
#include "pipeline/device_side.hpp"
#include "pipeline/device_stage.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/flow_signals.hpp"
#include "pipeline/gpu_sharing.hpp"
#include "pipeline/host_stages.hpp"
#include "pipeline/nf_making.hpp"
#include "pipeline/outputs.hpp"
#include "pipeline/report.hpp"
#include "pipeline/run_options.hpp"
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
#include <utility>
#include <vector>

namespace catena::runtime {

class Session;

/// A running session whose ports another one is to take over.
struct PreviousPipeline {
  Session* session = nullptr;
  std::shared_ptr<void> hold = nullptr;  ///< keeps the session, which may end after the release; null: it stays
};

/// The chain as placed for the current traffic.
struct Replacement {
  chain::ChainConfig config;
  RunOptions options;
  std::string why;  ///< for people
};

/// A chain ready to run: files read, NFs created, device opened, kernels compiled.
/// Call order: create() -> start() if needed -> run() once. stop(), progress(), report() and counts() may be called
/// from any thread while it runs.
class Session {
 public:
  /// Errors: as load_chain() and the NFs' create(); Unavailable if the requested device is missing; NotFound for an
  /// unknown NF type (with its position); as check_files(), and the system's error if an output cannot be created. A
  /// failed call has changed no file: outputs are opened last. Waits for processes of NFs, and for the readers of FIFO
  /// outputs; Cancelled if `give_up` ends that.
  ///
  /// With `before`, which has the same `options`, the new session is to take over its ports, its packet memory and the
  /// state of NFs in both sessions. `before` runs until start(), which ends it. No packet is lost or overtaken: packets
  /// received from then on wait until earlier ones have left. Further error: FailedPrecondition if the session cannot
  /// replace `before`, with the reason. An NF's refusal of its configuration or its keys is InvalidArgument in this
  /// case, too.
  static Result<std::unique_ptr<Session>> create(chain::ChainConfig config, RunOptions const& options,
                                                 nf::Registry const& registry, std::stop_token const& give_up = {},
                                                 std::optional<PreviousPipeline> before = std::nullopt);
  ~Session();

  /// Information for the user before packets run: device, placements, NFs' start reports. Warnings first.
  std::vector<std::string> start_report() const;
  /// The plan of transfers between host and device, of several devices the first; nullopt without a device.
  std::optional<plan::Plan> plan() const;
  /// From here on this chain gets the packets at shared ports; at other ports, the packets no longer taken by the
  /// previous session. run() calls it if needed. FailedPrecondition, without effect, if the previous session has ended
  /// by itself.
  Status start();
  /// Runs until the source is finished or stop(). After an error of a stage, report() has the report so far. On return
  /// the outputs are flushed, whatever became of the run; DataLoss if that fails.
  Status run();
  /// Replaces NFs whose configuration differs in `next`, or whose files have other content. Packets received from now
  /// on are decided by the new NFs, earlier ones by the old NFs. No packet is lost or waits for the end of another. The
  /// new NFs take over the state of the old ones (see Nf::migrate_state()). Returns a line for each new NF, with its
  /// start report. Beside run(), one thread at a time; takes as long as create() for these NFs. After an error nothing
  /// has changed:
  ///   FailedPrecondition  more has changed, or something fixed in a running chain; the text names it. Another session
  ///                       has to be made
  ///   Aborted             an NF cannot continue with the old NF's state. No session can take over then; one created
  ///                       after the end of this session can start without the state
  ///   Unavailable         the device is lost; or the maximum number of changes waits for packets. For NFs with state
  ///                       the maximum is one
  ///   others              as create()
  /// `new_keys`: as in RunOptions, for keys of this change. `give_up`: as in create().
  Result<std::vector<std::string>> change(chain::ChainConfig next, nf::Registry const& registry, bool new_keys = false,
                                          std::stop_token const& give_up = {});
  /// At its end, NFs that are nf::Portable are left unfinished for another process that replaces this one. Any thread,
  /// while it runs.
  void release_nfs();
  /// Whether another session replaces it, or is about to.
  bool is_followed() const { return end_ == End::kPassedOn; }
  /// OK, or why no session with `next` can take over from this one, as far as known before creating it:
  /// FailedPrecondition.
  Status can_be_followed_by(chain::ChainConfig next);
  /// Result and errors of change(), as far as known without doing it: nothing is opened, and no state is taken over.
  Result<std::vector<std::string>> preview_change(chain::ChainConfig next, nf::Registry const& registry,
                                                  std::stop_token const& give_up = {});
  /// Whether NFs `on: auto` should be placed differently: the packet size has changed since their placement, and the
  /// model predicts a gain of more than a tenth. nullopt: no. A session of the result can take over from this one. Call
  /// every TrafficWatch::kPeriod beside run(), by one thread at a time. Creates NFs if the size has changed, which may
  /// take as long as create(). Errors: as chain::place().
  Result<std::optional<Replacement>> sample_traffic(nf::Registry const& registry);
  /// rx takes no more packets; packets inside are finished. Async-signal safe.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  /// All counts, now.
  metrics::Snapshot counts() const { return metrics_.read(); }
  RunProgress progress() const;
  /// The counts now, with their context. After run() it has the NFs' final reports.
  Report report() const;
  /// NF number `nf` of the chain, in its first shard. Read only: the run owns it.
  nf::Instance& instance(std::size_t nf) const { return *first_of(nf).instance; }
  /// After run(): time spans of each stage, if traced.
  std::vector<StageTrace> traces() const;
  /// After run(): work on a device never ended, so the process must exit without tearing the device down.
  bool abandoned_device() const;

 private:
  struct Entry {
    chain::NfConfig config;
    std::unique_ptr<nf::Instance> instance;
    DeviceStage* device_stage = nullptr;             ///< null: on the CPU
    PacketStage* stage = nullptr;                    ///< null: that of an earlier NF in the same process
    std::optional<chain::NfKey> key = std::nullopt;  ///< set if the NF's cost is needed
    std::vector<nf::NamedFile> files = {};           ///< named by it at its creation
    std::vector<nf::NamedKey> keys = {};             ///< likewise
    /// Its configuration and the content of its files at that time; nullopt if they could not be read again.
    std::optional<Content> content = std::nullopt;
  };
  /// Replacements of NFs: for one position, or for a group in one process.
  struct PendingReplacements;
  /// A part of the chain for the packets of some flows, with its own NFs, stages and queues.
  struct Shard {
    Shard() = default;
    Shard(Shard&&) = default;
    Shard(Shard const&) = delete;
    std::vector<Entry> nfs;
    std::deque<memory::UnitQueue> queues;  ///< numbered as in the segment's topology
  };
  /// NFs that divide packets in the same way.
  struct Segment {
    chain::Segment part;
    Topology topology;
    std::vector<Shard> shards = {};               ///< at least one
    std::unique_ptr<SplitOrder> order = nullptr;  ///< of several with one source, if packets are merged again
  };
  static constexpr const char* kNobodyOnGpu = "no NF of the chain is placed on the gpu";
  Session() = default;
  /// An NF that replaces one of the previous session.
  struct NextPipeline {
    nf::Instance* instance;
    nf::Instance* before;
  };
  /// A process that replaces one of the previous session.
  struct NextProcess {
    nf_process::NfProcess* process;
    nf_process::NfProcess* before;
    std::size_t first;  ///< position of its first NF
  };
  bool transfer_ports(std::vector<nf::Instance const*> migrated, std::vector<nf_process::NfProcess*> const& processes);
  bool is_divided_by_nf() const;
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
  /// Calls `visit(shard, entry)` for every NF of every shard, section by section.
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
  /// Of a shard.
  memory::PacketPool& pool_of(std::size_t shard) const { return *pools_[shard % pools_.size()]; }
  Status open_devices(RunOptions const& options);
  Status resolve_unit_packets(RunOptions const& options);
  Status make_device_sides(RunOptions const& options);
  Status resolve_sharing(RunOptions& options);
  bool has_isolated_on_gpu() const;
  static bool is_elsewhere(Entry const& entry);
  std::size_t number_in_sharing(std::size_t position) const;
  Fetch fetch_for(nf::Instance const& instance, std::size_t position) const;
  Status make_sharing(RunOptions const& options);
  GpuSharing::Traffic traffic() const;
  void prepare_processes();
  std::uint64_t waiting_for(std::size_t nf) const;
  Result<std::vector<kernel::LaunchBounds>> bounds_on(device::Device& device);
  Status start_nfs(bool new_keys);
  Status open_ends(RunOptions const& options);
  Status make_stages(RunOptions const& options, std::stop_token const& give_up);
  void add_rx(RecordLog* lines);
  Status add_nf_stages(Segment& segment, RecordLog* lines);
  Status add_nf_stage(Segment& segment, std::size_t shard, std::size_t number, RecordLog* lines);
  Status make_signals();
  void end_signals(bool is_passed_on);
  void make_gates();
  std::vector<std::size_t> nfs_behind(std::size_t node) const;
  bool is_in_front_of_tx(std::size_t node) const;
  RateController controller_of(std::size_t node, std::size_t shard) const;
  void add_classifier_stage(Segment& segment, std::size_t shard, std::size_t node, RecordLog* lines);
  bool has_steering() const;
  void add_process_stage(Segment& segment, std::size_t shard, std::size_t first, nf_process::NfProcess& process,
                         RecordLog* lines);
  ShardMap shard_map_of(Segment const& segment) const;
  Splitter splitter_to(Segment& segment, RecordLog* lines);
  Merger merger_of(Segment& segment, RecordLog* lines);
  void add_tx(RecordLog* lines);
  void group_by_shard();
  void make_recovery(RunOptions const& options);
  void add_host_stage(std::unique_ptr<HostStage> stage, std::string_view shard = {});
  trace::SpanLog* trace_of_next_stage(std::string name);
  void register_counts();
  void register_steering_counts();
  void register_flow_counts();
  Status work();
  Status work_on(std::size_t group, std::size_t groups);
  std::string describe_shards() const;
  double part_done() const;
  static std::string_view placement_of(Entry const& entry);
  NfReport report_of(std::size_t nf, metrics::Snapshot const& counts) const;

  chain::ChainConfig config_;
  RunOptions options_;  ///< without new_keys, which is a consent for one start
  std::uint32_t workers_ = 1;
  std::uint64_t flow_key_ = 0;  ///< of flow_hash()
  std::vector<std::uint32_t> cores_;
  std::optional<chain::Placement> placement_;  ///< if an NF is `on: auto`
  chain::Location place_;                      ///< of placement_
  chain::SyncOptions placed_with_;             ///< likewise
  std::optional<TrafficWatch> traffic_watch_;  ///< likewise
  bool is_traced_ = false;
  bool has_chosen_units_ = false;  ///< the session chose the unit size
  bool has_own_ends_ = false;      ///< each shard has its own source, sink and pool
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> is_started_{false};
  /// How the session ends, once its stages have ended.
  enum class End : std::uint8_t { kOpen, kByItself, kPassedOn };
  std::atomic<End> end_{End::kOpen};
  std::vector<nf::Instance const*> migrated_;  ///< by the next session, if passed on
  Status outcome_;                             ///< of run(); valid if has_ended_
  bool is_empty_ = false;                      ///< all packets have left; likewise
  bool abandoned_before_ = false;              ///< by the previous session
  std::string no_device_reason_;
  std::vector<std::shared_ptr<memory::PacketPool>>
      pools_;                                            ///< one, or one for each shard; a device that is lost keeps it
  std::vector<std::shared_ptr<device::Device>> opened_;  ///< may be empty
  std::vector<chain::NextNodeTable> tables_;             ///< of a graph: of rx, and of its NFs
  std::vector<Segment> segments_;                        ///< at least one
  std::vector<std::vector<Entry*>> entries_;             ///< of each NF of the chain: one for each of its shards
  std::vector<std::unique_ptr<DeviceSide>> devices_;     ///< shard i uses number i modulo their number; may be empty
  std::shared_ptr<device::Device> shared_device_;        ///< until its partitions are settled
  std::unique_ptr<GpuSharing> sharing_;                  ///< null: every NF has the whole device
  chain::SharingOptions sharing_options_;                ///< of sharing_
  std::vector<std::size_t> shared_by_;                   ///< positions of the NFs of sharing_
  std::optional<PreviousPipeline> before_;               ///< until this session has taken over from it
  std::vector<NextPipeline> next_nfs_;                   ///< while before_ is set
  std::vector<NextProcess> next_processes_;              ///< likewise for processes
  std::vector<std::string> restarted_nfs_;               ///< NFs that start without the previous state
  std::vector<std::unique_ptr<io::SharedSource>> sources_;  ///< one, or one for each shard
  std::shared_ptr<Outputs> outputs_;
  std::vector<std::shared_ptr<io::Sink>> opened_sinks_;       ///< until sinks_ has them
  std::vector<std::unique_ptr<io::SharedSink>> sinks_;        ///< as many as sources
  std::vector<std::unique_ptr<BufferReservation>> reserves_;  ///< of each pool
  std::vector<chain::FlowLimits> limits_;                     ///< of each NF's ring; empty if rings have no bounds
  std::vector<std::vector<std::unique_ptr<CongestionMonitor>>> monitors_;  ///< of each NF, in each shard
  std::deque<FlowGate> gates_;
  std::vector<std::vector<FlowGate const*>> gates_of_;  ///< of each NF
  std::vector<std::unique_ptr<EdgeFilter>> edges_;
  std::shared_ptr<SourcePauses> pauses_ = std::make_shared<SourcePauses>();  ///< of rx; shared with the next session
  std::shared_ptr<FlowSignals> signals_;                                     ///< null: no host is signalled; likewise
  std::optional<TxPause> tx_pause_;                                          ///< of signals_
  std::shared_ptr<CongestionHook> hook_;                                     ///< null: no command is run; likewise
  std::optional<RecordLog> lines_;
  std::vector<std::unique_ptr<trace::SpanLog>> trace_logs_;  ///< of each stage, if traced
  std::vector<std::string> trace_names_;
  std::unique_ptr<DeviceRecovery> recovery_;  ///< null if a lost device stays lost
  std::vector<std::unique_ptr<PacketStage>> stages_;
  std::vector<RxStage*> rx_;  ///< as many as sources, and as sinks
  std::vector<TxStage*> tx_;
  std::vector<ReshardStage*> reshard_stages_;
  std::vector<std::pair<std::size_t, ClassifierStage*>> steerings_;  ///< with their shards
  metrics::Registry metrics_;
  std::mutex change_mutex_;                ///< for bindings of the stages, and for taking replacements
  std::atomic<std::uint32_t> version_{0};  ///< of the NFs, for units received by rx
  /// Replaced instances whose descriptors are still in use.
  std::vector<std::unique_ptr<nf::Instance>> kept_;
  std::atomic<std::int64_t> began_ns_{0};  ///< 0: not yet
  std::atomic<std::int64_t> ended_ns_{0};
};

}  // namespace catena::runtime
