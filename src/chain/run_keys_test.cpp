// SPDX-License-Identifier: Apache-2.0
#include "chain/run_keys.hpp"

#include "chain/chain_file.hpp"
#include "chain/change.hpp"
#include "chain/named_files.hpp"
#include "chain/run_options.hpp"
#include "chain/workers.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::chain {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// `keys`: lines of `spec`, from line 7 on.
Result<ChainConfig> chain_with(std::string const& keys) {
  return parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {}}\n"
                            "  tx: null\n",
                            keys, "  nfs: []\n"),
                     "/etc/chains/c.yaml");
}

std::string error_of(std::string const& keys) { return std::string(chain_with(keys).status().message()); }

std::string one_core() { return std::to_string(usable_cores().front()); }

TEST(RunKeys, have_defaults) {
  const Result<ChainConfig> chain = chain_with("");
  ASSERT_TRUE(chain.ok()) << chain.status();
  RunConfig const& run = chain->run;
  EXPECT_EQ(run.outputs.record.path + run.outputs.eve.path + run.outputs.trace.path, "");
  EXPECT_EQ(run.transfers.mode, plan::Mode::kAdaptive);
  EXPECT_TRUE(run.transfers.pushdown);
  EXPECT_EQ(run.transfers.methods, plan::kAllMethods);
  EXPECT_EQ(run.transfers.profile.path, "");
  EXPECT_FALSE(run.sharing.mode);
  EXPECT_EQ(run.device_servers, "none");
  EXPECT_EQ(run.workers, 0U);
  EXPECT_THAT(run.cores, IsEmpty());
}

TEST(RunKeys, are_read_with_the_positions_of_files) {
  const Result<ChainConfig> chain =
      chain_with(concat("  outputs: {record: r.jsonl, eve: /var/eve.json, trace: '-'}\n"
                        "  transfers: {mode: shared, pushdown: off, methods: [strided, gather]}\n"
                        "  sharing: {mode: fair, parts: blocks, compute_units: 12}\n"
                        "  workers: 3\n  cores: [",
                        one_core(), "]\n"));
  ASSERT_TRUE(chain.ok()) << chain.status();
  RunConfig const& run = chain->run;
  EXPECT_EQ(run.outputs.record.path, "/etc/chains/r.jsonl") << "relative to the file";
  EXPECT_EQ(run.outputs.record.position, "/etc/chains/c.yaml:7:21");
  EXPECT_EQ(run.outputs.eve.path, "/var/eve.json");
  EXPECT_EQ(run.outputs.trace.path, "-") << "standard output";
  EXPECT_EQ(run.transfers.mode, plan::Mode::kShared);
  EXPECT_FALSE(run.transfers.pushdown);
  EXPECT_EQ(run.transfers.methods,
            plan::method_bit(TransferMethod::kStrided) | plan::method_bit(TransferMethod::kGather));
  EXPECT_EQ(run.sharing.mode, share::Mode::kFair);
  EXPECT_EQ(run.sharing.parts, share::Parts::kBlocks);
  EXPECT_EQ(run.sharing.compute_units, 12U);
  EXPECT_EQ(run.workers, 3U);
  EXPECT_THAT(run.cores, ElementsAre(usable_cores().front()));
}

TEST(RunKeys, that_are_wrong_are_refused_at_their_place) {
  struct Case {
    std::string keys;
    std::string says;
  };
  for (Case const& test : {
           Case{"  outputs: {rekord: a}\n", "c.yaml:7:13: unknown key 'rekord'; did you mean 'record'?"},
           {"  outputs: a.jsonl\n", "c.yaml:7:12: 'outputs' must be a mapping"},
           {"  outputs: {record: []}\n", "c.yaml:7:21: 'record' must be text"},
           {"  transfers: {mode: always}\n", "c.yaml:7:21: 'mode' is 'always'; allowed: adaptive, shared, copy"},
           {"  transfers: {pushdown: maybe}\n", "c.yaml:7:25: 'pushdown' is 'maybe'; allowed: on, off"},
           {"  transfers: {methods: dma}\n", "c.yaml:7:24: 'methods' has 'dma'; allowed: staged, strided, gather"},
           {"  transfers: {profile: none.json}\n", "c.yaml:7:24: 'profile': no such file: /etc/chains/none.json"},
           {"  sharing: {mode: alone}\n", "c.yaml:7:19: 'mode' is 'alone'; allowed: scheduled, fair"},
           {"  sharing: {mode: fair, compute_units: 0}\n", "c.yaml:7:40: 'compute_units' is '0'; allowed: a whole"},
           {"  workers: 257\n", "c.yaml:7:12: 'workers' is '257'; allowed: a whole number from 1 to 256, or auto"},
           {"  cores: 0-\n", "c.yaml:7:10: 'cores' is '0-': '0-' is no core and no range"},
           {"  record: a.jsonl\n", "c.yaml:7:3: unknown key 'record'; write outputs: {record: FILE}"},
           {"  new_keys: true\n", "unknown key 'new_keys'; it is an option, for one start: --new-keys SPI"},
       }) {
    EXPECT_THAT(error_of(test.keys), HasSubstr(test.says)) << test.keys;
  }
}

