// SPDX-License-Identifier: Apache-2.0
#include "chain/chain_file.hpp"

#include "chain/port_kind.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace catena::chain {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kGood[] = R"(apiVersion: catena/v1
kind: Chain
metadata: {name: office}
spec:
  rx: {generator: {packet: imix, flows: 10, rate: 1000, seed: 7, count: 99}}
  tx: {pcap: out.pcap}
  device: opencl
  on_unsupported: drop
  nfs:
    - {name: fw, type: firewall, on: gpu, config: {rules: fw.rules}}
    - name: rt
      type: router
      on_unsupported: pass
)";

TEST(ChainFile, reads_every_part) {
  const Result<ChainConfig> chain = parse_chain(kGood, "/somewhere/chain.yaml");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->name, "office");
  EXPECT_EQ(chain->rx.kind->name, "generator");
  EXPECT_EQ(chain->rx.as<io::GeneratorConfig>().packet_bytes, 0U);
  EXPECT_EQ(chain->rx.as<io::GeneratorConfig>().flows, 10U);
  EXPECT_EQ(chain->rx.as<io::GeneratorConfig>().packets_per_s, 1000U);
  EXPECT_EQ(chain->rx.as<io::GeneratorConfig>().seed, 7U);
  EXPECT_EQ(chain->rx.as<io::GeneratorConfig>().count, 99U);
  EXPECT_EQ(chain->tx.target, "/somewhere/out.pcap") << "relative to the chain file";
  EXPECT_THAT(chain->devices, ::testing::ElementsAre(device::DevicePreference::of("opencl")));
  ASSERT_EQ(chain->nfs.size(), 2U);
  EXPECT_EQ(chain->nfs[0].on, plan::Processor::kGpu);
  EXPECT_EQ(chain->nfs[0].on_unsupported, nf::OnUnsupported::kDrop) << "the chain's default";
  EXPECT_EQ(chain->nfs[1].on, plan::Processor::kCpu);
  EXPECT_EQ(chain->nfs[1].on_unsupported, nf::OnUnsupported::kPass);
}

TEST(ChainFile, on_auto_is_the_cpu_until_that_is_decided) {
  const Result<ChainConfig> chain = parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
      "  nfs:\n    - {name: a, type: firewall, on: auto}\n    - {name: b, type: firewall}\n",
      "c.yaml");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_TRUE(chain->nfs[0].is_auto);
  EXPECT_EQ(chain->nfs[0].on, plan::Processor::kCpu);
  EXPECT_FALSE(chain->nfs[1].is_auto) << "the default is cpu, as it was";
}

TEST(ChainFile, what_nfs_do_not_inspect_is_for_them_then_the_chain_then_their_type_to_decide) {
  const auto parse = [](std::string const& of_chain, std::string const& of_nf) {
    return parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {}}\n"
                              "  tx: null\n",
                              of_chain, "  nfs:\n    - {name: fw, type: firewall", of_nf, "}\n"),
                       "c.yaml");
  };
  const Result<ChainConfig> nobody = parse("", "");
  ASSERT_TRUE(nobody.ok()) << nobody.status();
  EXPECT_EQ(nobody->nfs[0].on_unsupported, std::nullopt) << "the type's";
  EXPECT_EQ(nobody->nfs[0].link_local, nf::LinkLocal::kPass);
  const Result<ChainConfig> chain = parse("  on_unsupported: pass\n  link_local: drop\n", "");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->nfs[0].on_unsupported, nf::OnUnsupported::kPass);
  EXPECT_EQ(chain->nfs[0].link_local, nf::LinkLocal::kDrop);
  const Result<ChainConfig> own =
      parse("  on_unsupported: pass\n  link_local: drop\n", ", on_unsupported: drop, link_local: pass");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->nfs[0].on_unsupported, nf::OnUnsupported::kDrop);
  EXPECT_EQ(own->nfs[0].link_local, nf::LinkLocal::kPass);
  EXPECT_THAT(std::string(parse("  link_local: maybe\n", "").status().message()),
              HasSubstr("c.yaml:7:15: 'link_local' is 'maybe'; allowed: pass, drop"));
  EXPECT_THAT(std::string(parse("", ", link_locl: drop").status().message()), HasSubstr("did you mean 'link_local'?"));
}

