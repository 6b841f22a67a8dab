// SPDX-License-Identifier: Apache-2.0
// Chains whose files change while packets run: each packet is decided as a whole by one version of the files, in the
// order in which they came, and none is lost, whatever is wrong with a file. Counts go on.
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
#include <optional>
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

  void TearDown() override {
    if (session_ != nullptr) {  // where a test has failed in the middle
      stop();
    }
  }

  /// Has the chain of the files run, in place of the one that runs, if it is another one. Returns the changes.
  Result<std::vector<std::string>> follow(std::string const& extra = {}) {
    CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config, load(extra));
    runtime::RunOptions options;
    options.workers = GetParam().workers;
    options.record_path = folder_.path("records.jsonl");
    options.processes.program = nf_program();
    std::optional<runtime::PreviousPipeline> before;
    if (session_ != nullptr) {
      CATENA_ASSIGN_OR_RETURN(const bool is_same, session_->is_same(config));
      if (is_same) {
        return std::vector<std::string>();
      }
      before = {session_.get(), session_};
    }
    CATENA_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Session> next,
                            runtime::Session::create(std::move(config), options, nf::builtin_nfs(), {}, before));
    before.reset();
    EXPECT_EQ(next->restarted_nfs(), std::vector<std::string>());
    std::vector<std::string> changes = next->changes();
    CATENA_RETURN_IF_ERROR(next->start());
    std::future<Status> outcome = std::async(std::launch::async, [session = next.get()] { return session->run(); });
    if (session_ != nullptr) {
      EXPECT_EQ(outcome_.get(), absl::OkStatus());
    }
    session_ = std::move(next);
    outcome_ = std::move(outcome);
    return changes;
  }

  void wait_for_packets(std::uint64_t more) {
    const std::uint64_t until = session_->progress().received + more;
    for (const auto end = std::chrono::steady_clock::now() + 20s;
         session_->progress().received < until && std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_GE(session_->progress().received, until);
  }

  runtime::Report stop() {
    session_->stop();
    EXPECT_EQ(outcome_.get(), absl::OkStatus());
    runtime::Report report = session_->report();
    session_.reset();
    EXPECT_TRUE(report.accounted());
    return report;
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
      if (record["nf"] == "three") {  // it has a part of the packets
        continue;
      }
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
  std::shared_ptr<runtime::Session> session_;
  std::future<Status> outcome_;
  std::string default_ = "deny";  ///< of the first firewall
};

TEST_P(Change, each_packet_is_decided_by_one_version_and_none_is_lost) {
  write_rules(0);
  ASSERT_TRUE(follow().ok());
  wait_for_packets(1000);
  const int changes = changes_of_a_run(5);
  for (int version = 1; version <= changes; ++version) {
    write_rules(version);
    const auto changed = follow();
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(changed->size(), 2U);
    wait_for_packets(200);
  }
  const runtime::Report report = stop();
  EXPECT_EQ(report.dropped(), 0U);
  EXPECT_EQ(report.nfs.front().packets.in, report.rx.seen) << "counts go on";
  const std::vector<int> found = versions();
  EXPECT_EQ(found.size(), report.rx.seen);
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
  ASSERT_TRUE(follow().ok());
  wait_for_packets(500);
  for (const char* word : {"deny", "allow", "deny"}) {
    default_ = word;
    const auto changed = follow();
    ASSERT_TRUE(changed.ok()) << changed.status();
    ASSERT_EQ(changed->size(), 1U);
    EXPECT_TRUE(changed->front().starts_with("one: ")) << changed->front();
    const auto again = follow();
    EXPECT_TRUE(again.ok() && again->empty()) << "the same file";
    const auto decided = [&] {
      const runtime::RunProgress progress = session_->progress();
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
  stop();
}

/// Another NF changes, comes and goes; the process of the one that stays is the same, and its counts go on.
TEST_P(Change, an_unchanged_nf_goes_on) {
  write_rules(2);
  ASSERT_TRUE(follow().ok());
  wait_for_packets(300);
  const auto process_of_one = [&] {
    std::vector<std::int32_t> pids;
    const runtime::Report report = session_->report();
    for (runtime::NfProcessReport const& process : report.nfs.front().isolation.processes) {
      pids.push_back(process.pid);
    }
    return pids;
  };
  const std::vector<std::int32_t> pids = process_of_one();
  const bool is_grouped = GetParam().name == "process_group";
  std::string const third = "    - {name: three, type: firewall, config: {rules: three.rules, default: deny}}\n";
  folder_.write("three.rules", rules_of(2));
  std::uint64_t in = 0;
  for (std::string const& extra : {third, std::string(), third}) {
    const auto changed = follow(extra);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(changed->size(), 1U);
    wait_for_packets(300);
    EXPECT_EQ(process_of_one(), pids);
    const runtime::Report report = session_->report();
    EXPECT_GE(report.nfs.front().packets.in, in + 300);
    in = report.nfs.front().packets.in;
  }
  folder_.write("two.rules", rules_of(2) + "# another\n");
  ASSERT_TRUE(follow(third).ok());
  wait_for_packets(300);
  EXPECT_EQ(process_of_one() == pids, !is_grouped || pids.empty()) << "a process has all NFs of its group";
  const runtime::Report report = stop();
  EXPECT_EQ(report.dropped(), 0U);
  EXPECT_EQ(report.nfs.front().packets.in, report.rx.seen);
  EXPECT_THAT(versions(), ::testing::Each(2));
}

TEST_P(Change, a_bad_file_changes_nothing) {
  write_rules(3);
  ASSERT_TRUE(follow().ok());
  wait_for_packets(100);
  const int tries = has_processes() ? 5 : 100;
  for (int i = 0; i < tries; ++i) {
    folder_.write("one.rules", rules_of(7));
    folder_.write("two.rules", rules_of(4) + "deny tcp 10.0.0.0/33 any any any\n");
    const auto changed = follow();
    EXPECT_EQ(changed.status().code(), absl::StatusCode::kInvalidArgument) << changed.status();
    EXPECT_THAT(std::string(changed.status().message()), HasSubstr("two.rules:6:10"));
  }
  write_rules(3);
  const auto same = follow();
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->empty()) << "nothing is another";
  wait_for_packets(100);
  stop();
  EXPECT_THAT(versions(), ::testing::Each(3));
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
