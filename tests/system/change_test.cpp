// SPDX-License-Identifier: Apache-2.0
// Chains whose files change while packets run: each packet is decided as a whole by one version of the files, in the
// order in which they came, and none is lost, whatever is wrong with a file.
#include "system/chain_runner.hpp"
#include "system/changes.hpp"

#include "pipeline/session.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace catena::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// A chain of two firewalls whose rules say which version they are: line number `version` matches all packets.
struct Place {
  std::string name;
  std::string of_first;   ///< keys of the firewalls' entries
  std::string of_second;  ///< the same
  std::string spec;       ///< further lines of `spec:`
  std::uint32_t workers = 1;
};

std::ostream& operator<<(std::ostream& out, Place const& place) { return out << place.name; }

std::string rules_of(int version) {
  std::string rules;
  for (int line = 0; line < version; ++line) {
    rules += fmt::format("deny tcp 192.0.2.{} any any 1\n", line % 256);  // nobody is there
  }
  return rules + "allow any any any any any\n";
}

class Change : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    if (kIsSanitized && has_processes()) {
      GTEST_SKIP() << "the memory that a sandbox allows is too little for a sanitizer";
    }
  }
  static bool has_processes() { return GetParam().name.starts_with("process"); }

  Result<chain::ChainConfig> load(std::string const& extra = {}) {
    Place const& place = GetParam();
    folder_.write("chain.yaml",
                  fmt::format("apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: changing}}\nspec:\n"
                              "  rx: {{replay: {{packet: 60, flows: 64, rate: {}}}}}\n  tx: null\n  device: {}\n"
                              "{}  nfs:\n"
                              "    - {{name: one, type: firewall, {}config: {{rules: one.rules, default: {}}}}}\n"
                              "    - {{name: two, type: firewall, {}config: {{rules: two.rules, default: deny}}}}\n{}",
                              kIsSanitized ? 4000 : 10000, device(), place.spec, place.of_first, default_,
                              place.of_second, extra));
    return chain::load_chain(folder_.path("chain.yaml"));
  }

  /// A GPU where there is one.
  static std::string device() {
    return nf::testing::devices().empty() ? "none" : nf::testing::devices().back()->info().backend;
  }

  void write_rules(int version) {
    folder_.write("one.rules", rules_of(version));
    folder_.write("two.rules", rules_of(version));
  }

  Result<std::unique_ptr<runtime::Session>> make() {
    CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config, load());
    runtime::RunOptions options;
    options.workers = GetParam().workers;
    options.record_path = folder_.path("records.jsonl");
    options.processes.program = nf_program();
    return runtime::Session::create(std::move(config), options, nf::builtin_nfs());
  }

  Result<std::vector<std::string>> change(runtime::Session& session) {
    CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config, load());
    return session.change(std::move(config), nf::builtin_nfs());
  }

  /// The versions that both NFs say they decided the packets by, in the order of the packets; a packet of which they do
  /// not say the same fails the test.
  std::vector<int> versions() {
    std::ifstream records(folder_.path("records.jsonl"));
    std::vector<int> all;
    std::vector<int> said;  // by how many NFs
    std::uint64_t mixed = 0;
    for (std::string line; std::getline(records, line);) {
      const auto record = nlohmann::json::parse(line);
      const auto packet = record["packet"].get<std::size_t>();
      if (packet >= all.size()) {
        all.resize(packet + 1, -1);
        said.resize(packet + 1);
      }
      mixed += said[packet] != 0 && all[packet] != record["rule"].get<int>() ? 1 : 0;
      all[packet] = record["rule"].get<int>();
      ++said[packet];
    }
    EXPECT_EQ(mixed, 0U) << "packets that two versions decided";
    EXPECT_TRUE(std::ranges::all_of(said, [](int nfs) { return nfs == 2; })) << "packets without a line";
    return all;
  }

  ScratchFolder folder_;
  std::string default_ = "deny";  ///< of the first firewall
};