/// The two names change places until both were seen, whatever was looked at before.
TEST(ChainFile, is_not_waited_for_where_it_becomes_a_fifo) {
  const std::string folder = ::testing::TempDir() + "becomes-a-fifo";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/chain.yaml";
  const std::string fifo = folder + "/fifo";
  std::ofstream(file) << kGood;
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::atomic<bool> is_done = false;
  std::thread exchange([&] {
    while (!is_done) {
      ::renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, fifo.c_str(), RENAME_EXCHANGE);
    }
  });
  constexpr int kEach = 300;
  for (int read = 0, refused = 0; read < kEach || refused < kEach;) {
    const Result<nf::Config> config = nf::Config::load(file);
    EXPECT_TRUE(config.ok() || absl::IsInvalidArgument(config.status())) << config.status();
    read += config.ok() ? 1 : 0;
    refused += config.ok() ? 0 : 1;
  }
  is_done = true;
  exchange.join();
}

TEST(ChainFile, a_plugin_runs_in_a_process_of_its_own_and_needs_no_type) {
  const std::string folder = ::testing::TempDir() + "vendor";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/vendor.so") << "x";
  const auto parse = [&folder](std::string const& nf) {
    return parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: office}\nspec:\n",
                              "  rx: {generator: {}}\n  tx: null\n  nfs: [{name: dpi", nf, "}]\n"),
                       folder + "/c.yaml");
  };
  const Result<ChainConfig> plugin = parse(", plugin: vendor.so, on: gpu");
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  EXPECT_EQ(plugin->nfs[0].plugin, folder + "/vendor.so") << "from the chain file's folder";
  EXPECT_EQ(plugin->nfs[0].type, "");
  EXPECT_EQ(plugin->nfs[0].isolation, Isolation::kProcess);
  EXPECT_EQ(parse(", type: firewall")->nfs[0].isolation, Isolation::kOfRun);
  EXPECT_THAT(std::string(parse(", plugin: vendor.so, isolation: none").status().message()),
              HasSubstr("c.yaml:7:51: 'isolation' is none, and a plugin runs in a process of its own"));
  EXPECT_THAT(std::string(parse(", type: firewall, isolation: null").status().message()),
              HasSubstr("'isolation' is null; allowed: none, process, or a section with "));
  EXPECT_THAT(std::string(parse(", plugin: no.so").status().message()), HasSubstr("'plugin': no such file: "));
  EXPECT_THAT(std::string(parse("").status().message()), HasSubstr("missing key 'type'"));
}

/// A chain of NFs with these values of `isolation`, in lines 8 and following.
Result<ChainConfig> isolated_as(std::vector<std::string> const& values) {
  std::string text =
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: {generator: {}}\n  tx: null\n  nfs:\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += concat("    - {name: n", i, ", type: remark, isolation: ", values[i], "}\n");
  }
  return parse_chain(text, "c.yaml");
}

TEST(ChainFile, neighbours_of_one_group_have_one_process) {
  const Result<ChainConfig> chain =
      isolated_as({"process", "{group: dpi}", "{group: dpi}", "{group: other}", "none", "{cpus: 1}"});
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->nfs[1].isolation, Isolation::kProcess);
  EXPECT_EQ(chain->nfs[1].group, "dpi");
  std::vector<std::pair<std::size_t, std::size_t>> groups;
  for (std::size_t nf = 0; nf < chain->nfs.size(); ++nf) {
    const NfGroup group = group_of(*chain, nf);
    groups.emplace_back(group.first, group.end);
  }
  EXPECT_THAT(groups, ElementsAre(Pair(0, 1), Pair(1, 3), Pair(1, 3), Pair(3, 4), Pair(4, 5), Pair(5, 6)));
}

