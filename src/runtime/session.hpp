// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/run_options.hpp"
#include "core/metrics.hpp"
#include "core/trace.hpp"
#include "nf/registry.hpp"
#include "runtime/chrome_trace.hpp"
#include "runtime/device_side.hpp"
#include "runtime/device_stage.hpp"
#include "runtime/host_stages.hpp"
#include "runtime/outputs.hpp"
#include "runtime/report.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::runtime {

/// A chain that is ready to run: files read, NFs made, device opened, kernels compiled.
/// Call order: create() -> run() once. stop(), progress(), report() and counts() may be called from any thread while it
/// runs.
class Session {
 public:
  /// Errors: as load_chain() and the NFs' create(); Unavailable where the asked-for device is missing; NotFound for an
  /// unknown NF type (with its position); as check_files(), and what the system says where an output cannot be created.
  /// A session that cannot be made has changed no file: outputs are opened after everything else.
  static Result<std::unique_ptr<Session>> create(chain::ChainConfig config, chain::RunOptions const& options,
                                                 nf::Registry const& registry);
  ~Session();

  /// What a user should know before packets run: device, placements, NFs' start reports. Loud lines first.
  std::vector<std::string> start_report() const;
  /// What moves between host and device; nothing where there is no device.
  std::optional<plan::Plan> plan() const;
  /// Runs until the source is finished or stop(). On an error of a stage the report so far is in report(). Whatever
  /// became of the run, outputs have what came to them when it returns; DataLoss where that fails.
  Status run();
  /// rx takes no more packets; what is inside is finished. Async-signal safe.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  /// What there is to count, now.
  metrics::Snapshot counts() const { return metrics_.read(); }
  RunProgress progress() const;
  /// The counts now, with what they are about. What NFs say at their end is in it after run().
  Report report() const;
  /// After run(): what each stage did when, where that was traced.
  std::vector<StageTrace> traces() const;
  /// After run(): work on a device never ended, so the process must leave without tearing the device down.
  bool abandoned_device() const;

 private:
  struct Entry {
    chain::NfConfig config;
    std::unique_ptr<nf::Instance> instance;
    DeviceStage* device_stage = nullptr;  ///< null: on the CPU
    Stage const* stage = nullptr;
  };
  /// A part of the chain that has the packets of some flows: NFs, stages and queues of its own.
  struct Shard {
    std::vector<Entry> nfs;
    std::vector<memory::UnitQueue> queues;  ///< in front of each NF, and behind the last
  };
  Session() = default;
  bool wants_device() const;
  static std::vector<nf::Instance*> instances(Shard const& shard);
  std::vector<memory::UnitQueue*> queues(bool first);
  Status make_shards(nf::Registry const& registry, chain::RunOptions const& options);
  Result<Shard> make_shard(nf::Registry const& registry, chain::RunOptions const& options) const;
  Status open_device(chain::RunOptions const& options);
  Status start_nfs(chain::RunOptions const& options);
  Status make_stages(chain::RunOptions const& options, std::unique_ptr<io::Sink> sink);
  Status add_nf_stage(Shard& shard, std::uint32_t position, LineBook* lines);
  void add_rx(LineBook* lines);
  Status add_tx(chain::RunOptions const& options, std::unique_ptr<io::Sink> sink, LineBook* lines);
  void add_host_stage(std::unique_ptr<HostStage> stage);
  trace::SpanLog* trace_of_next_stage();
  void register_counts();
  Status run_stages();
  NfReport report_of(std::size_t nf, metrics::Snapshot const& counts) const;

  chain::ChainConfig config_;
  std::uint32_t workers_ = 1;
  std::vector<std::uint32_t> cores_;
  bool is_traced_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_ended_{false};
  std::string no_device_reason_;
  std::shared_ptr<memory::PacketPool> pool_;  ///< a device that is lost keeps it
  std::vector<Shard> shards_;                 ///< at least one
  std::unique_ptr<DeviceSide> device_;        ///< null where there is none
  std::unique_ptr<io::Source> source_;
  std::optional<Outputs> outputs_;
  std::optional<LineBook> lines_;
  std::optional<SplitOrder> order_;                          ///< with several shards
  std::vector<std::unique_ptr<trace::SpanLog>> trace_logs_;  ///< of each stage, where it is traced
  std::vector<std::unique_ptr<Stage>> stages_;
  RxStage* rx_ = nullptr;
  TxStage* tx_ = nullptr;
  metrics::Registry metrics_;
  std::atomic<std::int64_t> began_ns_{0};  ///< 0: not yet
  std::atomic<std::int64_t> ended_ns_{0};
};

}  // namespace catena::runtime
