// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/dialect.hpp>
#include <catena/kernel/fault.hpp>
#include <catena/kernel/iso_ptr.hpp>
#include <catena/packet/fields.hpp>
#include <catena/packet/layers.hpp>

/// What a kernel sees: the packets of its batch, the state of its NF. Where a field really is (a transferred column,
/// or the packet's twin in the shared buffer) is decided by the macros that the plan generates:
///   CATENA_SHARED                          1: the packets are in the shared buffer; 0: in the launch's own buffer
///   CATENA_READS, CATENA_WRITES            field sets that the kernel may get() and set()
///   CATENA_IN_COLUMNS, CATENA_OUT_COLUMNS  of these, the ones that stand as columns (too, if written)
///   CATENA_FRAMES                          0 none, 1 payloads, 2 whole frames
///   CATENA_HEADROOM, CATENA_TAILROOM       free bytes around each frame, as far as its slot has them
///   CATENA_LANES                           work-items per packet
///   CATENA_AUX_BYTES, CATENA_RESULT_BYTES  size of the NF's per-packet structs
///   CATENA_SPILL_FACTOR                    spill bytes per byte of the frames
///   CATENA_ANY_GROUPS                      1: a launch may have fewer work-groups than its packets need
namespace catena::kernel {

/// An IPv6 address as two integers: its first 8 bytes and its last.
struct Address6 {
  u64 high;
  u64 low;
};

namespace detail {
template <u32 Bytes>
struct FieldValue;
template <>
struct FieldValue<1> {
  using type = u8;
};
template <>
struct FieldValue<2> {
  using type = u16;
};
template <>
struct FieldValue<4> {
  using type = u32;
};
template <>
struct FieldValue<6> {
  using type = u64;
};
template <>
struct FieldValue<16> {
  using type = Address6;
};

/// Bytes in packet order <-> value.
template <u32 Bytes>
inline typename FieldValue<Bytes>::type from_network(IsoPtr<u8> bytes, u64 at) {
  if constexpr (Bytes == 16) {
    return {bytes.big_endian<8>(at), bytes.big_endian<8>(at + 8)};
  } else {
    return static_cast<typename FieldValue<Bytes>::type>(bytes.big_endian<Bytes>(at));
  }
}
template <u32 Bytes>
inline void to_network(IsoPtr<u8> bytes, u64 at, u64 value) {
  bytes.set_big_endian<Bytes>(at, value);
}
template <u32 Bytes>
inline void to_network(IsoPtr<u8> bytes, u64 at, Address6 value) {
  to_network<8>(bytes, at, value.high);
  to_network<8>(bytes, at + 8, value.low);
}

/// A fixed-size field in a column, where every column is aligned: whole words of it are read, one check for all.
template <u32 Bytes>
struct ColumnEntry {
  using Word = u32;
  Word words[Bytes / sizeof(Word)];
};
template <>
struct ColumnEntry<1> {
  using Word = u8;
  Word words[1];
};
template <>
struct ColumnEntry<2> {
  using Word = u16;
  Word words[1];
};
template <>
struct ColumnEntry<6> {
  using Word = u16;
  Word words[3];
};
inline u8 swap(u8 word) { return word; }
inline u16 swap(u16 word) { return static_cast<u16>(word >> 8 | word << 8); }
inline u32 swap(u32 word) { return byte_swap(word); }

template <u32 Bytes>
inline typename FieldValue<Bytes>::type from_entry(ColumnEntry<Bytes> const& entry) {
  if constexpr (Bytes == 16) {
    return {static_cast<u64>(swap(entry.words[0])) << 32 | swap(entry.words[1]),
            static_cast<u64>(swap(entry.words[2])) << 32 | swap(entry.words[3])};
  } else {
    u64 value = 0;
    for (const auto word : entry.words) {
      value = value << (8 * sizeof word) | swap(word);
    }
    return static_cast<typename FieldValue<Bytes>::type>(value);
  }
}
template <u32 Bytes>
inline ColumnEntry<Bytes> to_entry(typename FieldValue<Bytes>::type value) {
  using Word = typename ColumnEntry<Bytes>::Word;
  ColumnEntry<Bytes> entry{};
  if constexpr (Bytes == 16) {
    entry = {{swap(static_cast<u32>(value.high >> 32)), swap(static_cast<u32>(value.high)),
              swap(static_cast<u32>(value.low >> 32)), swap(static_cast<u32>(value.low))}};
  } else {
    constexpr u32 kWords = Bytes / sizeof(Word);
    CATENA_UNROLL
    for (u32 k = 0; k < kWords; ++k) {
      entry.words[k] = swap(static_cast<Word>(static_cast<u64>(value) >> (8 * sizeof(Word) * (kWords - 1 - k))));
    }
  }
  return entry;
}
/// True; a compiler's error where the NF's hints do not name what its kernel uses. A message is a literal: each field
/// has its own.
template <u32 Field, packet::FieldSet Reads>
constexpr bool is_named_as_read() {
#define CATENA_NAMED_AS_READ(id, name, constant, bytes, help) \
  static_assert(Field != id || ((Reads >> id) & 1U) != 0,     \
                "the NF's hints do not name " name " as read on the GPU (GR)");
  CATENA_PACKET_FIELDS(CATENA_NAMED_AS_READ)
#undef CATENA_NAMED_AS_READ
  return true;
}
template <u32 Field, packet::FieldSet Writes>
constexpr bool is_named_as_written() {
#define CATENA_NAMED_AS_WRITTEN(id, name, constant, bytes, help) \
  static_assert(Field != id || ((Writes >> id) & 1U) != 0,       \
                "the NF's hints do not name " name " as written on the GPU (GW)");
  CATENA_PACKET_FIELDS(CATENA_NAMED_AS_WRITTEN)
#undef CATENA_NAMED_AS_WRITTEN
  return true;
}

}  // namespace detail

/// Variable-length bytes of one packet (its payload or its frame). Index 0 is the first byte; with head- and tailroom
/// index -headroom .. length + tailroom - 1 may be used, as far as that is inside the packet's slot: how much there is,
/// prepare() sees in meta.offset and meta.length. Where the NF's hints do not name the payload as written on the GPU, a
/// write counts as one out of bounds.
class Bytes {
 public:
  u32 length() const { return length_; }
  u8 operator[](i32 i) const { return reach_[static_cast<u64>(static_cast<i64>(start_) + i)]; }
  void set(i32 i, u8 value) const { reach_.set(to_write(i), value); }
  u32 be32(i32 i) const { return reach_.be32(static_cast<u64>(static_cast<i64>(start_) + i)); }
  /// `words` words, at most Words, from index i on; see IsoPtr::fetch(). put() writes some.
  template <u32 Words>
  Fetched<Words> fetch(i32 i, u32 words) const {
    return reach_.fetch<Words>(static_cast<u64>(static_cast<i64>(start_) + i), words);
  }
  template <u32 Words>
  void put(i32 i, u32 const (&words)[Words]) const {
    reach_.put<Words>(to_write(i), words);
  }
  u16 be16(i32 i) const { return detail::from_network<2>(reach_, static_cast<u64>(static_cast<i64>(start_) + i)); }
  void set_be32(i32 i, u32 value) const { reach_.set_be32(to_write(i), value); }
  void set_be16(i32 i, u16 value) const { detail::to_network<2>(reach_, to_write(i), value); }
  /// The same bytes seen from `by` further on.
  Bytes from(i32 by) const {
    return {reach_, static_cast<u32>(static_cast<i32>(start_) + by), length_ - static_cast<u32>(by), writable_};
  }

