// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch/packed_packets.hpp"

#include <emmintrin.h>

#include <catena/core/text.hpp>
#include <catena/packet/slot.hpp>

#include "gpu/copy/layout.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace catena::kernel {
namespace {

/// Of `to`, at a multiple of copy::kFrameAlign, whole such parts are written, the last one with zeros at its end. A
/// device reads them from memory: in the caches they would only push out what this side works on, after memory was read
/// to get them there.
void copy_past_caches(std::uint8_t* to, std::span<const std::uint8_t> from) {
  constexpr std::size_t kPart = sizeof(__m128i);
  static_assert(copy::kFrameAlign == kPart);
  const std::size_t whole = from.size() / kPart * kPart;
  for (std::size_t at = 0; at < whole; at += kPart) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.data() + at)));
  }
  if (whole < from.size()) {
    __m128i last = _mm_setzero_si128();
    std::memcpy(&last, from.data() + whole, from.size() - whole);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + whole), last);
  }
}

}  // namespace

Result<PackedFormat> PackedFormat::create(std::span<DeviceNf const* const> nfs, std::uint32_t max_packets,
                                          std::size_t max_bytes) {
  if (max_packets == 0 || max_bytes > std::numeric_limits<std::uint32_t>::max()) {
    return absl::InvalidArgumentError(
        concat("a buffer for ", max_packets, " packets of ", max_bytes, " bytes; it takes 1 or more, below 4 GiB"));
  }
  PackedFormat format;
  format.max_packets_ = max_packets;
  format.padded_ = static_cast<std::uint32_t>(copy::round_up(max_packets, copy::kRowAlign));
  format.max_bytes_ = max_bytes / copy::kFrameAlign * copy::kFrameAlign;
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

PackedPackets::PackedPackets(PackedFormat const& format, std::span<std::byte> memory, Reader reader)
    : format_(&format),
      reader_(reader),
      memory_(memory),
      extents_(reinterpret_cast<Extent*>(memory.data() + format.extents())),
      contents_(reinterpret_cast<std::uint8_t*>(memory.data() + format.contents())),
      layers_(format.max_packets()) {
  std::memset(memory.data(), 0, memory.size());  // gaps between packets go to the device too
}

void PackedPackets::finish_writes() { _mm_sfence(); }

void PackedPackets::clear() {
  count_ = 0;
  content_bytes_ = 0;
}

std::uint32_t PackedPackets::space_of(std::uint32_t length) {
  return static_cast<std::uint32_t>(copy::round_up(length, copy::kFrameAlign));
}

PackedPackets::Reservation PackedPackets::reserve(std::span<const std::uint32_t> ends) {
  const auto rows = ends.first(std::min<std::size_t>(ends.size(), format_->max_packets() - count_));
  const auto behind = std::upper_bound(rows.begin(), rows.end(), format_->max_bytes() - content_bytes_);
  const Reservation reservation{static_cast<std::uint32_t>(behind - rows.begin()), count_,
                                static_cast<std::uint32_t>(content_bytes_)};
  if (reservation.packets > 0) {
    count_ += reservation.packets;
    content_bytes_ += rows[reservation.packets - 1];
  }
  return reservation;
}

void PackedPackets::write(std::uint32_t row, std::uint32_t begin, std::span<const std::uint8_t> packet,
                          packet::Layers const& layers) {
  const std::uint8_t* bytes = packet.data();
  extents_[row] = {begin, static_cast<std::uint16_t>(packet.size()), 0};
  if (reader_ == Reader::kDevice) {
    copy_past_caches(contents_ + begin, packet);
  } else {
    std::memcpy(contents_ + begin, bytes, packet.size());
  }
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
