// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-nf/channel_ends.hpp"

#include "pipeline/recorder.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace catena::nf_program {

using nf_process::PacketEntry;

Status ChannelSource::receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index,
                              bool& /*starved*/) {
  const bool is_closed = reader_.closed() != 0;  // asked first: nothing comes after it
  CATENA_ASSIGN_OR_RETURN(const auto message, reader_.poll());
  if (!message) {
    if (is_closed && !has_finished_) {
      has_finished_ = true;
      if (reader_.closed() == nf_process::kTransfersState) {
        transfer_state_();
      }
    }
    return absl::OkStatus();
  }
  if (message->size() > pool.unit_packets()) {
    return absl::DataLossError("a received unit is too large");
  }
  packet::MetaColumns const& meta = pool.meta();
  for (PacketEntry const& from : *message) {
    const PacketEntry entry = from;
    if (entry.slot >= pool.slots() || std::uint32_t{entry.offset} + entry.length > packet::kSlotBytes) {
      return absl::DataLossError("a received packet is in no slot");
    }
    unit.slots()[unit.count++] = entry.slot;
    pool.set_arrived_at(entry.offset, entry.slot, entry.length, entry.layers, entry.index, entry.arrival_ns);
    meta.verdict[entry.slot] = entry.verdict;
    meta.port[entry.slot] = entry.port;
    meta.ingress[entry.slot] = entry.ingress;
    meta.mtu[entry.slot] = entry.mtu;
    next_index = entry.index + 1;
  }
  seen_ += unit.count;
  reader_.take();
  return absl::OkStatus();
}

ChannelSink::ChannelSink(nf_process::Channel& channel, int notifier, std::span<nf::PacketNote> notes)
    : writer_(channel.writer_to_host(notifier)), channel_(&channel), notes_(notes) {
  if (channel.shape().has_lines) {
    lines_ = channel.line_writer();
  }
}

/// `said`: by which of its outputs which NF sent a packet on.
std::uint8_t ChannelSink::last_output(std::uint16_t said) const {
  // all packets of one NF of a process go to the next one, whichever way they leave it
  return said >> 8U == instances_.size() ? static_cast<std::uint8_t>(said) : nf::kPassOutput;
}

Status ChannelSink::send(memory::PacketPool& pool, memory::Unit& unit) {
  CATENA_RETURN_IF_ERROR(tell_lines(pool.batch(unit)));
  const std::span<PacketEntry> entries = writer_.next();
  packet::MetaColumns const& meta = pool.meta();
  for (std::uint32_t i = 0; i < unit.count; ++i) {
    const std::uint32_t slot = unit.slots()[i];
    const nf::PacketNote note = std::exchange(notes_[slot], {});
    entries[i] = {meta.layers[slot],
                  slot,
                  meta.offset[slot],
                  meta.length[slot],
                  meta.port[slot],
                  meta.ingress[slot],
                  meta.mtu[slot],
                  note.reason,
                  meta.verdict[slot],
                  note.ended_by,
                  last_output(meta.output[slot]),
                  0,
                  note.alerts,
                  meta.index[slot],
                  meta.arrival_ns[slot]};
  }
  for (std::size_t nf = 0; nf < instances_.size(); ++nf) {
    tell_counts(instances_[nf]->counters(), channel_->counts(nf));
  }
  sent_ += unit.count;
  writer_.push(unit.count);
  writer_.wake();
  return absl::OkStatus();
}

Status ChannelSink::tell_lines(packet::Batch const& unit) {
  if (!lines_) {
    return absl::OkStatus();
  }
  for (std::uint32_t nf = 0; nf < instances_.size(); ++nf) {
    runtime::take_lines(*instances_[nf], nf, unit, of_unit_);
  }
  for (runtime::UnitRecord& record : of_unit_.records) {
    CATENA_RETURN_IF_ERROR(tell(nf_process::RecordOf{record.nf, std::move(record.line)}));
  }
  for (runtime::UnitAlert& alert : of_unit_.alerts) {
    CATENA_RETURN_IF_ERROR(tell(nf_process::AlertOf{alert.nf, std::move(alert.line)}));
  }
  of_unit_.clear();
  return tell(nf_process::EndOfUnit{});
}

/// Waits for room: the other end takes lines whenever it is awake.
Status ChannelSink::tell(nf_process::Line const& line) {
  for (;;) {
    CATENA_ASSIGN_OR_RETURN(const bool is_written, lines_->write(line));
    if (is_written) {
      return absl::OkStatus();
    }
    writer_.wake();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void ChannelSink::tell_counts(nf::Counters const& from, nf_process::SharedCounts& to) {
  const auto tell = [](std::atomic<std::uint64_t>& shared, Counter const& count) {
    shared.store(count, std::memory_order_relaxed);
  };
  tell(to.processed, from.processed);
  tell(to.unsupported, from.unsupported);
  tell(to.link_local, from.link_local);
  tell(to.kernel_faults, from.kernel_faults);
  tell(to.device_packets, from.device_packets);
  tell(to.launches, from.launches);
  tell(to.transfer_packets, from.transfers.packets);
  tell(to.bytes_to_device, from.transfers.bytes_to_device);
  tell(to.bytes_to_host, from.transfers.bytes_to_host);
  if (const std::uint64_t total = from.uninspected.total;
      total != to.uninspected_total.load(std::memory_order_relaxed)) {
    for (std::size_t kind = 0; kind < to.uninspected.size(); ++kind) {
      tell(to.uninspected[kind], from.uninspected.counts[kind]);
    }
    to.uninspected_total.store(total, std::memory_order_release);
  }
}

}  // namespace catena::nf_program