 private:
  friend class PacketView;
  Bytes(IsoPtr<u8> reach, u32 start, u32 length, bool writable)
      : reach_(reach), start_(start), length_(length), writable_(writable) {}
  /// Of index i; beyond the end where nothing may be written.
  u64 to_write(i32 i) const { return writable_ ? static_cast<u64>(static_cast<i64>(start_) + i) : reach_.size(); }

  IsoPtr<u8> reach_;
  u32 start_;
  u32 length_;
  bool writable_;  ///< a constant wherever the compiler sees where the bytes come from
};

class PacketView;

/// The launch as one work-item sees it. CATENA_KERNEL makes it. What comes from it must not outlive it: it reports what
/// was out of bounds when it ends.
class Context {
 public:
  /// Reports what was noted of accesses through it, all of them to its packet.
  ~Context() {
    if (detail::kChecked && notes_.count != 0) {
      report();
    }
  }
  Context(Context const&) = delete;
  Context& operator=(Context const&) = delete;

  /// This work-item's packet. With CATENA_LANES work-items per packet all of them see the same one.
  /// valid() is false for work-items beyond the last packet; they must still reach every barrier.
  PacketView packet() const&;
  PacketView packet() const&& = delete;
  /// 0 .. CATENA_LANES - 1: which of the packet's work-items this is.
  u32 lane() const { return local_id() % CATENA_LANES; }
  /// Packets of this work-item's group.
  u32 group_packets() const { return group_size() / CATENA_LANES; }
  /// The same for packet `i` of the group: packet() is that one. Where one work-item a packet has work to do, let the
  /// first group_packets() of a group do it side by side: neighbours that do the same thing at once do it in the time
  /// of one.
  Context for_group_packet(u32 i) const { return Context(*this, first_row_ + i); }

