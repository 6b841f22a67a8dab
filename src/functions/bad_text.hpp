// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>

/// For tests of parsers of text files. A `parse` takes a text and the name of its file, and returns a Result.
namespace catena::testing {

/// A text refused by a parser.
struct BadText {
  std::string name;  ///< of the test case
  std::string text;
  std::string position;  ///< of the error, e.g. 2:1 for line 2, column 1; empty for an error without a line
  std::string message;   ///< a part of the error
};
inline std::ostream& operator<<(std::ostream& out, BadText const& bad) { return out << bad.name; }
inline std::string name_of_case(::testing::TestParamInfo<BadText> const& bad) { return bad.param.name; }

/// Expects `parse` to refuse the text, with file and position at the start of the message.
template <typename Parse>
void expect_refused(BadText const& bad, Parse parse) {
  const Status status = parse(bad.text, "x.txt").status();
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string where = bad.position.empty() ? "x.txt: " : concat("x.txt:", bad.position, ": ");
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(where));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(bad.message));
}

/// Expects `parse` to read or refuse each prefix of `text`.
template <typename Parse>
void expect_any_cut_is_read_or_refused(std::string_view text, Parse parse) {
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const Status status = parse(text.substr(0, length), "x.txt").status();
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << length << ": " << status;
  }
}

}  // namespace catena::testing
