// SPDX-License-Identifier: Apache-2.0
// Random rules, strings and payloads over tiny alphabets, so that almost every packet has more matches than its result
// holds. The matchers and the evaluator are held to a search that tries everything.
#include "functions/match/rule_parser.hpp"
#include "functions/match/test_random.hpp"
#include "test_support.hpp"

#include <catena/packet/headers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace catena::nids {
namespace {

using namespace testing;
using nf::testing::Frame;

/// Whether `content` is at payload[at...].
bool stands_at(match::Content const& content, std::string_view payload, std::int64_t at) {
  if (at < 0 || at + static_cast<std::int64_t>(content.bytes.size()) > static_cast<std::int64_t>(payload.size())) {
    return false;
  }
  std::string bytes(payload.substr(static_cast<std::size_t>(at), content.bytes.size()));
  if (content.nocase) {
    match::fold_case(bytes);
  }
  return bytes == content.bytes;
}

/// The meaning of a chain, word by word: is there a place for content number `next` and all after it, if the last match
/// ended at `previous`?
bool chain_matches(std::vector<match::Content> const& contents, std::size_t next, std::int64_t previous,
                   std::string_view payload) {
  if (next == contents.size()) {
    return true;
  }
  match::Content const& content = contents[next];
  const auto length = static_cast<std::int64_t>(content.bytes.size());
  const std::int64_t begin = content.relative ? previous + content.distance : content.offset;
  const std::int64_t size = content.relative ? content.within.value_or(1 << 20) : content.depth.value_or(1 << 20);
  bool found = false;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(payload.size()); ++at) {
    if (at < begin || at + length > begin + size || !stands_at(content, payload, at)) {
      continue;
    }
    found = true;
    if (!content.negated && chain_matches(contents, next + 1, at + length, payload)) {
      return true;
    }
  }
  return content.negated && !found && chain_matches(contents, next + 1, previous, payload);
}

std::string random_options(match::testing::Random& random, std::string_view alphabet, std::string& previous) {
  std::string options;
  const std::uint32_t contents = random.below(5);
  for (std::uint32_t i = 0; i < contents; ++i) {
    // Now and then the content of another rule once more.
    const std::string bytes =
        previous.empty() || random.chance(70) ? random.text(alphabet, 1 + random.below(3)) : previous;
    previous = bytes;
    const auto length = static_cast<std::uint32_t>(bytes.size());
    options += std::string("content:") + (random.chance(25) ? "!" : "") + "\"" + bytes + "\"; ";
    if (random.chance(40)) {
      options += "nocase; ";
    }
    if (random.chance(50)) {
      options += random.chance(60) ? fmt::format("distance:{}; ", static_cast<int>(random.below(12)) - 6) : "";
      options += random.chance(60) ? fmt::format("within:{}; ", length + random.below(8)) : "";
    } else {
      options += random.chance(50) ? fmt::format("offset:{}; ", random.below(15)) : "";
      options += random.chance(50) ? fmt::format("depth:{}; ", length + random.below(15)) : "";
    }
  }
  return options;
}

TEST(NidsProperty, rules_match_where_a_search_of_all_placements_does) {
  match::testing::Random random(20);
  std::size_t spilled = 0;
  for (int round = 0; round < 25; ++round) {
    const std::string_view alphabet = round % 3 == 0 ? "aA" : round % 3 == 1 ? "abAB" : "aabc";
    std::string text;
    std::string previous;
    for (int sid = 1; sid <= 40; ++sid) {
      text += fmt::format("{} udp any any -> any any ({}sid:{};)\n", random.chance(10) ? "drop" : "alert",
                          random_options(random, alphabet, previous), sid);
    }
    const match::RuleFile file = match::parse_rules(text, "x.rules", match::Variables());
    ASSERT_EQ(file.rules.size(), 40U) << file.errors.front();

    std::vector<Frame> frames;
    Hits expected;
    for (std::uint64_t frame = 1; frame <= 80; ++frame) {
      const std::string payload = random.text(alphabet, random.below(28));
      spilled += payload.size() > match::kListedMatches ? 1 : 0;
      frames.push_back(nf::testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, payload));
      for (match::Rule const& rule : file.rules) {
        const bool possible = rule.contents.empty() || !payload.empty();
        if (possible && chain_matches(rule.contents, 0, 0, payload)) {
          expected[frame].insert(rule.sid);
        }
      }
    }
    const ScratchFolder folder;
    folder.write("x.rules", text);
    for (device::Device* device : places()) {
      SCOPED_TRACE(name_of(device));
      ASSERT_EQ(hits_of(run_at(device, "rules: x.rules", folder.path(), frames)), expected) << text;
    }
  }
  EXPECT_GT(spilled, 1000U);
}

