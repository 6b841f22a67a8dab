// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_link.hpp"

#include "pipeline/process_reply.hpp"

#include <cstring>
#include <utility>

namespace catena::runtime {

using nf_process::PacketEntry;

ProcessLink::ProcessLink(std::shared_ptr<nf_process::Connection> connection, int notifier, bool has_lines)
    : connection_(std::move(connection)),
      to_nf_(connection_->channel.writer_to_nf(notifier)),
      of_host_(connection_->channel.reader_of_host(notifier)) {
  if (has_lines) {
    records_.emplace(connection_->channel.line_reader());
  }
  nf_process::ChannelShape const& shape = connection_->channel.shape();
  for (std::uint32_t block = shape.depth; block > 0; --block) {
    free_blocks_.push_back((block - 1) * shape.unit_packets);
  }
}

std::uint32_t ProcessLink::write(memory::Unit const& unit, memory::PacketPool const& pool) {
  const std::uint32_t first_slot = free_blocks_.back();
  free_blocks_.pop_back();
  write_entries(unit, pool.meta(), first_slot);
  write_frames(unit, pool, first_slot);
  to_nf_.push(unit.count);
  return first_slot;
}

void ProcessLink::write_entries(memory::Unit const& unit, packet::MetaColumns const& meta, std::uint32_t first_slot) {
  const std::span<PacketEntry> entries = to_nf_.next();
  for (std::uint32_t i = 0; i < unit.count; ++i) {
    const std::uint32_t slot = unit.slots()[i];
    // an alert of an NF before is nothing to those in the process, and so one that comes back is theirs
    const std::uint8_t verdict =
        is_alive(meta.verdict[slot]) ? static_cast<std::uint8_t>(packet::Verdict::kPass) : meta.verdict[slot];
    entries[i] = {meta.layers[slot],
                  first_slot + i,
                  meta.offset[slot],
                  meta.length[slot],
                  meta.port[slot],
                  meta.ingress[slot],
                  meta.mtu[slot],
                  0,
                  verdict,
                  0,
                  nf::kPassOutput,
                  0,
                  0,
                  meta.index[slot],
                  meta.arrival_ns[slot]};
  }
}

void ProcessLink::write_frames(memory::Unit const& unit, memory::PacketPool const& pool, std::uint32_t first_slot) {
  packet::MetaColumns const& meta = pool.meta();
  nf_process::FieldMask const& field_mask = connection_->field_mask;
  for (std::uint32_t i = 0; i < unit.count; ++i) {
    if (i + kCopyAhead < unit.count) {
      const std::uint32_t later = unit.slots()[i + kCopyAhead];
      __builtin_prefetch(pool.slot(later) + meta.offset[later]);
    }
    if (const std::uint32_t slot = unit.slots()[i]; is_alive(meta.verdict[slot])) {
      std::memcpy(connection_->slot(first_slot + i) + meta.offset[slot], pool.slot(slot) + meta.offset[slot],
                  field_mask.bytes_to_nf(meta.layers[slot], meta.length[slot]));
    }
  }
}

void ProcessLink::release(std::uint32_t first_slot) {
  of_host_.take();
  free_blocks_.push_back(first_slot);
}

void ProcessLink::close(std::uint32_t reason) {
  if (!connection_->is_closed.exchange(true)) {
    to_nf_.close(reason);
  }
}

}  // namespace catena::runtime
