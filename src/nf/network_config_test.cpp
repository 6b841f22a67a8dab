// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/config.hpp>

#include <gmock/gmock.h>

namespace catena::nf {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr milliseconds kLeast{10};
constexpr milliseconds kMost{3'600'000};

Config config_of(std::string_view value) { return *Config::parse(concat("{a: ", value, "}"), "c.yaml"); }

template <typename T>
std::string error_of(Result<T> const& result) {
  return std::string(result.status().message());
}

TEST(NetworkConfig, reads_what_is_right) {
  EXPECT_EQ(config_of("203.0.113.10").ipv4_address("a").value(), 0xCB00710AU);
  EXPECT_EQ(config_of("10.0.0.0/8").ipv4_prefix("a").value(), (packet::Ipv4Prefix{0x0A000000, 8}));
  EXPECT_EQ(config_of("10.0.0.1").ipv4_prefix("a").value(), (packet::Ipv4Prefix{0x0A000001, 32}));
  EXPECT_THAT(config_of("[10.0.0.0/8, 0.0.0.0/0]").ipv4_prefixes("a").value(),
              ElementsAre(packet::Ipv4Prefix{0x0A000000, 8}, packet::Ipv4Prefix{0, 0}));
  EXPECT_THAT(config_of("10.0.0.0/8").ipv4_prefixes("a").value(), ElementsAre(packet::Ipv4Prefix{0x0A000000, 8}));
  EXPECT_EQ(config_of("02:00:00:00:aB:01").mac_address("a").value(), (MacAddress{2, 0, 0, 0, 0xAB, 1}));
  for (const auto& [text, wanted] :
       std::vector<std::pair<std::string, milliseconds>>{{"250ms", milliseconds(250)},
                                                         {"30 s", milliseconds(30'000)},
                                                         {"5 min", milliseconds(300'000)},
                                                         {"1h", milliseconds(3'600'000)}}) {
    EXPECT_EQ(config_of(text).duration_or("a", kLeast, kLeast, kMost).value(), wanted) << text;
  }
  EXPECT_EQ(config_of("1h").duration_or("b", milliseconds(7), kLeast, kMost).value(), milliseconds(7));
}

TEST(NetworkConfig, refuses_the_rest_with_position_and_form) {
  for (const char* text : {"203.0.113", "203.0.113.256", "203.0.113.1/32", "203.0.113.1 x", "\" 203.0.113.1\"",
                           "\"2001:db8::1\"", "\"203.0.113.1\\n203.0.113.2\"", "\"203.0.113.1#\""}) {
    EXPECT_THAT(error_of(config_of(text).ipv4_address("a")), StartsWith("c.yaml:1:5: 'a' is '")) << text;
  }
  EXPECT_THAT(error_of(config_of("x").ipv4_address("a")),
              StartsWith("c.yaml:1:5: 'a' is 'x'; write an IPv4 address such as 203.0.113.10; IPv6 is not supported"));
  for (const char* text : {"192.0.2.1:4739", "collector.example:4739", "0x.example:1", "[::1]:4739"}) {
    EXPECT_EQ(config_of(concat("\"", text, "\"")).receiver("a").value(), text);
  }
  for (const char* text :
       {"192.0.2.01:4739", "0300.0.2.1:4739", "192.0.513:4739", "0xc0000201:4739", "3221225985:4739"}) {
    EXPECT_THAT(error_of(config_of(text).receiver("a")), StartsWith("c.yaml:1:5: 'a' is '")) << text;
  }
  for (const char* text : {"010.0.0.1", "10.0.0.01", "\"10.0.0.1\\r\"", "10.1"}) {
    EXPECT_THAT(error_of(config_of(text).ipv4_address("a")), StartsWith("c.yaml:1:5: 'a' is '")) << text;
  }
  for (const char* text : {"010.0.0.0/8", "10.0.0.0/08", "10.0.0.0/+8", "\"10.0.0.0/8\\r\"", "10.0.0.0/ 8"}) {
    EXPECT_THAT(error_of(config_of(text).ipv4_prefix("a")), StartsWith("c.yaml:1:5: 'a' is '")) << text;
  }
  for (const char* text : {"10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "10.0.0.0/8 x", "ten"}) {
    EXPECT_THAT(error_of(config_of(text).ipv4_prefix("a")), StartsWith("c.yaml:1:5: 'a' is '")) << text;
    EXPECT_FALSE(config_of(text).ipv4_prefixes("a").ok()) << text;
  }
  EXPECT_EQ(error_of(config_of("10.0.0.1/8").ipv4_prefix("a")),
            "c.yaml:1:5: 'a' is '10.0.0.1/8', which has bits set after the prefix; write 10.0.0.0/8");
  for (const char* text : {"02:00:00:00:00", "02:00:00:00:00:0g", "02-00-00-00-00-01", "02:00:00:00:00:01:02"}) {
    EXPECT_THAT(error_of(config_of(text).mac_address("a")), StartsWith("c.yaml:1:5: 'a' is '")) << text;
  }
  for (const char* text : {"9 ms", "61 min", "5", "ms", "-5 s", "5 weeks", "5.5 s", "99999999999999999999 s"}) {
    EXPECT_EQ(error_of(config_of(text).duration_or("a", kLeast, kLeast, kMost)),
              concat("c.yaml:1:5: 'a' is '", text,
                     "'; allowed: a duration from 10 ms to 1 h, with ms, s, min, h or d after the number"));
  }
}

TEST(NetworkConfig, numbers_with_leading_zeros_are_refused_and_the_message_tells_what_to_write) {
  EXPECT_EQ(error_of(config_of("01000").integer("a", 1, 5000)),
            "c.yaml:1:5: 'a' is '01000'; allowed: a whole number from 1 to 5000; write 1000 without leading zeros");
  EXPECT_EQ(error_of(config_of("-010").integer("a", -99, 99)),
            "c.yaml:1:5: 'a' is '-010'; allowed: a whole number from -99 to 99; write -10 without leading zeros");
  EXPECT_EQ(error_of(config_of("010.5").number_or("a", 0, 1, 50)),
            "c.yaml:1:5: 'a' is '010.5'; allowed: a number from 1 to 50; write 10.5 without leading zeros");
  EXPECT_THAT(error_of(config_of("\"192.0.2.1:04739\"").receiver("a")),
              EndsWith("write 192.0.2.1:4739 without leading zeros"));
  EXPECT_THAT(error_of(config_of("030 s").duration_or("a", kLeast, kLeast, kMost)),
              EndsWith("write 30 s without leading zeros"));
  EXPECT_THAT(error_of(config_of("10.0.0.0/08").ipv4_prefix("a")), EndsWith("write 10.0.0.0/8 without leading zeros"));
  EXPECT_THAT(error_of(config_of("010.0.0.1").ipv4_address("a")), EndsWith("write 10.0.0.1 without leading zeros"));
  for (const auto& [text, wanted] : std::vector<std::pair<std::string, std::int64_t>>{
           {"0", 0}, {"10", 10}, {"+10", 10}, {"-10", -10}, {"0x10", 16}, {"0x0010", 16}, {"0xFf", 255}}) {
    EXPECT_EQ(config_of(text).integer("a", -99, 999).value(), wanted) << text;
  }
  for (const char* text :
       {"0x", "0x-1", "0x10000000000000000", "-", "+-1", "--1", "\" 1\"", "1_000", "9223372036854775808"}) {
    EXPECT_FALSE(config_of(text).integer("a", -99, 999).ok()) << text;
  }
  EXPECT_EQ(config_of("0.5").number_or("a", 0, 0, 50).value(), 0.5);
  EXPECT_EQ(config_of("0").number_or("a", 1, 0, 50).value(), 0);
}

}  // namespace
}  // namespace catena::nf
