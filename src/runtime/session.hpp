// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/named_files.hpp"
#include "chain/placing.hpp"
#include "chain/run_options.hpp"
#include "chain/sections.hpp"
#include "core/metrics.hpp"
#include "core/trace.hpp"
#include "io/tenure.hpp"
#include "nf/named_files.hpp"
#include "nf/registry.hpp"
#include "runtime/chrome_trace.hpp"
#include "runtime/congestion_hook.hpp"
#include "runtime/device_recovery.hpp"
#include "runtime/device_side.hpp"
#include "runtime/device_stage.hpp"
#include "runtime/flow.hpp"
#include "runtime/flow_signals.hpp"
#include "runtime/gpu_sharing.hpp"
#include "runtime/host_stages.hpp"
#include "runtime/nf_making.hpp"
#include "runtime/outputs.hpp"
#include "runtime/report.hpp"
#include "runtime/steer_stage.hpp"
#include "runtime/traffic_watch.hpp"
#include "runtime/wiring.hpp"

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

/// A session that runs and whose ends another one is to take over.
struct Predecessor {
  Session* session = nullptr;
  std::shared_ptr<void> hold = nullptr;  ///< of the session, which may end when this is given back; null: it stays
};

/// What a chain would be that is placed for the packets that come now.
struct Replacement {
  chain::ChainConfig config;
  chain::RunOptions options;
  std::string why;  ///< for people
};

/// A chain that is ready to run: files read, NFs made, device opened, kernels compiled.
/// Call order: create() -> start() if need be -> run() once. stop(), progress(), report() and counts() may be called
/// from any thread while it runs.
class Session {
 public:
  /// Errors: as load_chain() and the NFs' create(); Unavailable where the asked-for device is missing; NotFound for an
  /// unknown NF type (with its position); as check_files(), and what the system says where an output cannot be created.
  /// A session that cannot be made has changed no file: outputs are opened after everything else. Waits for processes
  /// of NFs, and for the readers of outputs that are FIFOs; Cancelled where `give_up` ends that.
  ///
  /// Where there is one `before`, which has the same `options`, this one is to take over its ends, its packet memory
  /// and what packets have left in NFs that are in both: that goes on until start(), which ends it. No packet is lost
  /// then, and none overtakes another: those that rx takes from there on wait until those before have left.
  /// FailedPrecondition, besides: `before` cannot be followed by this one; the text says why. What an NF refuses of its
  /// configuration or its keys is InvalidArgument there, too.
  static Result<std::unique_ptr<Session>> create(chain::ChainConfig config, chain::RunOptions const& options,
                                                 nf::Registry const& registry, std::stop_token const& give_up = {},
                                                 std::optional<Predecessor> before = std::nullopt);
  ~Session();

  /// What a user should know before packets run: device, placements, NFs' start reports. Loud lines first.
  std::vector<std::string> start_report() const;
  /// What moves between host and device, of several the first; nothing where there is no device.
  std::optional<plan::Plan> plan() const;
  /// What arrives at shared ports from here on is this chain's, or at all ends what the one before does not take any
  /// more. run() begins with it where nobody did before. FailedPrecondition where that one has ended by itself: nothing
  /// came of it then.
  Status start();
  /// Runs until the source is finished or stop(). On an error of a stage the report so far is in report(). Whatever
  /// became of the run, outputs have what came to them when it returns; DataLoss where that fails.
  Status run();
  /// Has the NFs whose configuration is another one in `next`, or whose files have other contents, take the place of
  /// those that there are: packets that rx takes from now on are decided by the new ones, those before by the old ones,
  /// and none is lost or waits for the end of another. The new ones take over what packets have left in the old ones
  /// (see Nf::adopt()). Says which NFs those are, with what they say of themselves, a line each. Beside run(), one
  /// thread at a time; takes as long as create() does for these NFs. Errors, after which nothing has changed:
  ///   FailedPrecondition  more has changed than that, or something that a running chain cannot have changed; the text
  ///                       says what. Another session has to be made
  ///   Aborted             an NF cannot go on with what packets have left in the one that there is. No session can take
  ///                       over then; one that is made after the end of this one can begin without it
  ///   Unavailable         the device is lost; or no packets came since as many changes as there may be at a time, of
  ///                       NFs that keep what packets leave in them since the last one
  ///   others              as create()
  /// `new_keys`: as that of RunOptions, of keys that come with this change. `give_up`: as that of create().
  Result<std::vector<std::string>> change(chain::ChainConfig next, nf::Registry const& registry, bool new_keys = false,
                                          std::stop_token const& give_up = {});
  /// At its end those NFs that are nf::Portable are left as they are: another process goes on for them. Any thread,
  /// while it runs.
  void leave_nfs_to_another();
  /// Whether another one goes on for it, or is about to.
  bool is_followed() const { return end_ == End::kPassedOn; }
  /// OK, or why no session can take over from this one with `next`, as far as that can be known before one is made:
  /// FailedPrecondition.
  Status can_be_followed_by(chain::ChainConfig next);
  /// What change() would do, and its errors, as far as that can be known without doing it: nothing is opened, and no
  /// state is taken over.
  Result<std::vector<std::string>> preview_change(chain::ChainConfig next, nf::Registry const& registry,
                                                  std::stop_token const& give_up = {});
  /// Whether NFs that are `on: auto` would be better placed otherwise: packets are of another size than they were
  /// placed for, and by the model the chain would be faster by more than a tenth. None: no. A session of what comes
  /// back can take over from this one. To be asked every TrafficWatch::kPeriod beside run(), by one thread at a time.
  /// Makes NFs where the size is another one, which may take as long as create() does. Errors: as chain::place().
  Result<std::optional<Replacement>> look_at_traffic(nf::Registry const& registry);
  /// rx takes no more packets; what is inside is finished. Async-signal safe.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  /// What there is to count, now.
  metrics::Snapshot counts() const { return metrics_.read(); }
  RunProgress progress() const;
  /// The counts now, with what they are about. What NFs say at their end is in it after run().
  Report report() const;
  /// NF number `nf` of the chain, as its first shard has it. What the run owns, others only read.
  nf::Instance& instance(std::size_t nf) const { return *first_of(nf).instance; }
  /// After run(): what each stage did when, where that was traced.
  std::vector<StageTrace> traces() const;
  /// After run(): work on a device never ended, so the process must leave without tearing the device down.
  bool abandoned_device() const;

