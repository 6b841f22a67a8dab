// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

/// What the kinds of launches have in common.
namespace catena::kernel {

inline constexpr std::size_t kRegionAlign = 64;
inline constexpr std::uint32_t kRowAlign = 16;
inline constexpr std::uint32_t kFrameAlign = 16;
inline constexpr std::chrono::seconds kSetUpLimit{30};
inline constexpr std::uint8_t kPoison = 0xA5;  // device memory starts with this, so that bytes nobody wrote are seen

constexpr std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

/// Copies `field` of the packets in `slots` into a column, or out of it into packets that have the header; 0 stands
/// for a header that is not there. `skip(i)` tells entries of the column to leave alone.
void gather_column(std::uint32_t field, packet::Batch const& batch, std::byte* column);
template <typename Skip>
void scatter_column(std::uint32_t field, packet::Batch const& batch, const std::byte* column, Skip const& skip);

/// The metadata array behind a metadata field.
std::byte* meta_array(std::uint32_t field, packet::MetaColumns const& meta);
/// A field from a column into a frame; ICMP's stand around its checksum, which is a field by itself.
void copy_field(std::uint32_t field, std::uint32_t size, std::uint8_t* packet, const std::byte* from);

template <typename Skip>
void scatter_column(std::uint32_t field, packet::Batch const& batch, const std::byte* column, Skip const& skip) {
  const std::uint32_t size = packet::field_size(field);
  packet::MetaColumns const& meta = batch.meta();
  std::uint32_t row = 0;
  for (const std::uint32_t slot : batch.slots()) {
    if (skip(row)) {
      // left alone
    } else if (field >= packet::kMetaVerdict) {
      std::memcpy(meta_array(field, meta) + std::size_t{slot} * size, column, size);
    } else if (packet::has_field(field, meta.layers[slot].flags)) {
      copy_field(field, size,
                 batch.region() + std::size_t{slot} * packet::kSlotBytes + meta.offset[slot] +
                     packet::field_offset(field, meta.layers[slot]),
                 column);
    }
    column += size;
    ++row;
  }
}

}  // namespace catena::kernel
