// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/dialect.hpp>
#include <catena/kernel/fault.hpp>

/// Isolation (G-NET, section 5): the framework gives kernels no bare pointers. An IsoPtr knows its address space and
/// checks each access. An access out of bounds is not performed, is counted, and drops its packet. This stops mistakes.
/// A kernel with pointers of its own, from casts or to its own variables, is refused by the static check of its source
/// (`catena check-kernel`); nothing here stops it.
namespace catena::kernel {

class Context;
class PacketView;

namespace detail {
template <typename T>
struct IsPointer {
  static constexpr bool kValue = false;
};
template <typename T>
struct IsPointer<T*> {
  static constexpr bool kValue = true;
};

/// Accesses are checked. No option, variable or macro changes this. The benchmark of the checks (bench/isoptr) changes
/// this line in its own copy of this text.
inline constexpr bool kChecked = true;
}  // namespace detail

/// A work-item's accesses out of bounds, in registers until its Context ends and reports them. A branch to a report at
/// each access would keep the compiler from issuing the next load before it.
struct FaultNotes {
  u32 count = 0;
  u32 address_space = 0;  ///< of the last access, as the next two
  u64 offset = 0;
  u64 size = 0;
};

/// Where an IsoPtr notes its faults. Its Context must outlive it.
struct FaultSink {
  FaultNotes* notes;

  /// Without a branch, because `outside` is false nearly always.
  void note(bool outside, AddressSpace address_space, u64 offset, u64 size) const {
    notes->count += outside ? 1 : 0;
    notes->address_space = outside ? address_space : notes->address_space;
    notes->offset = outside ? offset : notes->offset;
    notes->size = outside ? size : notes->size;
  }
};

/// Maximum words of one fetch() or put().
inline constexpr u32 kMaxWords = 256;

/// Words of a packet in flight from memory. All loads are issued before the first wait, and each word is waited for at
/// its use. A kernel that reads word by word waits for memory once per word.
template <u32 Words>
struct Fetched {
  static_assert(Words != 0 && Words <= kMaxWords, "1 to 256 words are fetched at once");
  u32 raw[Words + 1];  ///< as in memory, starting with the word of the first byte
  u32 shift;           ///< bits before the first byte
  u32 words;           ///< number of requested words

  /// Word k. Precondition: it was requested.
  u32 word(u32 k) const { return byte_swap(shift_right(raw[k], raw[k + 1], shift)); }
  /// The same; 0 if it was not requested.
  u32 operator[](u32 k) const { return k < words ? word(k) : 0; }
};

/// `count` elements of T starting at `base`; no access leaves them. A read outside gives T{}, a write outside does
/// nothing. Offsets in the fault report are in bytes from `base`. Only the framework creates an IsoPtr to new memory.
/// Kernels get theirs from Context and PacketView, and parts of them from sub().
template <typename T>
class IsoPtr {
  static_assert(!detail::IsPointer<T>::kValue, "an IsoPtr does not reach pointers: what they point to is not checked");
  static_assert(__is_trivially_copyable(T), "elements of memory that the host shares are plain data");
  static_assert(alignof(T) <= 16, "memory of a launch is aligned to 16 bytes");

 public:
  u64 size() const { return count_; }

