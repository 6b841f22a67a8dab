// SPDX-License-Identifier: Apache-2.0
#include "chain/option_keys.hpp"

#include "chain/chain_file.hpp"
#include "chain/change.hpp"
#include "chain/named_files.hpp"
#include "chain/port_kind.hpp"
#include "chain/run_options.hpp"
#include "chain/workers.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace catena::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// `keys`: lines of `spec`.
Result<ChainConfig> chain_with(std::string const& keys, GivenOptions const& options) {
  return parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {}}\n"
                            "  tx: null\n",
                            keys, "  nfs: []\n"),
                     "/etc/chains/c.yaml", options);
}

std::string core() { return std::to_string(usable_cores().front()); }

/// A value of each option that is not the default, and the same as keys.
const GivenOptions kEachOption{{"rx", "dpdk:net_null0"},
                               {"tx", "pcap:/out.pcap"},
                               {"device", "cuda:0,cuda:1"},
                               {"record", "/r"},
                               {"eve", "/e"},
                               {"trace", "/t"},
                               {"sync", "shared"},
                               {"pushdown", "off"},
                               {"methods", "strided,gather"},
                               {"profile", "/dev/null"},
                               {"share", "fair"},
                               {"parts", "blocks"},
                               {"compute_units", "12"},
                               {"device_servers", "process"},
                               {"workers", "3"},
                               {"cores", core()}};

std::string all_as_keys() {
  return concat(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {dpdk: net_null0}\n"
      "  tx: {pcap: /out.pcap}\n  device: [cuda:0, cuda:1]\n  outputs: {record: /r, eve: /e, trace: /t}\n"
      "  transfers: {mode: shared, pushdown: off, methods: [strided, gather], profile: /dev/null}\n"
      "  sharing: {mode: fair, parts: blocks, compute_units: 12}\n  device_servers: process\n  workers: 3\n"
      "  cores: ",
      core(), "\n  nfs: []\n");
}

TEST(OptionKeys, each_is_in_the_tables_once) {
  std::set<std::string_view> keys;
  for (OptionKey const& option : option_keys()) {
    EXPECT_TRUE(keys.insert(option.key).second) << option.key;
    EXPECT_TRUE(option.key.ends_with(key_of(option).name)) << option.key;
    EXPECT_FALSE(key_of(option).help.empty()) << option.key;
    EXPECT_EQ(find_option(option.name), &option);
    EXPECT_TRUE(kEachOption.contains(option.name)) << "it has no part in these tests: " << option.name;
  }
  EXPECT_EQ(keys.size(), kEachOption.size());
  EXPECT_EQ(find_option("new_keys"), nullptr);
  EXPECT_EQ(flag_of("compute_units"), "--compute-units");
}

TEST(OptionKeys, over_a_file_are_the_keys_in_it) {
  const Result<ChainConfig> by_options = chain_with("", kEachOption);
  const Result<ChainConfig> by_keys = parse_chain(all_as_keys(), "/etc/chains/c.yaml");
  ASSERT_TRUE(by_options.ok()) << by_options.status();
  ASSERT_TRUE(by_keys.ok()) << by_keys.status();
  EXPECT_EQ(by_options->rx.devices, by_keys->rx.devices);
  EXPECT_EQ(by_options->tx.target, by_keys->tx.target);
  EXPECT_EQ(by_options->devices, by_keys->devices);
  EXPECT_EQ(by_options->shards, by_keys->shards) << "as rx is a port";
  RunConfig const& a = by_options->run;
  RunConfig const& b = by_keys->run;
  const std::vector<std::pair<FileName, FileName>> files{{a.outputs.record, b.outputs.record},
                                                         {a.outputs.eve, b.outputs.eve},
                                                         {a.outputs.trace, b.outputs.trace},
                                                         {a.transfers.profile, b.transfers.profile}};
  for (auto const& [one, other] : files) {
    EXPECT_EQ(one.path, other.path);
    EXPECT_FALSE(one.path.empty());
    EXPECT_THAT(one.position, StartsWith("--"));
  }
  EXPECT_EQ(a.transfers.mode, b.transfers.mode);
  EXPECT_EQ(a.transfers.pushdown, b.transfers.pushdown);
  EXPECT_EQ(a.transfers.methods, b.transfers.methods);
  EXPECT_EQ(a.sharing.mode, b.sharing.mode);
  EXPECT_EQ(a.sharing.parts, b.sharing.parts);
  EXPECT_EQ(a.sharing.compute_units, b.sharing.compute_units);
  EXPECT_EQ(a.device_servers, b.device_servers);
  EXPECT_EQ(a.workers, b.workers);
  EXPECT_EQ(a.cores, b.cores);
  // and a running chain cannot tell them apart
  EXPECT_TRUE(is_same_spec(*by_options, *by_keys));
  EXPECT_TRUE(has_same_ends(*by_options, *by_keys).ok());
}

TEST(OptionKeys, leave_the_other_keys_of_a_section_as_the_file_has_them) {
  const Result<ChainConfig> chain = chain_with(
      "  sharing: {mode: fair, compute_units: 12}\n  transfers: {mode: copy, pushdown: off}\n"
      "  outputs: {eve: e}\n",
      {{"parts", "blocks"}, {"methods", "staged"}, {"record", "r"}});
  ASSERT_TRUE(chain.ok()) << chain.status();
  RunConfig const& run = chain->run;
  EXPECT_EQ(run.sharing.mode, share::Mode::kFair);
  EXPECT_EQ(run.sharing.parts, share::Parts::kBlocks);
  EXPECT_EQ(run.sharing.compute_units, 12U);
  EXPECT_EQ(run.transfers.mode, plan::Mode::kCopy);
  EXPECT_FALSE(run.transfers.pushdown);
  EXPECT_EQ(run.transfers.methods, plan::method_bit(TransferMethod::kStaged));
  EXPECT_EQ(run.outputs.eve.path, "/etc/chains/e");
  EXPECT_EQ(run.outputs.record.path, "r") << "relative to the working folder";
}