  /// The struct at the start of the NF's state. Out of bounds, and T{}, where an NF has less state.
  template <typename T>
  T state() const {
    return IsoPtr<T>(reinterpret_cast<T*>(state_), params_.state_bytes >= sizeof(T) ? 1 : 0, kAddressState, sink())[0];
  }
  /// An array of the NF's state, as the host wrote it; of no elements if it does not lie in the state.
  template <typename T>
  IsoPtr<T> array(StateArray<T> const& where) const& {
    const bool inside = !detail::kChecked || (where.offset % alignof(T) == 0 && where.offset <= params_.state_bytes &&
                                              where.count <= (params_.state_bytes - where.offset) / sizeof(T));
    return {reinterpret_cast<T*>(state_ + (inside ? where.offset : 0)), inside ? where.count : 0, kAddressState,
            sink()};
  }
  /// `count` elements of the work-group's local memory, `offset` bytes into it; none if they do not lie in it.
  template <typename T>
  IsoPtr<T> local(u32 offset, u32 count) const& {
    const bool inside = !detail::kChecked || (offset % alignof(T) == 0 && offset <= params_.local_bytes &&
                                              count <= (params_.local_bytes - offset) / sizeof(T));
    return {reinterpret_cast<T*>(local_ + (inside ? offset : 0)), inside ? count : 0, kAddressLocal, sink()};
  }

 private:
  friend class PacketView;
  friend struct KernelEntry;
  Context(u8* batch, u8* out, u8* state, u8* spill, u8* shared, u8* local, LaunchParams const& params, u32 group)
      : batch_(batch + params.batch_offset),
        out_(out),
        state_(state),
        spill_(spill),
        shared_(shared),
        local_(local),
        params_(params),
        first_row_(group * (group_size() / CATENA_LANES)),
        row_(first_row_ + local_id() / CATENA_LANES) {}
  Context(Context const& other, u32 row)
      : batch_(other.batch_),
        out_(other.out_),
        state_(other.state_),
        spill_(other.spill_),
        shared_(other.shared_),
        local_(other.local_),
        params_(other.params_),
        first_row_(other.first_row_),
        row_(row) {}

  /// Of one work-item.
  static constexpr u32 kMostCounted = 255;

  FaultSink sink() const { return {&notes_}; }
  void report() const {
    u8* out = out_ + params_.out_offset;
    auto* report = reinterpret_cast<FaultReport*>(out);
    if (row_ < params_.padded) {
      out[sizeof(FaultReport) + row_] = 1;
    }
    // however many there are in all, their sum is not 0 again
    const u32 count = notes_.count < kMostCounted ? notes_.count : kMostCounted;
    if (atomic_add(&report->count, count) == 0) {
      report->packet = row_;
      report->address_space = notes_.address_space;
      report->offset = notes_.offset;
      report->size = notes_.size;
    }
  }