TEST(RunKeys, are_the_options_of_a_run) {
  Result<ChainConfig> chain = chain_with(
      concat("  outputs: {record: r, eve: e, trace: t}\n  transfers: {mode: copy, pushdown: off, methods: staged}\n"
             "  sharing: {mode: fair, parts: blocks, compute_units: 12}\n  workers: 2\n  cores: ",
             one_core(), "\n"));
  ASSERT_TRUE(chain.ok()) << chain.status();
  const Result<RunOptions> options = run_options_of(*chain);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->record_path, "/etc/chains/r");
  EXPECT_EQ(options->eve_path, "/etc/chains/e");
  EXPECT_EQ(options->trace_path, "/etc/chains/t");
  EXPECT_EQ(options->sync.mode, plan::Mode::kCopy);
  EXPECT_FALSE(options->sync.pushdown);
  EXPECT_EQ(options->sync.methods, plan::method_bit(TransferMethod::kStaged));
  ASSERT_TRUE(options->sharing);
  EXPECT_EQ(options->sharing->mode, share::Mode::kFair);
  EXPECT_EQ(options->sharing->parts, share::Parts::kBlocks);
  EXPECT_EQ(options->sharing->compute_units, 12U);
  EXPECT_EQ(options->workers, 2U);
  EXPECT_THAT(options->cores, ElementsAre(usable_cores().front()));
  std::vector<std::string> written;
  for (NamedFile const& file : named_files(*chain, *options, {})) {
    if (file.is_written) {
      written.push_back(concat(file.position, " ", file.who, " ", file.path));
    }
  }
  EXPECT_THAT(written, ElementsAre("/etc/chains/c.yaml:7:21 'record' /etc/chains/r",
                                   "/etc/chains/c.yaml:7:29 'eve' /etc/chains/e",
                                   "/etc/chains/c.yaml:7:39 'trace' /etc/chains/t"));
}

TEST(RunKeys, parts_of_a_device_need_a_way_to_share_it) {
  for (const char* keys : {"  sharing: {parts: blocks}\n", "  sharing: {compute_units: 4}\n"}) {
    Result<ChainConfig> chain = chain_with(keys);
    ASSERT_TRUE(chain.ok()) << chain.status();
    EXPECT_THAT(std::string(run_options_of(*chain).status().message()),
                AllOf(ContainsRegex(":[0-9]+:12: 'parts' and"), HasSubstr("take its 'mode'")));
  }
}

TEST(RunKeys, sharing_is_of_one_device) {
  Result<ChainConfig> chain = chain_with("  device: [\"cuda:0\", \"cuda:1\"]\n  shards: 2\n  sharing: {mode: fair}\n");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(std::string(run_options_of(*chain).status().message()),
              ContainsRegex(":[0-9]+:12: 'sharing' is for the NFs of one device, and the chain has 2"));
}

TEST(RunKeys, a_running_chain_keeps_its_outputs_and_its_part_of_the_device) {
  const ChainConfig now = *chain_with("  outputs: {eve: e}\n  sharing: {mode: fair}\n");
  const auto says = [&now](std::string const& keys) {
    return std::string(has_same_ends(now, *chain_with(keys)).message());
  };
  EXPECT_EQ(says("  workers: 2\n  sharing: {mode: fair}\n  outputs: {eve: e}\n"), "");
  EXPECT_THAT(says("  outputs: {eve: f}\n  sharing: {mode: fair}\n"), HasSubstr("'outputs' of 'spec' has changed"));
  EXPECT_THAT(says("  outputs: {eve: e}\n"), HasSubstr("'sharing' of 'spec' has changed"));
}

}  // namespace
}  // namespace catena::chain