TEST(ChainFile, a_group_that_cannot_be_is_refused_and_told_what_to_write) {
  const auto error_of = [](std::vector<std::string> const& values) {
    return std::string(isolated_as(values).status().message());
  };
  EXPECT_THAT(error_of({"{group: dpi}", "process", "{group: dpi}"}),
              AllOf(HasSubstr("c.yaml:10:51: 'group' is dpi, as for NF 'n0', and 'n1' is between them"),
                    HasSubstr("move this one next to 'n0', or write another name")));
  EXPECT_THAT(
      error_of({"{group: dpi}", "{group: dpi, memory_mb: 100}"}),
      AllOf(HasSubstr("c.yaml:9:"), HasSubstr("'memory_mb' is 100"), HasSubstr("has 6144; write `memory_mb: 6144`")));
  EXPECT_THAT(error_of({"{group: dpi, cpus: 2}", "{group: dpi}"}),
              AllOf(HasSubstr("c.yaml:9:51: no 'cpus'"), HasSubstr("write `cpus: 2` at each NF of the group")));
  const std::string folder = ::testing::TempDir();
  EXPECT_THAT(error_of({"{group: dpi}", concat("{group: dpi, container: ", folder, "}")}),
              AllOf(HasSubstr("c.yaml:9:"), HasSubstr("'container' is")));
  EXPECT_THAT(error_of({concat("{group: dpi, container: ", folder, "}"), "{group: dpi}"}), HasSubstr("no 'container'"));
  EXPECT_THAT(error_of({"{group: a b}"}), HasSubstr("c.yaml:8:"));
  EXPECT_TRUE(isolated_as(std::vector<std::string>(kMaxGroupNfs, "{group: dpi}")).ok());
  EXPECT_THAT(error_of(std::vector<std::string>(kMaxGroupNfs + 1, "{group: dpi}")),
              HasSubstr("c.yaml:40:52: 'group' is dpi, as for 32 NFs"));
}

TEST(ChainFile, a_chain_is_of_a_tenant_with_its_name_unless_it_says_another) {
  const auto parse = [](std::string const& tenant) {
    return parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: office}\nspec:\n",
                              "  rx: {generator: {}}\n  tx: null\n", tenant, "  nfs: []\n"),
                       "c.yaml");
  };
  const Result<ChainConfig> unsaid = parse("");
  ASSERT_TRUE(unsaid.ok()) << unsaid.status();
  EXPECT_EQ(unsaid->tenant, "office");
  const Result<ChainConfig> said = parse("  tenant: red.team-1\n");
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->tenant, "red.team-1");
  for (const char* bad : {"  tenant: a b\n", "  tenant: ../x\n", "  tenant: ''\n", "  tenant: [a]\n"}) {
    const Result<ChainConfig> refused = parse(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("c.yaml:7:")) << bad;
  }
}

TEST(ChainFile, dev_is_short_for_packet_sockets_of_interfaces) {
  const auto devices_of = [](std::string const& rx) {
    const Result<ChainConfig> chain =
        parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n"
                           "  rx: {",
                           rx, "}\n  tx: {dev: wan}\n  nfs: []\n"),
                    "c.yaml");
    return chain.ok() ? chain->rx.devices : std::vector<std::string>{std::string(chain.status().message())};
  };
  EXPECT_THAT(devices_of("dev: eth0"), ::testing::ElementsAre("net_af_packet_eth0,iface=eth0"));
  EXPECT_THAT(devices_of("dev: [lan, wan.42]"),
              ::testing::ElementsAre("net_af_packet_lan,iface=lan", "net_af_packet_wan.42,iface=wan.42"));
  EXPECT_THAT(devices_of("dev: [lan, lan]"), ::testing::ElementsAre(HasSubstr("'dev' lists 'lan' twice")));
  EXPECT_THAT(devices_of("dev: 'a,qpairs=2'"), ::testing::ElementsAre(HasSubstr("c.yaml:5:13: 'dev' is 'a,qpairs=2'")));
  EXPECT_THAT(devices_of("dev: eth0, dpdk: net_null0"), ::testing::ElementsAre(HasSubstr("takes exactly one of")));
  EXPECT_EQ(parse_rx_option("dev:eth0")->devices, std::vector<std::string>{"net_af_packet_eth0,iface=eth0"});
  EXPECT_EQ(parse_tx_option("dev:eth0")->devices, std::vector<std::string>{"net_af_packet_eth0,iface=eth0"});
  EXPECT_FALSE(parse_rx_option("dev:").ok());
}

Result<ChainConfig> with_rx(std::string const& rx) {
  std::string text = kGood;
  const std::size_t at = text.find("{generator");
  return parse_chain(text.replace(at, text.find('\n', at) - at, rx), "c.yaml");
}