TEST(NidsProperty, strings_are_counted_like_a_plain_search_counts_them) {
  match::testing::Random random(21);
  for (int round = 0; round < 12; ++round) {
    const bool nocase = round % 3 == 0;
    const std::string alphabet = nocase ? "aAb" : round % 3 == 1 ? "ab" : std::string("a\0\x80\xFF", 4);
    std::vector<std::string> strings;
    std::string list;
    for (std::uint32_t n = 1 + random.below(40); n > 0; --n) {
      strings.push_back(random.text(alphabet, 1 + random.below(random.chance(20) ? 30 : 4)));
      list += strings.back() + "\n";
    }
    std::vector<Frame> frames;
    std::map<std::uint64_t, std::pair<std::set<std::uint32_t>, std::uint64_t>> expected;
    for (std::uint64_t packet = 0; packet < 40; ++packet) {
      std::string payload = random.text(alphabet, random.below(1450));
      frames.push_back(nf::testing::make_frame(packet::kProtocolTcp, 1, 2, 3, 4, payload));
      if (nocase) {
        match::fold_case(payload);
      }
      for (std::uint32_t line = 0; line < strings.size(); ++line) {
        std::string string = strings[line];
        if (nocase) {
          match::fold_case(string);
        }
        for (std::size_t at = 0; (at = payload.find(string, at)) != std::string::npos; ++at) {
          expected[packet].first.insert(line);
          ++expected[packet].second;
        }
      }
    }
    const ScratchFolder folder;
    folder.write("x.txt", list);
    for (device::Device* device : places()) {
      SCOPED_TRACE(name_of(device));
      const auto result = run_at(device, fmt::format("{{strings: x.txt, nocase: {}}}", nocase), folder.path(), frames);
      std::map<std::uint64_t, std::pair<std::set<std::uint32_t>, std::uint64_t>> got;
      for (Record const& record : parse_records(result.records)) {
        got[record.packet] = {record.matches, record.occurrences};
      }
      ASSERT_EQ(got, expected);
    }
  }
}

/// Lines of a string list that occur in each payload, and how often all of them do; frames without any have no entry.
using Counted = std::map<std::uint64_t, std::pair<std::set<std::uint32_t>, std::uint64_t>>;
Counted count_by_search(std::vector<std::string> const& strings, std::vector<std::string> const& payloads) {
  Counted counted;
  for (std::uint64_t packet = 0; packet < payloads.size(); ++packet) {
    for (std::uint32_t line = 0; line < strings.size(); ++line) {
      for (std::size_t at = 0; (at = payloads[packet].find(strings[line], at)) != std::string::npos; ++at) {
        counted[packet].first.insert(line);
        ++counted[packet].second;
      }
    }
  }
  return counted;
}
Counted count_at(device::Device* device, std::vector<std::string> const& strings,
                 std::vector<std::string> const& payloads) {
  const ScratchFolder folder;
  folder.write("x.txt", fmt::format("{}\n", fmt::join(strings, "\n")));
  std::vector<Frame> frames;
  for (std::string const& payload : payloads) {
    frames.push_back(nf::testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, payload));
  }
  Counted counted;
  for (Record const& record : parse_records(run_at(device, "strings: x.txt", folder.path(), frames).records)) {
    counted[record.packet] = {record.matches, record.occurrences};
  }
  return counted;
}

TEST(NidsProperty, a_string_is_found_wherever_it_stands) {
  // Two fillers: one that no string knows, and one that every string begins with, so that each position may turn out
  // to be the middle of an occurrence.
  for (const char filler : {'.', 'a'}) {
    for (const std::size_t length : {1U, 2U, 9U, 17U, 60U, 250U}) {
      const std::vector<std::string> strings{std::string(length - 1, 'a') + "b"};
      std::vector<std::string> payloads;
      for (const std::size_t bytes : {15U, 16U, 33U, 128U, 129U, 300U}) {
        for (std::size_t at = 0; at + length <= bytes; ++at) {
          payloads.push_back(std::string(bytes, filler).replace(at, length, strings[0]));
        }
      }
      const Counted expected = count_by_search(strings, payloads);
      ASSERT_EQ(expected.size(), payloads.size());
      for (device::Device* device : places()) {
        SCOPED_TRACE(fmt::format("{}, {} bytes between {}", name_of(device), length, filler));
        ASSERT_EQ(count_at(device, strings, payloads), expected);
      }
    }
  }
}

