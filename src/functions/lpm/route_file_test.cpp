// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/route_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "functions/bad_text.hpp"

namespace catena::lpm {
namespace {

using catena::testing::BadText;
using catena::testing::expect_refused;

std::vector<std::tuple<std::uint32_t, int, int, std::uint32_t>> tuples(std::vector<Route> const& routes) {
  std::vector<std::tuple<std::uint32_t, int, int, std::uint32_t>> result;
  for (Route const& route : routes) {
    result.emplace_back(route.address, route.length, route.port, route.line);
  }
  return result;
}

TEST(RouteFile, lines_comments_and_blanks_are_read_and_sorted) {
  const auto routes = parse_routes(
      "# a comment\n"
      "\n"
      "10.1.0.0/16 3\n"
      "  \t \r\n"
      "\t10.0.0.0/8\t 65533  # trailing comment\r\n"
      "0.0.0.0/0 0#close comment\n"
      "10.1.2.3 7\n"
      "255.255.255.255/32 1",
      "r.txt");
  ASSERT_TRUE(routes.ok()) << routes.status();
  EXPECT_THAT(tuples(*routes),
              ::testing::ElementsAre(std::tuple(0U, 0, 0, 6U), std::tuple(0x0A000000U, 8, 65533, 5U),
                                     std::tuple(0x0A010000U, 16, 3, 3U), std::tuple(0x0A010203U, 32, 7, 7U),
                                     std::tuple(0xFFFFFFFFU, 32, 1, 8U)));
}

class BadRouteFile : public ::testing::TestWithParam<BadText> {};

TEST_P(BadRouteFile, is_an_error_with_position_and_advice) { expect_refused(GetParam(), parse_routes); }

INSTANTIATE_TEST_SUITE_P(
    Lines, BadRouteFile,
    ::testing::Values(BadText{"word", "10.0.0.0/8 1\nhello 3\n", "2:1", "'hello' is no IPv4 prefix"},
                      BadText{"octet_too_large", "10.0.0.256/8 1\n", "1:1", "'10.0.0.256/8' is no IPv4 prefix"},
                      BadText{"three_octets", " 10.0.0/8 1\n", "1:2", "is no IPv4 prefix"},
                      BadText{"five_octets", "10.0.0.0.0/8 1\n", "1:1", "is no IPv4 prefix"},
                      BadText{"length_33", "10.0.0.0/33 1\n", "1:1", "is no IPv4 prefix"},
                      BadText{"length_missing", "10.0.0.0/ 1\n", "1:1", "is no IPv4 prefix"},
                      BadText{"negative", "-1.0.0.0/8 1\n", "1:1", "is no IPv4 prefix"},
                      BadText{"ipv6", "2001:db8::/32 1\n", "1:1", "is no IPv4 prefix"},
                      BadText{"glued_to_port", "10.0.0.0/8,1\n", "1:1", "is no IPv4 prefix"},
                      BadText{"overflowing_octet", "18446744073709551626.0.0.0/8 1\n", "1:1", "is no IPv4 prefix"},
                      BadText{"nul_byte", std::string("10.0.0.0/8 1\n\0\n", 15), "2:1", "'\\x00' is no IPv4 prefix"},
                      BadText{"host_bits", "10.1.2.3/16 1\n", "1:12", "write 10.1.0.0/16"},
                      BadText{"host_bits_under_default", "0.0.0.1/0 1\n", "1:10", "write 0.0.0.0/0"},
                      BadText{"no_port", "10.0.0.0/8\n", "1:11",
                              "the output port is missing; write e.g. `10.0.0.0/8 3`"},
                      BadText{"no_port_but_comment", "10.0.0.0/8 # 3\n", "1:12", "the output port is missing"},
                      BadText{"port_65534", "10.0.0.0/8 65534\n", "1:12", "'65534' is no output port"},
                      BadText{"port_leading_zero", "10.0.0.0/8 03\n", "1:12", "write 3 without leading zeros"},
                      BadText{"port_word", "10.0.0.0/8 eth0\n", "1:12", "'eth0' is no output port"},
                      BadText{"port_fraction", "10.0.0.0/8 1.5\n", "1:12", "'1.5' is no output port"},
                      BadText{"three_columns", "10.0.0.0/8 1 2\n", "1:14", "unexpected '2' after the port"},
                      BadText{"empty", "", "", "no routes"}, BadText{"only_comments", "# nothing\n\n", "", "no routes"},
                      BadText{"duplicate", "10.0.0.0/8 1\n10.0.0.0/9 1\n10.0.0.0/8 2\n", "3:1",
                              "prefix 10.0.0.0/8 is on line 1 already, with port 1; delete one"},
                      BadText{"duplicate_unsorted", "11.0.0.0/8 1\n10.0.0.0/8 1\n11.0.0.0/8 2\n", "3:1",
                              "prefix 11.0.0.0/8 is on line 1 already"},
                      BadText{"duplicate_after_repeated", "10.0.0.0/8 1\n10.0.0.0/8 1\n10.0.0.0/8 2\n", "3:1",
                              "prefix 10.0.0.0/8 is on line 1 already"}),
    catena::testing::name_of_case);

TEST(RouteFile, a_line_that_repeats_another_is_the_same_route) {
  const auto routes = parse_routes(
      "10.1.0.0/16 3\n0.0.0.0/0 1\n10.1.0.0/16 3\n10.0.0.0/8 3\n10.1.0.0/16 3\n255.0.0.0/8 2\n255.0.0.0/8 2\n",
      "r.txt");
  ASSERT_TRUE(routes.ok()) << routes.status();
  EXPECT_THAT(tuples(*routes),
              ::testing::ElementsAre(std::tuple(0U, 0, 1, 2U), std::tuple(0x0A000000U, 8, 3, 4U),
                                     std::tuple(0x0A010000U, 16, 3, 1U), std::tuple(0xFF000000U, 8, 2, 6U)));
  std::vector<std::uint32_t> repeated;
  for (Route const& route : *routes) {
    repeated.push_back(route.repeated_on);
  }
  EXPECT_THAT(repeated, ::testing::ElementsAre(0U, 0U, 3U, 7U));
}

TEST(RouteFile, a_file_that_is_not_there_is_not_found) {
  EXPECT_EQ(load_routes("/nonexistent/routes.txt").status().code(), absl::StatusCode::kNotFound);
}

TEST(RouteFile, any_cut_of_a_file_is_read_or_refused) {
  const std::string text = "10.1.0.0/16 3 # x\r\n\n10.0.0.0/8 65533\n1.2.3.4 5\n";
  catena::testing::expect_any_cut_is_read_or_refused(text, parse_routes);
}

}  // namespace
}  // namespace catena::lpm
