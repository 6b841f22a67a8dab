// SPDX-License-Identifier: Apache-2.0
#include <catena/core/escape.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace catena {
namespace {

TEST(Escape, printable_text_is_unchanged) {
  for (const std::string_view text : {"", "plain ~", "a\\x1b", "ü", "中文", "😀", "\"'`$%"}) {
    EXPECT_EQ(escaped(text), text);
    EXPECT_EQ(escaped_lines(text), text);
  }
}

TEST(Escape, other_bytes_are_seen) {
  EXPECT_EQ(escaped("a\tb\r\n"), "a\\tb\\r\\n");
  EXPECT_EQ(escaped(std::string_view("\0\x1b[2J\x7f", 6)), "\\x00\\x1b[2J\\x7f");
  EXPECT_EQ(escaped("caf\xe9"), "caf\\xe9") << "Latin 1";
  EXPECT_EQ(escaped("\xc2\x9b"), "\\xc2\\x9b") << "a control of UTF-8";
  EXPECT_EQ(escaped("\xef\xbb\xbf#"), "\\xef\\xbb\\xbf#") << "a byte order mark";
  EXPECT_EQ(escaped("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "the text after it would be reversed";
  EXPECT_EQ(escaped("\xe2\x80\x8b"), "\\xe2\\x80\\x8b") << "a space of no width";
}

TEST(Escape, what_is_no_utf_8_is_bytes) {
  for (const std::string_view text : {"\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80\x80", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98"}) {
    std::string expected;
    for (const char c : text) {
      expected += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    EXPECT_EQ(escaped(text), expected);
  }
  EXPECT_EQ(escaped("\xe2\x82x"), "\\xe2\\x82x");
  EXPECT_EQ(escaped("\xf0\x9f\x98ü"), "\\xf0\\x9f\\x98ü");
}

TEST(Escape, lines_stay_lines) { EXPECT_EQ(escaped_lines("a\x1b\nb\r\n\n"), "a\\x1b\nb\\r\n\n"); }

TEST(Escape, every_byte_twice_is_every_byte_once) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string once = escaped(std::string(3, static_cast<char>(byte)));
    EXPECT_EQ(escaped(once), once);
  }
}

}  // namespace
}  // namespace catena