TEST(OptionKeys, replace_a_key_of_the_file_and_a_default_takes_it_back) {
  const Result<ChainConfig> chain =
      chain_with("  workers: 3\n  sharing: {mode: fair, compute_units: 12}\n  transfers: {pushdown: off}\n",
                 {{"workers", "auto"}, {"compute_units", "all"}, {"pushdown", "on"}, {"rx", "generator"}});
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->run.workers, 0U);
  EXPECT_EQ(chain->run.sharing.compute_units, 0U);
  EXPECT_TRUE(chain->run.transfers.pushdown);
}

TEST(OptionKeys, errors_name_the_option) {
  struct Case {
    const char* option;
    const char* text;
    const char* says;
  };
  for (Case const& test : {
           Case{"rx", "file:a", "--rx 'file:a'; allowed: pcap:FILE"},
           {"tx", "generator", "--tx 'generator'; allowed: pcap:FILE"},
           {"device", "gpu", "--device: 'device' is 'gpu'; allowed: auto, cuda"},
           {"device", "cuda,cuda", "--device: 'device' lists 'cuda' twice"},
           {"sync", "always", "--sync: 'mode' is 'always'; allowed: adaptive, shared, copy"},
           {"pushdown", "1", "--pushdown: 'pushdown' is '1'; allowed: on, off"},
           {"methods", "staged,dma", "--methods: 'methods' has 'dma'; allowed: staged, strided, gather"},
           {"profile", "no.json", "--profile: 'profile': no such file: no.json"},
           {"share", "mps", "--share: 'mode' is 'mps'; allowed: scheduled"},
           {"parts", "red", "--parts: 'parts' is 'red'; allowed: green, blocks, none"},
           {"compute_units", "65537", "--compute-units: 'compute_units' is '65537'; allowed: a whole number from 1"},
           {"device_servers", "all",
            "--device-servers: 'device_servers' is 'all'; allowed: none, device, tenant, process"},
           {"workers", "0", "--workers: 'workers' is '0'; allowed: a whole number from 1 to 256, or auto"},
           {"cores", "0-", "--cores: 'cores' is '0-': '0-' is no core and no range"},
       }) {
    const Result<ChainConfig> chain = chain_with("", {{test.option, test.text}});
    EXPECT_EQ(chain.status().code(), absl::StatusCode::kInvalidArgument) << test.text;
    EXPECT_THAT(std::string(chain.status().message()), StartsWith(test.says));
  }
  const Result<ChainConfig> chain = chain_with("  workers: 257\n", {{"sync", "a"}});
  EXPECT_THAT(std::string(chain.status().message()), StartsWith("/etc/chains/c.yaml:7:12: 'workers'"));
  const Result<ChainConfig> both = chain_with("", {{"sync", "a"}, {"workers", "b"}});
  EXPECT_THAT(std::string(both.status().message()), HasSubstr("\n--workers: 'workers' is 'b'"));
}

TEST(OptionKeys, files_of_options_are_known_by_the_option) {
  Result<ChainConfig> chain = chain_with("  outputs: {eve: e}\n", {{"record", "r"}, {"tx", "pcap:out.pcap"}});
  ASSERT_TRUE(chain.ok()) << chain.status();
  const Result<RunOptions> options = run_options_of(*chain);
  ASSERT_TRUE(options.ok()) << options.status();
  std::vector<std::string> written;
  for (NamedFile const& file : named_files(*chain, *options, {})) {
    if (file.is_written) {
      written.push_back(concat(file.position, " ", file.who, " ", file.path));
    }
  }
  EXPECT_THAT(written, ElementsAre(" --tx out.pcap", " --record r", "/etc/chains/c.yaml:7:18 'eve' /etc/chains/e"));
  const auto file_in = [](std::string_view name, std::string_view text) { return file_of(*find_option(name), text); };
  EXPECT_EQ(file_in("rx", "pcap:a"), "a");
  EXPECT_EQ(file_in("rx", "dpdk:a"), std::nullopt);
  EXPECT_EQ(file_in("profile", "a"), "a");
  EXPECT_EQ(file_in("device", "cuda"), std::nullopt);
}

TEST(OptionKeys, a_change_of_an_option_is_a_change_of_its_key) {
  const auto changed = [](GivenOptions const& now, GivenOptions const& next) {
    const char* keys = "  outputs: {eve: e}\n";
    return changed_keys(*chain_with(keys, now), *chain_with(keys, next));
  };
  EXPECT_THAT(changed({{"workers", "2"}}, {{"workers", "2"}}), IsEmpty());
  EXPECT_THAT(changed({}, {{"workers", "2"}}), ElementsAre("'workers'"));
  EXPECT_THAT(changed({{"rx", "generator"}}, {{"rx", "dev:eth0"}}), ElementsAre("'rx'"));
  EXPECT_THAT(changed({}, {{"record", "r"}}), ElementsAre("'outputs'"));
  EXPECT_THAT(changed({}, {{"eve", "e"}}), IsEmpty());
}

}  // namespace
}  // namespace catena::chain
