// SPDX-License-Identifier: Apache-2.0
#include "chain/cost_profile.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace catena::chain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const NfKey kRouter{"router", "0123456789abcdef"};
const NfKey kOtherRules{"router", "0123456789abcde0"};

/// Of which every figure is another number.
MeasuredNf measured(NfKey const& nf, std::uint32_t packet_bytes, double first = 1.5) {
  MeasuredNf result{nf, packet_bytes, "2026-11-21T18:30:10Z", {}, 0.25, 0.75};
  result.cost.kernel = {first, first + 1};
  result.cost.transfer = {first + 2, first + 3};
  result.cost.overhead_ns = first + 4;
  result.cost.max_packets_per_sm = 2048;
  result.cost.cpu_ns_per_packet = first + 5;
  return result;
}

MeasuredOnCpu measured_on_cpu(NfKey const& nf, std::uint32_t packet_bytes, double ns) {
  return {nf, packet_bytes, "2026-11-21T18:30:10Z", ns, 12.5};
}

device::DeviceInfo some_device() {
  device::DeviceInfo info;
  info.backend = "cuda";
  info.name = "Some GPU";
  info.driver = "1";
  return info;
}

CostProfile profile_with(std::vector<MeasuredNf> nfs) {
  CostProfile profile = CostProfile::of(some_device(), plan::CostModel::h200());
  profile.nfs = std::move(nfs);
  return profile;
}

TEST(NfCosts, of_a_profile_are_what_was_saved) {
  const auto loaded = parse_profile(to_json(profile_with({measured(kRouter, 64), measured(kOtherRules, 64, 9)})), "t");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->nfs.size(), 2U);
  EXPECT_EQ(loaded->nfs[0].measured, "2026-11-21T18:30:10Z");
  EXPECT_EQ(loaded->nfs[0].kernel_r_squared, 0.25);
  EXPECT_EQ(loaded->nfs[0].transfer_r_squared, 0.75);
  const auto cost = loaded->find(kRouter, 64);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->kernel.intercept, 1.5);
  EXPECT_EQ(cost->kernel.slope, 2.5);
  EXPECT_EQ(cost->transfer.intercept, 3.5);
  EXPECT_EQ(cost->transfer.slope, 4.5);
  EXPECT_EQ(cost->overhead_ns, 5.5);
  EXPECT_EQ(cost->max_packets_per_sm, 2048U);
  EXPECT_EQ(cost->cpu_ns_per_packet, 6.5);
  EXPECT_EQ(loaded->find(kOtherRules, 64)->kernel.intercept, 9);
}

TEST(NfCosts, are_those_of_the_next_larger_packets) {
  const CostProfile profile = profile_with({measured(kRouter, 512, 2), measured(kRouter, 64, 1)});
  EXPECT_EQ(profile.find(kRouter, 1)->kernel.intercept, 1);
  EXPECT_EQ(profile.find(kRouter, 64)->kernel.intercept, 1);
  EXPECT_EQ(profile.find(kRouter, 65)->kernel.intercept, 2);
  EXPECT_EQ(profile.find(kRouter, 512)->kernel.intercept, 2);
  EXPECT_FALSE(profile.find(kRouter, 513)) << "nothing is known of larger ones";
  EXPECT_FALSE(profile.find(kOtherRules, 64));
  EXPECT_FALSE(profile.find({"firewall", kRouter.configuration}, 64));
  EXPECT_FALSE(CostProfile::built_in().find(kRouter, 64));
}

TEST(NfCosts, of_a_profile_from_before_there_were_any_are_none) {
  Json json = Json::parse(to_json(profile_with({})));
  EXPECT_FALSE(json.contains("nfs"));
  const auto loaded = parse_profile(json.dump(), "t");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->nfs.empty());
}