  u8* batch_;
  u8* out_;
  u8* state_;
  u8* spill_;
  u8* shared_;
  u8* local_;
  LaunchParams params_;
  u32 first_row_;  ///< of the work-group
  u32 row_;
  mutable FaultNotes notes_;  ///< by the IsoPtrs that come from here
};

/// What CATENA_KERNEL calls, and nothing else: the arguments of a launch become a Context.
struct KernelEntry {
  static Context context(u8* batch, u8* out, u8* state, u8* spill, u8* shared, u8* local, LaunchParams const& params,
                         u32 group) {
    return Context(batch, out, state, spill, shared, local, params, group);
  }
  /// What comes before the first group. False where the launch says of itself what its buffers do not hold: it does
  /// nothing then, but for a report of a fault where there is room for one.
  static bool prepare(const u8* batch, u8* out, LaunchParams& params, LaunchSizes const& sizes);
  /// Work-groups that the packets need.
  static u32 groups(LaunchParams const& params) {
    const u32 packets_per_group = group_size() / CATENA_LANES;
    return (params.count + packets_per_group - 1) / packets_per_group;
  }

 private:
  static constexpr u32 kAligned = 16;
  static bool fits(LaunchParams const& params, LaunchSizes const& sizes);
};

/// One packet of the batch. Must not outlive the Context that it came from.
class PacketView {
 public:
  /// The second condition holds where the first does; a compiler that has seen it needs no check of a column.
  bool valid() const { return row_ < ctx_->params_.count && row_ < ctx_->params_.padded; }
  u32 row() const { return row_; }

  /// The value of a fixed-size field in host order (a MAC address is the low 48 bits, an IPv6 address an Address6),
  /// 0 where the packet has no such header; undefined after a set() of the same field. The NF's hints must name the
  /// field as read on the GPU; otherwise this does not compile.
  template <u32 Field>
  typename detail::FieldValue<packet::field_size(Field)>::type get() const {
    static_assert(detail::is_named_as_read<Field, CATENA_READS>());
    constexpr u32 kPrefix = packet::column_prefix(CATENA_IN_COLUMNS, Field);
    constexpr u32 kBytes = packet::field_size(Field);
    if constexpr (Field >= packet::kMetaVerdict) {  // metadata is in host order
      return meta<typename detail::FieldValue<kBytes>::type, Field>();
    } else if constexpr (kPrefix != packet::kNoColumn) {
      return detail::from_entry<kBytes>(column<detail::ColumnEntry<kBytes>>(ctx_->batch_, in_column(kPrefix))[row_]);
    } else {
      const u64 at = place(Field);
      if (at == kAbsent) {
        return {};
      }
      if constexpr (Field == packet::kIcmpHeader) {  // is around the checksum
        const u64 kind = detail::from_network<2>(slot_bytes(), at);
        return kind << 32 | detail::from_network<4>(slot_bytes(), at + 4);
      } else {
        return detail::from_network<kBytes>(slot_bytes(), at);
      }
    }
  }
  template <packet::FieldSet Reads = CATENA_READS>  // a template, so that it compiles only where it is used
  packet::Layers layers() const {
    static_assert(detail::is_named_as_read<packet::kMetaLayers, Reads>());
    return meta<packet::Layers, packet::kMetaLayers>();
  }
  /// Writes a field; does nothing where the packet has no such header. The NF's hints must name it as written on the
  /// GPU. A kernel must write each such field of each packet it does not leave unchanged by contract: an output column
  /// starts as a copy of nothing. What it writes of the metadata counts from the next NF on.
  template <u32 Field>
  void set(typename detail::FieldValue<packet::field_size(Field)>::type value) const {
    static_assert(detail::is_named_as_written<Field, CATENA_WRITES>());
    constexpr u32 kPrefix = packet::column_prefix(CATENA_OUT_COLUMNS, Field);
    constexpr u32 kBytes = packet::field_size(Field);
    if constexpr (Field >= packet::kMetaVerdict) {
      using Value = typename detail::FieldValue<kBytes>::type;
      constexpr bool kHasColumn = kPrefix != packet::kNoColumn;
      column<Value>(ctx_->out_, kHasColumn ? out_column(kPrefix) : 0, kHasColumn).set(row_, value);
    } else {
      if constexpr (kPrefix != packet::kNoColumn) {
        column<detail::ColumnEntry<kBytes>>(ctx_->out_, out_column(kPrefix)).set(row_, detail::to_entry<kBytes>(value));
      }
      if constexpr (CATENA_SHARED != 0) {
        const u64 at = place(Field);
        if (at == kAbsent) {
          return;
        }
        if constexpr (Field == packet::kIcmpHeader) {
          detail::to_network<2>(slot_bytes(), at, value >> 32);
          detail::to_network<4>(slot_bytes(), at + 4, value);
        } else {
          detail::to_network<kBytes>(slot_bytes(), at, value);
        }
      }
    }
  }

