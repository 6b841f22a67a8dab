// SPDX-License-Identifier: Apache-2.0
// Multi-string match on every device against Hyperscan itself, and against the hits of real captures that pyahocorasick
// and Hyperscan agree on. The data lies beside the checkout (see shared_data()).
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/packet/headers.hpp>

#include "nca/testing/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hs.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <tuple>

namespace catena::nca::testing {

/// A match with the position of its packet among all, to compare.
struct Match {
  std::uint64_t packet;
  std::uint32_t end;
  std::uint32_t pattern;
  auto operator<=>(Match const&) const = default;
};
std::ostream& operator<<(std::ostream& out, Match const& match) {
  return out << "(packet " << match.packet << ", end " << match.end << ", pattern " << match.pattern << ")";
}

namespace {

struct Pattern {
  std::string bytes;
  bool nocase = false;
};

/// What Hyperscan lists for whole patterns, as the API is to list it.
class Hyperscan {
 public:
  explicit Hyperscan(std::vector<Pattern> const& patterns) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    std::vector<unsigned> flags;
    std::vector<unsigned> ids;
    for (Pattern const& pattern : patterns) {
      texts.push_back(pattern.bytes.data());
      lengths.push_back(pattern.bytes.size());
      flags.push_back(pattern.nocase ? HS_FLAG_CASELESS : 0);
      ids.push_back(static_cast<unsigned>(ids.size()));
    }
    hs_compile_error_t* error = nullptr;
    EXPECT_EQ(hs_compile_lit_multi(texts.data(), flags.data(), ids.data(), lengths.data(),
                                   static_cast<unsigned>(ids.size()), HS_MODE_BLOCK, nullptr, &database_, &error),
              HS_SUCCESS);
    EXPECT_EQ(hs_alloc_scratch(database_, &scratch_), HS_SUCCESS);
  }
  ~Hyperscan() {
    hs_free_scratch(scratch_);
    hs_free_database(database_);
  }
  Hyperscan(Hyperscan const&) = delete;
  Hyperscan& operator=(Hyperscan const&) = delete;

  std::vector<Match> scan(std::vector<Packet> const& packets) const {
    std::set<Match> found;
    std::pair<std::set<Match>*, std::uint64_t> state{&found, 0};
    for (Packet const& packet : packets) {
      EXPECT_EQ(hs_scan(
                    database_, reinterpret_cast<const char*>(packet.data()), static_cast<unsigned>(packet.size()), 0,
                    scratch_,
                    [](unsigned id, unsigned long long, unsigned long long end, unsigned, void* context) {
                      auto& [matches, number] = *static_cast<decltype(state)*>(context);
                      matches->insert({number, static_cast<std::uint32_t>(end), id});
                      return 0;
                    },
                    &state),
                HS_SUCCESS);
      ++state.second;
    }
    return {found.begin(), found.end()};
  }