TEST(NfCosts, on_the_cpu_are_kept_beside_those_of_the_device) {
  CostProfile profile = profile_with({measured(kRouter, 64)});
  keep(profile.nfs_on_cpu, measured_on_cpu(kRouter, 512, 99));
  keep(profile.nfs_on_cpu, measured_on_cpu(kRouter, 64, 70));
  keep(profile.nfs_on_cpu, measured_on_cpu(kRouter, 64, 80));
  keep(profile.nfs_on_cpu, measured_on_cpu(kOtherRules, 64, 5));
  const auto loaded = parse_profile(to_json(profile), "t");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->nfs_on_cpu.size(), 3U);
  EXPECT_EQ(loaded->nfs_on_cpu[1].spread_percent, 12.5);
  EXPECT_EQ(find(loaded->nfs_on_cpu, kRouter, 60)->ns_per_packet, 80) << "the last measurement";
  EXPECT_EQ(find(loaded->nfs_on_cpu, kRouter, 65)->ns_per_packet, 99);
  EXPECT_EQ(find(loaded->nfs_on_cpu, kOtherRules, 64)->ns_per_packet, 5);
  EXPECT_EQ(find(loaded->nfs_on_cpu, kRouter, 513), nullptr);
  EXPECT_EQ(loaded->find(kRouter, 64)->kernel.intercept, 1.5);
}

TEST(NfCosts, of_reshard_stages_and_ends_are_what_was_saved) {
  CostProfile profile = profile_with({measured(kRouter, 64), measured(kRouter, 512)});
  profile.nfs[0].host_alone_ns = 33;
  keep(profile.nfs_on_cpu, measured_on_cpu(kRouter, 64, 70));
  profile.nfs_on_cpu[0].after_gpu_ns = 44;
  keep(profile.ends, MeasuredEnds{64, "2026-11-21T18:30:10Z", 1, 2});
  keep(profile.ends, MeasuredEnds{512, "2026-11-21T18:30:10Z", 5, 6});
  keep(profile.ends, MeasuredEnds{64, "2026-11-21T18:30:10Z", 3, 4});
  const std::string text = to_json(profile);
  const auto loaded = parse_profile(text, "t");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->nfs[0].host_alone_ns, 33);
  EXPECT_EQ(loaded->nfs[1].host_alone_ns, 0) << "not measured";
  EXPECT_EQ(loaded->nfs_on_cpu[0].after_gpu_ns, 44);
  ASSERT_EQ(loaded->ends.size(), 2U);
  EXPECT_EQ(find(loaded->ends, 60)->rx_ns_per_packet, 3);
  EXPECT_EQ(find(loaded->ends, 60)->tx_ns_per_packet, 4);
  EXPECT_EQ(find(loaded->ends, 65)->rx_ns_per_packet, 5);
  EXPECT_EQ(find(loaded->ends, 513), nullptr);
  for (const char* key : {"packet_bytes", "measured", "rx_ns_per_packet", "tx_ns_per_packet"}) {
    Json json = Json::parse(text);
    json["ends"][0].erase(key);
    EXPECT_THAT(std::string(parse_profile(json.dump(), "t").status().message()), HasSubstr(concat("ends[0].", key)));
  }
}

TEST(NfCosts, of_a_profile_that_knows_no_cpu_are_as_before) {
  Json json = Json::parse(to_json(profile_with({measured(kRouter, 64)})));
  json["nfs"][0].erase("cpu_ns_per_packet");
  const auto loaded = parse_profile(json.dump(), "t");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->find(kRouter, 64)->kernel.intercept, 1.5);
  EXPECT_EQ(loaded->find(kRouter, 64)->cpu_ns_per_packet, 0);
  EXPECT_EQ(find(loaded->nfs_on_cpu, kRouter, 64), nullptr);
}

TEST(NfCosts, that_are_measured_again_take_the_place_of_the_old_ones) {
  std::vector<MeasuredNf> all{measured(kRouter, 64, 1), measured(kRouter, 512, 2), measured(kOtherRules, 64, 3)};
  keep(all, measured(kRouter, 64, 7));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(find(all, kRouter, 64)->cost.kernel.intercept, 7);
  EXPECT_EQ(find(all, kRouter, 512)->cost.kernel.intercept, 2);
  EXPECT_EQ(find(all, kOtherRules, 64)->cost.kernel.intercept, 3);
}

