// SPDX-License-Identifier: Apache-2.0
#include "chain/includes.hpp"

#include "chain/chain_file.hpp"
#include "chain/effective.hpp"
#include "chain/named_files.hpp"
#include "nf/yaml_limits.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace catena::chain {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Includes : public ::testing::Test {
 protected:
  void write(std::string const& name, std::string const& text) const {
    const std::filesystem::path path = folder_.path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  /// A chain file with `more` at its end.
  void write_chain(std::string const& include, std::string const& more) const {
    write("c.yaml", concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\ninclude: ", include, "\n", more));
  }

  Result<ChainConfig> load(Variables environment = {}) const {
    return load_chain(folder_.path("c.yaml"), {}, std::move(environment));
  }

  /// With the folder of the files left out.
  std::string error(Variables environment = {}) const {
    std::string text(load(std::move(environment)).status().message());
    const std::string folder = std::filesystem::path(folder_.path("c.yaml")).parent_path().string() + "/";
    for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
      text.erase(at, folder.size());
    }
    return text;
  }

  ScratchFolder folder_;
};

constexpr const char* kRest = "spec:\n  rx: generator\n  nfs: []\n";

TEST_F(Includes, give_the_keys_that_the_file_lacks) {
  write("common.yaml", "spec:\n  tx: null\n  tuning: {unit_packets: 64, units_per_launch: 4}\n  workers: 3\n");
  write_chain("common.yaml", "spec:\n  rx: {generator: {}}\n  nfs: []\n  tuning: {unit_packets: 32}\n  workers: 2\n");
  const Result<ChainConfig> chain = load();
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->tuning.unit_packets, 32U) << "the file's own value comes first";
  EXPECT_EQ(chain->tuning.units_per_launch, 4U) << "mappings are merged";
  EXPECT_EQ(chain->run.workers, 2U);
}

TEST_F(Includes, are_merged_in_order_and_the_last_one_wins) {
  write("one.yaml", "spec: {tx: null, workers: 2, tuning: {units_per_launch: 2}}\n");
  write("two.yaml", "spec: {workers: 3}\n");
  write_chain("[one.yaml, two.yaml]", "spec: {rx: {generator: {}}, nfs: []}\n");
  const Result<ChainConfig> chain = load();
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->run.workers, 3U);
  EXPECT_EQ(chain->tuning.units_per_launch, 2U);
}

TEST_F(Includes, merge_neither_lists_nor_ports) {
  write("common.yaml",
        "spec:\n  rx: {pcap: missing.pcap}\n  tx: {pcap: out.pcap}\n  nfs:\n    - {name: fw, type: firewall}\n");
  write_chain("[common.yaml]", "spec:\n  rx: {generator: {}}\n  tx: null\n  nfs: [{name: rt, type: router}]\n");
  const Result<ChainConfig> chain = load();
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_THAT(chain->nfs, SizeIs(1));
  EXPECT_EQ(chain->nfs.front().name, "rt");
  EXPECT_TRUE(chain->tx.target.empty());
}

TEST_F(Includes, have_includes_from_their_own_folder_and_other_names_from_the_folder_of_the_chain) {
  write("site/common.yaml", "include: deep/more.yaml\nspec: {tx: {pcap: out.pcap}}\n");
  write("site/deep/more.yaml", "spec: {rx: {generator: {}}, nfs: []}\n");
  write_chain("site/common.yaml", "");
  const Result<ChainConfig> chain = load();
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->tx.target, folder_.path("out.pcap"));
  EXPECT_THAT(chain->tx.position, EndsWith("site/common.yaml:2:19"));
}

