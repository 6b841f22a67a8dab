// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/trace.hpp"
#include "pipeline/flow.hpp"

#include <catena/core/counter.hpp>
#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {

/// A CPU stage takes and passes on units, if available, up to this many packets at once. So the cost of moving them
/// from one core to the next does not depend on the size of a unit.
inline constexpr std::uint32_t kPacketsAtOnce = 256;

enum class Progress { kIdle, kWorked, kFinished };

/// One pollable step of the data path. poll() never blocks and is called by one thread at a time; after kFinished it
/// is not called again. An error ends the run.
class Stage {
 public:
  explicit Stage(std::string name) : name_(std::move(name)) {}
  virtual ~Stage() = default;
  virtual Result<Progress> poll() = 0;
  /// Whether an idle stage stays idle until a stage before it worked or one of sockets() is readable. False if time or
  /// a device brings work.
  virtual bool is_passive() const { return false; }
  virtual std::vector<int> sockets() const { return {}; }
  /// Has the stage ask `gate`, which outlives it, whether it may take packets. Before the first poll.
  void control(FlowGate& gate) { gate_ = &gate; }
  /// It takes no more packets: no stage has to wait for it. May be called repeatedly. By the polling thread.
  void end_gate() {
    if (gate_ != nullptr) {
      gate_->end();
    }
  }
  std::string const& name() const { return name_; }
  /// Packets processed. Any thread.
  std::uint64_t packets() const { return packets_; }
  /// Time of its polls with work, on any worker. Time of a device is not included. Any thread.
  std::uint64_t busy_ns() const { return busy_ns_; }
  /// By the polling thread: a poll with work began and ended at these times.
  virtual void worked(std::int64_t begin_ns, std::int64_t end_ns) {
    busy_ns_ += static_cast<std::uint64_t>(end_ns - begin_ns);
  }

 protected:
  void count(std::uint64_t packets) { packets_ += packets; }
  /// Call once at each poll: false while downstream stages have too many waiting packets.
  bool may_take() { return gate_ == nullptr || gate_->may_take(); }

 private:
  std::string name_;
  Counter packets_;
  Counter busy_ns_;
  FlowGate* gate_ = nullptr;
};

/// A stage on the CPU alone. `trace`: if set, receives its polls with work; must outlive it.
class HostStage : public Stage {
 public:
  explicit HostStage(std::string name) : Stage(std::move(name)) {}
  void trace_to(trace::SpanLog* log) { trace_ = log; }
  void worked(std::int64_t begin_ns, std::int64_t end_ns) final;

 private:
  trace::SpanLog* trace_ = nullptr;
  std::uint32_t polls_ = 0;
  std::uint64_t traced_packets_ = 0;
};

}  // namespace catena::runtime