TEST(NidsProperty, strings_that_end_with_each_other_are_found_over_any_distance) {
  // 'a' up to 700 times: at each position of the payload every one of them ends that fits in front of it.
  std::vector<std::string> strings;
  for (const std::size_t length : {1U, 2U, 3U, 50U, 181U, 182U, 183U, 184U, 185U, 400U, 700U}) {
    strings.emplace_back(length, 'a');
  }
  const std::vector<std::string> payloads{std::string(1450, 'a'), std::string(700, 'a'), std::string(1, 'a'),
                                          std::string(1000, 'a') + 'b' + std::string(400, 'a')};
  Counted expected;
  for (std::uint32_t line = 0; line < strings.size(); ++line) {
    const std::uint64_t length = strings[line].size();
    const auto add = [&](std::uint64_t packet, std::uint64_t run) {
      if (length <= run) {
        expected[packet].first.insert(line);
        expected[packet].second += run - length + 1;
      }
    };
    add(0, 1450);
    add(1, 700);
    add(2, 1);
    add(3, 1000);
    add(3, 400);
  }
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    EXPECT_EQ(count_at(device, strings, payloads), expected);
  }
}

TEST(NidsProperty, pieces_of_payloads_are_found_whatever_their_length) {
  match::testing::Random random(22);
  for (int round = 0; round < 8; ++round) {
    const std::string_view alphabet = round % 2 == 0 ? "ab" : "abcdefgh";
    std::vector<std::string> payloads;
    for (int i = 0; i < 30; ++i) {
      payloads.push_back(random.text(alphabet, 1 + random.below(1450)));
    }
    std::vector<std::string> strings;
    for (int i = 0; i < 60; ++i) {
      std::string const& from = payloads[random.below(30)];
      const auto length = static_cast<std::uint32_t>(from.size());
      const std::uint32_t at = random.below(length);
      strings.push_back(from.substr(at, 1 + random.below(std::min(length - at, random.chance(50) ? 30U : 1000U))));
    }
    const Counted expected = count_by_search(strings, payloads);
    for (device::Device* device : places()) {
      SCOPED_TRACE(name_of(device));
      ASSERT_EQ(count_at(device, strings, payloads), expected);
    }
  }
}

TEST(NidsProperty, contents_with_and_without_case_match_at_their_places) {
  match::testing::Random random(23);
  for (int round = 0; round < 6; ++round) {
    std::vector<std::string> payloads;
    for (int i = 0; i < 30; ++i) {
      payloads.push_back(random.text(round % 2 == 0 ? "aAbB" : "abcdefABCDEF", 1 + random.below(600)));
    }
    std::string text;
    for (int sid = 1; sid <= 80; ++sid) {
      std::string const& from = payloads[random.below(30)];
      const auto length = static_cast<std::uint32_t>(from.size());
      const std::uint32_t at = random.below(length);
      const std::string bytes = from.substr(at, 1 + random.below(std::min(length - at, random.chance(50) ? 6U : 250U)));
      text += fmt::format("alert udp any any -> any any (content:\"{}\"; {}offset:{}; depth:{}; sid:{};)\n", bytes,
                          random.chance(50) ? "nocase; " : "", at, bytes.size() + random.below(3), sid);
    }
    const match::RuleFile file = match::parse_rules(text, "x.rules", match::Variables());
    ASSERT_EQ(file.rules.size(), 80U);
    std::vector<Frame> frames;
    Hits expected;
    for (std::string const& payload : payloads) {
      frames.push_back(nf::testing::make_frame(packet::kProtocolUdp, 1, 2, 3, 4, payload));
      for (match::Rule const& rule : file.rules) {
        if (chain_matches(rule.contents, 0, 0, payload)) {
          expected[frames.size()].insert(rule.sid);
        }
      }
    }
    const ScratchFolder folder;
    folder.write("x.rules", text);
    for (device::Device* device : places()) {
      SCOPED_TRACE(name_of(device));
      ASSERT_EQ(hits_of(run_at(device, "rules: x.rules", folder.path(), frames)), expected);
    }
  }
}

TEST(NidsProperty, long_runs_of_one_byte_hide_nothing) {
  // Like padding around shellcode. Strings of 33 bytes and more made such scans of Hyperscan 5.4.0 end early.
  match::testing::Random random(24);
  const auto text = [&random](std::uint32_t length) {
    std::string bytes;
    while (bytes.size() < length) {
      bytes += random.chance(60) ? std::string(1 + random.below(60), "Dx"[random.below(2)])
                                 : random.text("xtDa>", 1 + random.below(6));
    }
    return bytes.substr(0, length);
  };
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> payloads;
    for (int i = 0; i < 20; ++i) {
      payloads.push_back(text(1 + random.below(700)));
    }
    std::vector<std::string> strings;
    for (int i = 0; i < 12; ++i) {
      std::string const& from = payloads[random.below(20)];
      const auto length = static_cast<std::uint32_t>(from.size());
      const std::uint32_t at = random.below(length);
      strings.push_back(from.substr(at, 1 + random.below(std::min(length - at, random.chance(40) ? 6U : 100U))));
    }
    const Counted expected = count_by_search(strings, payloads);
    for (device::Device* device : places()) {
      SCOPED_TRACE(name_of(device));
      ASSERT_EQ(count_at(device, strings, payloads), expected);
    }
  }
}

}  // namespace
}  // namespace catena::nids
