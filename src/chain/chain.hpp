// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/planning.hpp"
#include "chain/report.hpp"
#include "chain/run_options.hpp"
#include "chain/trace.hpp"
#include "dataplane/pipeline.hpp"
#include "nf/registry.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace catena::chain {

/// A chain that is ready to run: files read, NFs made, device opened, kernels compiled.
/// Call order: create() -> run() once. stop() and progress() may be called from any thread while it runs.
class Chain {
 public:
  /// Errors: as load_chain() and the NFs' create(); Unavailable where the asked-for device is missing; NotFound for an
  /// unknown NF type (with its position); as check_files(), and what the system says where an output cannot be created.
  /// A chain that cannot be made has changed no file: outputs are opened after everything else.
  static Result<std::unique_ptr<Chain>> create(ChainConfig config, RunOptions const& options,
                                               nf::Registry const& registry);
  ~Chain();

  /// What a user should know before packets run: device, placements, NFs' start reports. Loud lines first.
  std::vector<std::string> start_report() const;
  /// What moves between host and device; nothing where there is no device.
  std::optional<plan::Plan> const& plan() const { return plan_; }
  /// Runs until the source is finished or stop(). On an error of a stage the report so far is in report(). Whatever
  /// became of the run, outputs have what came to them when it returns; DataLoss where that fails.
  Status run();
  /// rx takes no more packets; what is inside is finished. Async-signal safe.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  RunProgress progress() const;
  /// After run().
  Report report() const;
  /// After run(): the time from rx to tx of every packet that was sent.
  dataplane::LatencyHistogram const& latency() const { return tx_->latency(); }
  /// After run(): the launches of each NF on a device, where they were traced.
  std::vector<StageTrace> traces() const;
  /// After run(): work on a device never ended, so the process must leave without tearing the device down.
  bool abandoned_device() const;

 private:
  struct ChainEntry {
    NfConfig config;
    std::unique_ptr<nf::Instance> instance;
    std::unique_ptr<kernel::DeviceNf> device_nf;
    dataplane::DeviceStage* device_stage = nullptr;
    std::unique_ptr<dataplane::TraceLog> trace;
  };
  Chain() = default;
  bool wants_device() const;
  Status open_ports(RunOptions const& options);
  Status open_source(io::DpdkPort& ports);
  void open_sink(io::DpdkPort& ports);
  Status open_device(RunOptions const& options);
  Status load_kernels(SyncOptions const& options);
  Status make_nfs(nf::Registry const& registry, RunOptions const& options);
  Status make_stages(RunOptions const& options);
  Status start_nfs(RunOptions const& options);
  Status open_outputs(RunOptions const& options);
  Status run_stages();
  Status close_outputs();
  Status write_trace();

  ChainConfig config_;
  std::uint32_t workers_ = 1;
  std::vector<std::uint32_t> cores_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<device::Device> device_;
  std::string no_device_reason_;
  std::shared_ptr<memory::PacketPool> pool_;  ///< a device that is lost keeps it
  std::unique_ptr<copy::SharedBuffer> shared_;
  std::optional<plan::Plan> plan_;                ///< where there is a device
  std::string costs_from_;                        ///< what the plan's costs are, for people
  std::vector<packet::FieldSet> only_on_device_;  ///< of each NF
  dataplane::DeviceUse device_use_;
  std::unique_ptr<io::Source> source_;
  std::unique_ptr<io::Sink> sink_;
  std::vector<ChainEntry> nfs_;
  std::unique_ptr<dataplane::Recorder> recorder_;
  std::optional<io::OutputFile> trace_file_;
  std::optional<dataplane::LineBook> lines_;
  std::vector<memory::UnitQueue> queues_;
  std::vector<std::unique_ptr<dataplane::Stage>> stages_;
  dataplane::RxStage* rx_ = nullptr;
  dataplane::TxStage* tx_ = nullptr;
  std::vector<std::atomic<std::uint64_t>> busy_ns_;  ///< of each stage
  double seconds_ = 0;
};

}  // namespace catena::chain
