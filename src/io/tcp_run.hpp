// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace catena::io {

/// Consecutive TCP segments of one connection, joined into one frame that the kernel cuts into the same bytes again. A
/// network stack costs per frame, and a frame cut at the end of the stack costs once. Initially empty. One thread.
class TcpRun {
 public:
  /// Ethernet, IPv4 without options, TCP with all options.
  static constexpr std::size_t kMaxHeaderBytes = 14 + 20 + 60;

  /// Starts the run with `frame`, which may be any frame.
  void begin(std::span<const std::uint8_t> frame);
  /// Adds `frame`. False, with no change, if cutting the run would not restore the added frames: another connection, a
  /// gap, other flags or options, a wrong checksum, more than the 64 KB of an IPv4 packet.
  bool add(std::span<const std::uint8_t> frame);

  std::uint32_t frames() const { return frames_; }
  std::uint32_t header_bytes() const { return header_bytes_; }
  /// Bytes after the header in each frame; the last one may have fewer.
  std::uint32_t segment_bytes() const { return segment_bytes_; }
  /// Writes the header of the joined frame: its lengths, and in the TCP checksum only the sum of the pseudo header,
  /// which the kernel completes. Precondition: frames() > 1, space for header_bytes().
  void write_header(std::uint8_t* header) const;

 private:
  std::span<const std::uint8_t> first_;
  std::uint32_t frames_ = 0;
  std::uint32_t header_bytes_ = 0;  ///< 0: no frame can be added to the first one
  std::uint32_t segment_bytes_ = 0;
  std::uint32_t payload_bytes_ = 0;
  std::uint8_t last_flags_ = 0;
  bool is_checked_ = false;  ///< the checksums of the first frame are correct
  bool is_last_ = false;     ///< no frame can be added after the last one
};

}  // namespace catena::io
