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

/// One line of `--record`: the NF's own fields of its decision about a packet. The framework adds packet, nf, verdict,
/// reason.
struct RecordLine {
  std::uint64_t packet;
  packet::Verdict verdict;
  std::int32_t reason;  ///< position in the drop reasons, -1 without a reason
  std::string fields;   ///< finished JSON members: "\"rule\":103", may be empty
};

/// Outputs of every NF, and the number of its first own output.
inline constexpr std::uint8_t kPassOutput = 0;
inline constexpr std::uint8_t kAlertOutput = 1;
inline constexpr std::uint8_t kOwnOutputs = 2;

/// Decisions of the NFs of a data path about one packet, for a caller that reports them per packet.
struct PacketNote {
  static constexpr std::uint16_t kNoReason = 0xffff;
  std::uint32_t alerts = 0;          ///< bit i: NF number i raised an alert
  std::uint16_t reason = kNoReason;  ///< of a dropped packet
  std::uint8_t ended_by = 0;         ///< number of the NF that dropped the packet or made it a reply
};

/// Receives an NF's decisions: verdicts, counted drop reasons, record lines. One per NF instance, owned by the
/// framework. One thread at a time, except for the counts, which any thread may read.
class Outcome {
 public:
  /// `no_reason`: counted for a number outside the `reason_count` reasons, e.g. from a faulty device.
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
  /// Also stores decisions in `by_slot`, under NF number `nf`, for at most 32 NFs.
  void note_decisions(std::span<PacketNote> by_slot, std::uint8_t nf) {
    notes_ = by_slot;
    number_ = nf;
  }
  /// Marks the packet as an answer, rewritten in place by prepare() or complete(). Later NFs do not see it, and it
  /// leaves through its ingress port. The source fields of the answer must be among the reads of the step that writes
  /// it (Hints). Its writes need no hint, as only tx reads them.
  void reply(packet::Packet const& packet) {
    packet.set_verdict(packet::Verdict::kReply);
    ++replies_;
    if (!notes_.empty()) {
      notes_[packet.slot()].ended_by = number_;
    }
  }
  /// Flags the packet, which continues by output kAlertOutput.
  void alert(packet::Packet const& packet) {
    packet.set_verdict(packet::Verdict::kAlert);
    packet.set_output(position_, kAlertOutput);
    ++alerts_;
    if (!notes_.empty()) {
      notes_[packet.slot()].alerts |= 1U << number_;
    }
  }
  /// Sends the packet on by output number `output` of the descriptor's list. Without this call it leaves by `pass` or
  /// `alert`.
  void leave_by(packet::Packet const& packet, std::uint8_t output) const {
    packet.set_output(position_, static_cast<std::uint8_t>(kOwnOutputs + output));
  }
  /// Sets the NF's number in the chain, for readers of a packet's output. Called before the first packet.
  void set_position(std::uint8_t nf) { position_ = nf; }
  /// Whether record lines are enabled; build `fields` only then.
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
