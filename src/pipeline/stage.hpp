// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/trace.hpp"
#include "base/sched/stage.hpp"
#include "pipeline/flow.hpp"

#include <catena/core/counter.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace catena::runtime {

using sched::Progress;

/// A CPU stage takes and passes on units, if available, up to this many packets at once. So the cost of moving them
/// from one core to the next does not depend on the size of a unit.
inline constexpr std::uint32_t kPacketsAtOnce = 256;

/// One step of the data path: a stage that counts its packets, and that waits for downstream stages.
class PacketStage : public sched::Stage {
 public:
  using Stage::Stage;
  /// Has the stage ask `gate`, which outlives it, whether it may take packets. Before the first poll.
  void control(FlowGate& gate) { gate_ = &gate; }
  /// It takes no more packets: no stage has to wait for it. May be called repeatedly. By the polling thread.
  void end_gate() {
    if (gate_ != nullptr) {
      gate_->end();
    }
  }
  /// Packets processed. Any thread.
  std::uint64_t packets() const { return packets_; }

 protected:
  void count(std::uint64_t packets) { packets_ += packets; }
  /// Call once at each poll: false while downstream stages have too many waiting packets.
  bool may_take() { return gate_ == nullptr || gate_->may_take(); }

 private:
  Counter packets_;
  FlowGate* gate_ = nullptr;
};

/// A stage on the CPU alone. `trace`: if set, receives its polls with work; must outlive it.
class HostStage : public PacketStage {
 public:
  using PacketStage::PacketStage;
  void trace_to(trace::SpanLog* log) { trace_ = log; }
  void worked(std::int64_t begin_ns, std::int64_t end_ns) final;

 private:
  trace::SpanLog* trace_ = nullptr;
  std::uint32_t polls_ = 0;
  std::uint64_t traced_packets_ = 0;
};

}  // namespace catena::runtime