void wait_for_packets(runtime::Session const& session, std::uint64_t more) {
  const std::uint64_t until = session.progress().received + more;
  for (const auto end = std::chrono::steady_clock::now() + 20s;
       session.progress().received < until && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(session.progress().received, until);
}

TEST_P(Change, each_packet_is_decided_by_one_version_and_none_is_lost) {
  write_rules(0);
  auto session = make();
  ASSERT_TRUE(session.ok()) << session.status();
  auto outcome = std::async(std::launch::async, [&] { return (*session)->run(); });
  wait_for_packets(**session, 1000);
  const int changes = changes_of_a_run(5);
  for (int version = 1; version <= changes; ++version) {
    write_rules(version);
    const auto changed = change(**session);
    EXPECT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(changed.ok() ? changed->size() : 0, 2U);
    wait_for_packets(**session, 200);
  }
  (*session)->stop();
  const Status ended = outcome.get();
  EXPECT_TRUE(ended.ok()) << ended;
  const runtime::Report report = (*session)->report();
  EXPECT_TRUE(report.accounted());
  EXPECT_EQ(report.dropped(), 0U);
  EXPECT_EQ(report.nfs.front().in, report.seen) << "counts go on";
  const std::vector<int> found = versions();
  EXPECT_EQ(found.size(), report.seen);
  if (GetParam().spec.find("shards") == std::string::npos) {
    EXPECT_TRUE(std::ranges::is_sorted(found)) << "an older version after a newer one";
  }
  for (int version = 0; version <= changes; ++version) {
    EXPECT_NE(std::ranges::find(found, version), found.end()) << "version " << version;
  }
}

TEST_P(Change, what_the_chain_file_says_itself_changes_too) {
  folder_.write("one.rules", "allow tcp 192.0.2.1 any any 1\n");  // nobody is there
  folder_.write("two.rules", "allow any any any any any\n");
  default_ = "allow";
  auto session = make();
  ASSERT_TRUE(session.ok()) << session.status();
  auto outcome = std::async(std::launch::async, [&] { return (*session)->run(); });
  wait_for_packets(**session, 500);
  for (const char* word : {"deny", "allow", "deny"}) {
    default_ = word;
    const auto changed = change(**session);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(changed->size(), GetParam().name == "process_group" ? 2U : 1U);
    const auto again = change(**session);
    EXPECT_TRUE(again.ok() && again->empty()) << "the same file";
    const auto decided = [&] {
      const runtime::RunProgress progress = (*session)->progress();
      return default_ == "deny" ? progress.dropped : progress.sent;
    };
    // what was under way counts as it was before
    const std::uint64_t before = decided() + 2000;
    for (const auto end = std::chrono::steady_clock::now() + 20s;
         decided() < before && std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_GE(decided(), before) << default_;
  }
  (*session)->stop();
  EXPECT_TRUE(outcome.get().ok());
  EXPECT_TRUE((*session)->report().accounted());
}

TEST_P(Change, a_bad_file_changes_nothing) {
  write_rules(3);
  auto session = make();
  ASSERT_TRUE(session.ok()) << session.status();
  auto outcome = std::async(std::launch::async, [&] { return (*session)->run(); });
  wait_for_packets(**session, 100);
  const int tries = has_processes() ? 5 : 100;
  for (int i = 0; i < tries; ++i) {
    folder_.write("one.rules", rules_of(7));
    folder_.write("two.rules", rules_of(4) + "deny tcp 10.0.0.0/33 any any any\n");
    const auto changed = change(**session);
    EXPECT_EQ(changed.status().code(), absl::StatusCode::kInvalidArgument) << changed.status();
    EXPECT_THAT(std::string(changed.status().message()), HasSubstr("two.rules:6:10"));
  }
  write_rules(3);
  auto other = load("    - {name: three, type: firewall, config: {rules: two.rules, default: deny}}\n");
  ASSERT_TRUE(other.ok()) << other.status();
  const auto refused = (*session)->change(*std::move(other), nf::builtin_nfs());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("the NFs are one, two, three instead of one, two"));
  const auto same = change(**session);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->empty()) << "nothing is another";
  wait_for_packets(**session, 100);
  (*session)->stop();
  EXPECT_TRUE(outcome.get().ok());
  EXPECT_THAT(versions(), ::testing::Each(3));
}

TEST_P(Change, without_packets_changes_wait_and_there_is_an_end_to_that) {
  write_rules(0);
  auto session = make();
  ASSERT_TRUE(session.ok()) << session.status();
  int version = 0;
  Status last;
  while (last.ok() && version < 50) {
    write_rules(++version);
    last = change(**session).status();
  }
  EXPECT_EQ(last.code(), absl::StatusCode::kUnavailable) << last;
  EXPECT_GT(version, 2);
  auto outcome = std::async(std::launch::async, [&] { return (*session)->run(); });
  wait_for_packets(**session, 100);
  Status changed;
  for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;) {
    changed = change(**session).status();
    if (!absl::IsUnavailable(changed)) {  // until those that waited were taken
      break;
    }
  }
  EXPECT_TRUE(changed.ok()) << changed;
  wait_for_packets(**session, 500);
  (*session)->stop();
  EXPECT_TRUE(outcome.get().ok());
  const std::vector<int> found = versions();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), version - 1) << "the last that was taken";
  EXPECT_EQ(found.back(), version);
}

INSTANTIATE_TEST_SUITE_P(
    Places, Change,
    ::testing::Values(Place{"cpu", "", "", ""}, Place{"cpu_workers", "", "", "", 3},
                      Place{"gpu", "on: gpu, ", "on: gpu, ", "", 2}, Place{"gpu_cpu", "on: gpu, ", "", ""},
                      Place{"shards", "", "", "  shards: 3\n", 3},
                      Place{"gpu_shards", "on: gpu, ", "on: gpu, ", "  shards: 2\n", 2},
                      Place{"small_units", "", "on: gpu, ", "  tuning: {unit_packets: 16}\n", 2},
                      Place{"process", "isolation: process, ", "", ""},
                      Place{"process_auto_units", "isolation: process, ", "", "  tuning: {unit_packets: auto}\n"},
                      Place{"processes", "isolation: process, ", "isolation: process, ", "", 2},
                      Place{"process_group", "isolation: {group: g}, ", "isolation: {group: g}, ", ""}),
    [](auto const& place) { return place.param.name; });

}  // namespace
}  // namespace catena::testing
