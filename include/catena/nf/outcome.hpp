// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>
#include <catena/packet/batch.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena::nf {

struct DropReason;

/// One line of `--record`: the NF's own fields of a packet's decision. The framework adds packet, nf, verdict, reason.
struct RecordLine {
  std::uint64_t packet;
  packet::Verdict verdict;
  std::int32_t reason;  ///< position in the drop reasons, -1: none
  std::string fields;   ///< ready JSON members: "\"rule\":103", may be empty
};

/// Outputs that every NF has, and the number of the first of its own.
inline constexpr std::uint8_t kPassOutput = 0;
inline constexpr std::uint8_t kAlertOutput = 1;
inline constexpr std::uint8_t kOwnOutputs = 2;

/// What the NFs of a data path made of one packet, for whoever has to tell it of each.
struct PacketNote {
  static constexpr std::uint16_t kNoReason = 0xffff;
  std::uint32_t alerts = 0;          ///< bit i: NF number i raised one
  std::uint16_t reason = kNoReason;  ///< of a packet that was dropped
  std::uint8_t ended_by = 0;         ///< number of the NF that dropped it or made it a reply
};

/// Where an NF's decisions go: verdicts, counted drop reasons, record lines. One for each NF instance; the framework
/// owns it. One thread at a time, but for the counts, which any thread may read.
class Outcome {
 public:
  /// `no_reason`: what counts where a number is none of the `reason_count` reasons, as a device gone wrong may give.
  Outcome(std::size_t reason_count, bool recording, std::uint32_t no_reason = 0)
      : drops_(reason_count), no_reason_(no_reason), recording_(recording) {}

  /// Drops the packet for reason number `reason` of the descriptor's list.
  void drop(packet::Packet const& packet, std::uint32_t reason) {
    packet.set_verdict(packet::Verdict::kDrop);
    const std::uint32_t counted = reason < drops_.size() ? reason : no_reason_;
    ++drops_[counted];
    if (!notes_.empty()) {
      PacketNote& note = notes_[packet.slot()];
      note.reason = static_cast<std::uint16_t>(counted);
      note.ended_by = number_;
    }
  }
  /// Has decisions noted in `by_slot`, as those of NF number `nf` of at most 32.
  void note_decisions(std::span<PacketNote> by_slot, std::uint8_t nf) {
    notes_ = by_slot;
    number_ = nf;
  }
  /// The packet is an answer now, rewritten in place by prepare() or complete(): later NFs do not see it, and it leaves
  /// through the port that it came in on. What the answer is made of must be among the reads of the step that makes it
  /// (Hints); its writes need no hint, as nobody reads them but tx.
  void reply(packet::Packet const& packet) {
    packet.set_verdict(packet::Verdict::kReply);
    ++replies_;
    if (!notes_.empty()) {
      notes_[packet.slot()].ended_by = number_;
    }
  }
  /// The packet goes on, flagged, by output kAlertOutput.
  void alert(packet::Packet const& packet) {
    packet.set_verdict(packet::Verdict::kAlert);
    packet.set_output(position_, kAlertOutput);
    ++alerts_;
    if (!notes_.empty()) {
      notes_[packet.slot()].alerts |= 1U << number_;
    }
  }
  /// The packet goes on by output number `output` of the descriptor's list. Without this it goes by `pass`, or `alert`.
  void leave_by(packet::Packet const& packet, std::uint8_t output) const {
    packet.set_output(position_, static_cast<std::uint8_t>(kOwnOutputs + output));
  }
  /// Which NF of the chain this is, for whoever asks by which output a packet left it. Before packets.
  void set_position(std::uint8_t nf) { position_ = nf; }
  /// Whether record lines are wanted; build `fields` only then.
  bool recording() const { return recording_; }
  /// Adds a line; call after drop(), reply() or alert(). `reason` as given to drop(), else -1.
  void record(packet::Packet const& packet, packet::Verdict verdict, std::int32_t reason, std::string fields) {
    const bool is_known = reason < 0 || static_cast<std::size_t>(reason) < drops_.size();
    lines_.push_back(
        {packet.index(), verdict, is_known ? reason : static_cast<std::int32_t>(no_reason_), std::move(fields)});
  }

  std::span<const Counter> drops() const { return drops_; }
  std::uint64_t alerts() const { return alerts_; }
  std::uint64_t replies() const { return replies_; }
  std::vector<RecordLine>& lines() { return lines_; }

 private:
  std::vector<Counter> drops_;
  std::uint32_t no_reason_;
  Counter alerts_;
  Counter replies_;
  bool recording_;
  std::vector<RecordLine> lines_;
  std::span<PacketNote> notes_;
  std::uint8_t number_ = 0;
  std::uint8_t position_ = 0;
};

}  // namespace catena::nf