TEST_F(Includes, are_read_again_without_their_files) {
  write("common.yaml",
        "vars: {TO: '${SITE}.txt', IF: eth1}\nspec:\n  nfs:\n    - {name: r, type: router, config: {a: '${TO}'}}\n");
  write_chain("common.yaml", "vars: {IF: eth2}\nspec: {rx: {dev: '${IF}'}, tx: null}\n");
  const Result<ChainConfig> chain = load({{"SITE", "lab"}});
  ASSERT_TRUE(chain.ok()) << chain.status();
  std::filesystem::remove(folder_.path("common.yaml"));
  Result<NfConfig> nf = parse_nf(chain->source, "r");
  ASSERT_TRUE(nf.ok()) << nf.status();
  EXPECT_EQ(nf->config.string("a").value_or(""), "lab.txt");
  const std::string effective = effective_text(*chain);
  EXPECT_THAT(effective, AllOf(Not(HasSubstr("include")), HasSubstr("lab.txt"), HasSubstr("eth2")));
  EXPECT_TRUE(parse_chain(effective, folder_.path("again.yaml")).ok()) << effective;
}

TEST_F(Includes, have_errors_with_the_position_in_the_file_of_the_text) {
  write("common.yaml", "# first\nspec:\n  tx: null\n  wrokers: 3\n  workers: many\n");
  write_chain("common.yaml", "spec:\n  rx: {generator: {}}\n  nfs: []\n  shards: none\n");
  EXPECT_THAT(error(),
              AllOf(HasSubstr("common.yaml:4:3: unknown key 'wrokers'"),
                    HasSubstr("common.yaml:5:12: 'workers' is 'many'"), HasSubstr("c.yaml:8:11: 'shards' is 'none'")));
  write("common.yaml", "spec:\n  tx: null\n  nfs:\n    - {name: r, type: router, config: {a: '${SITE}'}}\n");
  write_chain("common.yaml", "spec: {rx: {generator: {}}}\n");
  EXPECT_THAT(error(), StartsWith("common.yaml:4:43: no value for '${SITE}'"));
  write("common.yaml", "spec: {tx: [\n");
  EXPECT_THAT(error(), AllOf(StartsWith("common.yaml:1:12: not valid YAML"), HasSubstr("is not closed")));
  write("common.yaml", "- a\n");
  EXPECT_THAT(error(), StartsWith("common.yaml:1:1: expected a mapping"));
}

TEST_F(Includes, name_the_position_of_a_mapping_that_lacks_a_key) {
  write("common.yaml", "spec: {tx: null}\n");
  write_chain("common.yaml", "spec:\n  nfs: []\n");
  EXPECT_EQ(error(), "c.yaml:6:3: missing key 'rx'");
}

TEST_F(Includes, do_not_hide_a_key_given_twice) {
  write("common.yaml", "spec: {tx: null, workers: 2, workers: 3}\n");
  write_chain("common.yaml", "spec: {rx: {generator: {}}, nfs: []}\n");
  EXPECT_EQ(error(), "common.yaml:1:30: key 'workers' is given twice");
  write_chain("common.yaml", "spec: {rx: {generator: {}}, nfs: [], workers: 1}\n");
  EXPECT_EQ(error(), "common.yaml:1:30: key 'workers' is given twice");
  write_chain("common.yaml", "include: common.yaml\nspec: {rx: {generator: {}}, nfs: []}\n");
  EXPECT_EQ(error(), "c.yaml:5:1: key 'include' is given twice");
}

TEST_F(Includes, leave_mappings_shared_by_aliases_alone) {
  write("common.yaml", "spec:\n  tx: null\n  tuning: {units_per_launch: 4}\n");
  write_chain("common.yaml", concat("spec:\n  rx: {generator: {}}\n  tuning: &t {unit_packets: 32}\n",
                                    "  nfs: [{name: r, type: router, config: *t}]\n"));
  const Result<ChainConfig> chain = load();
  ASSERT_TRUE(chain.ok()) << chain.status();
  nf::Config config = chain->nfs.front().config;
  EXPECT_FALSE(config.has("units_per_launch"));
}

TEST_F(Includes, in_a_circle_are_errors_that_show_it) {
  write("a.yaml", "include: b.yaml\n");
  write("b.yaml", "include: [a.yaml]\n");
  write_chain("a.yaml", kRest);
  EXPECT_EQ(error(), "b.yaml:1:11: 'include': a circle: c.yaml -> a.yaml -> b.yaml -> a.yaml");
  write_chain("./c.yaml", kRest);
  EXPECT_EQ(error(), "c.yaml:4:10: 'include': a circle: c.yaml -> c.yaml");
}