  /// The payload (GR names `payload`), or the whole frame (GR names every frame field).
  template <u32 Frames = CATENA_FRAMES>
  Bytes payload() const {
    static_assert(Frames == 1, "the NF's hints do not name the payload as read on the GPU, or name the whole frame");
    return bytes();
  }
  template <u32 Frames = CATENA_FRAMES>
  Bytes frame() const {
    static_assert(Frames == 2, "the NF's hints do not name every frame field as read on the GPU");
    return bytes();
  }

  /// The NF's per-packet input from the CPU, and its per-packet result. One lane writes the result.
  template <typename T>
  T aux() const {
    static_assert(sizeof(T) == CATENA_AUX_BYTES, "not the descriptor's aux struct");
    return column<T>(ctx_->batch_, aux_offset())[row_];
  }
  template <typename T>
  void set_result(T value) const {
    static_assert(sizeof(T) == CATENA_RESULT_BYTES, "not the descriptor's result struct");
    IsoPtr<T>(reinterpret_cast<T*>(ctx_->out_ + result_offset()), ctx_->params_.padded, kAddressResults, ctx_->sink())
        .set(row_, value);
  }
  /// The packet's result as elements of T, for kernels that fill a list in it.
  template <typename T>
  IsoPtr<T> result_array() const {
    static_assert(CATENA_RESULT_BYTES % alignof(T) == 0, "result_bytes is not a multiple of the alignment of T");
    const bool inside = !detail::kChecked || row_ < ctx_->params_.padded;
    const u64 begin = inside ? result_offset() + static_cast<u64>(row_) * CATENA_RESULT_BYTES : 0;
    return {reinterpret_cast<T*>(ctx_->out_ + begin), inside ? CATENA_RESULT_BYTES / sizeof(T) : 0, kAddressResults,
            ctx_->sink()};
  }
  /// The first `length` bytes of the packet's part of the spill area, for what works on Bytes.
  Bytes spill_bytes(u32 length) const { return {spill<u8>(), 0, length, true}; }
  /// The packet's part of the spill area: CATENA_SPILL_FACTOR bytes for each payload or frame byte.
  template <typename T>
  IsoPtr<T> spill() const {
    static_assert(kFirstByte * CATENA_SPILL_FACTOR % alignof(T) == 0,
                  "T would not be aligned in the spill area: use a smaller type or a larger spill factor");
    u64 begin = 0;
    u64 length = 0;
    if constexpr (CATENA_SHARED != 0) {
      begin = row_ * ctx_->params_.spill_row_bytes;
      length = static_cast<u64>(body().length) * CATENA_SPILL_FACTOR;
      length = length < ctx_->params_.spill_row_bytes ? length : ctx_->params_.spill_row_bytes;
    } else {
      const Extent where = extent();
      begin = static_cast<u64>(where.begin) * CATENA_SPILL_FACTOR;
      length = static_cast<u64>(where.length) * CATENA_SPILL_FACTOR;
    }
    const bool inside =
        !detail::kChecked || (begin % alignof(T) == 0 && lies_in(begin, length, ctx_->params_.spill_bytes));
    return {reinterpret_cast<T*>(ctx_->spill_ + (inside ? begin : 0)), inside ? length / sizeof(T) : 0, kAddressSpill,
            ctx_->sink()};
  }

 private:
  friend class Context;
  friend struct KernelEntry;
  PacketView(Context const& context, u32 row) : ctx_(&context), row_(row) {}

