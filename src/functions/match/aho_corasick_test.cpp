// SPDX-License-Identifier: Apache-2.0
#include "functions/match/aho_corasick.hpp"

#include "functions/match/test_random.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace catena::match {
namespace {

using Hits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  ///< pattern, end

std::vector<bool> all_of(std::vector<Pattern> const& patterns) { return std::vector<bool>(patterns.size(), true); }

/// Walks the automaton over a text, from its start to its end.
Hits walk(std::vector<Pattern> const& patterns, bool nocase, std::string const& text) {
  const auto automaton = build_automaton(patterns, nocase, all_of(patterns));
  EXPECT_TRUE(automaton.ok());
  const std::vector<std::uint32_t> suffixes = suffix_links(patterns);
  Hits hits;
  if (automaton->next.empty()) {
    return hits;
  }
  std::uint32_t row = automaton->start;
  for (std::uint32_t i = 0; i < text.size(); ++i) {
    row = automaton->next[row + automaton->classes[static_cast<std::uint8_t>(text[i])]];
    if (row < automaton->match_rows) {
      for (std::uint32_t p = automaton->longest[row / automaton->class_count]; p != kNoSuffix; p = suffixes[p]) {
        hits.emplace_back(p, i + 1);
      }
    }
  }
  std::sort(hits.begin(), hits.end());
  return hits;
}

Hits search(std::vector<Pattern> const& patterns, bool nocase, std::string text) {
  if (nocase) {
    fold_case(text);
  }
  Hits hits;
  for (std::uint32_t p = 0; p < patterns.size(); ++p) {
    for (std::size_t at = 0; patterns[p].nocase == nocase && (at = text.find(patterns[p].bytes, at)) != text.npos;
         ++at) {
      hits.emplace_back(p, at + patterns[p].bytes.size());
    }
  }
  std::sort(hits.begin(), hits.end());
  return hits;
}

TEST(AhoCorasick, finds_what_a_plain_search_finds) {
  testing::Random random(7);
  for (int round = 0; round < 400; ++round) {
    const std::string alphabet = round % 2 == 0 ? "aAb" : std::string("a\0\xFFz", 4);
    PatternSet set;
    for (std::uint32_t n = random.below(12); n > 0; --n) {
      std::string bytes = random.text(alphabet, 1 + random.below(5));
      const bool nocase = random.below(2) == 0;
      if (nocase) {
        fold_case(bytes);
      }
      set.add(bytes, nocase);
    }
    const std::string text = random.text(alphabet, random.below(60));
    for (const bool nocase : {false, true}) {
      EXPECT_EQ(walk(set.patterns(), nocase, text), search(set.patterns(), nocase, text));
    }
  }
}

TEST(AhoCorasick, takes_patterns_over_all_byte_values) {
  PatternSet set;
  std::string all;
  for (int byte = 255; byte >= 0; --byte) {
    all += static_cast<char>(byte);
  }
  set.add(all, false);
  const auto automaton = build_automaton(set.patterns(), false, all_of(set.patterns()));
  ASSERT_TRUE(automaton.ok());
  EXPECT_EQ(automaton->class_count, 256U);
  EXPECT_EQ(walk(set.patterns(), false, all + all), (Hits{{0, 256}, {0, 512}}));
}

TEST(AhoCorasick, bytes_that_no_pattern_tells_apart_share_a_column) {
  PatternSet set;
  set.add("abc", true);
  const auto automaton = build_automaton(set.patterns(), true, all_of(set.patterns()));
  ASSERT_TRUE(automaton.ok());
  EXPECT_EQ(automaton->class_count, 4U);
  EXPECT_EQ(automaton->classes['A'], automaton->classes['a']);
  EXPECT_EQ(automaton->classes['x'], automaton->classes['\0']);
  EXPECT_EQ(automaton->state_count(), 4U);
}

TEST(AhoCorasick, too_many_patterns_are_an_error_with_the_limit) {
  PatternSet set;
  for (std::uint32_t i = 0; i <= kMaxPatterns; ++i) {
    set.add(std::to_string(i), false);
  }
  const auto automaton = build_automaton(set.patterns(), false, all_of(set.patterns()));
  EXPECT_EQ(automaton.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(automaton.status().message().find("65535"), std::string::npos);
}

TEST(AhoCorasick, too_large_a_table_is_an_error_with_the_limit) {
  testing::Random random(9);
  PatternSet set;
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) {
    all_bytes += static_cast<char>(byte);
  }
  for (int i = 0; i < 200; ++i) {
    set.add(random.text(all_bytes, 2048), false);
  }
  const auto automaton = build_automaton(set.patterns(), false, all_of(set.patterns()));
  EXPECT_EQ(automaton.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(automaton.status().message().find("67108864"), std::string::npos);
}

TEST(AhoCorasick, a_depth_is_the_longest_end_of_the_text_that_begins_a_pattern) {
  testing::Random random(8);
  for (int round = 0; round < 100; ++round) {
    PatternSet set;
    for (std::uint32_t n = 1 + random.below(8); n > 0; --n) {
      set.add(random.text("ab", 1 + random.below(9)), false);
    }
    const auto automaton = build_automaton(set.patterns(), false, all_of(set.patterns()));
    ASSERT_TRUE(automaton.ok());
    ASSERT_EQ(automaton->depths.size(), automaton->state_count());
    const std::string text = random.text("abc", 40);
    std::uint32_t row = automaton->start;
    for (std::size_t end = 0; end <= text.size(); ++end) {
      std::size_t depth = 0;
      for (Pattern const& pattern : set.patterns()) {
        for (std::size_t length = 1; length <= std::min(end, pattern.bytes.size()); ++length) {
          if (text.compare(end - length, length, pattern.bytes, 0, length) == 0) {
            depth = std::max(depth, length);
          }
        }
      }
      ASSERT_EQ(automaton->depths[row / automaton->class_count], depth);
      if (end < text.size()) {
        row = automaton->next[row + automaton->classes[static_cast<std::uint8_t>(text[end])]];
      }
    }
  }
}

TEST(AhoCorasick, states_in_which_a_deciding_pattern_ends_come_first) {
  PatternSet set;
  const std::uint32_t decides = set.add("b", false);
  set.add("ab", false);  // ends with the deciding pattern
  set.add("ac", false);
  std::vector<bool> deciding(set.size(), false);
  deciding[decides] = true;
  const auto automaton = build_automaton(set.patterns(), false, deciding);
  ASSERT_TRUE(automaton.ok());
  const auto row_after = [&](std::string const& text) {
    std::uint32_t row = automaton->start;
    for (char c : text) {
      row = automaton->next[row + automaton->classes[static_cast<std::uint8_t>(c)]];
    }
    return row;
  };
  EXPECT_LT(row_after("b"), automaton->deciding_rows);
  EXPECT_LT(row_after("ab"), automaton->deciding_rows);
  EXPECT_GE(row_after("ac"), automaton->deciding_rows);
  EXPECT_LT(row_after("ac"), automaton->match_rows);
  EXPECT_GE(row_after("a"), automaton->match_rows);
}

}  // namespace
}  // namespace catena::match