 private:
  hs_database_t* database_ = nullptr;
  hs_scratch_t* scratch_ = nullptr;
};

std::vector<Match> run_match(nca_stream& stream, std::vector<Packet> const& packets) {
  std::vector<Match> found;
  run(stream, packets, [&](nca_results const& results, std::uint64_t first) {
    ASSERT_EQ(results.function_count, 1U);
    nca_function_results const& own = *results.functions[0];
    ASSERT_EQ(own.kind, NCA_MATCH);
    ASSERT_EQ(own.out_of_bounds, 0U);
    for (std::size_t i = 0; i < own.count; ++i) {
      found.push_back({first + own.matches[i].packet, own.matches[i].end, own.matches[i].pattern});
    }
  });
  return found;
}

std::vector<Match> run_match(std::string const& device, nca_match_config config, std::vector<Packet> const& packets) {
  config.size = sizeof config;
  const Context context = open(device);
  nca_function* function = add(*context, NCA_MATCH, &config);
  if (function == nullptr) {
    return {};
  }
  const std::vector<nca_function*> functions{function};
  const Stream stream = make_stream(*context, small_buffers(functions));
  return stream == nullptr ? std::vector<Match>() : run_match(*stream, packets);
}

std::vector<Match> run_match(std::string const& device, std::vector<Pattern> const& patterns,
                             std::vector<Packet> const& packets) {
  std::vector<nca_pattern> views;
  for (Pattern const& pattern : patterns) {
    views.push_back({pattern.bytes.data(), static_cast<std::uint32_t>(pattern.bytes.size()),
                     pattern.nocase ? std::uint32_t{NCA_NOCASE} : 0});
  }
  nca_match_config config{};
  config.patterns = views.data();
  config.pattern_count = views.size();
  return run_match(device, config, packets);
}

std::vector<Packet> of_texts(std::vector<std::string> const& texts) {
  std::vector<Packet> packets;
  for (std::string const& text : texts) {
    packets.emplace_back(text.begin(), text.end());
  }
  return packets;
}

class MatchOnCaptures : public ::testing::Test {
 protected:
  std::string strings() const { return root_ + "/nids/strings5000_opendns_top.txt"; }
  std::vector<Packet> capture(std::string const& name) const {
    auto packets = nf::testing::read_capture(root_ + "/traces/" + name, 0xFFFF);
    EXPECT_TRUE(packets.ok()) << packets.status();
    return packets.ok() ? std::move(packets).value() : std::vector<Packet>();
  }
  std::vector<Pattern> lines() const {
    std::ifstream file(strings());
    std::vector<Pattern> patterns;
    for (std::string line; std::getline(file, line);) {
      patterns.push_back({line});
    }
    EXPECT_EQ(patterns.size(), 5000U);
    return patterns;
  }

  const std::string root_ = shared_data();
};

TEST_F(MatchOnCaptures, finds_what_hyperscan_lists_in_whole_frames) {
  const std::string path = strings();
  const Hyperscan hyperscan(lines());
  for (const std::string name : {"mixed.pcap", "onvm_64B_download.pcap"}) {
    const std::vector<Packet> packets = capture(name);
    ASSERT_GT(packets.size(), 1'900U);
    const std::vector<Match> expected = hyperscan.scan(packets);
    EXPECT_EQ(expected.empty(), name != "mixed.pcap");  // the other capture holds no host names
    for (std::string const& device : device_names()) {
      SCOPED_TRACE(::testing::Message() << name << " on " << device);
      nca_match_config config{};
      config.strings_file = path.c_str();
      EXPECT_EQ(run_match(device, config, packets), expected);
    }
  }
}

/// Of the capture's IPv4 packets with TCP or UDP what follows the header, and each one's frame number from 1.
TEST_F(MatchOnCaptures, finds_the_hits_that_two_libraries_agree_on) {
  std::vector<Packet> payloads;
  std::vector<std::uint32_t> frames;
  std::uint32_t number = 0;
  for (Packet const& frame : capture("mixed.pcap")) {
    ++number;
    const packet::Layers layers = packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()));
    if ((layers.flags & packet::kPorts) != 0 && layers.payload_length > 0) {
      payloads.emplace_back(frame.begin() + layers.payload, frame.begin() + layers.payload + layers.payload_length);
      frames.push_back(number);
    }
  }
  using Hit = std::pair<std::uint64_t, std::set<std::uint32_t>>;  // occurrences, lines
  std::map<std::uint32_t, Hit> expected;
  std::ifstream file(root_ + "/nids/strings5000.mixed.pcap.hits.tsv");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') {
      continue;
    }
    std::istringstream fields(line);
    std::uint32_t frame = 0;
    std::uint64_t occurrences = 0;
    fields >> frame >> occurrences;
    auto& [count, lines] = expected[frame];
    count = occurrences;
    for (std::uint32_t string = 0; fields >> string; fields.ignore(1)) {
      lines.insert(string);
    }
  }
  ASSERT_GT(expected.size(), 100U);
  const std::string path = strings();
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    nca_match_config config{};
    config.strings_file = path.c_str();
    std::map<std::uint32_t, Hit> found;
    for (Match const& match : run_match(device, config, payloads)) {
      auto& [count, lines] = found[frames[match.packet]];
      ++count;
      lines.insert(match.pattern);
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(Match, lists_every_pattern_that_ends_at_a_position) {
  const std::vector<Pattern> patterns{{"abcd"}, {"bcd"}, {"cd"}, {"d"}, {"cd"}, {"BCD", true}, {"xbcd"}};
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    EXPECT_THAT(run_match(device, patterns, of_texts({"abcd", "aBcD", "none", "d"})),
                ::testing::ElementsAre(Match{0, 4, 0}, Match{0, 4, 1}, Match{0, 4, 2}, Match{0, 4, 3}, Match{0, 4, 4},
                                       Match{0, 4, 5}, Match{1, 4, 5}, Match{3, 1, 3}));
  }
}