  T operator[](u64 i) const {
    const bool inside = holds(i);
    return inside ? base_[i] : T{};
  }
  void set(u64 i, T value) const {
    if (holds(i)) {
      base_[i] = value;
    }
  }
  /// Elements i .. i + Count - 1, with all loads issued before the first wait; as [] if they are not inside.
  template <u32 Count>
  void read(u64 i, T (&values)[Count]) const {
    const bool inside = holds<Count>(i);
    CATENA_UNROLL
    for (u32 k = 0; k < Count; ++k) {
      values[k] = inside ? base_[i + k] : T{};
    }
  }
  /// Elements i .. i + Bytes - 1, at most 8, as one big-endian number; T is u8. One access: 0 unless all are inside.
  template <u32 Bytes>
  u64 big_endian(u64 i) const {
    static_assert(sizeof(T) == 1 && Bytes <= sizeof(u64), "a number is of at most 8 bytes");
    T bytes[Bytes];
    read<Bytes>(i, bytes);
    u64 value = 0;
    CATENA_UNROLL
    for (u32 k = 0; k < Bytes; ++k) {
      value = value << 8 | bytes[k];
    }
    return value;
  }
  /// Sets elements i .. i + Bytes - 1 to the low bytes of `value`, the highest first; T is u8. One access.
  template <u32 Bytes>
  void set_big_endian(u64 i, u64 value) const {
    static_assert(sizeof(T) == 1 && Bytes <= sizeof(u64), "a number is of at most 8 bytes");
    if (!holds<Bytes>(i)) {
      return;
    }
    CATENA_UNROLL
    for (u32 k = 0; k < Bytes; ++k) {
      base_[i + k] = static_cast<T>(value >> (8 * (Bytes - 1 - k)));
    }
  }
  /// `words` (at most Words) big-endian words from element i on; T is u8. For any alignment. With 0 words, i may be
  /// any.
  template <u32 Words>
  Fetched<Words> fetch(u64 i, u32 words) const {
    static_assert(sizeof(T) == 1, "words are fetched from bytes");
    Fetched<Words> fetched{};
    const bool inside = words <= Words && (words == 0 || (count_ >= 4 * u64{words} && i <= count_ - 4 * u64{words}));
    if (!checked(inside, i)) {
      return fetched;
    }
    const u32 beside = static_cast<u32>(reinterpret_cast<u64>(base_ + i) % 4);
    fetched.words = words;
    fetched.shift = 8 * beside;
    // only words with bytes inside; their other bytes are shifted out
    const auto* from = reinterpret_cast<const u32*>(base_ + i - beside);
    const u32 touched = words != 0 && beside != 0 ? words + 1 : words;
    CATENA_UNROLL
    for (u32 k = 0; k <= Words; ++k) {
      if (k < touched) {
        fetched.raw[k] = from[k];
      }
    }
    return fetched;
  }
  /// Elements i .. i + 3 as one big-endian word; T is u8.
  u32 be32(u64 i) const { return fetch<1>(i, 1)[0]; }
  /// Sets elements i .. i + 4 * Words - 1 to these big-endian words; T is u8. For any alignment; whole words are
  /// written at even addresses.
  template <u32 Words>
  void put(u64 i, u32 const (&words)[Words]) const {
    static_assert(sizeof(T) == 1, "words are put into bytes");
    static_assert(Words <= kMaxWords, "at most 256 words are put at once");
    if (!holds<4 * Words>(i)) {
      return;
    }
    T* at = base_ + i;
    const u32 beside = static_cast<u32>(reinterpret_cast<u64>(at) % 4);
    if (beside == 0) {
      CATENA_UNROLL
      for (u32 k = 0; k < Words; ++k) {
        *reinterpret_cast<u32*>(at + 4 * k) = byte_swap(words[k]);
      }
    } else if (beside == 2) {
      *reinterpret_cast<u16*>(at) = static_cast<u16>(byte_swap(words[0]));
      CATENA_UNROLL
      for (u32 k = 1; k < Words; ++k) {
        *reinterpret_cast<u32*>(at + 4 * k - 2) = shift_right(byte_swap(words[k - 1]), byte_swap(words[k]), 16);
      }
      *reinterpret_cast<u16*>(at + 4 * Words - 2) = static_cast<u16>(byte_swap(words[Words - 1]) >> 16);
    } else {
      CATENA_UNROLL
      for (u32 k = 0; k < 4 * Words; ++k) {
        at[k] = static_cast<T>(words[k / 4] >> (24 - 8 * (k % 4)));
      }
    }
  }
  void set_be32(u64 i, u32 value) const {
    const u32 words[1] = {value};
    put<1>(i, words);
  }
  /// Adds atomically; returns the previous value. T is u32.
  u32 add(u64 i, u32 value) const {
    static_assert(sizeof(T) == 4, "atomic_add() is for u32");
    return holds(i) ? atomic_add(base_ + i, value) : 0;
  }
  /// Dependent reads, each at a position from the read before. Each is checked, as by [], but the destructor reports
  /// faults, so that no branch is between two reads. The furthest fault is described, and counts once. Only the first
  /// 2^32 - 1 elements are readable.
  class Lookups;
  Lookups lookups() const;
  /// Elements [first, first + count) as an IsoPtr of their own; empty, and a fault, if they are not inside this one.
  IsoPtr sub(u64 first, u64 count) const {
    const bool inside = first <= count_ && count <= count_ - first;
    if (!checked(inside, first + count)) {
      return {base_, 0, address_space_, sink_};
    }
    return {base_ + first, count, address_space_, sink_};
  }

 private:
  friend class Context;
  friend class PacketView;
  IsoPtr(T* base, u64 count, AddressSpace address_space, FaultSink sink)
      : base_(base), count_(count), address_space_(address_space), sink_(sink) {}

  /// Whether elements i .. i + Count - 1 are inside; notes a fault if they are not.
  template <u32 Count = 1>
  bool holds(u64 i) const {
    return checked(Count == 1 ? i < count_ : count_ >= Count && i <= count_ - Count, i);
  }
  bool checked(bool inside, u64 i) const {
    if (!detail::kChecked) {
      return true;
    }
    sink_.note(!inside, address_space_, i * sizeof(T), count_ * sizeof(T));
    return inside;
  }

  T* base_;
  u64 count_;
  AddressSpace address_space_;
  FaultSink sink_;
};

template <typename T>
class IsoPtr<T>::Lookups {
 public:
  explicit Lookups(IsoPtr<T> const& array)
      : array_(array), limit_(array.count_ < kMax ? static_cast<u32>(array.count_) : kMax) {}
  Lookups(Lookups const&) = delete;
  Lookups& operator=(Lookups const&) = delete;
  ~Lookups() {
    if (detail::kChecked) {
      array_.sink_.note(used_ && furthest_ >= limit_, array_.address_space_, furthest_ * sizeof(T),
                        array_.count_ * sizeof(T));
    }
  }
  T operator[](u32 i) {
    used_ = true;
    furthest_ = i > furthest_ ? i : furthest_;
    return !detail::kChecked || i < limit_ ? array_.base_[i] : T{};
  }

 private:
  static constexpr u32 kMax = 0xFFFFFFFFU;

  IsoPtr<T> array_;
  u32 limit_;
  u32 furthest_ = 0;
  bool used_ = false;
};

template <typename T>
inline typename IsoPtr<T>::Lookups IsoPtr<T>::lookups() const {
  return Lookups(*this);
}

}  // namespace catena::kernel
