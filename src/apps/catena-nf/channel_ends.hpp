// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/sink.hpp"
#include "io/source.hpp"
#include "nf/instance.hpp"
#include "pipeline/isolation/channel.hpp"
#include "pipeline/unit_records.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// Source and sink of the data path in an NF process: units come from a channel and return through it.
namespace catena::nf_program {

/// Receives units as sent, in slots that belong to this process until it returns them.
class ChannelSource final : public io::Source {
 public:
  /// `notifier`: readable when a message waits. `is_live`: time passes without packets.
  /// `transfer_state`: called after the last unit, by the thread of receive(), if another process replaces this one.
  ChannelSource(nf_process::RingReader reader, int notifier, bool is_live, std::function<void()> transfer_state)
      : reader_(reader), notifier_(notifier), transfer_state_(std::move(transfer_state)) {
    if (is_live) {
      clock_.emplace();
    }
  }
  /// Errors: as RingReader::poll(); DataLoss for a unit that does not fit.
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override;
  bool finished() const override { return has_finished_; }
  io::SourceCounts counts() const override { return {seen_, {}}; }
  std::string describe() const override { return "channel"; }
  std::optional<io::LiveClock> live_clock() const override { return clock_; }
  std::vector<int> sockets() const override { return {notifier_}; }

 private:
  nf_process::RingReader reader_;
  int notifier_;
  std::function<void()> transfer_state_;
  std::optional<io::LiveClock> clock_;
  bool has_finished_ = false;
  Counter seen_;
};

/// Returns units with the NFs' decisions, record and alert lines, and counts.
class ChannelSink final : public io::Sink {
 public:
  /// `channel` and `notes`, the NFs' decisions by slot, outlive it. send() clears the notes of its packets.
  ChannelSink(nf_process::Channel& channel, int notifier, std::span<nf::PacketNote> notes);
  /// Sets the NFs whose counts and lines go with the units. Before the first unit. The NFs run in the thread of send().
  void speak_for(std::vector<nf::Instance*> instances) { instances_ = std::move(instances); }
  Status send(memory::PacketPool& pool, memory::Unit& unit) override;
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override { return {sent_, {}, 0}; }
  std::string describe() const override { return "channel"; }

 private:
  std::uint8_t last_output(std::uint16_t said) const;
  Status tell_lines(packet::Batch const& unit);
  Status tell(nf_process::Line const& line);
  static void tell_counts(nf::Counters const& from, nf_process::SharedCounts& to);
  nf_process::RingWriter writer_;
  std::optional<nf_process::LineWriter> lines_;
  runtime::UnitRecords of_unit_;
  nf_process::Channel* channel_;
  std::span<nf::PacketNote> notes_;
  std::vector<nf::Instance*> instances_;  ///< in chain order
  Counter sent_;
};

}  // namespace catena::nf_program
