// SPDX-License-Identifier: Apache-2.0
#include "kernel/packed_packets.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/slot.hpp>

#include "copy/layout.hpp"

#include <cstring>
#include <limits>

namespace catena::kernel {

Result<PackedFormat> PackedFormat::create(std::span<DeviceNf const* const> nfs, std::uint32_t max_packets,
                                          std::size_t max_bytes) {
  if (max_packets == 0 || max_bytes > std::numeric_limits<std::uint32_t>::max()) {
    return absl::InvalidArgumentError(
        concat("a buffer for ", max_packets, " packets of ", max_bytes, " bytes; it takes 1 or more, below 4 GiB"));
  }
  PackedFormat format;
  format.max_packets_ = max_packets;
  format.padded_ = static_cast<std::uint32_t>(copy::round_up(max_packets, copy::kRowAlign));
  format.max_bytes_ = max_bytes;
  std::size_t batch = 0;
  for (DeviceNf const* nf : nfs) {
    KernelSpec const& spec = nf->spec();
    copy::LaunchPlan const& plan = nf->plan();
    const packet::FieldSet columns = copy::in_columns(plan);
    const bool whole = copy::frames_of(plan.reads) == copy::Frames::kPayload;
    if (plan.shared || plan.writes != 0 || plan.aux_bytes != 0 || spec.headroom != 0 || spec.tailroom != 0 ||
        copy::frames_of(plan.reads) == copy::Frames::kFrame || whole == (columns != 0)) {
      return absl::InvalidArgumentError(
          concat("kernel '", spec.name, "': over packed packets a kernel reads header fields or payloads alone"));
    }
    PackedPart part;
    part.batch_offset = batch;
    for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
      if (const std::uint32_t prefix = packet::column_prefix(columns, field); prefix != packet::kNoColumn) {
        part.columns.push_back({field, packet::field_size(field), batch + std::size_t{format.padded_} * prefix});
      }
    }
    batch = copy::round_up(batch + std::size_t{format.padded_} * packet::columns_size(columns), copy::kBufferAlign);
    part.out_offset = format.out_bytes_;
    part.results_offset = part.out_offset + sizeof(FaultReport) + format.padded_;
    part.result_bytes = plan.result_bytes;
    format.out_bytes_ =
        copy::round_up(part.results_offset + std::size_t{format.padded_} * plan.result_bytes, copy::kBufferAlign);
    format.parts_.push_back(part);
  }
  format.extents_ = batch;
  for (PackedPart& part : format.parts_) {
    if (part.columns.empty()) {
      part.batch_offset = format.extents_;
    }
  }
  format.contents_ = copy::round_up(format.extents_ + std::size_t{format.padded_} * sizeof(Extent), copy::kBufferAlign);
  return format;
}

PackedPackets::PackedPackets(PackedFormat const& format, std::span<std::byte> memory)
    : format_(&format),
      memory_(memory),
      extents_(reinterpret_cast<Extent*>(memory.data() + format.extents())),
      contents_(reinterpret_cast<std::uint8_t*>(memory.data() + format.contents())),
      layers_(format.max_packets()) {
  std::memset(memory.data(), 0, memory.size());  // gaps between packets go to the device too
}

void PackedPackets::clear() {
  count_ = 0;
  content_bytes_ = 0;
}

bool PackedPackets::take_room(std::uint16_t length) {
  if (count_ == format_->max_packets() || format_->max_bytes() - content_bytes_ < length) {
    return false;
  }
  extents_[count_] = {static_cast<u32>(content_bytes_), length, 0};
  content_bytes_ = std::min(copy::round_up(content_bytes_ + length, copy::kFrameAlign), format_->max_bytes());
  ++count_;
  return true;
}

void PackedPackets::write(std::uint32_t row, const std::uint8_t* bytes, packet::Layers const& layers) {
  std::memcpy(contents_ + extents_[row].begin, bytes, extents_[row].length);
  layers_[row] = layers;
  for (PackedPart const& part : format_->parts()) {
    for (PackedColumn const& column : part.columns) {
      std::byte* to = memory_.data() + column.offset + std::size_t{row} * column.bytes;
      if (column.field == packet::kMetaLayers) {
        std::memcpy(to, &layers, sizeof layers);
      } else if (packet::has_field(column.field, layers.flags)) {
        std::memcpy(to, bytes + packet::field_offset(column.field, layers), column.bytes);
      } else {
        std::memset(to, 0, column.bytes);
      }
    }
  }
}

}  // namespace catena::kernel