TEST_F(Includes, have_limits_of_depth_number_and_size) {
  for (std::size_t i = 0; i < kMaxIncludeDepth; ++i) {
    write(concat("d", i, ".yaml"), concat("include: d", i + 1, ".yaml\n"));
  }
  write(concat("d", kMaxIncludeDepth, ".yaml"), "{}\n");
  write_chain("d0.yaml", kRest);
  EXPECT_THAT(error(), AllOf(StartsWith("d7.yaml:1:10: 'include': more than 8 files include one another: c.yaml -> d0"),
                             EndsWith("d7.yaml -> d8.yaml")));
  std::string many;
  for (std::size_t i = 0; i <= kMaxIncludedFiles; ++i) {
    many += concat(i == 0 ? "[" : ", ", "e.yaml");
  }
  write("e.yaml", "{}\n");
  write_chain(many + "]", kRest);
  EXPECT_THAT(error(), HasSubstr("'include': a chain includes at most 32 files"));
  const nf::YamlScope scope({.bytes = 1000});
  write("e.yaml", concat("# ", std::string(600, 'x'), "\n{}\n"));
  write_chain("[e.yaml, e.yaml]", kRest);
  EXPECT_THAT(error(),
              StartsWith("c.yaml:4:19: 'include': with e.yaml the files of the chain have more than 1000 bytes"));
}

TEST_F(Includes, share_the_limit_of_keys_and_values) {
  std::string values = "vars: {";
  for (int i = 0; i < 30; ++i) {
    values += concat("A", i, ": 1, ");
  }
  write("e.yaml", values + "}\n");
  write_chain("[e.yaml, e.yaml, e.yaml]", kRest);
  const nf::YamlScope scope({.nodes = 150});
  EXPECT_THAT(error(), AllOf(StartsWith("e.yaml:1:"), HasSubstr("more than 150 values and keys")));
}

TEST_F(Includes, are_regular_files_that_can_be_read) {
  write_chain("missing.yaml", kRest);
  EXPECT_THAT(error(), AllOf(StartsWith("c.yaml:4:10: 'include': "), HasSubstr("missing.yaml")));
  ASSERT_EQ(::mkfifo(folder_.path("fifo.yaml").c_str(), 0600), 0);
  for (const char* wrong : {"fifo.yaml", "/dev/zero", "."}) {
    write_chain(wrong, kRest);
    EXPECT_THAT(error(), StartsWith("c.yaml:4:10: 'include': ")) << wrong;
  }
}

TEST_F(Includes, of_a_wrong_form_are_errors) {
  for (const char* wrong : {"{a: b}", "[[a.yaml]]", "''", "[a.yaml, {b: c}]", "~"}) {
    write("a.yaml", "{}\n");
    write_chain(wrong, kRest);
    EXPECT_THAT(error(), HasSubstr("'include' must be the name of a file, or a list of such")) << wrong;
  }
  write_chain("'${SITE}.yaml'", kRest);
  EXPECT_THAT(error({{"SITE", "a"}}), HasSubstr("c.yaml:4:10: 'include' takes no variables"));
  write("c.yaml", "\"\\x69nclude\": a.yaml\n");
  EXPECT_THAT(error(), HasSubstr("c.yaml:1:15: 'include' has an escape; write it as a plain word"));
}

TEST_F(Includes, are_not_overwritten_by_the_run) {
  write("common.yaml", "spec: {outputs: {record: common.yaml}}\n");
  write_chain("common.yaml", "spec: {rx: {generator: {}}, tx: null, nfs: []}\n");
  const Result<ChainConfig> chain = load();
  ASSERT_TRUE(chain.ok()) << chain.status();
  RunOptions options;
  options.record_path = chain->run.outputs.record.path;
  EXPECT_THAT(std::string(check_files(named_files(*chain, options, {})).message()),
              HasSubstr("would be overwritten: 'include' reads the same file"));
}

}  // namespace
}  // namespace catena::chain
