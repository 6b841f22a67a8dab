// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/fault.hpp>
#include <catena/packet/layers.hpp>

#include "gpu/launch/launch.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Packets of any length, packed into one buffer for the kernels of several NFs.
namespace catena::kernel {

/// A header field of all packets.
struct PackedColumn {
  std::uint32_t field;
  std::uint32_t bytes;  ///< of one value
  std::size_t offset;   ///< in the launch buffer
};

/// Offsets of one NF in the two buffers of a PackedLaunch.
struct PackedPart {
  std::vector<PackedColumn> columns;  ///< header fields that it reads; empty: it reads the packets' bytes
  std::size_t batch_offset = 0;       ///< of its columns, or of the table of extents, in the launch buffer
  std::size_t out_offset = 0;         ///< of its fault report, in the out buffer
  std::size_t results_offset = 0;     ///< of its results, in the out buffer
  std::uint32_t result_bytes = 0;
};

/// The layout of the launch buffer, [columns of each NF | table of extents | contents], and of the out buffer, [faults,
/// flags, results] of each NF. It is the same for every batch, regardless of its number of packets.
class PackedFormat {
 public:
  /// Each of `nfs` reads either header fields or the payload, which here means the whole packet. `max_bytes`: of all
  /// packets together, each rounded up to a multiple of 16. InvalidArgument: an NF that writes packets, reads both
  /// header fields and payload, has aux structs, headroom or tailroom, or is a shared step; no packets; or 4 GiB and
  /// more.
  static Result<PackedFormat> create(std::span<DeviceNf const* const> nfs, std::uint32_t max_packets,
                                     std::size_t max_bytes);

  std::span<const PackedPart> parts() const { return parts_; }
  std::uint32_t max_packets() const { return max_packets_; }
  std::uint32_t padded() const { return padded_; }  ///< rows of every column
  std::size_t extents() const { return extents_; }
  std::size_t contents() const { return contents_; }
  std::size_t max_bytes() const { return max_bytes_; }
  std::size_t batch_bytes() const { return contents_ + max_bytes_; }
  std::size_t out_bytes() const { return out_bytes_; }

 private:
  std::vector<PackedPart> parts_;
  std::uint32_t max_packets_ = 0;
  std::uint32_t padded_ = 0;
  std::size_t extents_ = 0;
  std::size_t contents_ = 0;
  std::size_t max_bytes_ = 0;
  std::size_t out_bytes_ = 0;
};

/// A buffer being filled with packets: space is reserved for each packet, then its bytes are written. One thread at a
/// time reserves space. Several threads may write rows at once, each row by one thread.
class PackedPackets {
 public:
  /// Reader of the packets.
  enum class Reader : std::uint8_t { kHost, kDevice };
  /// Space reserved for consecutive packets.
  struct Reservation {
    std::uint32_t packets;
    std::uint32_t first_row;
    std::uint32_t begin;  ///< of the first packet, in the contents
  };
  /// `memory`: format.batch_bytes() bytes, 64-byte aligned. `memory` and `format` must outlive this.
  PackedPackets(PackedFormat const& format, std::span<std::byte> memory, Reader reader);

  void clear();
  /// Bytes of the contents used by a packet of `length` bytes.
  static std::uint32_t space_of(std::uint32_t length);
  /// Reserves space for as many of the first packets as fit. The first becomes row count(). `ends`: for each packet,
  /// the total space of it and of all packets before it.
  Reservation reserve(std::span<const std::uint32_t> ends);
  /// Writes the packet of row `row`, whose space starts at `begin`, and its columns. `layers`: of the packet, if an NF
  /// reads header fields.
  void write(std::uint32_t row, std::uint32_t begin, std::span<const std::uint8_t> bytes, packet::Layers const& layers);
  /// Call between write() and publishing the packets to any other reader.
  static void finish_writes();

  std::uint32_t count() const { return count_; }
  /// Bytes of the contents so far, including gaps between packets.
  std::size_t content_bytes() const { return content_bytes_; }
  Extent const& extent(std::uint32_t row) const { return extents_[row]; }
  std::span<const std::uint8_t> bytes(std::uint32_t row) const {
    return {contents_ + extents_[row].begin, extents_[row].length};
  }
  packet::Layers const& layers(std::uint32_t row) const { return layers_[row]; }
  /// The bytes to copy to the device.
  std::span<const std::byte> used() const { return memory_.first(format_->contents() + content_bytes_); }

 private:
  PackedFormat const* format_;
  Reader reader_;
  std::span<std::byte> memory_;
  Extent* extents_;
  std::uint8_t* contents_;
  std::vector<packet::Layers> layers_;
  std::uint32_t count_ = 0;
  std::size_t content_bytes_ = 0;
};

}  // namespace catena::kernel
