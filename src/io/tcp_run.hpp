// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace catena::io {

/// Frames that are consecutive TCP segments of one connection, as one frame that the kernel cuts into the same bytes
/// again: a network stack costs by the frame, and what is cut at its end costs once. Empty at first. One thread.
class TcpRun {
 public:
  /// Ethernet, IPv4 without options, TCP with all of its.
  static constexpr std::size_t kMaxHeaderBytes = 14 + 20 + 60;

  /// Makes `frame` the run's first, whatever it is.
  void begin(std::span<const std::uint8_t> frame);
  /// Adds `frame`. False, and nothing changes, where cutting the run would not give just the frames added: another
  /// connection, a gap, other flags or options, a checksum that is wrong, more than the 64 KB of an IPv4 packet.
  bool add(std::span<const std::uint8_t> frame);

  std::uint32_t frames() const { return frames_; }
  std::uint32_t header_bytes() const { return header_bytes_; }
  /// Bytes after the header in each frame but the last, which may have fewer.
  std::uint32_t segment_bytes() const { return segment_bytes_; }
  /// Writes the header of the one frame: its lengths, and in the TCP checksum the sum of the pseudo header alone, for
  /// the kernel to finish. Precondition: frames() > 1, room for header_bytes().
  void write_header(std::uint8_t* header) const;

 private:
  std::span<const std::uint8_t> first_;
  std::uint32_t frames_ = 0;
  std::uint32_t header_bytes_ = 0;  ///< 0: the first frame is none that others may follow
  std::uint32_t segment_bytes_ = 0;
  std::uint32_t payload_bytes_ = 0;
  std::uint8_t last_flags_ = 0;
  bool is_checked_ = false;  ///< the checksums of the first frame are right
  bool is_last_ = false;     ///< the frame added last is one that none may follow
};

}  // namespace catena::io
