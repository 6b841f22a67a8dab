// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/histogram.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"
#include "memory/packet_pool.hpp"
#include "memory/unit_queue.hpp"
#include "nf/instance.hpp"
#include "runtime/recorder.hpp"
#include "runtime/split.hpp"
#include "runtime/stage.hpp"
#include "runtime/succession.hpp"
#include "runtime/ticker.hpp"
#include "runtime/unit_lines.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

/// The stages that a chain has on the CPU: its ends, and NFs that are placed there.
namespace catena::runtime {

/// Takes packets from the source. When no slot or unit is free, or those behind pause it, it waits and counts. When the
/// source fails, what came before goes on through the chain, and error() says why nothing follows.
class RxStage final : public HostStage {
 public:
  /// `out`: where units go. `stop`: ends it, and what reads the same, as does an error of the source. `lines`: where it
  /// notes what each packet was on arrival; null in a chain that writes no lines.
  RxStage(io::Source& source, memory::PacketPool& pool, Splitter out, std::atomic<bool>& stop,
          LineBook* lines = nullptr);
  Result<Progress> poll() override;
  bool is_passive() const override { return !sockets().empty(); }
  std::vector<int> sockets() const override { return source_->sockets(); }
  /// Has packets dropped that `filter`, which outlives it, refuses. Before the first poll.
  void filter(EdgeFilter& filter) { edge_ = &filter; }
  /// Has units carry the number in `version`, which outlives it. Before the first poll.
  void number_by(std::atomic<std::uint32_t> const& version) { version_ = &version; }
  /// Takes what comes in front of a chain that does not work yet, numbered from there: nobody behind it pauses it, and
  /// no packet is refused before what waits then is on its way. Before the first poll.
  void begin_in_front(std::uint64_t index) {
    next_index_ = index;
    is_in_front_ = true;
    has_backlog_ = true;
  }
  /// The chain works from here on.
  void begin_with_chain() { is_in_front_ = false; }
  /// Number of the packet that would come next. Read after its end.
  std::uint64_t next_index() const { return next_index_; }
  /// Packets that it refused. Any thread.
  std::uint64_t refused() const { return refused_; }
  /// OK, or why the source ended. Read after the run.
  Status const& error() const { return error_; }
  io::Source const& source() const { return *source_; }
  /// Polls that found the pool exhausted. Any thread.
  std::uint64_t starved_polls() const { return starved_polls_; }
  /// Bytes of the packets that were received. Any thread.
  std::uint64_t bytes() const { return bytes_; }

 private:
  Progress receive(bool& is_full);
  void refuse(packet::Batch const& packets);
  void find_exhausted();

  io::Source* source_;
  memory::PacketPool* pool_;
  Splitter out_;
  std::atomic<bool>* stop_;
  LineBook* lines_;
  Status error_;
  std::uint64_t next_index_ = 0;
  bool is_in_front_ = false;
  bool has_backlog_ = false;  ///< of packets from when it was in front
  bool has_finished_ = false;
  EdgeFilter* edge_ = nullptr;
  std::atomic<std::uint32_t> const* version_ = nullptr;
  Counter starved_polls_;
  Counter bytes_;
  Counter refused_;
};

/// How the headers of a unit come near before an NF on the CPU begins with it.
enum class Fetch : std::uint8_t {
  kToRead,
  kToWrite,  ///< the NF writes them, and another NF on the CPU has read them: they leave that one's core at once
};

/// An NF on the CPU. `live_clock`: that of the source, for Nf::tick(). `lines`: where those of the NF go; null in a
/// chain that writes none.
class CpuStage final : public HostStage {
 public:
  CpuStage(nf::Instance& instance, std::uint32_t position, memory::PacketPool& pool, memory::UnitQueue& in,
           memory::UnitQueue& out, std::optional<io::LiveClock> live_clock = std::nullopt, LineBook* lines = nullptr,
           Fetch fetch = Fetch::kToRead);
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }  // ticks are rare
  /// Instances whose NFs take the place of this one's.
  Succession<std::unique_ptr<nf::Instance>>& successors() { return successors_; }

 private:
  void process(packet::Batch const& batch);

  nf::Instance* instance_;
  std::uint32_t position_;
  memory::PacketPool* pool_;
  memory::UnitQueue* in_;
  memory::UnitQueue* out_;
  Ticker ticker_;
  LineBook* lines_;
  Fetch fetch_;
  Succession<std::unique_ptr<nf::Instance>> successors_;
  memory::Unit* held_ = nullptr;      ///< the first of another version, which is not for the NF that has those before
  std::vector<memory::Unit*> done_;   ///< that go on together
  std::vector<std::uint32_t> slots_;  ///< theirs
};

/// Between NFs whose packets are divided in different ways: puts units together and divides them anew.
class HandOverStage final : public HostStage {
 public:
  /// `devices_change`: what NFs behind it have on a device crosses anew, whatever became of a device in front of it.
  HandOverStage(memory::PacketPool& pool, Merger in, Splitter out, bool devices_change = false);
  /// ResourceExhausted where a device that never answered keeps so many units that it could not go on.
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }

 private:
  memory::PacketPool* pool_;
  Merger in_;
  Splitter out_;
  bool devices_change_;
};

/// Sends what is alive, writes the lines of each unit, measures latency, and gives slots and units back.
class TxStage final : public HostStage {
 public:
  /// `recorder` and `lines`: null in a chain that writes no lines.
  TxStage(io::Sink& sink, memory::PacketPool& pool, Merger in, Recorder* recorder = nullptr, LineBook* lines = nullptr);
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }
  io::Sink const& sink() const { return *sink_; }
  /// The time from rx to tx of every packet that was sent. Any thread.
  Histogram const& latency() const { return latency_; }

 private:
  Status send(memory::Unit& unit);

  io::Sink* sink_;
  memory::PacketPool* pool_;
  Merger in_;
  Recorder* recorder_;
  LineBook* lines_;
  Histogram latency_;
};

}  // namespace catena::runtime
