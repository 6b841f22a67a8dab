// SPDX-License-Identifier: Apache-2.0
#include "nf_program/channel_ends.hpp"

#include <algorithm>

namespace catena::nf_program {

using nf_process::PacketEntry;

Status ChannelSource::receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index,
                              bool& /*starved*/) {
  const bool is_closed = reader_.is_closed();  // asked first: nothing comes after it
  CATENA_ASSIGN_OR_RETURN(const auto message, reader_.poll());
  if (!message) {
    has_finished_ = is_closed;
    return absl::OkStatus();
  }
  if (message->size() > pool.unit_packets()) {
    return absl::DataLossError("a unit came that is larger than units are");
  }
  packet::MetaColumns const& meta = pool.meta();
  for (PacketEntry const& from : *message) {
    const PacketEntry entry = from;
    if (entry.slot >= pool.slots() || std::uint32_t{entry.offset} + entry.length > packet::kSlotBytes) {
      return absl::DataLossError("a packet came that is in no slot");
    }
    unit.slots()[unit.count++] = entry.slot;
    pool.set_arrived_at(entry.offset, entry.slot, entry.length, entry.index, entry.arrival_ns);
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

Status ChannelSink::send(memory::PacketPool& pool, memory::Unit& unit) {
  const std::span<PacketEntry> entries = writer_.next();
  packet::MetaColumns const& meta = pool.meta();
  for (std::uint32_t i = 0; i < unit.count; ++i) {
    const std::uint32_t slot = unit.slots()[i];
    entries[i] = {slot,           meta.offset[slot], meta.length[slot],  meta.port[slot],  meta.ingress[slot],
                  meta.mtu[slot], reasons_[slot],    meta.verdict[slot], meta.index[slot], meta.arrival_ns[slot]};
  }
  tell_counts();
  sent_ += unit.count;
  writer_.push(unit.count);
  writer_.wake();
  return absl::OkStatus();
}

void ChannelSink::tell_counts() {
  nf::Counters const& from = instance_->counters();
  const auto tell = [](std::atomic<std::uint64_t>& to, Counter const& count) {
    to.store(count, std::memory_order_relaxed);
  };
  tell(counts_->processed, from.processed);
  tell(counts_->unsupported, from.unsupported);
  tell(counts_->link_local, from.link_local);
  tell(counts_->kernel_faults, from.kernel_faults);
  tell(counts_->device_packets, from.device_packets);
  tell(counts_->transfer_packets, from.transfers.packets);
  tell(counts_->bytes_to_device, from.transfers.bytes_to_device);
  tell(counts_->bytes_to_host, from.transfers.bytes_to_host);
}

}  // namespace catena::nf_program