TEST(ChainFile, a_replay_takes_one_size_or_several) {
  const Result<ChainConfig> one = with_rx("{replay: {packet: 1514, flows: 10, rate: 1000, seed: 7, count: 99}}");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->rx.kind->name, "replay");
  EXPECT_THAT(one->rx.as<io::ReplayConfig>().packet_bytes, testing::ElementsAre(1514));
  EXPECT_EQ(one->rx.as<io::ReplayConfig>().flows, 10U);
  EXPECT_EQ(one->rx.as<io::ReplayConfig>().packets_per_s, 1000U);
  EXPECT_EQ(one->rx.as<io::ReplayConfig>().seed, 7U);
  EXPECT_EQ(one->rx.as<io::ReplayConfig>().count, 99U);
  const Result<ChainConfig> several = with_rx("{replay: {packet: [60, 60, 1792]}}");
  ASSERT_TRUE(several.ok()) << several.status();
  EXPECT_THAT(several->rx.as<io::ReplayConfig>().packet_bytes, testing::ElementsAre(60, 60, 1792));
  EXPECT_EQ(with_rx("{replay: {}}")->rx.as<io::ReplayConfig>().flows, 1024U);
}

struct BadReplay {
  const char* rx;
  const char* message;
};

TEST(ChainFile, an_impossible_replay_is_refused_with_its_position) {
  for (auto const& [rx, message] : std::vector<BadReplay>{
           {"{replay: {packet: 59}}", "c.yaml:5:25: 'packet' is '59'; allowed: a whole number from 60 to 1792"},
           {"{replay: {packet: [60, 1793]}}", "c.yaml:5:25: 'packet' is '1793'; allowed: a whole number from 60"},
           {"{replay: {packet: 060}}",
            "c.yaml:5:25: 'packet' is '060'; allowed: a whole number from 60 to 1792, or a list of such; write 60 "
            "without "
            "leading zeros"},
           {"{replay: {flows: 01000}}", "1 to 262144; write 1000 without leading zeros"},
           {"{replay: {rate: 01000}}", "'rate' is '01000'"},
           {"{replay: {packet: imix}}", "c.yaml:5:25: 'packet' is 'imix'"},
           {"{replay: {packet: 64k}}", "c.yaml:5:25: 'packet' is '64k'"},
           {"{replay: {packet: []}}", "c.yaml:5:25: 'packet' lists 0 numbers; allowed: 1 to 64"},
           {"{replay: {packet: {a: 1}}}", "c.yaml:5:25: 'packet' must be a list"},
           {"{replay: {flows: 0}}", "c.yaml:5:24: 'flows' is '0'; allowed: a whole number from 1 to 262144"},
           {"{replay: {packet: [60, 61], flows: 200000}}",
            "'flows' is '200000'; allowed: a whole number from 1 to 131072"},
           {"{replay: {rate: -1}}", "c.yaml:5:23: 'rate' is '-1'"},
           {"{replay: {loops: 2}}", "c.yaml:5:17: unknown key 'loops'"},
           {"{replay: {}, loops: 2}", "c.yaml:5:27: 'loops' goes with 'pcap' only"},
           {"{replay: {}, generator: {}}", "c.yaml:5:7: 'rx' takes exactly one of"}}) {
    EXPECT_THAT(std::string(with_rx(rx).status().message()), HasSubstr(message)) << rx;
  }
}

struct BadCase {
  const char* description;
  const char* find;
  const char* replace;
  const char* message;  ///< what the error must contain
};

class BadChainFile : public testing::TestWithParam<BadCase> {};

