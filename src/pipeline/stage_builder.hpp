// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "nf/instance.hpp"
#include "pipeline/device_manager.hpp"
#include "pipeline/ends.hpp"
#include "pipeline/flow_control.hpp"
#include "pipeline/host_stages.hpp"
#include "pipeline/isolation/process.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/shard_map.hpp"
#include "pipeline/telemetry.hpp"

#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>

namespace catena::runtime {

/// The parts of a chain for its stages, which all outlive them.
struct StageParts {
  chain::ChainConfig const& chain;
  RunOptions const& options;
  Pipeline& pipeline;  ///< with its queues
  Ends& ends;          ///< with open ports
  DeviceManager& devices;
  FlowControl& flow;
  Telemetry& telemetry;
  std::atomic<bool>& stop;  ///< as for RxStage
};

/// Makes the stages of a chain, from rx to tx, and connects them with their queues, flow control and output files.
class StageBuilder {
 public:
  explicit StageBuilder(StageParts const& parts);

  /// `before`: of the running chain to be replaced, else null. `give_up`: as for Ends::open_outputs(). Call it once.
  /// Errors: as Ends::open_outputs() and DeviceStage::create().
  Status make_all(Ends const* before, std::stop_token const& give_up);

 private:
  /// The stage, with its trace. `shard`: appended to its name there.
  template <typename Stage>
  std::unique_ptr<Stage> traced(std::unique_ptr<Stage> stage, std::string_view shard = {}) {
    stage->trace_to(telemetry_.trace_of(concat(stage->name(), shard)));
    return stage;
  }
  Splitter splitter_to(Segment& segment);
  Merger merger_of(Segment& segment);
  void add_rx();
  void add_tx();
  Status add_nf_stages(Segment& segment);
  Status add_nf_stage(Segment& segment, std::size_t shard, std::size_t number);
  void add_process_stage(Segment& segment, std::size_t shard, std::size_t first, nf_process::NfProcess& process);
  void add_classifier_stage(Segment& segment, std::size_t shard, std::size_t node);
  Fetch fetch_for(nf::Instance const& instance, std::size_t position) const;

  chain::ChainConfig const& chain_;
  RunOptions const& options_;
  Pipeline& pipeline_;
  Ends& ends_;
  DeviceManager& devices_;
  FlowControl& flow_;
  Telemetry& telemetry_;
  std::atomic<bool>& stop_;
};

}  // namespace catena::runtime