  static constexpr u32 kOutHeader = sizeof(FaultReport);
  static constexpr bool writes_bytes() { return packet::contains(CATENA_WRITES, packet::kPayload); }
  /// Where the first packet's bytes start in the frames; the others start multiples of 16 further on.
  static constexpr u32 kFirstByte = CATENA_HEADROOM + (CATENA_FRAMES == 2 ? kFrameShift : 0);
  u64 in_column(u32 prefix) const { return static_cast<u64>(ctx_->params_.padded) * prefix; }
  static constexpr u32 kInBytes = packet::columns_size(CATENA_IN_COLUMNS);  // of a row
  static constexpr u32 kOutBytes = packet::columns_size(CATENA_OUT_COLUMNS);
  u64 aux_offset() const { return static_cast<u64>(ctx_->params_.padded) * kInBytes; }
  u64 extent_offset() const { return aux_offset() + static_cast<u64>(ctx_->params_.padded) * CATENA_AUX_BYTES; }
  u64 out_column(u32 prefix) const {
    return ctx_->params_.out_offset + kOutHeader + static_cast<u64>(ctx_->params_.padded) * (1 + prefix);
  }
  u64 result_offset() const { return out_column(kOutBytes); }
  template <typename T>
  IsoPtr<T> column(u8* buffer, u64 offset, bool is_there = true) const {
    return {reinterpret_cast<T*>(buffer + offset), is_there ? ctx_->params_.padded : 0, kAddressColumns, ctx_->sink()};
  }
  Extent extent() const {
    if constexpr (CATENA_FRAMES == 0) {
      return {};  // there are none
    } else {
      return column<Extent>(ctx_->batch_, extent_offset())[row_];
    }
  }
  Bytes bytes() const {
    if constexpr (CATENA_SHARED != 0) {
      // head- and tailroom end with the slot: after other NFs that made it longer a packet may have less than it asks
      // for, and need none
      const Body where = body();
      const u32 end = where.begin + where.length;
      const u32 front = smaller(where.begin, CATENA_HEADROOM);
      const u32 number = slot();
      const bool inside = !detail::kChecked || (end <= packet::kSlotBytes && number < ctx_->params_.slots);
      const u32 back = inside ? smaller(packet::kSlotBytes - end, CATENA_TAILROOM) : 0;
      const u64 begin = inside ? static_cast<u64>(number) * packet::kSlotBytes + where.begin - front : 0;
      return {IsoPtr<u8>(ctx_->shared_ + begin, inside ? u64{front} + where.length + back : 0, kAddressFrames,
                         ctx_->sink()),
              front, where.length, writes_bytes()};
    } else {
      const Extent where = extent();
      const u64 reach = static_cast<u64>(where.length) + CATENA_HEADROOM + CATENA_TAILROOM;
      const u64 begin = static_cast<u64>(where.begin) - CATENA_HEADROOM;
      const bool inside = !detail::kChecked || (row_ < ctx_->params_.padded && where.begin >= CATENA_HEADROOM &&
                                                lies_in(begin, reach, ctx_->params_.frames_bytes));
      return {IsoPtr<u8>(ctx_->batch_ + ctx_->params_.frames_offset + (inside ? begin : 0), inside ? reach : 0,
                         kAddressFrames, ctx_->sink()),
              CATENA_HEADROOM, where.length, writes_bytes()};
    }
  }

  static constexpr u32 smaller(u32 a, u32 b) { return a < b ? a : b; }