TEST(NfCosts, are_never_more_than_a_file_holds) {
  std::vector<MeasuredNf> all;
  for (std::uint32_t bytes = 1; bytes <= kMaxMeasuredNfs + 1; ++bytes) {
    keep(all, measured(kRouter, bytes, bytes));
  }
  EXPECT_EQ(all.size(), kMaxMeasuredNfs);
  EXPECT_EQ(find(all, kRouter, 1)->cost.kernel.intercept, 2) << "the oldest is gone";
  std::string name = (fs::temp_directory_path() / "catena-nfs-XXXXXX").string();
  const fs::path folder = ::mkdtemp(name.data());
  const fs::path file = folder / "p.json";
  ASSERT_TRUE(save_profile(profile_with(all), file).ok());
  const auto loaded = load_profile(file);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write)
      << "hashes of files that may hold keys";
  CostProfile on_cpu = profile_with({});
  on_cpu.nfs_on_cpu = {measured_on_cpu(kRouter, 64, 1)};
  ASSERT_TRUE(save_profile(on_cpu, file).ok());
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write) << "the same hashes";
  fs::remove_all(folder);
}

struct BadNf {
  const char* name;
  void (*spoil)(Json& nfs);
  const char* says;
  const char* list = "nfs";
};
class BadNfs : public ::testing::TestWithParam<BadNf> {};

