// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace catena::device {
namespace {

using ::testing::HasSubstr;

std::size_t count_of(std::string const& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

TEST(Source, every_file_stands_once_before_its_first_use) {
  const std::string text = flatten({{{"main.cpp", "#include <a/one.hpp>\n#  include \"two.hpp\"\nint m = one + two;\n"},
                                     {"a/one.hpp", "#pragma once\n#include \"two.hpp\"\nint one = two;\n"},
                                     {"two.hpp", "#pragma once\nint two;\n"}},
                                    {}});
  EXPECT_EQ(count_of(text, "int two;"), 1U);
  EXPECT_EQ(count_of(text, "int one = two;"), 1U);
  EXPECT_LT(text.find("int two;"), text.find("int one"));
  EXPECT_LT(text.find("int one"), text.find("int m"));
  EXPECT_EQ(count_of(text, "#pragma once"), 0U);
  EXPECT_EQ(count_of(text, "include"), 0U);
}

TEST(Source, lines_keep_the_numbers_of_their_files) {
  const std::string text =
      flatten({{{"main.cpp", "// first\n#include \"a.hpp\"\nthird\n"}, {"a.hpp", "#pragma once\nsecond\n"}}, {}});
  EXPECT_EQ(text, "#line 1 \"main.cpp\"\n// first\n#line 1 \"a.hpp\"\n\nsecond\n#line 3 \"main.cpp\"\nthird\n");
}

TEST(Source, defines_come_first_and_without_a_value_are_1) {
  const std::string text = flatten({{{"main.cpp", "A B\n"}}, {"A=1 + 2", "B"}});
  EXPECT_THAT(text, ::testing::StartsWith("#define A 1 + 2\n#define B 1\n"));
}

TEST(Source, files_that_include_each_other_end) {
  const std::string text = flatten({{{"a", "#include \"b\"\nA\n"}, {"b", "#include \"a\"\nB\n"}}, {}});
  EXPECT_EQ(count_of(text, "A\n"), 1U);
  EXPECT_EQ(count_of(text, "B\n"), 1U);
}

TEST(Source, includes_of_other_files_and_odd_lines_stay) {
  for (const char* line : {"#include <stddef.h>", "#include", "#include \"open", "#include NAME", "#define include x",
                           "include <a>", "#"}) {
    EXPECT_THAT(flatten({{{"main.cpp", line}, {"a", "text of a"}}, {}}), HasSubstr(std::string(line) + "\n"));
  }
}

TEST(Source, names_must_stay_in_their_folder) {
  for (const char* name : {"", "/a", "../a", "a/../../b", "./a", "a/"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(check_source({{{name, ""}}, {}}))) << name;
  }
  for (const char* name : {"a", "a.hpp", "a/b.hpp", "..a", "a..b/c"}) {
    EXPECT_TRUE(check_source({{{name, ""}}, {}}).ok()) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(check_source({})));
}

}  // namespace
}  // namespace catena::device
