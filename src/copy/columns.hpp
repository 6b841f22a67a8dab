// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/fields.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace catena::copy {

/// Fields between packets and columns: the columns of a set, one after another with as many rows each, as
/// packet::column_prefix() says. Made once; may be used by any thread. `columns` below is their first byte, and
/// `padded` the rows of each.
class Columns {
 public:
  /// Columns of the fields `set`, of which gather() and scatter() move those in `moved`.
  Columns(packet::FieldSet set, packet::FieldSet moved);
  explicit Columns(packet::FieldSet set) : Columns(set, set) {}

  /// Copies fields of `batch` into rows [first_row, + batch.size()); 0 stands for a header that is not there.
  void gather(packet::Batch const& batch, std::byte* columns, std::uint32_t padded, std::uint32_t first_row) const;
  /// The other way round, into packets that have the header. Metadata first: it says where the rest belongs. `skip`:
  /// null, or a byte for each packet, not 0 for those to leave alone.
  void scatter(packet::Batch const& batch, const std::byte* columns, std::uint32_t padded, std::uint32_t first_row,
               const std::byte* skip) const;

 private:
  struct Column {
    std::uint32_t prefix;  ///< bytes of a row in the columns in front of this one
    std::uint32_t bytes;   ///< of an entry
    void (*gather)(packet::Batch const& batch, bool is_run, std::byte* column);
    void (*scatter)(packet::Batch const& batch, bool is_run, const std::byte* column, const std::byte* skip);
  };
  std::vector<Column> moved_;  ///< in the order of fields
};

}  // namespace catena::copy
