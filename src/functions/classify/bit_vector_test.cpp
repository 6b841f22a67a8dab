// SPDX-License-Identifier: Apache-2.0
#include "functions/classify/bit_vector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "functions/classify/classify.layout.hpp"
#include "functions/classify/key_search.hpp"
#include "functions/classify/rule_parser.hpp"

namespace catena::classify {
namespace {

using testing::find_by_bit_vector;
using testing::HostTables;
using testing::Tuple;

HostTables tables_of(std::string_view text) { return HostTables(build_bit_vector(parse_rules(text, "t")->rules)); }

TEST(BitVector, a_nested_prefix_keeps_the_rules_of_those_around_it) {
  const HostTables tables = tables_of(
      "deny any 10.1.2.3     any any 1\n"
      "deny any 10.1.2.0/23  any any 2\n"
      "deny any 10.1.0.0/16  any any 3\n"
      "deny any 10.0.0.0/7   any any 4\n"
      "deny any 0.0.0.0/0    any any 5\n"
      "deny any 10.1.2.128/25 any any 6\n");
  const auto find = [&](std::uint32_t src, std::uint32_t dport) {
    return find_by_bit_vector(tables, {src, 0, 0, dport, 6, true});
  };
  // rows: address; columns: the ports of the six rules
  const std::vector<std::pair<std::uint32_t, std::vector<int>>> cases{
      {0x0A010203, {0, 1, 2, 3, 4, -1}},    {0x0A010204, {-1, 1, 2, 3, 4, -1}},    {0x0A010280, {-1, 1, 2, 3, 4, 5}},
      {0x0A010300, {-1, 1, 2, 3, 4, -1}},   {0x0A010400, {-1, -1, 2, 3, 4, -1}},   {0x0A020000, {-1, -1, -1, 3, 4, -1}},
      {0x0BFFFFFF, {-1, -1, -1, 3, 4, -1}}, {0x0C000000, {-1, -1, -1, -1, 4, -1}},
  };
  for (auto const& [src, rules] : cases) {
    for (std::uint32_t i = 0; i < rules.size(); ++i) {
      EXPECT_EQ(find(src, i + 1), rules[i]) << std::hex << src << " port " << i + 1;
    }
  }
}

TEST(BitVector, port_ranges_end_with_their_last_port) {
  const HostTables tables = tables_of(
      "deny tcp any any 0 any\n"
      "deny tcp any any 65535 any\n"
      "deny tcp any any 100-200 any\n"
      "deny tcp any any 200-300 any\n");
  for (auto const& [port, rule] : std::vector<std::pair<std::uint32_t, int>>{
           {0, 0}, {1, -1}, {99, -1}, {100, 2}, {200, 2}, {201, 3}, {300, 3}, {301, -1}, {65534, -1}, {65535, 1}}) {
    EXPECT_EQ(find_by_bit_vector(tables, {1, 2, port, 7, 6, true}), rule) << port;
  }
}

TEST(BitVector, rows_with_equal_bits_are_one) {
  const HostTables tables = tables_of(
      "deny tcp 10.0.0.0/8 any any 80\n"
      "deny tcp 10.0.0.0/8 any any 443\n");
  // none, both, 80's, 443's
  EXPECT_EQ(tables.rows.size(), 4U * (tables.words + tables.summary_words));
  EXPECT_EQ(std::set(tables.dport_rows.begin(), tables.dport_rows.end()).size(), 3U);
  EXPECT_EQ(tables.dport_rows[0], tables.dport_rows[65535]);
}

TEST(BitVector, summary_says_which_words_are_not_zero) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += i == 2999 ? "deny udp any any any any\n" : "deny tcp any any any any\n";
  }
  const HostTables tables = tables_of(text);
  ASSERT_EQ(tables.words, 94U);
  ASSERT_EQ(tables.summary_words, 3U);
  const auto row = tables.rows.begin() + tables.protocol_rows[17] * 97;
  EXPECT_EQ(std::vector(row, row + 3), (std::vector<std::uint32_t>{0, 0, 1U << (93 - 64)}));
  EXPECT_EQ(row[3 + 93], 1U << (2999 - 93 * 32));
  EXPECT_EQ(find_by_bit_vector(tables, {1, 2, 3, 4, 17, true}), 2999);
  EXPECT_EQ(find_by_bit_vector(tables, {1, 2, 3, 4, 6, true}), 0);
}

TEST(BitVector, ten_thousand_different_hosts_fit) {
  std::string text;
  for (std::uint32_t i = 0; i < kMaxRules; ++i) {  // a /32 in a /8 and a /24 of its own, as far as there are
    text += concat("deny tcp ", to_string(packet::Ipv4Prefix{i << 8 | (i % 223 + 1) << 24, 32}), " ",
                   to_string(packet::Ipv4Prefix{i << 16 | (i % 251) << 8, 32}), " ", i, " ", i, "\n");
  }
  const HostTables tables = tables_of(text);
  for (std::uint32_t i = 0; i < kMaxRules; i += 7) {
    const Tuple tuple{i << 8 | (i % 223 + 1) << 24, i << 16 | (i % 251) << 8, i, i, 6, true};
    ASSERT_EQ(find_by_bit_vector(tables, tuple), static_cast<int>(i));
  }
}

}  // namespace
}  // namespace catena::classify
