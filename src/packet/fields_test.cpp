// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/fields.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace catena::packet {
namespace {

TEST(FieldTable, names_every_bit_once) {
  std::set<unsigned> ids;
  std::set<std::string> names;
#define CATENA_COLLECT(id, name, constant, bytes, help) \
  ids.insert(id);                                       \
  names.insert(name);
  CATENA_PACKET_FIELDS(CATENA_COLLECT)
#undef CATENA_COLLECT
  EXPECT_EQ(ids.size(), kFieldCount);
  EXPECT_EQ(names.size(), kFieldCount);
  EXPECT_EQ(*ids.rbegin(), kFieldCount - 1);
}

TEST(PacketFields, a_number_that_is_no_field_has_no_bytes) {
  static_assert(field_size(kFieldCount) == 0 && field_size(63) == 0 && field_size(~0U) == 0);
  EXPECT_EQ(column_prefix(kAllFields, kFieldCount), kNoColumn);
}

TEST(ColumnLayout, columns_do_not_overlap_and_are_aligned) {
  for (const FieldSet set : {fields(kIpv4Dst, kIpv4Ttl, kIpv4Checksum), kFrameFields | kMetaFields,
                             fields(kEthDst, kEthSrc, kMetaLayers, kL4Sport)}) {
    std::set<u32> used;
    for (u32 field = 0; field < kFieldCount; ++field) {
      const u32 prefix = column_prefix(set, field);
      if (prefix == kNoColumn) {
        continue;
      }
      constexpr u32 kPadded = 16;
      const u32 alignment = field_size(field) == 6 ? 2 : field_size(field);
      EXPECT_EQ(kPadded * prefix % alignment, 0U) << field;
      for (u32 byte = 0; byte < field_size(field); ++byte) {
        EXPECT_TRUE(used.insert(prefix + byte).second) << "field " << field;
      }
    }
    EXPECT_EQ(used.size(), columns_size(set));
  }
}

TEST(ColumnLayout, fields_outside_the_set_have_no_column) {
  EXPECT_EQ(column_prefix(fields(kIpv4Dst), kIpv4Src), kNoColumn);
  EXPECT_EQ(column_prefix(fields(kPayload), kPayload), kNoColumn) << "variable-length bytes are not a column";
}

}  // namespace
}  // namespace catena::packet
