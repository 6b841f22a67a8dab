// SPDX-License-Identifier: Apache-2.0
#include "chain/error_list.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace catena::chain {
namespace {

using Json = nlohmann::ordered_json;

Json only_of(std::string const& line) {
  const Json list = errors_of(absl::InvalidArgumentError(line));
  EXPECT_EQ(list.size(), 1);
  return list.front();
}

TEST(ErrorList, a_line_is_taken_apart_where_it_names_a_position) {
  EXPECT_EQ(only_of("a.yaml:3:7: no such key"),
            Json({{"file", "a.yaml"}, {"line", 3}, {"column", 7}, {"message", "no such key"}}));
  EXPECT_EQ(only_of("fw.rules:12: no action"),
            Json({{"file", "fw.rules"}, {"line", 12}, {"column", nullptr}, {"message", "no action"}}));
  EXPECT_EQ(only_of("C:/a:b.yaml:3: odd: 4: name"),
            Json({{"file", "C:/a:b.yaml"}, {"line", 3}, {"column", nullptr}, {"message", "odd: 4: name"}}));
}

TEST(ErrorList, a_line_without_a_position_is_its_message) {
  for (std::string line : {"no device", "a.yaml: not there", "a:3:4:5", ":3: x", "a:: x", "a:-1: x", "12:"}) {
    EXPECT_EQ(only_of(line), Json({{"file", nullptr}, {"line", nullptr}, {"column", nullptr}, {"message", line}}));
  }
}

TEST(ErrorList, lines_are_entries) {
  EXPECT_EQ(errors_of(absl::InvalidArgumentError("a:1: x\n\nb\n")).size(), 2);
  EXPECT_EQ(errors_of(absl::OkStatus()).size(), 0);
}

TEST(ErrorList, what_a_line_quotes_may_be_anything) {
  // numbers that no type holds, and text that a matcher which recurses per letter has no stack for
  for (std::string line : {"/a:99999999999999999999: x", "/a:1:99999999999999999999: x"}) {
    EXPECT_EQ(only_of(line)["message"], line);
  }
  constexpr std::size_t kLong = 1'000'000;
  const std::string letters(kLong, 'x');
  EXPECT_EQ(only_of(letters + ":3: no").at("line"), 3);
  std::string colons;
  for (std::size_t at = 0; at < kLong; ++at) {
    colons += at % 2 == 0 ? "1" : ":";
  }
  EXPECT_EQ(only_of(colons)["line"], nullptr);
}

}  // namespace
}  // namespace catena::chain