TEST_P(BadChainFile, is_refused_with_position_and_remedy) {
  std::string text = kGood;
  const std::size_t at = text.find(GetParam().find);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(GetParam().find).size(), GetParam().replace);
  const Result<ChainConfig> chain = parse_chain(text, "c.yaml");
  ASSERT_FALSE(chain.ok());
  EXPECT_THAT(std::string(chain.status().message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadChainFile,
    testing::Values(
        BadCase{"unknown_key", "  device: opencl", "  devise: opencl",
                "c.yaml:7:3: unknown key 'devise'; did you mean 'device'?"},
        BadCase{"unknown_key_of_an_nf", "on: gpu", "at: gpu", "c.yaml:10:34: unknown key 'at'"},
        BadCase{"value_not_allowed", "device: opencl", "device: opencll",
                "c.yaml:7:11: 'device' is 'opencll'; allowed: auto, cuda, opencl, none; did you mean 'opencl'?"},
        BadCase{"wrong_version", "catena/v1", "catena/v2",
                "c.yaml:1:13: 'apiVersion' is 'catena/v2'; allowed: catena/v1"},
        BadCase{"missing_key", "metadata: {name: office}", "metadata: {}", "c.yaml:3:11: missing key 'name'"},
        BadCase{"misspelt_required_key", "metadata: {name: office}", "metadata: {nmae: office}",
                "c.yaml:3:12: unknown key 'nmae'; did you mean 'name'? The key is required"},
        BadCase{"several_unknown_keys", "  device: opencl", "  devise: opencl\n  tunning: {}",
                "c.yaml:8:3: unknown key 'tunning'; did you mean 'tuning'?"},
        BadCase{"misspelt_rx_beside_tx", "  rx: {", "  rxx: {",
                "c.yaml:5:3: unknown key 'rxx'; did you mean 'rx'? The key is required"},
        BadCase{"number_out_of_range", "flows: 10", "flows: 0",
                "c.yaml:5:41: 'flows' is '0'; allowed: a whole number from 1 to 1048576"},
        BadCase{"two_sources", "rx: {", "rx: {dpdk: net_null0, ",
                "exactly one of pcap: FILE, dpdk: DEVICE, dev: INTERFACE, generator"},
        BadCase{"missing_capture", "generator: {packet: imix, flows: 10, rate: 1000, seed: 7, count: 99}",
                "pcap: not-there.pcap", "c.yaml:5:14: 'pcap': no such file: "},
        BadCase{"same_device_twice", "tx: {pcap: out.pcap}", "tx: {dpdk: [net_null0, net_null0]}",
                "'dpdk' lists 'net_null0' twice"},
        BadCase{"no_device", "tx: {pcap: out.pcap}", "tx: {dpdk: []}", "'dpdk' lists 0 of them; allowed: 1 to 32"},
        BadCase{"same_name_twice", "name: rt", "name: fw", "two NFs are named 'fw'"},
        BadCase{"name_with_quote", "name: rt", "name: 'r\"t'", "'name' is 'r\"t'; allowed: letters"},
        BadCase{"key_given_twice", "kind: Chain", "kind: Chain\nkind: Chain", "c.yaml:3:1: key 'kind' is given twice"},
        BadCase{"second_document", "kind: Chain", "---\nkind: Chain", "c.yaml:2:1: a second YAML document starts here"},
        BadCase{"not_yaml", "spec:", "spec: [", "not valid YAML"},
        BadCase{"capture_as_rx", "rx: {generator: {packet: imix, flows: 10, rate: 1000, seed: 7, count: 99}}",
                "rx: mixed.pcap", "c.yaml:5:7: 'rx' is 'mixed.pcap'; write {pcap: mixed.pcap}"},
        BadCase{"word_as_rx", "rx: {generator: {packet: imix, flows: 10, rate: 1000, seed: 7, count: 99}}",
                "rx: generator", "c.yaml:5:7: 'rx' is 'generator'; write {generator: {...}}"},
        BadCase{"no_rx", "rx: {generator: {packet: imix, flows: 10, rate: 1000, seed: 7, count: 99}}", "rx: null",
                "c.yaml:5:7: 'rx' is null; allowed: exactly one of pcap: FILE, dpdk: DEVICE"},
        BadCase{"none_as_tx", "tx: {pcap: out.pcap}", "tx: none", "c.yaml:6:7: 'tx' is 'none'; write null"},
        BadCase{"word_as_tx", "tx: {pcap: out.pcap}", "tx: eth0",
                "'tx' is 'eth0'; write one of {pcap: FILE}, {dpdk: DEVICE}, {dev: INTERFACE}, or null"},
        BadCase{"key_of_an_nf_outside_its_config", "on: gpu", "on: gpu, rules: fw.rules",
                "unknown key 'rules'; the NF's own keys are under `config:`; allowed: batch_size"},
        BadCase{"option_as_key", "device: opencl", "device: opencl\n  sync: copy",
                "c.yaml:8:3: unknown key 'sync'; write transfers: {mode: adaptive}; allowed: cores, device"},
        BadCase{"a_list_where_a_mapping_is_due", "metadata: {name: office}", "metadata: [office]",
                "'metadata' must be a mapping, found a list"}),
    [](auto const& test) { return test.param.description; });

TEST(ChainFile, everything_that_is_wrong_is_said_at_once) {
  std::string text = kGood;
  for (const auto& [right, wrong] :
       std::vector<std::pair<std::string, std::string>>{{"metadata: {name:", "metadata: {nmae:"},
                                                        {"flows: 10", "flows: ten"},
                                                        {"seed: 7", "sede: 7"},
                                                        {"device: opencl", "device: gpu"},
                                                        {"on: gpu", "on: gup"},
                                                        {"type: router", "tyqe: router"}}) {
    text.replace(text.find(right), right.size(), wrong);
  }
  EXPECT_EQ(std::string(parse_chain(text, "c.yaml").status().message()),
            "c.yaml:3:12: unknown key 'nmae'; did you mean 'name'? The key is required\n"
            "c.yaml:5:41: 'flows' is 'ten'; allowed: a whole number from 1 to 1048576\n"
            "c.yaml:5:58: unknown key 'sede'; did you mean 'seed'?; allowed: count, flows, packet, rate, seed\n"
            "c.yaml:7:11: 'device' is 'gpu'; allowed: auto, cuda, opencl, none\n"
            "c.yaml:10:38: 'on' is 'gup'; allowed: cpu, gpu, auto; did you mean 'gpu'?\n"
            "c.yaml:12:7: unknown key 'tyqe'; did you mean 'type'? The key is required");
}

TEST(ChainFile, what_is_wrong_beyond_single_keys_is_said_at_once_too) {
  std::string text = kGood;
  for (const auto& [right, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"{generator: {packet: imix, flows: 10, rate: 1000, seed: 7, count: 99}}", "{pcap: not-there.pcap}"},
           {"device: opencl", "tuning: {pool_slots: 5000}"},
           {"name: rt", "name: fw"}}) {
    text.replace(text.find(right), right.size(), wrong);
  }
  EXPECT_EQ(std::string(parse_chain(text, "c.yaml").status().message()),
            "c.yaml:5:14: 'pcap': no such file: not-there.pcap\n"
            "c.yaml:7:24: 'pool_slots' is 5000; allowed: a power of two from 2048 to 1048576\n"
            "c.yaml:11:13: two NFs are named 'fw'; names must differ");
}

