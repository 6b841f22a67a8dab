// SPDX-License-Identifier: Apache-2.0
#include "chain/variables.hpp"

#include "chain/chain_file.hpp"
#include "chain/effective.hpp"
#include "nf/yaml_limits.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kFile = "/etc/chains/c.yaml";

/// A chain whose port is `port` and whose variables are `vars`, in the syntax of YAML.
std::string chain_text(std::string const& vars, std::string const& port) {
  return concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\n", vars.empty() ? "" : concat("vars: ", vars),
                "\nspec:\n  rx: {dev: ", port, "}\n  tx: null\n  nfs: [{name: r, type: router, config: {to: ", port,
                "}}]\n");
}

std::string port_of(std::string const& text, Variables const& environment = {}) {
  const Result<ChainConfig> chain = parse_chain(text, kFile, {}, environment);
  if (!chain.ok()) {
    return std::string(chain.status().message());
  }
  nf::Config config = chain->nfs.front().config;
  return config.string("to").value_or("none");
}

TEST(Variables, have_the_value_of_the_file_then_of_the_environment_then_the_default) {
  EXPECT_EQ(port_of(chain_text("{IF: eth1}", "'${IF}'"), {{"IF", "eth2"}}), "eth1");
  EXPECT_EQ(port_of(chain_text("", "'${IF}'"), {{"IF", "eth2"}}), "eth2");
  EXPECT_EQ(port_of(chain_text("", "'${IF:-eth3}'"), {{"IF", "eth2"}}), "eth2");
  EXPECT_EQ(port_of(chain_text("", "'${IF:-eth3}'")), "eth3");
  EXPECT_EQ(port_of(chain_text("{IF: '${CARD:-eth}4'}", "'${IF}'")), "eth4");
  EXPECT_EQ(port_of(chain_text("{IF: '${CARD:-eth}4'}", "'${IF}'"), {{"CARD", "ens"}}), "ens4");
}

TEST(Variables, are_parts_of_a_text_and_any_number_of_them) {
  EXPECT_EQ(port_of(chain_text("{A: e, B: 1}", "'${A}t${A}h${B}'")), "eteh1");
}

TEST(Variables, are_no_yaml_but_text) { EXPECT_EQ(port_of(chain_text("{IF: 'a:{[c'}", "'${IF}'")), "a:{[c"); }

TEST(Variables, are_written_as_themselves_with_another_dollar) {
  EXPECT_EQ(port_of(chain_text("{IF: eth1}", "'$${IF}$IF$'")), "${IF}$IF$");
  EXPECT_EQ(port_of(chain_text("{IF: '$${X}'}", "'${IF}'")), "${X}") << "values are no variables again";
}

TEST(Variables, are_replaced_once_where_an_anchor_and_its_aliases_share_a_text) {
  EXPECT_EQ(port_of(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nvars: {IF: &it '$${X}'}\nspec:\n",
                           "  rx: {dev: *it}\n  tx: null\n  nfs: [{name: r, type: router, config: {to: *it}}]\n")),
            "${X}");
}

TEST(Variables, without_a_value_are_errors_with_a_position_and_a_remedy) {
  EXPECT_EQ(
      port_of(chain_text("{IFACE: eth1}", "'${IFAC}'")),
      "/etc/chains/c.yaml:6:13: no value for '${IFAC}'; did you mean '${IFACE}'? Else write `vars: {IFAC: TEXT}`");
  EXPECT_EQ(port_of(chain_text("", "'${IF}'"), {{"HOME", "/"}}),
            "/etc/chains/c.yaml:6:13: no value for '${IF}'; write `vars: {IF: TEXT}`, or set it in the environment");
  EXPECT_THAT(port_of(chain_text("{A: e, B: '${A}'}", "'${B}'")), HasSubstr("c.yaml:4:17: no value for '${A}'"))
      << "values of `vars` know the environment alone";
}

TEST(Variables, of_a_wrong_form_are_errors) {
  EXPECT_THAT(port_of(chain_text("", "'${IF'")), HasSubstr("c.yaml:6:13: '${' without '}'; write $${ for ${ itself"));
  for (const char* wrong : {"'${}'", "'${1A}'", "'${A B}'", "'${A-B}'", "'${A:B}'", "'${:-x}'"}) {
    EXPECT_THAT(port_of(chain_text("{A: e}", wrong)), HasSubstr("is no variable: a name has letters, digits and '_'"));
  }
  EXPECT_THAT(port_of(chain_text("{1A: e}", "eth0")), HasSubstr("'1A' is no name of a variable"));
  EXPECT_THAT(port_of(chain_text("{A: [e]}", "eth0")), HasSubstr("'A' must be text, found a list"));
  EXPECT_THAT(port_of(chain_text("{A: e, A: f}", "eth0")), HasSubstr("key 'A' is given twice"));
}

TEST(Variables, keep_their_file_within_the_limits_of_one) {
  const nf::YamlScope scope({.bytes = 4096});
  std::string many;
  for (int i = 0; i < 100; ++i) {
    many += "${A}";
  }
  EXPECT_THAT(port_of(chain_text(concat("{A: ", std::string(1000, 'x'), "}"), concat("'", many, "'"))),
              HasSubstr("have more than 4096 bytes"));
}

TEST(Variables, of_the_environment_are_kept_where_the_file_uses_them) {
  const Variables environment{{"IF", "eth2"}, {"SECRET", "x"}};
  const Result<ChainConfig> chain = parse_chain(chain_text("", "'${IF}'"), kFile, {}, environment);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(chain->source.environment, ElementsAre(Pair("IF", "eth2")));
  const Result<ChainConfig> another = parse_chain(chain_text("{IF: eth1}", "'${IF}'"), kFile, {}, environment);
  ASSERT_TRUE(another.ok()) << another.status();
  EXPECT_THAT(another->source.environment, IsEmpty());
}

TEST(Variables, are_their_values_for_an_nf_process_and_in_the_effective_text) {
  const std::string text = chain_text("{IF: eth1}", "'${IF}$${IF}${CARD}'");
  const Result<ChainConfig> chain = parse_chain(text, kFile, {}, {{"CARD", "x"}});
  ASSERT_TRUE(chain.ok()) << chain.status();
  Result<NfConfig> nf = parse_nf(chain->source, "r");
  ASSERT_TRUE(nf.ok()) << nf.status();
  EXPECT_EQ(nf->config.string("to").value_or(""), "eth1${IF}x");
  const std::string effective = effective_text(*chain);
  EXPECT_THAT(effective, HasSubstr("to: \"eth1$${IF}x\""));
  EXPECT_THAT(effective, Not(HasSubstr("vars")));
  EXPECT_EQ(port_of(effective), "eth1${IF}x") << "it is a chain file itself";
}

}  // namespace
}  // namespace catena::chain