  // --- shared buffer ---
  static constexpr u64 kAbsent = ~u64{0};
  struct Body {
    u32 begin;  // in the slot
    u32 length;
  };
  /// The packet's slot number; one after the last for a row or number that is none.
  u32 slot() const {
    if (CATENA_SHARED == 0 || (detail::kChecked && row_ >= ctx_->params_.padded)) {
      return ctx_->params_.slots;
    }
    const u32 slot = reinterpret_cast<const u32*>(ctx_->batch_ + extent_offset())[row_];
    return !detail::kChecked || slot < ctx_->params_.slots ? slot : ctx_->params_.slots;
  }
  IsoPtr<u8> slot_bytes() const {
    const u32 number = slot();
    const bool inside = CATENA_SHARED != 0 && (!detail::kChecked || number < ctx_->params_.slots);
    return {ctx_->shared_ + (inside ? static_cast<u64>(number) * packet::kSlotBytes : 0),
            inside ? packet::kSlotBytes : 0U, kAddressFrames, ctx_->sink()};
  }
  /// A metadata field: a transferred column where the plan made one, else the shared buffer's array.
  template <typename Value, u32 Field>
  Value meta() const {
    constexpr u32 kPrefix = packet::column_prefix(CATENA_IN_COLUMNS, Field);
    if constexpr (kPrefix != packet::kNoColumn) {
      return column<Value>(ctx_->batch_, in_column(kPrefix))[row_];
    } else {
      constexpr u32 kArray = shared_meta_prefix(Field);
      return IsoPtr<Value>(reinterpret_cast<Value*>(ctx_->shared_ + static_cast<u64>(ctx_->params_.slots) * kArray),
                           CATENA_SHARED != 0 ? ctx_->params_.slots : 0, kAddressColumns, ctx_->sink())[slot()];
    }
  }
  Body body() const {
    const u32 offset = meta<u16, packet::kMetaOffset>();
    if constexpr (CATENA_FRAMES == 2) {
      return {offset, meta<u16, packet::kMetaLength>()};
    } else {
      const packet::Layers layers = meta<packet::Layers, packet::kMetaLayers>();
      return {offset + layers.payload, layers.payload_length};
    }
  }
  /// Where a header field is in the slot, or kAbsent.
  u64 place(u32 field) const {
    const packet::Layers layers = meta<packet::Layers, packet::kMetaLayers>();
    if (!packet::has_field(field, layers.flags)) {
      return kAbsent;
    }
    return meta<u16, packet::kMetaOffset>() + packet::field_offset(field, layers);
  }

  Context const* ctx_;
  u32 row_;
};

inline PacketView Context::packet() const& { return {*this, row_}; }

inline bool KernelEntry::prepare(const u8* batch, u8* out, LaunchParams& params, LaunchSizes const& sizes) {
  bool is_sound = true;
  if constexpr (CATENA_SHARED != 0) {
    is_sound = !detail::kChecked || sizes.batch >= sizeof(LaunchHeader);
    const LaunchHeader head = is_sound ? *reinterpret_cast<const LaunchHeader*>(batch) : LaunchHeader{};
    params.count = head.processed;
    params.padded = padded_rows(head.rows);
  }
  if (!detail::kChecked || (is_sound && fits(params, sizes))) {
    return true;
  }
  if (global_id() == 0 && params.out_offset % kAligned == 0 &&
      lies_in(params.out_offset, sizeof(FaultReport), sizes.out)) {
    atomic_add(&reinterpret_cast<FaultReport*>(out + params.out_offset)->count, 1);
  }
  return false;
}

/// Sums and products of numbers of 32 bits; numbers of 64 bits are only compared.
inline bool KernelEntry::fits(LaunchParams const& params, LaunchSizes const& sizes) {
  constexpr u64 kPlace = CATENA_SHARED != 0 ? sizeof(u32) : CATENA_FRAMES != 0 ? sizeof(Extent) : 0;
  constexpr u64 kRow = u64{PacketView::kInBytes} + CATENA_AUX_BYTES + kPlace;
  constexpr u64 kOutRow = u64{PacketView::kOutBytes} + CATENA_RESULT_BYTES + 1;
  const u64 padded = params.padded;
  const bool is_aligned = (params.batch_offset | params.out_offset | params.spill_row_bytes | padded) % kAligned == 0;
  const bool has_rows = lies_in(params.batch_offset, padded * kRow, sizes.batch) &&
                        lies_in(params.out_offset, PacketView::kOutHeader + padded * kOutRow, sizes.out);
  const bool has_frames = CATENA_SHARED != 0 || (has_rows && lies_in(params.frames_offset, params.frames_bytes,
                                                                     sizes.batch - params.batch_offset));
  const bool has_slots = params.slots == 0 || shared_buffer_bytes(params.slots) <= sizes.shared;
  return is_aligned && has_rows && has_frames && has_slots && params.state_bytes <= sizes.state &&
         params.spill_bytes <= sizes.spill && params.local_bytes <= sizes.local && group_size() % CATENA_LANES == 0;
}

}  // namespace catena::kernel