TEST(ChainFile, deep_nesting_is_refused_before_it_is_parsed) {
  EXPECT_THAT(std::string(parse_chain(std::string(100'000, '['), "c.yaml").status().message()),
              HasSubstr("levels deep"));
  std::string dashes;
  for (int i = 0; i < 10'000; ++i) {
    dashes += "- ";
  }
  EXPECT_FALSE(parse_chain(dashes, "c.yaml").ok());
}

TEST(ChainFile, text_that_is_no_document_is_refused) {
  // yaml-cpp consumes nothing of it: whoever asks for document after document never ends
  EXPECT_THAT(std::string(parse_chain(",", "c.yaml").status().message()), HasSubstr("c.yaml:1:1: expected a mapping"));
  EXPECT_FALSE(parse_chain(std::string(kGood) + ",", "c.yaml").ok());
}

Result<ChainConfig> chain_with(std::string const& spec) {
  return parse_chain(
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: x}\nspec:\n  ", spec, "\n  nfs: []\n"), "c.yaml");
}

TEST(ChainFile, units_have_so_many_packets_or_what_catena_chooses) {
  const std::string ends = "rx: {generator: {}}\n  tx: null\n  tuning: ";
  EXPECT_EQ(chain_with(ends + "{}")->tuning.unit_packets, 256U);
  EXPECT_EQ(chain_with(ends + "{unit_packets: 64}")->tuning.unit_packets, 64U);
  const Tuning open = chain_with(ends + "{unit_packets: auto, units_per_launch: 1024}")->tuning;
  EXPECT_EQ(open.unit_packets, kAutoUnitPackets);
  EXPECT_EQ(unit_packets_of(open), 256U);
  EXPECT_EQ(unit_packets_of({.unit_packets = 64}), 64U);
  EXPECT_THAT(std::string(chain_with(ends + "{unit_packets: few}").status().message()),
              HasSubstr("c.yaml:7:26: 'unit_packets' is 'few'; allowed: a whole number from 4 to 1024, or auto"));
  EXPECT_FALSE(chain_with(ends + "{unit_packets: 0}").ok());
}

TEST(ChainFile, shards_are_one_or_so_many_or_for_catena_to_choose) {
  EXPECT_EQ(chain_with("rx: {generator: {}}\n  tx: null")->shards, 1U);
  EXPECT_EQ(chain_with("rx: {generator: {}}\n  tx: null\n  shards: 3")->shards, 3U);
  EXPECT_EQ(chain_with("rx: {generator: {}}\n  tx: null\n  shards: auto")->shards, kAutoShards);
  EXPECT_EQ(chain_with("rx: {dpdk: net_null0}\n  tx: null")->shards, kAutoShards) << "a port";
  EXPECT_EQ(chain_with("rx: {dpdk: net_null0}\n  tx: null\n  shards: 1")->shards, 1U);
  EXPECT_THAT(std::string(chain_with("rx: {generator: {}}\n  tx: null\n  shards: many").status().message()),
              HasSubstr("c.yaml:7:11: 'shards' is 'many'"));
  EXPECT_FALSE(chain_with("rx: {generator: {}}\n  tx: null\n  shards: 17").ok());
}

TEST(ChainFile, each_of_several_devices_has_a_shard) {
  const std::string two = "rx: {generator: {}}\n  tx: null\n  device: [opencl:1, opencl:0]\n  shards: ";
  EXPECT_THAT(chain_with(two + "2")->devices, ::testing::ElementsAre(device::DevicePreference::of("opencl", 1),
                                                                     device::DevicePreference::of("opencl")));
  EXPECT_TRUE(chain_with(two + "auto").ok());
  EXPECT_THAT(std::string(chain_with(two + "1").status().message()), HasSubstr("each of the 2 devices has one"));
  const auto message = [](std::string const& devices) {
    return std::string(chain_with("rx: {generator: {}}\n  tx: null\n  device: " + devices).status().message());
  };
  EXPECT_THAT(message("[auto, cuda]"), HasSubstr("c.yaml:7:"));
  EXPECT_THAT(message("[auto, cuda]"), HasSubstr("write each by its name"));
  EXPECT_THAT(message("[cuda, cuda]"), HasSubstr("twice"));
  EXPECT_THAT(message("gpu"), HasSubstr("allowed"));
}

TEST(ChainFile, tx_may_be_null) {
  std::string text = kGood;
  text.replace(text.find("tx: {pcap: out.pcap}"), 20, "tx: null");
  const Result<ChainConfig> chain = parse_chain(text, "c.yaml");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->tx.kind, &kNullPort);
}

TEST(ChainFile, dpdk_takes_one_device_or_several) {
  std::string text = kGood;
  text.replace(text.find("tx: {pcap: out.pcap}"), 20, "tx: {dpdk: [\"net_tap0,iface=a\", net_null1]}");
  const Result<ChainConfig> chain = parse_chain(text, "c.yaml");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(chain->tx.devices, testing::ElementsAre("net_tap0,iface=a", "net_null1"));
}

/// The chain with these ends, or what is wrong with them.
Result<ChainConfig> with_ends(std::string const& rx, std::string const& tx) {
  return parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: ", rx,
                            "\n  tx: ", tx, "\n  nfs: []\n"),
                     "c.yaml");
}

TEST(ChainFile, a_shared_port_says_what_the_chain_takes) {
  const Result<ChainConfig> chain = with_ends(
      "{dev: wan, shared: true, match: [{vlan: untagged, src: 10.1.0.0/16, protocol: udp, sport: 0x400-65535, "
      "dport: 0x35}, {vlan: 0xA, dst: 10.0.0.1, protocol: 6}]}",
      "{dev: [wan, lan], shared: true}");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_TRUE(chain->rx.is_shared);
  EXPECT_TRUE(chain->tx.is_shared);
  EXPECT_THAT(chain->rx.matches,
              testing::ElementsAre(
                  io::TrafficMatch{.vlan = io::kUntagged,
                                   .source = packet::Ipv4Prefix{0x0A010000, 16},
                                   .protocol = 17,
                                   .source_ports = io::PortRange{1024, 65535},
                                   .destination_ports = io::PortRange{53, 53}},
                  io::TrafficMatch{.vlan = 10, .destination = packet::Ipv4Prefix{0x0A000001, 32}, .protocol = 6}));
  EXPECT_TRUE(chain->tx.matches.empty());
}

TEST(ChainFile, without_a_match_a_chain_takes_what_is_left_of_a_shared_port) {
  const Result<ChainConfig> chain = with_ends("{dpdk: net_null0, shared: true}", "null");
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(chain->rx.matches, testing::ElementsAre(io::TrafficMatch{}));
  const Result<ChainConfig> own = with_ends("{dpdk: net_null0, shared: false}", "null");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_FALSE(own->rx.is_shared);
}

TEST(ChainFile, what_is_wrong_with_a_shared_port_is_said_at_its_place) {
  struct Wrong {
    const char* rx;
    const char* tx;
    const char* message;
  };
  for (Wrong const& wrong : {
           Wrong{"{dev: wan, match: [{vlan: 1}]}", "null",
                 "c.yaml:5:25: 'match' is for ports (`dev`, `dpdk`) shared with other chains; add `shared: true`"},
           Wrong{"{generator: {}, shared: true}", "null", "c.yaml:5:31: 'shared' goes with `dev` and `dpdk` only"},
           Wrong{"{dev: wan, shared: maybe}", "null", "c.yaml:5:26: 'shared' is 'maybe'; allowed: true, false"},
           Wrong{"{dev: wan, shared: null}", "null", "c.yaml:5:26: 'shared' is null; allowed: true, false"},
           Wrong{"{dev: wan, shared: true, match: [{vlan: null}]}", "null",
                 "'vlan' is null; allowed: a whole number from 1 to 4094, or untagged"},
           Wrong{"{dev: wan, shared: true, match: [{protocol: TCP}]}", "null",
                 "'protocol' is 'TCP'; allowed: a whole number from 0 to 255, or icmp, tcp, udp, esp; did you mean "
                 "'tcp'?"},
           Wrong{"{dev: wan, shared: true, match: [{protocol: sctp}]}", "null", "or icmp, tcp, udp, esp"},
           Wrong{"{dev: wan, shared: true, match: [{dport: 0x35-0x34}]}", "null", "'dport' is '0x35-0x34'"},
           Wrong{"{dev: wan, shared: true, match: []}", "null", "'match' is empty"},
           Wrong{"{dev: wan, shared: true, match: [{}]}", "null", "an entry of 'match' needs a condition"},
           Wrong{"{dev: wan, shared: true, match: [{vlan: 4095}]}", "null",
                 "'vlan' is '4095'; allowed: a whole number from 1 to 4094, or untagged"},
           Wrong{"{dev: wan, shared: true, match: [{src: 10.0.0.1/8}]}", "null",
                 "c.yaml:5:46: 'src' is '10.0.0.1/8', which has bits set after the prefix; write 10.0.0.0/8"},
           Wrong{"{dev: wan, shared: true, match: [{dst: somewhere}]}", "null",
                 "'dst' is 'somewhere'; write an IPv4 address or prefix"},
           Wrong{"{dev: wan, shared: true, match: [{dst: '10.1.0.0/16 10.2.0.0/16'}]}", "null",
                 "'dst' is '10.1.0.0/16 10.2.0.0/16'; write an IPv4 address or prefix"},
           Wrong{"{dev: wan, shared: true, match: [{dport: 80-10}]}", "null",
                 "'dport' is '80-10'; write a port, as 53, or a range"},
           Wrong{"{dev: wan, shared: true, match: [{dport: 65536}]}", "null", "'dport' is '65536'"},
           Wrong{"{dev: wan, shared: true, match: [{protocol: icmp, dport: 5}]}", "null",
                 "'protocol': only tcp and udp have ports"},
           Wrong{"{dev: wan, shared: true, match: [{port: 5}]}", "null", "unknown key 'port'"},
           Wrong{"{dev: wan, shared: true}", "{dev: wan}",
                 "is shared in rx and not in tx; write `shared: true` in both"},
       }) {
    const Result<ChainConfig> chain = with_ends(wrong.rx, wrong.tx);
    ASSERT_FALSE(chain.ok()) << wrong.rx;
    EXPECT_THAT(std::string(chain.status().message()), HasSubstr(wrong.message));
  }
}

TEST(PortOptions, say_what_is_allowed) {
  EXPECT_EQ(parse_rx_option("pcap:a.pcap")->target, "a.pcap");
  EXPECT_THAT(parse_tx_option("dpdk:net_tap0,iface=t")->devices, testing::ElementsAre("net_tap0,iface=t"));
  EXPECT_EQ(parse_tx_option("null")->kind, &kNullPort);
  EXPECT_THAT(std::string(parse_rx_option("file:a").status().message()),
              HasSubstr("pcap:FILE, dpdk:DEVICE, dev:INTERFACE, generator"));
  EXPECT_FALSE(parse_tx_option("generator").ok());
}

}  // namespace
}  // namespace catena::chain
