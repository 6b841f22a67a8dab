// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stack/tcp/tcp.hpp"

namespace catena::stack {

/// Cuts a frame into segments with all their checksums, for ports whose device does neither.
class Segmenter {
 public:
  /// `frame` outlives it. Its first part has all headers.
  explicit Segmenter(OutgoingFrame const& frame);
  /// Segments not yet written. A frame without segment_bytes is one.
  std::size_t left() const;
  /// Bytes of the largest segment.
  std::size_t max_bytes() const { return header_bytes_ + segment_bytes_; }
  /// Writes the next segment and returns its bytes. Precondition: left() > 0, space for max_bytes().
  std::size_t write_next(std::span<std::byte> to);

 private:
  /// Copies the frame's next bytes.
  void copy(std::span<std::byte> to);

  OutgoingFrame const* frame_;
  std::size_t header_bytes_;   ///< before the data that is divided
  std::size_t segment_bytes_;  ///< data of a segment, but for the last one
  std::size_t data_bytes_;
  std::size_t done_ = 0;  ///< data bytes written
  std::size_t part_ = 0;  ///< of the next byte
  std::size_t at_ = 0;    ///< of the next byte in its part
};

}  // namespace catena::stack