TEST(Match, finds_what_hyperscan_lists_among_few_letters) {
  std::mt19937 random(5);
  const auto text = [&](std::size_t bytes, std::string_view letters) {
    std::string result(bytes, 'a');
    for (char& c : result) {
      c = letters[random() % letters.size()];
    }
    return result;
  };
  std::vector<Pattern> patterns;
  for (int i = 0; i < 300; ++i) {
    patterns.push_back({text(1 + random() % 12, "abAB"), i % 3 == 0});
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 1200; ++i) {
    texts.push_back(text(1 + random() % 300, i % 7 == 0 ? "abAB" : "abcdefgh"));
  }
  texts.push_back(std::string(0xFFFF, 'a'));  // more matches than a result holds, at every byte of the longest packet
  const std::vector<Packet> packets = of_texts(texts);
  const std::vector<Match> expected = Hyperscan(patterns).scan(packets);
  ASSERT_GT(expected.size(), 100'000U);
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    const std::vector<Match> found = run_match(device, patterns, packets);
    EXPECT_EQ(found.size(), expected.size());
    EXPECT_TRUE(found == expected);  // too many to print
  }
}

/// `path` must outlive what is returned.
nca_match_config of_rules(std::string const& path) {
  nca_match_config config{};
  config.size = sizeof config;
  config.rules_file = path.c_str();
  return config;
}

TEST(Match, contents_of_rules_are_numbered_in_the_order_of_the_file) {
  const std::string path = ::testing::TempDir() + "nca_match_test.rules";
  std::ofstream(path) << "alert tcp any any -> any any (content:\"first\"; content:!\"absent\"; sid:1;)\n"
                         "alert tcp any any -> any any (content:\"SECOND\"; nocase; content:\"first\"; sid:2;)\n";
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    const Context context = open(device);
    const nca_match_config config = of_rules(path);
    nca_function* function = add(*context, NCA_MATCH, &config);
    ASSERT_NE(function, nullptr);
    nca_pattern_info info{};
    info.size = sizeof info;
    ASSERT_EQ(nca_function_pattern(function, 1, &info), NCA_OK);
    EXPECT_EQ(std::string_view(static_cast<const char*>(info.bytes), info.length), "second");
    EXPECT_EQ(info.flags, std::uint32_t{NCA_NOCASE});
    EXPECT_EQ(nca_function_pattern(function, 2, &info), NCA_ERROR_ARGUMENT);
    EXPECT_THAT(run_match(device, config, of_texts({"a Second first", "absent"})),
                ::testing::ElementsAre(Match{0, 8, 1}, Match{0, 14, 0}));
  }
}