 private:
  struct Entry {
    chain::NfConfig config;
    std::unique_ptr<nf::Instance> instance;
    DeviceStage* device_stage = nullptr;             ///< null: on the CPU
    Stage* stage = nullptr;                          ///< null: that of an NF before, which has the same process
    std::optional<chain::NfKey> key = std::nullopt;  ///< where it is to be known what the NF costs
    std::vector<nf::NamedFile> files = {};           ///< that it named when it was made
    std::vector<nf::NamedKey> keys = {};             ///< the same
    /// Its configuration with what was in the files then; none: they could not be read again.
    std::optional<Content> content = std::nullopt;
  };
  /// NFs that are to take the place of others: those of one position, or of a group that has one process.
  struct Successors;
  /// A part of the chain that has the packets of some flows: NFs, stages and queues of its own.
  struct Shard {
    Shard() = default;
    Shard(Shard&&) = default;
    Shard(Shard const&) = delete;
    std::vector<Entry> nfs;
    std::deque<memory::UnitQueue> queues;  ///< as the section's wiring numbers them
  };
  /// NFs whose packets are divided in the same way.
  struct Section {
    chain::Section part;
    Wiring wiring;
    std::vector<Shard> shards = {};               ///< at least one
    std::unique_ptr<SplitOrder> order = nullptr;  ///< of several with one source whose packets are put together again
  };
  static constexpr const char* kNobodyOnGpu = "no NF of the chain is placed on the gpu";
  Session() = default;
  /// An NF that goes on for one of the session before.
  struct Heir {
    nf::Instance* instance;
    nf::Instance* before;
  };
  /// A process that goes on for one of the session before.
  struct ProcessHeir {
    nf_process::NfProcess* process;
    nf_process::NfProcess* before;
    std::size_t first;  ///< position of its first NF
  };
  bool pass_on(std::vector<nf::Instance const*> adopted, std::vector<nf_process::NfProcess*> const& processes);
  bool is_divided_by_nf() const;
  bool go_on_with_files_of_before(std::size_t nf);
  void find_process_heirs(std::size_t first);
  bool goes_on_as_process(std::size_t nf) const;
  Status check_before() const;
  Status find_heirs(bool new_keys);
  Status take_over();
  std::uint32_t slots_for_those_before(std::size_t pool) const;
  Result<std::unique_lock<std::mutex>> lock_settled();
  void take_ends_over(Session& before);
  void finish_nfs(Status& status, bool is_passed_on);
  Status run_to_end();
  Status can_change() const;
  Result<std::vector<Successors>> make_successors(chain::ChainConfig& next, nf::Registry const& registry,
                                                  std::stop_token const& give_up);
  Result<std::vector<Successors>> make_checked_successors(chain::ChainConfig& next, nf::Registry const& registry,
                                                          std::stop_token const& give_up);
  Status make_successors_of(std::size_t first, chain::ChainConfig const& next, nf::Registry const& registry,
                            std::stop_token const& give_up, nf::NamedFiles const& of_nfs, Successors& made);
  std::vector<chain::KeysOfNf> keys_with(std::span<const Successors> all, chain::ChainConfig const& next) const;
  Status check_successors(Successors const& made) const;
  Status prepare_to_adopt(Successors& made, bool new_keys) const;
  Status attach_successors(Successors& made);
  Status start_successors(Successors& made, chain::ChainConfig const& next, bool new_keys);
  static std::vector<std::string> describe_successors(std::span<const Successors> all);
  void publish(std::vector<Successors> all, chain::ChainConfig const& next);
  std::size_t waiting_successors() const;
  void reclaim_replaced();
  std::unique_lock<std::mutex> admit_recovery();
  nf_process::Setup setup_of_group(std::span<const chain::NfConfig> group, chain::ChainConfig const& config,
                                   bool is_any_elsewhere) const;
  nf::RunContext run_context(bool new_keys) const;
  bool wants_device() const;
  /// Calls `visit(shard, entry)` for every NF of every shard, section by section.
  template <typename Visit>
  void for_each_entry(Visit visit) const {
    for (Section const& section : sections_) {
      for (std::size_t shard = 0; shard < section.shards.size(); ++shard) {
        for (Entry const& entry : section.shards[shard].nfs) {
          visit(shard, entry);
        }
      }
    }
  }
  std::vector<nf::Instance*> first_instances() const;
  Entry const& first_of(std::size_t nf) const { return *entries_[nf].front(); }
  Status place_nfs(nf::Registry const& registry, chain::RunOptions const& options);
  Status make_nfs(nf::Registry const& registry, chain::RunOptions const& options);
  Status make_process(nf::Registry const& registry, chain::RunOptions const& options, nf::NamedFiles const& of_nfs,
                      std::vector<Entry>& first);
  Status make_sections(nf::Registry const& registry, chain::RunOptions const& options, std::vector<Entry> first);
  static Status replicate(nf::Registry const& registry, chain::RunOptions const& options, std::span<const Entry> first,
                          std::uint32_t shard, Section& section);
  static Status replicate_process(nf::Registry const& registry, chain::RunOptions const& options,
                                  std::span<const Entry> first, std::vector<Entry>& nfs);
  Status make_pools(chain::RunOptions const& options);
  /// Of a shard.
  memory::PacketPool& pool_of(std::size_t shard) const { return *pools_[shard % pools_.size()]; }
  Status open_devices(chain::RunOptions const& options);
  Status settle_unit_packets(chain::RunOptions const& options);
  Status make_device_sides(chain::RunOptions const& options);
  Status settle_sharing(chain::RunOptions& options);
  bool has_isolated_on_gpu() const;
  static bool is_elsewhere(Entry const& entry);
  std::size_t number_in_sharing(std::size_t position) const;
  Fetch fetch_for(nf::Instance const& instance, std::size_t position) const;
  Status make_sharing(chain::RunOptions const& options);
  GpuSharing::Traffic traffic() const;
  void prepare_processes();
  std::uint64_t waiting_for(std::size_t nf) const;
  Result<std::vector<kernel::LaunchBounds>> bounds_on(device::Device& device);
  Status start_nfs(bool new_keys);
  Status open_ends(chain::RunOptions const& options);
  Status make_stages(chain::RunOptions const& options, std::stop_token const& give_up);
  void add_rx(LineBook* lines);
  Status add_nf_stages(Section& section, LineBook* lines);
  Status add_nf_stage(Section& section, std::size_t shard, std::size_t number, LineBook* lines);
  Status make_signals();
  void end_signals(bool is_passed_on);
  void make_gates();
  std::vector<std::size_t> nfs_behind(std::size_t node) const;
  bool is_in_front_of_tx(std::size_t node) const;
  RateController controller_of(std::size_t node, std::size_t shard) const;
  void add_steer_stage(Section& section, std::size_t shard, std::size_t node, LineBook* lines);
  bool has_steering() const;
  void add_process_stage(Section& section, std::size_t shard, std::size_t first, nf_process::NfProcess& process,
                         LineBook* lines);
  Division division_of(Section const& section) const;
  Splitter splitter_to(Section& section, LineBook* lines);
  Merger merger_of(Section& section, LineBook* lines);
  void add_tx(LineBook* lines);
  void group_by_shard();
  void make_recovery(chain::RunOptions const& options);
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
  chain::RunOptions options_;  ///< without new_keys, which is a consent for one start
  std::uint32_t workers_ = 1;
  std::uint64_t flow_key_ = 0;  ///< of flow_hash()
  std::vector<std::uint32_t> cores_;
  std::optional<chain::Placement> placement_;  ///< where an NF is `on: auto`
  chain::Place place_;                         ///< of placement_
  chain::SyncOptions placed_with_;             ///< the same
  std::optional<TrafficWatch> traffic_watch_;  ///< the same
  bool is_traced_ = false;
  bool has_chosen_units_ = false;  ///< how large units are, nobody said
  bool has_own_ends_ = false;      ///< each shard has a source, a sink and a pool of its own
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> is_started_{false};
  /// What becomes of it once its stages have ended.
  enum class End : std::uint8_t { kOpen, kByItself, kPassedOn };
  std::atomic<End> end_{End::kOpen};
  std::vector<nf::Instance const*> adopted_;  ///< by the next one, where it is passed on
  Status outcome_;                            ///< of run(); there when has_ended_ is
  bool is_empty_ = false;                     ///< all packets have left; the same
  bool abandoned_before_ = false;             ///< by the one before
  std::string no_device_reason_;
  std::vector<std::shared_ptr<memory::PacketPool>>
      pools_;                                            ///< one, or one for each shard; a device that is lost keeps it
  std::vector<std::shared_ptr<device::Device>> opened_;  ///< may be none
  std::vector<chain::SteerTable> tables_;                ///< of a graph: that of rx, and those of its NFs
  std::vector<Section> sections_;                        ///< at least one
  std::vector<std::vector<Entry*>> entries_;             ///< of each NF of the chain: one for each of its shards
  std::vector<std::unique_ptr<DeviceSide>> devices_;     ///< of shard i number i modulo their number; may be none
  std::shared_ptr<device::Device> shared_device_;        ///< while the parts of it are settled
  std::unique_ptr<GpuSharing> sharing_;                  ///< null: every NF takes all of the device
  chain::SharingOptions sharing_options_;                ///< of sharing_
  std::vector<std::size_t> shared_by_;                   ///< positions of the NFs of sharing_
  std::optional<Predecessor> before_;                    ///< until this one has taken over from it
  std::vector<Heir> heirs_;                              ///< while there is one before
  std::vector<ProcessHeir> process_heirs_;               ///< the same of processes
  std::vector<std::string> begins_anew_;                 ///< NFs that lack what those of the one before know
  std::vector<std::unique_ptr<io::SourceTenure>> sources_;  ///< one, or one for each shard
  std::shared_ptr<Outputs> outputs_;
  std::vector<std::shared_ptr<io::Sink>> opened_sinks_;  ///< until sinks_ have them
  std::vector<std::unique_ptr<io::SinkTenure>> sinks_;   ///< as many as sources
  std::vector<std::unique_ptr<UnitReserve>> reserves_;   ///< of each pool
  std::vector<chain::FlowLimits> limits_;                ///< of each NF's ring; none where rings have no bounds
  std::vector<std::vector<std::unique_ptr<CongestionMonitor>>> monitors_;  ///< of each NF, in each shard
  std::deque<FlowGate> gates_;
  std::vector<std::vector<FlowGate const*>> gates_of_;  ///< of each NF
  std::vector<std::unique_ptr<EdgeFilter>> edges_;
  std::shared_ptr<SourcePauses> pauses_ = std::make_shared<SourcePauses>();  ///< of rx; the next one goes on with it
  std::shared_ptr<FlowSignals> signals_;                                     ///< null: no other host is told; the same
  std::optional<TxPause> tx_pause_;                                          ///< of signals_
  std::shared_ptr<CongestionHook> hook_;                                     ///< null: no command is run; the same
  std::optional<LineBook> lines_;
  std::vector<std::unique_ptr<trace::SpanLog>> trace_logs_;  ///< of each stage, where it is traced
  std::vector<std::string> trace_names_;
  std::unique_ptr<DeviceRecovery> recovery_;  ///< null where a device that is lost stays so
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<RxStage*> rx_;  ///< as many as sources, and as sinks
  std::vector<TxStage*> tx_;
  std::vector<HandOverStage*> hand_overs_;
  std::vector<std::pair<std::size_t, SteerStage*>> steerings_;  ///< with their shards
  metrics::Registry metrics_;
  std::mutex change_mutex_;                ///< whoever makes offers to the stages, or has them take successors
  std::atomic<std::uint32_t> version_{0};  ///< of the NFs, for units that rx takes
  /// Instances that were replaced, but whose descriptors others still have.
  std::vector<std::unique_ptr<nf::Instance>> kept_;
  std::atomic<std::int64_t> began_ns_{0};  ///< 0: not yet
  std::atomic<std::int64_t> ended_ns_{0};
};

}  // namespace catena::runtime
