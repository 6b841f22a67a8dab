// SPDX-License-Identifier: Apache-2.0
#include <catena/core/decimal.hpp>

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string_view>

namespace catena {
namespace {

TEST(Decimal, is_digits_without_leading_zeros) {
  EXPECT_EQ(parse_decimal("0"), 0U);
  EXPECT_EQ(parse_decimal("10"), 10U);
  EXPECT_EQ(parse_decimal("18446744073709551615"), 18446744073709551615U);
  for (const std::string_view text :
       {"", "00", "01", "010", "-1", "+1", " 1", "1 ", "1.0", "0x1", "1e3", "18446744073709551616", "ten"}) {
    EXPECT_EQ(parse_decimal(text), std::nullopt) << text;
  }
}

TEST(Decimal, has_a_maximum) {
  EXPECT_EQ(parse_decimal("255", 255), 255U);
  EXPECT_EQ(parse_decimal("256", 255), std::nullopt);
}

TEST(Decimal, advice_is_the_same_text_without_leading_zeros) {
  EXPECT_EQ(leading_zeros_advice("01000"), "; write 1000 without leading zeros");
  EXPECT_EQ(leading_zeros_advice("000"), "; write 0 without leading zeros");
  EXPECT_EQ(leading_zeros_advice("01-0443"), "; write 1-443 without leading zeros");
  EXPECT_EQ(leading_zeros_advice("192.0.2.1:04739"), "; write 192.0.2.1:4739 without leading zeros");
  EXPECT_EQ(leading_zeros_advice("005 ms"), "; write 5 ms without leading zeros");
  EXPECT_EQ(leading_zeros_advice("010.0.0.01/08"), "; write 10.0.0.1/8 without leading zeros");
  EXPECT_EQ(leading_zeros_advice("-01.05"), "; write -1.05 without leading zeros");
  for (const std::string_view text : {"", "0", "10-100", "0x06/0xFF", "eth00", "ten", "0.05", "1e05", "10.0.0.0/8"}) {
    EXPECT_EQ(leading_zeros_advice(text), "") << text;
  }
}

}  // namespace
}  // namespace catena
