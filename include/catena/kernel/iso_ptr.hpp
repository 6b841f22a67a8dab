// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/dialect.hpp>
#include <catena/kernel/fault.hpp>

/// Isolation (G-NET, section 5): kernels hold no bare pointers. An IsoPtr knows its region and checks each access;
/// one that strays is not performed, is counted, and drops the packet it was made for.
namespace catena::kernel {

/// Where the faults of one work-item go. Lives in Context and PacketView.
struct FaultSink {
  FaultReport* report;
  u8* flags;  ///< one byte a packet
  u32 packet;
  u32 packets;  ///< bytes behind flags

  void raise(Region region, u64 offset, u64 size) const {
    if (packet < packets) {
      flags[packet] = 1;
    }
    if (atomic_add(&report->count, 1) == 0) {
      report->packet = packet;
      report->region = region;
      report->offset = offset;
      report->size = size;
    }
  }
};

/// `count` elements of T starting at `base`, of which no access leaves. A read outside gives T{}, a write outside
/// does nothing. Offsets in the fault report are in bytes from `base`.
template <typename T>
class IsoPtr {
 public:
  IsoPtr(T* base, u64 count, Region region, FaultSink sink)
      : base_(base), count_(count), region_(region), sink_(sink) {}

  u64 size() const { return count_; }

  T operator[](u64 i) const {
    if (i >= count_) {
      sink_.raise(region_, i * sizeof(T), count_ * sizeof(T));
      return T{};
    }
    return base_[i];
  }
  void set(u64 i, T value) const {
    if (i >= count_) {
      sink_.raise(region_, i * sizeof(T), count_ * sizeof(T));
      return;
    }
    base_[i] = value;
  }
  /// Elements i .. i + 3 as one big-endian word; T is u8. One access where its address is a multiple of 4, two where it
  /// is even.
  u32 be32(u64 i) const {
    if (count_ < 4 || i > count_ - 4) {
      sink_.raise(region_, i, count_);
      return 0;
    }
    const T* at = base_ + i;
    if (reinterpret_cast<u64>(at) % 4 == 0) {
      return byte_swap(*reinterpret_cast<const u32*>(at));
    }
    if (reinterpret_cast<u64>(at) % 2 == 0) {
      const u32 low = *reinterpret_cast<const u16*>(at);
      const u32 high = *reinterpret_cast<const u16*>(at + 2);
      return byte_swap(high << 16 | low);
    }
    return static_cast<u32>(at[0]) << 24 | static_cast<u32>(at[1]) << 16 | static_cast<u32>(at[2]) << 8 | at[3];
  }
  void set_be32(u64 i, u32 value) const {
    if (count_ < 4 || i > count_ - 4) {
      sink_.raise(region_, i, count_);
      return;
    }
    T* at = base_ + i;
    if (reinterpret_cast<u64>(at) % 4 == 0) {
      *reinterpret_cast<u32*>(at) = byte_swap(value);
      return;
    }
    if (reinterpret_cast<u64>(at) % 2 == 0) {
      const u32 swapped = byte_swap(value);
      *reinterpret_cast<u16*>(at) = static_cast<u16>(swapped);
      *reinterpret_cast<u16*>(at + 2) = static_cast<u16>(swapped >> 16);
      return;
    }
    at[0] = static_cast<T>(value >> 24);
    at[1] = static_cast<T>(value >> 16);
    at[2] = static_cast<T>(value >> 8);
    at[3] = static_cast<T>(value);
  }
  /// Adds atomically; returns the value before. T is u32.
  u32 add(u64 i, u32 value) const {
    if (i >= count_) {
      sink_.raise(region_, i * sizeof(T), count_ * sizeof(T));
      return 0;
    }
    return atomic_add(base_ + i, value);
  }
  /// Elements [first, first + count) as a pointer of their own; cut to what this one may reach.
  IsoPtr sub(u64 first, u64 count) const {
    if (first > count_ || count > count_ - first) {
      sink_.raise(region_, (first + count) * sizeof(T), count_ * sizeof(T));
      return {base_, 0, region_, sink_};
    }
    return {base_ + first, count, region_, sink_};
  }

 private:
  T* base_;
  u64 count_;
  Region region_;
  FaultSink sink_;
};

}  // namespace catena::kernel
