// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/read_back.hpp"

#include <catena/packet/slot.hpp>

#include <algorithm>
#include <cstring>

namespace catena::copy {
namespace {

constexpr std::size_t kPortBytes = packet::field_size(packet::kMetaPort);

/// Bytes [begin, end) of a frame.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// Where a field of variable length is; an empty range where the frame does not have it.
Range variable_range(std::uint32_t field, packet::Layers const& layers, std::uint32_t length) {
  const bool is_ipv4 = (layers.flags & packet::kIpv4) != 0;
  switch (field) {
    case packet::kEthType:
      return {packet::field_offset(packet::kEthSrc, layers) + packet::field_size(packet::kEthSrc),
              is_ipv4 ? layers.l3 : packet::kEthernetBytes};
    case packet::kIpv4Options:
      return is_ipv4 ? Range{layers.l3 + packet::kIpv4MinBytes, layers.l4} : Range{};
    case packet::kTcpOptions:
      return (layers.flags & packet::kTcp) != 0 ? Range{layers.l4 + packet::kTcpMinBytes, layers.payload} : Range{};
    case packet::kPayload:
      return {layers.payload, std::uint32_t{layers.payload} + layers.payload_length};
    case packet::kTrailer:
      return is_ipv4 ? Range{std::uint32_t{layers.payload} + layers.payload_length, length} : Range{};
    default:
      return {};
  }
}

void copy_range(Range const& range, std::uint32_t length, const std::uint8_t* from, std::uint8_t* to) {
  const std::uint32_t end = std::min(range.end, length);
  if (range.begin < end) {
    std::memcpy(to + range.begin, from + range.begin, end - range.begin);
  }
}

}  // namespace

void copy_fields(packet::FieldSet fields, packet::Layers const& layers, std::uint32_t length, const std::uint8_t* from,
                 std::uint8_t* to) {
  if (packet::has_frame(fields)) {
    std::memcpy(to, from, length);
    return;
  }
  for (std::uint32_t field = 0; field < packet::kMetaVerdict; ++field) {
    if ((fields >> field & 1U) == 0) {
      continue;
    }
    const std::uint32_t bytes = packet::field_size(field);
    if (bytes == 0) {
      copy_range(variable_range(field, layers, length), length, from, to);
    } else if (packet::has_field(field, layers.flags)) {
      const std::uint32_t at = packet::field_offset(field, layers);
      if (field == packet::kIcmpHeader) {  // its bytes are around the checksum, which is a field by itself
        copy_range({at, at + 2}, length, from, to);
        copy_range({at + 4, at + 8}, length, from, to);
      } else {
        copy_range({at, at + bytes}, length, from, to);
      }
    }
  }
}

Result<std::unique_ptr<ReadBack>> ReadBack::create(device::Device& device, SharedBuffer& shared,
                                                   packet::FieldSet fields, std::uint32_t max_packets) {
  std::unique_ptr<ReadBack> read_back(new ReadBack(fields));
  read_back->max_packets_ = max_packets;
  read_back->shared_ = &shared;
  CATENA_ASSIGN_OR_RETURN(read_back->staging_,
                          device.allocate_pinned(std::size_t{max_packets} * (packet::kSlotBytes + kPortBytes)));
  CATENA_ASSIGN_OR_RETURN(read_back->stream_, device.create_stream());
  read_back->slots_.reserve(max_packets);
  return read_back;
}

std::byte* ReadBack::port_room(std::size_t row) const {
  return staging_->bytes().data() + std::size_t{max_packets_} * packet::kSlotBytes + row * kPortBytes;
}

Status ReadBack::start(packet::Batch const& batch) {
  meta_ = batch.meta();
  slots_.clear();
  event_.reset();
  for (const std::uint32_t slot : batch.slots()) {
    if (packet::ended(meta_.verdict[slot]) != 0) {
      continue;
    }
    const std::size_t row = slots_.size();
    slots_.push_back(slot);
    if ((fields_ & packet::kFrameFields) != 0) {
      CATENA_RETURN_IF_ERROR(stream_->copy_to_host({frame_room(row), meta_.length[slot]}, shared_->buffer(),
                                                   std::size_t{slot} * packet::kSlotBytes + meta_.offset[slot]));
    }
    if (packet::contains(fields_, packet::kMetaPort)) {
      const std::size_t ports = std::size_t{shared_->slots()} * kernel::shared_meta_prefix(packet::kMetaPort);
      CATENA_RETURN_IF_ERROR(
          stream_->copy_to_host({port_room(row), kPortBytes}, shared_->buffer(), ports + slot * kPortBytes));
    }
  }
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  return absl::OkStatus();
}

void ReadBack::apply() {
  auto* pool = reinterpret_cast<std::uint8_t*>(shared_->pool().data());
  for (std::size_t row = 0; row < slots_.size(); ++row) {
    const std::uint32_t slot = slots_[row];
    copy_fields(fields_, meta_.layers[slot], meta_.length[slot], reinterpret_cast<const std::uint8_t*>(frame_room(row)),
                pool + std::size_t{slot} * packet::kSlotBytes + meta_.offset[slot]);
    if (packet::contains(fields_, packet::kMetaPort)) {
      std::memcpy(&meta_.port[slot], port_room(row), kPortBytes);
    }
  }
}

}  // namespace catena::copy