TEST_P(BadNfs, are_refused_with_the_key_and_what_to_do) {
  CostProfile profile = profile_with({measured(kRouter, 64), measured(kRouter, 512)});
  profile.nfs_on_cpu = {measured_on_cpu(kRouter, 64, 1), measured_on_cpu(kRouter, 512, 2)};
  Json json = Json::parse(to_json(profile));
  ASSERT_TRUE(parse_profile(json.dump(), "a-file.json").ok());
  GetParam().spoil(json[GetParam().list]);
  const Status status = parse_profile(json.dump(), "a-file.json").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("a-file.json"), HasSubstr(GetParam().says), HasSubstr("`catena profile`")));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadNfs,
    ::testing::Values(
        BadNf{"no_list", [](Json& nfs) { nfs = 7; }, "'nfs'"}, BadNf{"null", [](Json& nfs) { nfs = nullptr; }, "'nfs'"},
        BadNf{"entry_is_a_number", [](Json& nfs) { nfs[1] = 7; }, "nfs[1]"},
        BadNf{"too_many", [](Json& nfs) { nfs = Json(kMaxMeasuredNfs + 1, nfs[0]); }, "'nfs'"},
        BadNf{"twice", [](Json& nfs) { nfs[1] = nfs[0]; }, "nfs[1]"},
        BadNf{"no_type", [](Json& nfs) { nfs[0].erase("type"); }, "nfs[0].type"},
        BadNf{"type_drives_the_terminal", [](Json& nfs) { nfs[0]["type"] = "a\x1b[2J"; }, "nfs[0].type"},
        BadNf{"short_hash", [](Json& nfs) { nfs[0]["configuration"] = "0123"; }, "nfs[0].configuration"},
        BadNf{"no_hash", [](Json& nfs) { nfs[0]["configuration"] = "0123456789abcdeX"; }, "nfs[0].configuration"},
        BadNf{"no_bytes", [](Json& nfs) { nfs[0]["packet_bytes"] = 0; }, "nfs[0].packet_bytes"},
        BadNf{"too_many_bytes", [](Json& nfs) { nfs[0]["packet_bytes"] = 100'000; }, "nfs[0].packet_bytes"},
        BadNf{"part_of_a_byte", [](Json& nfs) { nfs[0]["packet_bytes"] = 64.5; }, "nfs[0].packet_bytes"},
        BadNf{"no_time", [](Json& nfs) { nfs[0]["measured"] = "now"; }, "nfs[0].measured"},
        BadNf{"negative", [](Json& nfs) { nfs[1]["kernel"]["fixed_ns"] = -1; }, "nfs[1].kernel.fixed_ns"},
        BadNf{"null_slope", [](Json& nfs) { nfs[0]["transfer"]["per_packet_ns"] = nullptr; },
              "nfs[0].transfer.per_packet_ns"},
        BadNf{"more_than_all", [](Json& nfs) { nfs[0]["kernel"]["r_squared"] = 1.5; }, "nfs[0].kernel.r_squared"},
        BadNf{"no_kernel", [](Json& nfs) { nfs[0].erase("kernel"); }, "nfs[0].kernel"},
        BadNf{"overhead", [](Json& nfs) { nfs[0]["overhead_ns"] = 1e300; }, "nfs[0].overhead_ns"},
        BadNf{"cpu", [](Json& nfs) { nfs[0]["cpu_ns_per_packet"] = "few"; }, "nfs[0].cpu_ns_per_packet"},
        BadNf{"on_cpu_no_list", [](Json& nfs) { nfs = 7; }, "'nfs_on_cpu'", "nfs_on_cpu"},
        BadNf{"on_cpu_twice", [](Json& nfs) { nfs[1] = nfs[0]; }, "nfs_on_cpu[1]", "nfs_on_cpu"},
        BadNf{"on_cpu_negative", [](Json& nfs) { nfs[1]["ns_per_packet"] = -1; }, "nfs_on_cpu[1].ns_per_packet",
              "nfs_on_cpu"},
        BadNf{"on_cpu_no_spread", [](Json& nfs) { nfs[0].erase("spread_percent"); }, "nfs_on_cpu[0].spread_percent",
              "nfs_on_cpu"},
        BadNf{"no_packets", [](Json& nfs) { nfs[0]["max_packets_per_sm"] = 0; }, "nfs[0].max_packets_per_sm"}),
    [](::testing::TestParamInfo<BadNf> const& test) { return test.param.name; });

/// Entries of a chain file with a file of rules.
class NfKeys : public ::testing::Test {
 protected:
  NfKeys() {
    std::string name = (fs::temp_directory_path() / "catena-keys-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~NfKeys() override { fs::remove_all(folder_); }

  std::string hash(std::string const& config, std::string const& rules, std::string const& type = "firewall",
                   bool is_written = false) {
    std::ofstream(folder_ / "rules") << rules;
    auto parsed = nf::Config::parse(config, "chain.yaml");
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    const NfConfig entry{
        .name = "fw", .type = type, .on_unsupported = {}, .config = *std::move(parsed), .position = {}};
    const std::vector<nf::NamedFile> files{{"rules", folder_ / "rules", "chain.yaml:1:1", is_written}};
    const auto key = key_of(entry, files);
    EXPECT_TRUE(key.ok()) << key.status();
    EXPECT_EQ(key->type, type);
    EXPECT_EQ(key->configuration.size(), 16U);
    return key->configuration;
  }

  fs::path folder_;
};

TEST_F(NfKeys, are_the_same_however_a_configuration_is_written) {
  const std::string key = hash("{a: 1, b: [x, {y: z}]}", "rule");
  EXPECT_EQ(hash("b:\n  - x\n  - y: 'z'  # a comment\na: 1\n", "rule"), key);
}

TEST_F(NfKeys, are_the_same_of_an_nf_that_is_made_elsewhere) {
  std::ofstream(folder_ / "a.rules") << "first";
  std::ofstream(folder_ / "b.rules") << "second";
  std::ofstream(folder_ / "state") << "what it kept";
  auto config = nf::Config::parse("{state: state, more: [{rules: b.rules}], rules: a.rules, name: none}",
                                  (folder_ / "chain.yaml").string());
  ASSERT_TRUE(config.ok()) << config.status();
  const NfConfig entry{
      .name = "fw", .type = "firewall", .on_unsupported = {}, .config = *std::move(config), .position = {}};
  const nf::NamedFile state{"state", folder_ / "state", "chain.yaml:1:1", true};
  // in the order in which an NF might read them
  const std::vector<nf::NamedFile> made{
      {"rules", folder_ / "a.rules", "", false}, state, {"rules", folder_ / "b.rules", "", false}};
  const auto key = key_of(entry, made);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key_of_unmade(entry, std::span(&state, 1)).value(), *key);
  EXPECT_EQ(key_of_unmade(entry, made).value(), *key) << "who knows more knows it, too";
  EXPECT_NE(key_of_unmade(entry, {}).value(), *key) << "what is written would count";
}

/// What `key_of()` gave before files were read piece by piece: measured costs are kept under it.
TEST_F(NfKeys, are_those_under_which_costs_are_kept) {
  EXPECT_EQ(hash("{a: 1}", "rule"), "7d6aee320fa8fd6b");
  EXPECT_EQ(hash("{a: 1}", ""), "7c4a2b8bdc182a94");
  EXPECT_EQ(hash("{a: 1}", std::string(1'000'000, 'r')), "fc61d510e1db8e46");
}

TEST_F(NfKeys, are_those_of_files_whose_length_nobody_knows) {
  auto config = nf::Config::parse("{a: /proc/version}", "chain.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const NfConfig entry{
      .name = "fw", .type = "firewall", .on_unsupported = {}, .config = *std::move(config), .position = {}};
  EXPECT_EQ(key_of_unmade(entry, {}).value(), key_of_unmade(entry, {}).value());
}

TEST_F(NfKeys, have_files_up_to_a_length_in_all) {
  std::string text = "{a: [x";
  for (int i = 0; i < 9; ++i) {
    const std::string name = concat("file", i);
    std::ofstream(folder_ / name) << "";
    fs::resize_file(folder_ / name, kMaxHashedBytes / 8);
    text += ", " + name;
  }
  std::ofstream(folder_ / "sparse") << "";
  fs::resize_file(folder_ / "sparse", std::uintmax_t{1} << 40);
  for (std::string const& named : {text + "]}", std::string("{a: sparse}")}) {
    auto config = nf::Config::parse(named, (folder_ / "chain.yaml").string());
    ASSERT_TRUE(config.ok()) << config.status();
    const NfConfig entry{
        .name = "fw", .type = "firewall", .on_unsupported = {}, .config = *std::move(config), .position = {}};
    EXPECT_TRUE(absl::IsInvalidArgument(key_of_unmade(entry, {}).status()));
  }
}

TEST_F(NfKeys, differ_with_type_configuration_and_rules) {
  const std::string key = hash("{a: 1, b: [x, y]}", "rule");
  EXPECT_NE(hash("{a: 1, b: [x, y]}", "rule\n"), key);
  EXPECT_NE(hash("{a: 2, b: [x, y]}", "rule"), key);
  EXPECT_NE(hash("{a: 1, b: [xy]}", "rule"), key);
  EXPECT_NE(hash("{a: 1, b: [y, x]}", "rule"), key);
  EXPECT_NE(hash("{a: 1, b: {x: y}}", "rule"), key);
  EXPECT_NE(hash("{a: 1, b: [x, y], c: null}", "rule"), key);
  EXPECT_NE(hash("{a: 1, b: [x, y]}", "rule", "nids"), key);
}

TEST_F(NfKeys, have_nothing_of_files_that_are_written) {
  EXPECT_EQ(hash("{a: 1}", "one", "monitor", true), hash("{a: 1}", "two", "monitor", true));
}

TEST_F(NfKeys, come_to_an_end_where_aliases_do_not) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    std::string list;
    for (int k = 0; k < 10; ++k) {
      list += concat(k == 0 ? "" : ", ", "*a", i - 1);
    }
    text += concat("a", i, ": &a", i, " [", list, "]\n");
  }
  if (auto parsed = nf::Config::parse(text, "bomb.yaml"); parsed.ok()) {
    EXPECT_LT(parsed->canonical().size(), std::size_t{2} << 20);
  }
}

}  // namespace
}  // namespace catena::chain
