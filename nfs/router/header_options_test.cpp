// SPDX-License-Identifier: Apache-2.0
// What linux_test.cpp cannot show: Linux records itself twice in the reply to an echo request. Values by RFC 791.
#include "header_options.hpp"

#include <gtest/gtest.h>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace catena::router {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::array<std::uint32_t, 2> kOwnAddresses{0x0A090001, 0xC6336401};
constexpr HopRecord kHop{kOwnAddresses[1], 0x01020304, kOwnAddresses};

Bytes with(Bytes const& options) {
  Bytes header(20 + options.size());
  header[0] = static_cast<std::uint8_t>(0x40 + header.size() / 4);
  std::copy(options.begin(), options.end(), header.begin() + 20);
  return header;
}

/// The options after the hop; the checksum of the header is right.
Bytes after_hop(Bytes const& options) {
  Bytes header = with(options);
  const HeaderOptions found = parse_options(header.data());
  EXPECT_EQ(found.problem, 0);
  record_hop(header.data(), found, kHop);
  EXPECT_EQ(packet::checksum_finish(packet::checksum_add(header.data(), header.size())), 0);
  return {header.begin() + 20, header.end()};
}

TEST(HeaderOptions, a_record_route_gets_one_address_while_it_has_space) {
  EXPECT_EQ(after_hop({7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}), (Bytes{7, 11, 8, 0xC6, 0x33, 0x64, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(after_hop({7, 7, 8, 1, 2, 3, 4, 0}), (Bytes{7, 7, 8, 1, 2, 3, 4, 0}));
}

TEST(HeaderOptions, a_timestamp_gets_one_entry_of_its_form_or_counts_a_missing_one) {
  EXPECT_EQ(after_hop({68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0}), (Bytes{68, 12, 9, 0, 1, 2, 3, 4, 0, 0, 0, 0}));
  EXPECT_EQ(after_hop({68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0}), (Bytes{68, 12, 13, 1, 0xC6, 0x33, 0x64, 1, 1, 2, 3, 4}));
  EXPECT_EQ(after_hop({68, 12, 5, 3, 10, 9, 0, 1, 0, 0, 0, 0}), (Bytes{68, 12, 13, 3, 10, 9, 0, 1, 1, 2, 3, 4}));
  EXPECT_EQ(after_hop({68, 12, 5, 3, 10, 9, 0, 2, 0, 0, 0, 0}), (Bytes{68, 12, 5, 3, 10, 9, 0, 2, 0, 0, 0, 0}));
  EXPECT_EQ(after_hop({68, 8, 9, 0x20, 9, 9, 9, 9}), (Bytes{68, 8, 9, 0x30, 9, 9, 9, 9}));
  EXPECT_EQ(after_hop({68, 12, 13, 3, 9, 9, 9, 9, 9, 9, 9, 9}), (Bytes{68, 12, 13, 3, 9, 9, 9, 9, 9, 9, 9, 9}));
}

TEST(HeaderOptions, a_record_route_after_another_option_and_the_padding_are_found) {
  EXPECT_EQ(after_hop({1, 7, 7, 4, 0, 0, 0, 0, 1, 0, 8, 8}), (Bytes{1, 7, 7, 8, 0xC6, 0x33, 0x64, 1, 1, 0, 0, 0}));
}

TEST(HeaderOptions, no_byte_after_the_header_is_read) {
  // the last byte of the header is a type without a length; what follows would make it a correct option
  Bytes header = with({1, 1, 1, 7});
  header.insert(header.end(), {7, 4, 0, 0, 0, 0});
  EXPECT_EQ(parse_options(header.data()).problem, 23);
}

}  // namespace
}  // namespace catena::router
