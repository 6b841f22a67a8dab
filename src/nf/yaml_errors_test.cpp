// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/config.hpp>

#include <gmock/gmock.h>

namespace catena::nf {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct BadYaml {
  const char* name;
  const char* text;
  const char* message;
};

class YamlErrors : public ::testing::TestWithParam<BadYaml> {};

TEST_P(YamlErrors, are_explained_where_the_mistake_is) {
  const Result<Config> config = Config::parse(GetParam().text, "c.yaml");
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(std::string(config.status().message()), StartsWith(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, YamlErrors,
    ::testing::Values(
        BadYaml{"tab", "a:\n\t- b\n", "c.yaml:2:1: not valid YAML: tabs do not indent YAML; write spaces"},
        BadYaml{"tab_of_a_key", "a:\n    - name: x\n\t  type: y\n", "c.yaml:3:1: not valid YAML: tabs do not indent"},
        BadYaml{"brace", "a:\n  - {b: c, d: {e: f}\n  - {b: g}\n",
                "c.yaml:2:5: not valid YAML: '{' is not closed; '}' is missing"},
        BadYaml{"brace_at_the_end", "a:\n  - {b: c, d: {e: f}\n", "c.yaml:2:5: not valid YAML: '{' is not closed"},
        BadYaml{"bracket", "a: [b, c\nd: e\n", "c.yaml:1:4: not valid YAML: '[' is not closed; ']' is missing"},
        BadYaml{"other_bracket", "a: {b: [c, d}\n",
                "c.yaml:1:13: not valid YAML: '}' does not close the '[' of line 1; write ']'"},
        BadYaml{"quotes_and_comments", "a: [\"{\\\"[\", '{[', it's]  # {[\nb: c[\nd: [e\n",
                "c.yaml:3:4: not valid YAML: '[' is not closed"},
        BadYaml{"less_indentation", "a:\n  - b: c\n    d: e\n   f: g\n",
                "c.yaml:4:4: not valid YAML: the indentation of this line matches no line above"},
        BadYaml{"colon", "a: b: c\n",
                "c.yaml:1:5: not valid YAML: unexpected ':'; put a text with ': ' in it into quotes"}),
    [](auto const& test) { return std::string(test.param.name); });

TEST(YamlErrors, a_value_that_begins_with_an_exclamation_mark_needs_quotes) {
  Result<Config> config = Config::parse("{one: !$HOME_NET, many: [!$HOME_NET], empty: \"\"}", "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(std::string(config->string("one").status().message()),
              HasSubstr("'one' begins with '!', which is a tag in YAML; write it in quotes: \"!$HOME_NET\""));
  EXPECT_THAT(std::string(config->strings("many").status().message()), HasSubstr("write it in quotes: \"!$HOME_NET\""));
  EXPECT_THAT(std::string(config->string("empty").status().message()), HasSubstr("'empty' must be text, found ''"));
}

TEST(YamlErrors, a_zero_byte_in_a_text_is_refused) {
  Result<Config> config = Config::parse(R"({file: "records\0.jsonl"})", "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->string("file").status().message(), "c.yaml:1:8: 'file' has a zero byte; leave it out");
}

TEST(YamlErrors, a_file_of_another_kind_is_named) {
  for (const auto& [bytes, message] : std::vector<std::pair<std::string, std::string>>{
           {"\xd4\xc3\xb2\xa1{{{", "is a packet capture, not YAML; a chain reads it by `rx: {pcap: FILE}`"},
           {"\x0a\x0d\x0d\x0a", "is a packet capture"},
           {"\xa1\xb2\xcd\x34", "is a packet capture"},
           {"\x1f\x8b\x08", "is compressed by gzip, not YAML; decompress"}}) {
    EXPECT_THAT(std::string(Config::parse(bytes, "c.yaml").status().message()), HasSubstr("c.yaml: this " + message));
  }
}

TEST(Misspelt, is_a_word_with_one_slip_in_four_letters) {
  const std::vector<std::string> known{"content", "nocase", "tos", "itype"};
  EXPECT_EQ(misspelt("contnet", known), "content");
  EXPECT_EQ(misspelt("nocas", known), "nocase");
  EXPECT_EQ(misspelt("ttl", known), "");
  EXPECT_EQ(misspelt("pcre", known), "");
}

}  // namespace
}  // namespace catena::nf
