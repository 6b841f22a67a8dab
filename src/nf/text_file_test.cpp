// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/text_file.hpp>

#include <catena/core/testing/scratch_folder.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace catena::nf {
namespace {

TEST(PlainText, has_no_byte_order_mark_and_line_feeds_alone) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"a\nb", "a\nb"},
      {"\xef\xbb\xbf", ""},
      {"\xef\xbb\xbf# a\n", "# a\n"},
      {"a\r\n\r\nb\r\n", "a\n\nb\n"},
      {"a\r", "a"},
      {"a\rb\r\n", "a\rb\n"},
      {"a\r\r\n", "a\r\n"},
      {"\xef\xbb\xbf\xef\xbb\xbf", "\xef\xbb\xbf"},
      {"a\xef\xbb\xbf", "a\xef\xbb\xbf"},
      {"\xef\xbb", "\xef\xbb"},
  };
  for (auto const& [bytes, text] : cases) {
    EXPECT_EQ(plain_text(bytes), text) << escaped(bytes);
  }
}

TEST(PlainText, is_what_a_text_file_has) {
  const ScratchFolder folder;
  folder.write("x",
               "\xef\xbb\xbf"
               "a\r\nb");
  EXPECT_EQ(read_text_file(folder.path("x"), 100).value(), "a\nb");
}

TEST(TextCursor, errors_are_escaped) {
  TextCursor cursor("\x1b[2J x\n", "f\n.txt");
  ASSERT_TRUE(cursor.next_line());
  EXPECT_EQ(cursor.error(concat(cursor.quoted_word(), " is wrong")).message(), "f\\n.txt:1:1: '\\x1b[2J' is wrong");
}

}  // namespace
}  // namespace catena::nf
