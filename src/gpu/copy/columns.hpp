// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/fields.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace catena::copy {

/// Copies fields between packets and columns. The columns of a set follow one another with equally many rows; see
/// packet::column_prefix(). Immutable; may be used by any thread. `columns` below is the first byte of the columns,
/// `padded` the number of rows per column.
class Columns {
 public:
  /// Columns of the fields `set`. gather() and scatter() copy only the fields in `moved`.
  Columns(packet::FieldSet set, packet::FieldSet moved);
  explicit Columns(packet::FieldSet set) : Columns(set, set) {}

  /// Copies fields of `batch` into rows [first_row, + batch.size()). Fields of a missing header are 0.
  void gather(packet::Batch const& batch, std::byte* columns, std::uint32_t padded, std::uint32_t first_row) const;
  /// Copies the fields back, into packets that have the header. Metadata is copied first, because it locates the other
  /// fields. `skip`: null, or one byte per packet; packets with a non-zero byte are skipped.
  void scatter(packet::Batch const& batch, const std::byte* columns, std::uint32_t padded, std::uint32_t first_row,
               const std::byte* skip) const;

 private:
  struct Column {
    std::uint32_t prefix;  ///< bytes per row of the preceding columns
    std::uint32_t bytes;   ///< of one value
    void (*gather)(packet::Batch const& batch, bool is_run, std::byte* column);
    void (*scatter)(packet::Batch const& batch, bool is_run, const std::byte* column, const std::byte* skip);
  };
  std::vector<Column> moved_;  ///< in field order
};

}  // namespace catena::copy
