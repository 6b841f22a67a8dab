// SPDX-License-Identifier: Apache-2.0
// Moves fields between a launch's own buffer or the packet pool and the shared buffer. Several work-items per packet,
// its lanes, where there are bodies; lane 0 moves what is small. Macros besides those of a context:
//   CATENA_COLUMNS         fields that travel as columns of the batch launch_buffer
//   CATENA_MAPPED_COLUMNS  header fields that the kernel reads or writes in the packet pool
//   CATENA_WRITTEN         moving out: columns that the NF's kernel has written for the rows that it processed
//   CATENA_BODY            0 none, 1 payloads, 2 whole frames
// Offsets and lengths on the device are what an NF's kernel left: nothing here goes beyond a slot or a extent.
#include "gpu/copy/staging_extent.hpp"
#include "gpu/copy/transfer_dialect.hpp"

namespace catena::copy {

using namespace kernel;

/// What a launch tells, and what its launch_buffer does.
struct Move {
  TransferParams const& params;
  LaunchHeader head;
  u32 padded;  // rows of every column
  const u8* launch_buffer;
};

/// Without rows where the header is not in the launch buffer.
inline Move move_of(const u8* launch_buffer, u64 launch_bytes, TransferParams const& params) {
  LaunchHeader head{};
  if (params.head_offset % alignof(LaunchHeader) == 0 &&
      lies_in(params.head_offset, sizeof(LaunchHeader), launch_bytes)) {
    head = *reinterpret_cast<const LaunchHeader*>(launch_buffer + params.head_offset);
  }
  return {params, head, padded_rows(head.rows), launch_buffer};
}

/// Whether all that the launch says of itself lies in its buffers. `launch_bytes`: of the launch buffer. Numbers of 64
/// bits are only compared.
template <bool In>
inline bool fits(Move const& move, u64 launch_bytes, TransferSizes const& sizes) {
  constexpr u32 kAligned = 16;
  constexpr u32 kMaxLaneBits = 10;
  constexpr u32 kColumns = packet::columns_size(CATENA_COLUMNS);
  TransferParams const& params = move.params;
  const u64 rows = move.head.rows;
  const u64 padded = move.padded;
  const bool is_aligned =
      (params.head_offset | params.extents_offset | params.frames_offset | params.flags_offset) % kAligned == 0 &&
      params.slots_offset % 4 == 0;
  const bool has_rows =
      rows <= padded && params.lane_bits <= kMaxLaneBits &&
      lies_in(params.slots_offset, padded * params.slots_row_bytes + rows * sizeof(u32), launch_bytes) &&
      (In ? lies_in(params.head_offset, sizeof(LaunchHeader) + padded * kColumns, launch_bytes)
          : lies_in(params.flags_offset, padded * (1 + kColumns), sizes.out));
  const bool is_staged = params.body != KernelPath::kNone && params.body != KernelPath::kPool;
  const bool has_bodies = !is_staged || (lies_in(params.extents_offset, rows * sizeof(StagingExtent), launch_bytes) &&
                                         lies_in(params.frames_offset, params.frames_bytes, launch_bytes));
  const bool needs_pool = CATENA_MAPPED_COLUMNS != 0 || params.body == KernelPath::kPool;
  return is_aligned && has_rows && has_bodies && shared_buffer_bytes(params.slots) <= sizes.shared &&
         (!needs_pool || static_cast<u64>(params.slots) * packet::kSlotBytes <= sizes.pool);
}

struct Row {
  u8* twin;      // the slot in the shared buffer
  u8* original;  // in the packet pool; null if that is not mapped
  u32 slot;
  u32 row;
  u32 lane;
  u32 lanes;
};

inline bool find_row(Move const& move, u8* shared, u8* pool, Row& row) {
  row.lanes = 1U << move.params.lane_bits;
  row.row = global_id() >> move.params.lane_bits;
  row.lane = global_id() % row.lanes;
  if (row.row >= move.head.rows) {
    return false;
  }
  const u64 slots_at = move.params.slots_offset + static_cast<u64>(move.padded) * move.params.slots_row_bytes;
  row.slot = reinterpret_cast<const u32*>(move.launch_buffer + slots_at)[row.row];
  row.twin = shared + static_cast<u64>(row.slot) * packet::kSlotBytes;
  row.original = pool + static_cast<u64>(row.slot) * packet::kSlotBytes;
  return row.slot < move.params.slots;
}

inline void copy_bytes(u8* to, const u8* from, u32 bytes) {
  for (u32 i = 0; i < bytes; ++i) {
    to[i] = from[i];
  }
}

/// Bytes [begin, end) of `to` get those of `from`, shared out over the packet's work-items by words of 8 bytes. Both
/// pointers are congruent modulo 8.
inline void copy_range(Row const& row, u8* to, const u8* from, u32 begin, u32 end) {
  const u32 first = begin + static_cast<u32>((8 - reinterpret_cast<u64>(to + begin) % 8) % 8);
  if (first + 8 > end) {
    if (row.lane == 0) {
      copy_bytes(to + begin, from + begin, end - begin);
    }
    return;
  }
  const u32 words = (end - first) / 8;
  if (row.lane == 0) {
    copy_bytes(to + begin, from + begin, first - begin);
    copy_bytes(to + first + words * 8, from + first + words * 8, end - first - words * 8);
  }
  // several words are asked for before the first is put down: each takes its way over the bus
  constexpr u32 kTogether = 4;
  for (u32 word = row.lane; word < words; word += kTogether * row.lanes) {
    u64 values[kTogether] = {};
    CATENA_UNROLL
    for (u32 i = 0; i < kTogether; ++i) {
      const u32 at = word + i * row.lanes;
      values[i] = at < words ? *reinterpret_cast<const u64*>(from + first + at * 8) : 0;
    }
    CATENA_UNROLL
    for (u32 i = 0; i < kTogether; ++i) {
      const u32 at = word + i * row.lanes;
      if (at < words) {
        *reinterpret_cast<u64*>(to + first + at * 8) = values[i];
      }
    }
  }
}

template <u32 Field>
inline u8* meta_entry(u8* shared, Move const& move, u32 slot) {
  constexpr u32 kArray = shared_meta_prefix(Field);
  constexpr u32 kBytes = packet::field_size(Field);
  return shared + static_cast<u64>(move.params.slots) * kArray + static_cast<u64>(slot) * kBytes;
}

/// Of the values in the shared buffer, for which both sides of a move agree on where a packet's bytes are.
struct Where {
  u32 offset;
  u32 length;
  packet::Layers layers;
};

/// A metadata field as columns of `set` at `columns` have it, else as the shared buffer has it.
template <typename T, u32 Field, packet::FieldSet Set>
inline T meta_of(u8* shared, const u8* columns, Move const& move, Row const& row, bool from_column) {
  constexpr u32 kPrefix = packet::column_prefix(Set, Field);
  if constexpr (kPrefix != packet::kNoColumn) {
    if (from_column) {
      return reinterpret_cast<const T*>(columns + static_cast<u64>(move.padded) * kPrefix)[row.row];
    }
  }
  return *reinterpret_cast<const T*>(meta_entry<Field>(shared, move, row.slot));
}

template <packet::FieldSet Set>
inline Where where(u8* shared, const u8* columns, Move const& move, Row const& row, bool from_column) {
  return {meta_of<u16, packet::kMetaOffset, Set>(shared, columns, move, row, from_column),
          meta_of<u16, packet::kMetaLength, Set>(shared, columns, move, row, from_column),
          meta_of<packet::Layers, packet::kMetaLayers, Set>(shared, columns, move, row, from_column)};
}

/// Slot bytes [begin, end) that travel as the packet's body; nothing for a place that is not in the slot.
inline void body_range(Where const& at, u32& begin, u32& end) {
  begin = at.offset + (CATENA_BODY == 1 ? at.layers.payload : 0U);
  end = begin + (CATENA_BODY == 1 ? static_cast<u32>(at.layers.payload_length) : at.length);
  if (end > packet::kSlotBytes) {
    begin = end = 0;
  }
}

/// A field of `bytes` bytes between a column and a frame; ICMP's are around the checksum.
template <u32 Field>
inline void copy_field(u8* to, const u8* from, bool to_frame) {
  if constexpr (Field == packet::kIcmpHeader) {
    copy_bytes(to, from, 2);
    copy_bytes(to + (to_frame ? 4 : 2), from + (to_frame ? 2 : 4), 4);
  } else {
    constexpr u32 kBytes = packet::field_size(Field);
    copy_bytes(to, from, kBytes);
  }
}
/// The same from frame to frame.
template <u32 Field>
inline void copy_field_in_place(u8* to, const u8* from) {
  if constexpr (Field == packet::kIcmpHeader) {
    copy_bytes(to, from, 2);
    copy_bytes(to + 4, from + 4, 4);
  } else {
    constexpr u32 kBytes = packet::field_size(Field);
    copy_bytes(to, from, kBytes);
  }
}

template <u32 Field>
inline bool place_of(Where const& at, u32& place) {
  if (!packet::has_field(Field, at.layers.flags)) {
    return false;
  }
  constexpr u32 kReach = Field == packet::kIcmpHeader ? 8 : packet::field_size(Field);
  place = at.offset + packet::field_offset(Field, at.layers);
  return place + kReach <= packet::kSlotBytes;
}

template <u32 Field = 0>
inline void fields_in(u8* shared, const u8* columns, Move const& move, Row const& row, Where const& at) {
  if constexpr (Field < packet::kFieldCount) {
    constexpr u32 kPrefix = packet::column_prefix(CATENA_COLUMNS, Field);
    constexpr u32 kBytes = packet::field_size(Field);
    u32 place = 0;
    if constexpr (kPrefix != packet::kNoColumn) {
      const u8* from = columns + static_cast<u64>(move.padded) * kPrefix + static_cast<u64>(row.row) * kBytes;
      if constexpr (Field >= packet::kMetaVerdict) {
        copy_bytes(meta_entry<Field>(shared, move, row.slot), from, kBytes);
      } else {
        if (place_of<Field>(at, place)) {
          copy_field<Field>(row.twin + place, from, true);
        }
      }
    } else if constexpr (packet::column_prefix(CATENA_MAPPED_COLUMNS, Field) != packet::kNoColumn) {
      if (place_of<Field>(at, place)) {
        copy_field_in_place<Field>(row.twin + place, row.original + place);
      }
    }
    fields_in<Field + 1>(shared, columns, move, row, at);
  }
}

template <u32 Field = 0>
inline void fields_out(u8* shared, u8* columns, Move const& move, Row const& row, Where const& at) {
  if constexpr (Field < packet::kFieldCount) {
    constexpr u32 kPrefix = packet::column_prefix(CATENA_COLUMNS, Field);
    constexpr u32 kBytes = packet::field_size(Field);
    constexpr bool kWritten = ((CATENA_WRITTEN >> Field) & 1U) != 0;
    const bool written = kWritten && row.row < move.head.processed;
    u32 place = 0;
    if constexpr (kPrefix != packet::kNoColumn) {
      u8* column = columns + static_cast<u64>(move.padded) * kPrefix + static_cast<u64>(row.row) * kBytes;
      if constexpr (Field >= packet::kMetaVerdict) {
        u8* entry = meta_entry<Field>(shared, move, row.slot);
        copy_bytes(written ? entry : column, written ? column : entry, kBytes);
      } else {
        if (!written && place_of<Field>(at, place)) {
          copy_field<Field>(column, row.twin + place, false);
        }
      }
    } else if constexpr (packet::column_prefix(CATENA_MAPPED_COLUMNS, Field) != packet::kNoColumn) {
      if (place_of<Field>(at, place)) {
        copy_field_in_place<Field>(row.original + place, row.twin + place);
      }
    }
    fields_out<Field + 1>(shared, columns, move, row, at);
  }
}

/// The part of slot bytes [begin, end) that lies in the packet's extent, and where that is in the frames as if the slot
/// began there.
inline i64 staging_of(Move const& move, Row const& row, u32& begin, u32& end) {
  const StagingExtent extent =
      reinterpret_cast<const StagingExtent*>(move.launch_buffer + move.params.extents_offset)[row.row];
  const u32 extent_end = static_cast<u32>(extent.slot_begin) + extent.bytes;
  begin = begin > extent.slot_begin ? begin : extent.slot_begin;
  end = end < extent_end ? end : extent_end;
  const bool is_congruent = (extent.begin - extent.slot_begin) % 8 == 0;
  if (begin >= end || !is_congruent || static_cast<u64>(extent.begin) + extent.bytes > move.params.frames_bytes) {
    begin = end = extent.slot_begin;
  }
  return static_cast<i64>(move.params.frames_offset) + extent.begin - extent.slot_begin;
}

inline void move_in(const u8* launch_buffer, u64 launch_bytes, u8* shared, u8* pool, TransferParams const& params,
                    TransferSizes const& sizes) {
  const Move move = move_of(launch_buffer, launch_bytes, params);
  Row row;
  if (!fits<true>(move, launch_bytes, sizes) || !find_row(move, shared, pool, row)) {
    return;
  }
  const u8* columns = launch_buffer + params.head_offset + sizeof(LaunchHeader);
  const Where at = where<CATENA_COLUMNS>(shared, columns, move, row, true);
  if (params.body != KernelPath::kNone) {
    u32 begin = 0;
    u32 end = 0;
    body_range(at, begin, end);
    if (params.body == KernelPath::kPool) {
      copy_range(row, row.twin, row.original, begin, end);
    } else {
      const u8* from = launch_buffer + staging_of(move, row, begin, end);
      copy_range(row, row.twin, from, begin, end);
    }
  }
  if (row.lane == 0) {
    fields_in(shared, columns, move, row, at);
  }
}

inline void move_out(u8* batch, u8* out, u8* shared, u8* pool, TransferParams const& params,
                     TransferSizes const& sizes) {
  const Move move = move_of(batch, sizes.batch, params);
  Row row;
  if (!fits<false>(move, sizes.batch, sizes) || !find_row(move, shared, pool, row) ||
      (out + params.flags_offset)[row.row] != 0) {
    return;
  }
  u8* columns = out + params.flags_offset + move.padded;
  const Where at = where<CATENA_COLUMNS & CATENA_WRITTEN>(shared, columns, move, row, row.row < move.head.processed);
  if (params.body != KernelPath::kNone) {
    u32 begin = 0;
    u32 end = 0;
    body_range(at, begin, end);
    if (params.body == KernelPath::kPool) {
      if (CATENA_BODY == 2 && begin < end) {
        begin = packet::cache_line_begin(begin);
        end = packet::cache_line_end(end);
      }
      copy_range(row, row.original, row.twin, begin, end);
    } else {
      u8* to = batch + staging_of(move, row, begin, end);
      copy_range(row, to, row.twin, begin, end);
    }
  }
  if (row.lane == 0) {
    fields_out(shared, columns, move, row, at);
  }
}

}  // namespace catena::copy

CATENA_TRANSFER_KERNEL(catena_move_in) {
  using namespace catena::copy;
  const catena::u32 at = global_id();
  const bool is_mapped = params.fused_upload != 0;
  const bool is_fused = is_mapped && is_block(at, out, sizes.out, sizes.batch);
  // asked for first and put down last: reading memory of the host takes long
  const UploadBlock block = is_fused ? reinterpret_cast<const UploadBlock*>(out)[at] : UploadBlock{};
  move_in(is_mapped ? out : batch, is_mapped ? sizes.out : sizes.batch, shared, pool, params, sizes);
  if (is_fused) {
    reinterpret_cast<UploadBlock*>(batch)[at] = block;
  }
}
CATENA_TRANSFER_KERNEL(catena_move_out) { catena::copy::move_out(batch, out, shared, pool, params, sizes); }
