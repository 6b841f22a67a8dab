// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/columns.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace catena::copy {
namespace {

/// Packets whose headers are asked for before they are read: no cache foresees steps of a slot's size.
constexpr std::uint32_t kFetchAhead = 8;

/// A field between a packet and a column; ICMP's are around its checksum, which is a field by itself.
template <std::uint32_t Field>
void read_field(std::byte* to, const std::uint8_t* packet) {
  if constexpr (Field == packet::kIcmpHeader) {
    std::memcpy(to, packet, 2);
    std::memcpy(to + 2, packet + 4, 4);
  } else {
    std::memcpy(to, packet, packet::field_size(Field));
  }
}
template <std::uint32_t Field>
void write_field(std::uint8_t* packet, const std::byte* from) {
  if constexpr (Field == packet::kIcmpHeader) {
    std::memcpy(packet, from, 2);
    std::memcpy(packet + 4, from + 2, 4);
  } else {
    std::memcpy(packet, from, packet::field_size(Field));
  }
}

std::byte* meta_array(std::uint32_t field, packet::MetaColumns const& meta) {
  switch (field) {
    case packet::kMetaVerdict:
      return reinterpret_cast<std::byte*>(meta.verdict);
    case packet::kMetaPort:
      return reinterpret_cast<std::byte*>(meta.port);
    case packet::kMetaLength:
      return reinterpret_cast<std::byte*>(meta.length);
    case packet::kMetaOffset:
      return reinterpret_cast<std::byte*>(meta.offset);
    default:
      return reinterpret_cast<std::byte*>(meta.layers);
  }
}

/// Headers of a batch's packets. Copies of the pointers: bytes that are written could be anything's, and what a Batch
/// points to would be loaded again after each.
class Headers {
 public:
  explicit Headers(packet::Batch const& batch)
      : memory_(batch.memory()), offsets_(batch.meta().offset), layers_(batch.meta().layers) {}
  template <std::uint32_t Field>
  bool has(std::uint32_t slot) const {
    return packet::has_field(Field, layers_[slot].flags);
  }
  template <std::uint32_t Field>
  std::uint8_t* at(std::uint32_t slot) const {
    return memory_ + std::size_t{slot} * packet::kSlotBytes + offsets_[slot] +
           packet::field_offset(Field, layers_[slot]);
  }

 private:
  std::uint8_t* memory_;
  const std::uint16_t* offsets_;
  const packet::Layers* layers_;
};

template <std::uint32_t Field>
void gather(packet::Batch const& batch, bool is_run, std::byte* column) {
  constexpr std::uint32_t kBytes = packet::field_size(Field);
  const std::span<const std::uint32_t> slots = batch.slots();
  if constexpr (Field >= packet::kMetaVerdict) {
    const std::byte* from = meta_array(Field, batch.meta());
    if (is_run) {
      std::memcpy(column, from + std::size_t{slots[0]} * kBytes, slots.size() * kBytes);
      return;
    }
    for (const std::uint32_t slot : slots) {
      std::memcpy(column, from + std::size_t{slot} * kBytes, kBytes);
      column += kBytes;
    }
  } else {
    const Headers headers(batch);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (i + kFetchAhead < slots.size()) {
        __builtin_prefetch(headers.at<Field>(slots[i + kFetchAhead]));
      }
      if (headers.has<Field>(slots[i])) {
        read_field<Field>(column, headers.at<Field>(slots[i]));
      } else {
        std::memset(column, 0, kBytes);
      }
      column += kBytes;
    }
  }
}

template <std::uint32_t Field>
void scatter(packet::Batch const& batch, bool is_run, const std::byte* column, const std::byte* skip) {
  constexpr std::uint32_t kBytes = packet::field_size(Field);
  const std::span<const std::uint32_t> slots = batch.slots();
  const auto is_skipped = [skip](std::size_t row) { return skip != nullptr && skip[row] != std::byte{0}; };
  if constexpr (Field >= packet::kMetaVerdict) {
    std::byte* to = meta_array(Field, batch.meta());
    if (skip == nullptr && is_run) {
      std::memcpy(to + std::size_t{slots[0]} * kBytes, column, slots.size() * kBytes);
      return;
    }
    for (std::size_t row = 0; row < slots.size(); ++row) {
      if (!is_skipped(row)) {
        std::memcpy(to + std::size_t{slots[row]} * kBytes, column + row * kBytes, kBytes);
      }
    }
  } else {
    const Headers headers(batch);
    for (std::size_t row = 0; row < slots.size(); ++row) {
      if (!is_skipped(row) && headers.has<Field>(slots[row])) {
        write_field<Field>(headers.at<Field>(slots[row]), column + row * kBytes);
      }
    }
  }
}

using GatherColumn = void (*)(packet::Batch const& batch, bool is_run, std::byte* column);
using Scatter = void (*)(packet::Batch const& batch, bool is_run, const std::byte* column, const std::byte* skip);

/// By field. A field is a constant in each: where it is in a header, and its size, need no branch then.
template <std::uint32_t... Fields>
constexpr auto gathers(std::integer_sequence<std::uint32_t, Fields...> /*all*/) {
  return std::array<GatherColumn, sizeof...(Fields)>{gather<Fields>...};
}
template <std::uint32_t... Fields>
constexpr auto scatters(std::integer_sequence<std::uint32_t, Fields...> /*all*/) {
  return std::array<Scatter, sizeof...(Fields)>{scatter<Fields>...};
}
constexpr std::make_integer_sequence<std::uint32_t, packet::kFieldCount> kEachField;
constexpr auto kGathers = gathers(kEachField);
constexpr auto kScatters = scatters(kEachField);

}  // namespace

Columns::Columns(packet::FieldSet set, packet::FieldSet moved) {
  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    const std::uint32_t prefix = packet::column_prefix(set, field);
    if (prefix != packet::kNoColumn && (moved >> field & 1U) != 0) {
      moved_.push_back({prefix, packet::field_size(field), kGathers[field], kScatters[field]});
    }
  }
}

void Columns::gather(packet::Batch const& batch, std::byte* columns, std::uint32_t padded,
                     std::uint32_t first_row) const {
  const bool is_run = !moved_.empty() && batch.size() > 0 && batch.is_run();
  for (Column const& column : moved_) {
    column.gather(batch, is_run, columns + std::size_t{padded} * column.prefix + std::size_t{first_row} * column.bytes);
  }
}

void Columns::scatter(packet::Batch const& batch, const std::byte* columns, std::uint32_t padded,
                      std::uint32_t first_row, const std::byte* skip) const {
  const bool is_run = !moved_.empty() && batch.size() > 0 && batch.is_run();
  for (auto column = moved_.rbegin(); column != moved_.rend(); ++column) {
    column->scatter(batch, is_run,
                    columns + std::size_t{padded} * column->prefix + std::size_t{first_row} * column->bytes, skip);
  }
}

}  // namespace catena::copy