TEST(Match, rules_that_are_refused_can_be_listed) {
  const std::string path = ::testing::TempDir() + "nca_match_refused.rules";
  std::ofstream(path) << "alert tcp any any -> any any (content:\"first\"; pcre:\"/x/\"; sid:1;)\n"
                         "alert tcp any any -> any any (content:\"second\"; sid:2;)\n"
                         "  pass tcp any any -> any any (content:\"third\"; sid:3;)\n";
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    const Context context = open(device);
    const nca_match_config config = of_rules(path);
    nca_function* function = add(*context, NCA_MATCH, &config);
    ASSERT_NE(function, nullptr);
    EXPECT_EQ(nca_function_refusals(function), 2U);
    nca_refusal_info info{};
    EXPECT_EQ(nca_function_refusal(function, 0, &info), NCA_ERROR_ARGUMENT) << "no size";
    info.size = sizeof info;
    ASSERT_EQ(nca_function_refusal(function, 0, &info), NCA_OK);
    EXPECT_STREQ(info.reason, "pcre");
    EXPECT_EQ(info.line, 1U);
    EXPECT_EQ(info.column, 48U);
    EXPECT_EQ(info.file, path);
    ASSERT_EQ(nca_function_refusal(function, 1, &info), NCA_OK);
    EXPECT_STREQ(info.reason, "action pass");
    EXPECT_EQ(info.line, 3U);
    EXPECT_EQ(info.column, 3U);
    EXPECT_EQ(nca_function_refusal(function, 2, &info), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(nca_function_refusal(function, 1, nullptr), NCA_ERROR_ARGUMENT);
    nca_pattern_info pattern{};
    pattern.size = sizeof pattern;
    ASSERT_EQ(nca_function_pattern(function, 0, &pattern), NCA_OK);
    EXPECT_EQ(std::string_view(static_cast<const char*>(pattern.bytes), pattern.length), "second");
    EXPECT_EQ(nca_function_pattern(function, 1, &pattern), NCA_ERROR_ARGUMENT);
  }
}

TEST(Match, a_file_of_refused_rules_alone_says_why) {
  const std::string path = ::testing::TempDir() + "nca_match_all_refused.rules";
  std::ofstream(path) << "# one rule a line\n"
                         "alert http any any -> any any (content:\"first\"; sid:1;)\n"
                         "alert tcp any any -> any any (content:\"second\"; pcre:\"/x/\"; sid:2;)\n"
                         "alert tcp any any -> any any (content:\"third\"; pcre:\"/y/\"; sid:3;)\n";
  const Context context = open("cpu");
  const nca_match_config config = of_rules(path);
  nca_function* function = nullptr;
  EXPECT_EQ(nca_add_network_function(context.get(), NCA_MATCH, &config, &function), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(text_of(*context),
            path + ":2:7: nothing is left to search for: 3 rules are refused (pcre 2, protocol http 1)");
}

TEST(Match, functions_that_refuse_no_rules_have_none) {
  const Context context = open("cpu");
  EXPECT_EQ(nca_function_refusals(nullptr), 0U);
  const nca_prefix prefix{0, 1, 0, 0};
  const nca_route_config route{sizeof route, &prefix, 1, nullptr};
  nca_function* function = add(*context, NCA_ROUTE, &route);
  EXPECT_EQ(nca_function_refusals(function), 0U);
  nca_refusal_info info{};
  info.size = sizeof info;
  EXPECT_EQ(nca_function_refusal(function, 0, &info), NCA_ERROR_ARGUMENT);
}

TEST(Match, a_list_without_regard_to_case_is_looked_for_so) {
  const std::string path = ::testing::TempDir() + "nca_match_test.txt";
  std::ofstream(path) << "One\ntwo\n";
  for (std::string const& device : device_names()) {
    SCOPED_TRACE(device);
    nca_match_config config{};
    config.strings_file = path.c_str();
    EXPECT_THAT(run_match(device, config, of_texts({"one One", "TWO"})), ::testing::ElementsAre(Match{0, 7, 0}));
    config.flags = NCA_NOCASE;
    EXPECT_THAT(run_match(device, config, of_texts({"one One", "TWO"})),
                ::testing::ElementsAre(Match{0, 3, 0}, Match{0, 7, 0}, Match{1, 3, 1}));
  }
}

}  // namespace
}  // namespace catena::nca::testing
