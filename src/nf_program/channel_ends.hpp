// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/sink.hpp"
#include "io/source.hpp"
#include "nf/instance.hpp"
#include "nf_process/channel.hpp"
#include "runtime/unit_lines.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

/// The ends of the data path in an NF's process: units come from a channel and go back through it.
namespace catena::nf_program {

/// Units as they were sent, in slots that are this process's until they go back.
class ChannelSource final : public io::Source {
 public:
  /// `bell`: readable when there is something. `is_live`: time passes without packets.
  ChannelSource(nf_process::LaneReader reader, int bell, bool is_live) : reader_(reader), bell_(bell) {
    if (is_live) {
      clock_.emplace();
    }
  }
  /// Errors: as LaneReader::poll(); DataLoss for a unit that does not fit.
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override;
  bool finished() const override { return has_finished_; }
  io::SourceCounts counts() const override { return {seen_, {}}; }
  std::string describe() const override { return "channel"; }
  std::optional<io::LiveClock> live_clock() const override { return clock_; }
  std::vector<int> sockets() const override { return {bell_}; }

 private:
  nf_process::LaneReader reader_;
  int bell_;
  std::optional<io::LiveClock> clock_;
  bool has_finished_ = false;
  Counter seen_;
};

/// Gives units back, with what the NF made of them, what it says about them, and what it has counted.
class ChannelSink final : public io::Sink {
 public:
  /// `channel`, and `reasons`, by slot, of what was dropped: outlive it.
  ChannelSink(nf_process::Channel& channel, int bell, std::span<std::uint16_t const> reasons);
  /// The NF whose counts and lines go with the units; before the first one. It runs in the thread that send() is called
  /// in.
  void speak_for(nf::Instance& instance) { instance_ = &instance; }
  Status send(memory::PacketPool& pool, memory::Unit& unit) override;
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override { return {sent_, {}, 0}; }
  std::string describe() const override { return "channel"; }

 private:
  Status tell_lines(memory::Unit const& unit);
  Status tell(nf_process::Line const& line);
  void tell_counts();
  nf_process::LaneWriter writer_;
  std::optional<nf_process::LineWriter> lines_;
  runtime::UnitLines of_unit_;
  nf_process::SharedCounts* counts_;
  std::span<std::uint16_t const> reasons_;
  nf::Instance* instance_ = nullptr;
  Counter sent_;
};

}  // namespace catena::nf_program
