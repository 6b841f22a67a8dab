// SPDX-License-Identifier: Apache-2.0
// Chains of another shape that take over the ends of those before them while packets run: none is lost, none overtakes
// another, and NFs that are in both go on with what they know of flows.
#include "system/chain_runner.hpp"
#include "system/changes.hpp"

#include "base/core/file_descriptor.hpp"
#include "gpu/device/testing/remote_device.hpp"
#include "pipeline/session.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/packet/headers.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace catena::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// What a chain of firewalls can be: the rest of `spec`, with `{rules}` for the configuration of each.
struct Shape {
  const char* name;
  const char* spec;
  std::uint32_t workers = 1;
};

constexpr Shape kTwo{"two NFs", R"(
  nfs:
    - {name: one, type: firewall, config: {rules}}
    - {name: two, type: firewall, config: {rules}}
)"};
constexpr Shape kAdded{"one added and one gone", R"(
  nfs:
    - {name: new, type: firewall, config: {rules}}
    - {name: two, type: firewall, config: {rules}}
    - {name: last, type: firewall, config: {rules}}
)"};
constexpr Shape kPlaced{"placed on the GPU", R"(
  nfs:
    - {name: one, type: firewall, on: gpu, config: {rules}}
    - {name: two, type: firewall, on: gpu, config: {rules}}
)"};
constexpr Shape kShards{"shards", R"(
  shards: 3
  nfs:
    - {name: one, type: firewall, config: {rules}}
    - {name: two, type: firewall, config: {rules}}
)"};
constexpr Shape kUnits{"other units and thresholds", R"(
  tuning: {unit_packets: 32}
  flow: {qt: 4}
  nfs:
    - {name: two, type: firewall, config: {rules}}
)"};
constexpr Shape kGraph{"ways that meet", R"(
  nfs:
    - {name: one, type: firewall, config: {rules}}
    - {name: two, type: firewall, on: gpu, config: {rules}}
    - {name: three, type: firewall, config: {rules}}
  graph:
    - {from: rx, match: {protocol: udp}, to: one}
    - {from: rx, to: two}
    - {from: [one, two], to: three}
    - {from: three, to: tx}
)"};
constexpr Shape kProcess{"in processes", R"(
  nfs:
    - {name: one, type: firewall, isolation: process, config: {rules}}
    - {name: two, type: firewall, config: {rules}}
)"};

constexpr const char* kEnds = "  rx: {replay: {packet: 60, flows: 64, rate: 20000}}\n  tx: null\n";

class Takeover : public ::testing::Test {
 protected:
  void TearDown() override {
    if (running_.session != nullptr) {  // where a test has failed in the middle
      last().stop();
    }
  }
  Result<chain::ChainConfig> load(Shape const& shape, int version, std::string const& ends = kEnds) {
    const std::string rules = fmt::format("{}.rules", version);
    std::string text;
    for (int line = 0; line < version; ++line) {
      text += fmt::format("deny tcp 192.0.2.{} any any 1\n", line % 256);  // nobody is there
    }
    folder_.write(rules, text + "allow any any any any any\n");
    return load_spec(replaced(shape.spec, "{rules}", fmt::format("{{rules: {}, default: deny}}", rules)), ends);
  }
  Result<chain::ChainConfig> load_spec(std::string const& spec, std::string const& ends) {
    folder_.write(
        "chain.yaml",
        fmt::format("apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: changing}}\nspec:\n{}  device: {}{}", ends,
                    device(), spec));
    return chain::load_chain(folder_.path("chain.yaml"));
  }
  static std::string replaced(std::string text, std::string_view what, std::string_view by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
      text.replace(at, what.size(), by);
    }
    return text;
  }
  /// A GPU where there is one.
  static std::string device() {
    return nf::testing::devices().empty() ? "none" : nf::testing::devices().back()->info().backend;
  }

  /// `after_last`: it is to take over from the one that runs.
  Result<std::unique_ptr<runtime::Session>> make(Result<chain::ChainConfig> config, bool after_last,
                                                 std::uint32_t workers = 2) {
    CATENA_RETURN_IF_ERROR(config.status());
    std::optional<runtime::PreviousPipeline> previous_pipeline;
    if (after_last) {
      previous_pipeline = {running_.session.get(), running_.session};
    }
    return runtime::Session::create(*std::move(config), run_options(workers), nf::builtin_nfs(), {}, previous_pipeline);
  }
  runtime::RunOptions run_options(std::uint32_t workers = 2) const {
    runtime::RunOptions options;
    options.workers = workers;
    options.record_path = folder_.path("records.jsonl");
    options.processes.program = nf_program();
    options.processes.connect_device = [](std::string const& nf, std::string const& preference, std::string* why) {
      return device::testing::connect_remote(preference, concat("test/", nf), why);
    };
    return options;
  }
  /// NFs of such a chain that restart where it takes over from the one that runs.
  Result<std::vector<std::string>> preview(Result<chain::ChainConfig> config) {
    CATENA_RETURN_IF_ERROR(config.status());
    CATENA_ASSIGN_OR_RETURN(runtime::ReplacementPreview preview,
                            runtime::Session::preview_replacement(*std::move(config), run_options(), nf::builtin_nfs(),
                                                                  {}, {&last(), nullptr}));
    return std::move(preview.restarted);
  }

  /// One that packets run through.
  struct Run {
    std::shared_ptr<runtime::Session> session;
    std::future<Status> outcome;
  };
  /// Has `session` run, in place of the last one, of which the report stays.
  void run(std::unique_ptr<runtime::Session> session) {
    ASSERT_EQ(session->start(), absl::OkStatus());
    runtime::Session* const started = session.get();
    Run next{std::move(session), std::async(std::launch::async, [started] { return started->run(); })};
    if (running_.session != nullptr) {
      end_running();
    }
    running_ = std::move(next);
  }
  /// The packets that all chains which have ended sent: counts go on.
  std::uint64_t sent_by_all() const { return reports_.back().tx.sent; }
  /// A generator's key: it ends after as many packets as all chains which have ended sent.
  std::string count_of_all() const { return fmt::format(", count: {}", sent_by_all()); }
  /// One chain for all of their packets, to compare with.
  void run_unbroken(Result<chain::ChainConfig> config) {
    auto unbroken = make(std::move(config), false);
    ASSERT_TRUE(unbroken.ok()) << unbroken.status();
    ASSERT_EQ((*unbroken)->run(), absl::OkStatus());
  }
  /// Waits for its end.
  void end_running() {
    const Status ended = running_.outcome.get();
    EXPECT_TRUE(ended.ok()) << ended;
    reports_.push_back(running_.session->report());
    EXPECT_TRUE(reports_.back().accounted());
  }
  runtime::Session& last() { return *running_.session; }
  void wait_for_packets(std::uint64_t more) { wait_until_sent(last().progress().sent + more); }
  /// For the chain that runs, or its end: CTest's limit is the only one in time.
  void wait_until_sent(std::uint64_t packets) {
    while (last().progress().sent < packets && running_.outcome.wait_for(1ms) != std::future_status::ready) {
    }
    EXPECT_GE(last().progress().sent, packets);
  }
  void stop() {
    last().stop();
    end_running();
  }

  ScratchFolder folder_;
  Run running_;
  std::vector<runtime::Report> reports_;  ///< of those that have ended
};

TEST_F(Takeover, each_packet_is_decided_by_one_chain_and_none_is_lost_whatever_changes) {
  std::vector<Shape> shapes{kTwo, kAdded, kShards, kUnits, kGraph};
  if (device() != "none") {
    shapes.push_back(kPlaced);
  }
  // the memory that a sandbox allows is too little for a sanitizer, and where there is a GPU there may be none
  if (!kIsSanitized && std::filesystem::exists("/usr/bin/bwrap")) {
    shapes.push_back(kProcess);
  }
  const int changes = changes_of_a_run(6);
  for (int version = 0; version <= changes; ++version) {
    Shape const& shape = shapes[static_cast<std::size_t>(version) % shapes.size()];
    SCOPED_TRACE(fmt::format("version {}, {}", version, shape.name));
    auto next = make(load(shape, version), running_.session != nullptr);
    ASSERT_TRUE(next.ok()) << next.status();
    run(*std::move(next));
    wait_for_packets(500);
  }
  stop();

  for (runtime::Report const& report : reports_) {
    EXPECT_EQ(report.dropped(), 0U);
    EXPECT_EQ(report.rx.received, report.tx.sent);
  }
  const std::uint64_t seen = reports_.back().rx.received;
  std::ifstream records(folder_.path("records.jsonl"));
  std::vector<int> versions;
  int newest = 0;
  for (std::string line; std::getline(records, line);) {
    const auto record = nlohmann::json::parse(line);
    const auto packet = record["packet"].get<std::size_t>();
    const int version = record["rule"].get<int>();
    ASSERT_LE(newest, version) << "an older one after a newer one";
    newest = version;
    if (packet >= versions.size()) {
      versions.resize(packet + 1, -1);
    }
    EXPECT_TRUE(versions[packet] == -1 || versions[packet] == version) << "two decided packet " << packet;
    versions[packet] = version;
  }
  EXPECT_EQ(versions.size(), seen) << "numbers go on";
  EXPECT_THAT(versions, ::testing::Not(::testing::Contains(-1)));
  EXPECT_EQ(newest, changes);
}

/// Ports are so few that which one a flow gets depends on those that came before: a nat that forgets gives others.
TEST_F(Takeover, nfs_in_both_go_on_with_what_they_know_of_flows) {
  const auto ends = [this](std::string_view output, std::string_view count = "") {
    return fmt::format("  rx: {{generator: {{packet: 100, flows: 40, rate: 20000{}}}}}\n  tx: {{pcap: {}}}\n", count,
                       folder_.path(output));
  };
  const std::string nat =
      "    - {name: nat, type: nat, config: {inside: 10.0.0.0/8, external: 203.0.113.1, ports: 2000-2021}}\n";
  const auto monitor = [](std::string_view file) {
    return fmt::format("    - {{name: flows, type: monitor, config: {{export: [{{format: json, file: {}}}]}}}}\n",
                       file);
  };
  const std::string few = "\n  nfs:\n" + nat + monitor("flows.jsonl");
  const std::string more = "\n  nfs:\n    - {name: fw, type: firewall, config: {rules: all.rules, default: allow}}\n" +
                           nat + "    - {name: last, type: firewall, config: {rules: all.rules, default: allow}}\n" +
                           monitor("flows.jsonl");
  folder_.write("all.rules", "allow any any any any any\n");
  for (std::string const& spec : {few, more, few, more}) {
    auto next = make(load_spec(spec, ends("out.pcap")), running_.session != nullptr);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_THAT((*next)->start_report(),
                ::testing::Not(::testing::Contains(HasSubstr("restarts without its previous state"))));
    run(*std::move(next));
    wait_for_packets(1111);
  }
  stop();
  run_unbroken(load_spec("\n  nfs:\n" + nat + monitor("unbroken.jsonl"), ends("unbroken.pcap", count_of_all())));
  EXPECT_TRUE(read_file(folder_.path("out.pcap")) == read_file(folder_.path("unbroken.pcap"))) << "other bytes";
  EXPECT_FALSE(read_file(folder_.path("flows.jsonl")).empty());
  EXPECT_EQ(read_file(folder_.path("flows.jsonl")), read_file(folder_.path("unbroken.jsonl")));
}

/// A flow keeps its port and is one flow of the monitor, and an association goes on with its numbers, in any number of
/// shards.
TEST_F(Takeover, nfs_in_several_shards_go_on_with_what_they_know_of_flows) {
  static constexpr std::size_t kFlows = 40;
  const auto ends = [this](std::string_view output) {
    return fmt::format("  rx: {{generator: {{packet: 100, flows: {}, rate: 20000}}}}\n  tx: {{pcap: {}}}\n", kFlows,
                       folder_.path(output));
  };
  folder_.write("all.rules", "allow any any any any any\n");
  const auto run_all = [&](std::string_view output, std::string const& nfs) {
    const std::string firewall = "    - {name: fw, type: firewall, config: {rules: all.rules, default: allow}}\n";
    const std::array<std::pair<int, std::string>, 9> chains{{{1, nfs},
                                                             {3, nfs},
                                                             {3, firewall + nfs},
                                                             {1, nfs},
                                                             {4, nfs},
                                                             {2, firewall + nfs},
                                                             {4, nfs},
                                                             {16, nfs},
                                                             {3, nfs}}};
    for (auto const& [shards, spec] : chains) {
      SCOPED_TRACE(fmt::format("{} shards", shards));
      auto next = make(load_spec(fmt::format("\n  shards: {}\n  nfs:\n{}", shards, spec), ends(output)),
                       running_.session != nullptr);
      ASSERT_TRUE(next.ok()) << next.status();
      EXPECT_THAT((*next)->start_report(),
                  ::testing::Not(::testing::Contains(HasSubstr("restarts without its previous state"))));
      run(*std::move(next));
      wait_for_packets(2000);
    }
    stop();
    running_ = {};
    for (runtime::Report const& report : reports_) {
      EXPECT_EQ(report.dropped(), 0U);
      EXPECT_EQ(report.rx.received, report.tx.sent);
    }
    reports_.clear();
  };

  run_all("nat.pcap",
          "    - {name: nat, type: nat, config: {inside: 10.0.0.0/8, external: 203.0.113.1, ports: 2000-2999}}\n"
          "    - {name: flows, type: monitor, config: {export: [{format: json, file: flows.jsonl}]}}\n");
  const Result<std::vector<nf::testing::Frame>> translated = nf::testing::read_capture(folder_.path("nat.pcap"));
  ASSERT_TRUE(translated.ok()) << translated.status();
  std::map<std::string, std::set<std::string>> ports;  // by destination
  for (nf::testing::Frame const& frame : *translated) {
    ports[std::string(&frame[30], &frame[34]) + std::string(&frame[36], &frame[38])].emplace(&frame[34], &frame[36]);
  }
  EXPECT_EQ(ports.size(), kFlows);
  EXPECT_TRUE(std::ranges::all_of(ports, [](auto const& entry) { return entry.second.size() == 1; }));
  std::set<std::string> all_ports;  // TCP and UDP have ports of their own
  for (nf::testing::Frame const& frame : *translated) {
    all_ports.insert(std::string(1, static_cast<char>(frame[23])) + std::string(&frame[34], &frame[36]));
  }
  EXPECT_EQ(all_ports.size(), kFlows) << "no port is of two flows";
  const std::string flows = read_file(folder_.path("flows.jsonl"));
  EXPECT_EQ(std::ranges::count(flows, '\n'), kFlows);

  run_all("esp.pcap", fmt::format("    - {{name: vpn, type: ipsec, config: {{direction: encrypt, sa: {}}}}}\n",
                                  data_file("chain/sa-all.yaml")));
  const Result<std::vector<nf::testing::Frame>> sealed = nf::testing::read_capture(folder_.path("esp.pcap"));
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  std::map<std::uint32_t, std::uint32_t> numbers;  // the last one of each SPI
  for (nf::testing::Frame const& frame : *sealed) {
    const std::uint8_t* const esp = &frame[frame[23] == packet::kProtocolUdp ? 42 : 34];
    ASSERT_EQ(packet::load_be32(esp + 4), ++numbers[packet::load_be32(esp)]);
  }
  EXPECT_GE(numbers.size(), 2U);
}

/// NAT, and ESP in front of it, whose sequence numbers show. Where both runs have the same bytes, none began anew.
class TakeoverOfProcesses : public Takeover,
                            public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(TakeoverOfProcesses, have_what_those_before_left) {
  if (kIsSanitized || !std::filesystem::exists("/usr/bin/bwrap")) {
    GTEST_SKIP() << "no sandbox here, or the memory that it allows is too little for a sanitizer";
  }
  const bool is_for_gpu = std::string_view(GetParam().second).starts_with("on: gpu");
  if (is_for_gpu && device() == "none") {
    GTEST_SKIP() << "no device here";
  }
  const auto ends = [this](std::string_view output, std::string_view count = "") {
    return fmt::format("  rx: {{generator: {{packet: 100, flows: 40, rate: 5000{}}}}}\n  tx: {{pcap: {}}}\n", count,
                       folder_.path(output));
  };
  const auto nfs = [](std::string_view place) {
    return fmt::format(
        "    - {{name: nat, type: nat, {0}config: {{inside: 10.0.0.0/8, external: 203.0.113.1, ports: 2000-2021}}}}\n"
        "    - {{name: vpn, type: ipsec, {0}config: {{direction: encrypt, sa: {1}}}}}\n",
        place, data_file("chain/sa-all.yaml"));
  };
  // one that keeps nothing, in the same process
  const std::string with_them = fmt::format(
      "    - {{name: fw, type: firewall, {}config: {{rules: all.rules, default: allow}}}}\n", GetParam().second);
  const std::string few = "\n  nfs:\n" + nfs(GetParam().second) + with_them;
  const std::string more = few + "    - {name: last, type: firewall, config: {rules: all.rules, default: allow}}\n";
  folder_.write("all.rules", "allow any any any any any\n");
  // another limit is another start of the processes, which then hand over their states; else they go on
  const std::string others = "\n  tuning: {device_limit_ms: 9000}" + more;
  for (std::string const& spec : {few, more, others, "\n  tuning: {device_limit_ms: 9000}" + few, few}) {
    auto next = make(load_spec(spec, ends("out.pcap")), running_.session != nullptr);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_THAT((*next)->start_report(),
                ::testing::Not(::testing::Contains(HasSubstr("restarts without its previous state"))));
    run(*std::move(next));
    wait_for_packets(2000);
  }
  stop();
  run_unbroken(load_spec("\n  nfs:\n" + nfs(""), ends("unbroken.pcap", count_of_all())));
  for (runtime::Report const& report : reports_) {
    for (runtime::NfReport const& nf : report.nfs) {
      EXPECT_EQ(nf.isolation.restarts, 0U) << nf.name;
      if (nf.placement == "removed") {
        continue;
      }
      const bool is_on_gpu = is_for_gpu && nf.name != "last";
      EXPECT_EQ(nf.device.bytes_to_device_per_packet > 0, is_on_gpu) << nf.name;
    }
  }
  EXPECT_TRUE(read_file(folder_.path("out.pcap")) == read_file(folder_.path("unbroken.pcap"))) << "other bytes";
}
INSTANTIATE_TEST_SUITE_P(Places, TakeoverOfProcesses,
                         ::testing::Values(std::pair("own", "isolation: process, "),
                                           std::pair("group", "isolation: {group: g}, "),
                                           std::pair("on_gpu", "on: gpu, isolation: process, "),
                                           std::pair("group_on_gpu", "on: gpu, isolation: {group: g}, ")),
                         [](auto const& test) { return test.param.first; });

/// Flows of a monitor in a process are written when the old process ends, and begin anew; its file goes on.
TEST_F(Takeover, files_of_processes_go_on) {
  if (kIsSanitized || !std::filesystem::exists("/usr/bin/bwrap")) {
    GTEST_SKIP() << "no sandbox here, or the memory that it allows is too little for a sanitizer";
  }
  const std::string ends = "  rx: {generator: {packet: 100, flows: 40, rate: 10000}}\n  tx: null\n";
  const auto monitor = [](std::string_view name) {
    return fmt::format(
        "    - {{name: {}, type: monitor, isolation: process, config: {{export: [{{format: json, file: "
        "f.jsonl}}]}}}}\n",
        name);
  };
  const std::string firewall = "    - {name: fw, type: firewall, config: {rules: all.rules, default: allow}}\n";
  folder_.write("all.rules", "allow any any any any any\n");
  const std::string few = "\n  nfs:\n" + monitor("m");
  const std::string more = few + firewall;
  for (std::string const& spec : {few, more, few}) {
    auto next = make(load_spec(spec, ends), running_.session != nullptr);
    ASSERT_TRUE(next.ok()) << next.status();
    run(*std::move(next));
    wait_for_packets(3000);
  }
  stop();
  std::ifstream flows(folder_.path("f.jsonl"));
  std::uint64_t packets = 0;
  for (std::string line; std::getline(flows, line);) {
    packets += nlohmann::json::parse(line)["packets"].get<std::uint64_t>();
  }
  EXPECT_EQ(packets, sent_by_all());
}

TEST_F(Takeover, what_cannot_be_taken_over_is_said_and_the_chain_goes_on) {
  auto first = make(load(kTwo, 1), false);
  ASSERT_TRUE(first.ok()) << first.status();
  run(*std::move(first));
  const auto refused = [this](Result<chain::ChainConfig> config, std::string_view why) {
    EXPECT_THAT(std::string(preview(config).status().message()), HasSubstr(why));
    const auto next = make(std::move(config), true);
    EXPECT_EQ(next.status().code(), absl::StatusCode::kFailedPrecondition) << next.status();
    EXPECT_THAT(std::string(next.status().message()), HasSubstr(why));
  };
  refused(load(kTwo, 2, "  rx: {replay: {packet: 64, flows: 64, rate: 20000}}\n  tx: null\n"), "'rx' of 'spec'");
  refused(load(kTwo, 2, fmt::format("{}  tuning: {{pool_slots: 65536}}\n", kEnds)),
          "'pool_slots' is 65536, and the running chain has");
  const std::string monitor = "\n  nfs:\n    - {name: m, type: monitor, config: {export: [{format: json, file: f}]}}\n";
  EXPECT_TRUE(make(load_spec(monitor, kEnds), true).ok()) << "nobody writes there yet";
  const auto bad =
      make(load_spec("\n  nfs:\n    - {name: x, type: firewall, config: {rules: none.rules}}\n", kEnds), true);
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument) << bad.status();
  wait_for_packets(500);
  {
    // one that was made and never started has changed nothing
    const auto unused = make(load(kGraph, 2), true);
    ASSERT_TRUE(unused.ok()) << unused.status();
  }
  wait_for_packets(500);
  stop();
  const auto late = make(load(kGraph, 2), true);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ((*late)->start().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(Takeover, a_preview_names_the_nfs_that_restart_and_changes_nothing) {
  folder_.write("all.rules", "allow any any any any any\n");
  const std::string firewall = "    - {name: fw, type: firewall, config: {rules: all.rules, default: allow}}\n";
  const std::string nat = "    - {name: nat, type: nat, config: {inside: 10.0.0.0/8, external: 203.0.113.1}}\n";
  const auto monitor = [](std::string_view more) {
    return fmt::format("    - {{name: m, type: monitor, config: {{export: [{{format: json, file: f}}]{}}}}}\n", more);
  };
  const auto chain = [this](int shards, std::string const& nfs) {
    return load_spec(fmt::format("\n  shards: {}\n  nfs:\n{}", shards, nfs), kEnds);
  };
  auto first = make(chain(2, nat + monitor("")), false);
  ASSERT_TRUE(first.ok()) << first.status();
  run(*std::move(first));
  wait_for_packets(500);
  const auto added = preview(chain(2, firewall + nat + monitor("")));
  EXPECT_TRUE(added.ok() && added->empty()) << added.status();
  const auto divided = preview(chain(3, nat + monitor("")));
  EXPECT_TRUE(divided.ok() && divided->empty()) << divided.status();
  const std::string in_process =
      "    - {name: nat, type: nat, isolation: process, config: {inside: 10.0.0.0/8, external: 203.0.113.1}}\n";
  const auto isolated = preview(chain(2, in_process + monitor("")));
  ASSERT_TRUE(isolated.ok()) << isolated.status();
  EXPECT_THAT(*isolated, ::testing::ElementsAre("nat"));
  EXPECT_THAT(std::string(preview(chain(2, firewall + nat + monitor(", top: 3"))).status().message()),
              HasSubstr("its configuration has changed"));
  wait_for_packets(500);
  stop();
}

/// What waits in the new chain must leave the old one the slots that it needs for copies.
TEST_F(Takeover, a_chain_that_copies_under_load_can_end) {
  constexpr const char* kCopies = R"(
  tuning: {pool_slots: 4096, unit_packets: 512}
  flow: {qt: 2}
  nfs:
    - {name: one, type: firewall, batch_size: 512, config: {rules}}
    - {name: two, type: firewall, batch_size: 512, config: {rules}}
  graph:
    - {from: rx, to: one}
    - {from: one, to: {mirror: two}}
    - {from: one, to: tx}
    - {from: two, to: drop}
)";
  constexpr const char* kPlain = R"(
  tuning: {pool_slots: 4096, unit_packets: 512}
  nfs:
    - {name: one, type: firewall, batch_size: 512, config: {rules}}
)";
  const std::string ends = "  rx: {replay: {packet: 60, flows: 64}}\n  tx: null\n";  // as fast as can be
  for (int version = 0; version < (kIsSanitized ? 4 : 20); ++version) {
    auto next = make(load({"", version % 2 == 0 ? kCopies : kPlain}, 0, ends), running_.session != nullptr);
    ASSERT_TRUE(next.ok()) << next.status();
    run(*std::move(next));
    wait_for_packets(kIsSanitized ? 2000 : 20'000);
  }
  stop();
}

/// Counts, until it is to fail.
class FailingSink final : public io::Sink {
 public:
  explicit FailingSink(std::atomic<bool> const& fails) : fails_(&fails), counts_(io::make_null_sink()) {}
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    const Status sent = counts_->send(pool, unit);
    return *fails_ ? absl::DataLossError("the disk is full") : sent;
  }
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override { return counts_->counts(); }
  std::string describe() const override { return "failing"; }

 private:
  std::atomic<bool> const* fails_;
  std::unique_ptr<io::Sink> counts_;
};

TEST_F(Takeover, one_that_fails_takes_the_next_one_along_and_nobody_waits) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::atomic<bool> fails{false};
    runtime::RunOptions options;
    options.workers = 2;
    options.make_sink = [&fails] { return std::make_unique<FailingSink>(fails); };
    auto first = runtime::Session::create(*load(kTwo, 0), options, nf::builtin_nfs());
    ASSERT_TRUE(first.ok()) << first.status();
    auto outcome = std::async(std::launch::async, [&] { return (*first)->run(); });
    while ((*first)->progress().sent < 100) {
      std::this_thread::sleep_for(1ms);
    }
    auto next = runtime::Session::create(*load(kAdded, 1), options, nf::builtin_nfs(), {},
                                         runtime::PreviousPipeline{first->get(), nullptr});
    ASSERT_TRUE(next.ok()) << next.status();
    fails = true;
    std::this_thread::sleep_for(std::chrono::microseconds(100 * attempt));
    const Status started = (*next)->start();
    if (!started.ok()) {
      EXPECT_EQ(started.code(), absl::StatusCode::kFailedPrecondition) << started;
    } else {
      EXPECT_THAT(std::string((*next)->run().message()), HasSubstr("the disk is full"));
    }
    const Status ended = outcome.get();  // fine where it sent nothing more
    EXPECT_THAT(std::string(ended.message()), HasSubstr(started.ok() && ended.ok() ? "" : "the disk is full"));
  }
}

/// A pipe that is read as a capture: packets come when a test says so, and end when it does.
class Feed {
 public:
  explicit Feed(std::string const& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    pipe_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));  // to read as well: no open() waits then
    write(std::array<std::uint32_t, 6>{0xA1B2C3D4, 0x00040002, 0, 0, 65535, 1});
  }
  void send(std::uint32_t packets) {
    const packet::testing::Frame frame =
        packet::testing::make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A000002, 1, 2, "fed to a pipe");
    for (std::uint32_t i = 0; i < packets; ++i) {
      const auto bytes = static_cast<std::uint32_t>(frame.size());
      write(std::array<std::uint32_t, 4>{0, sent_++, bytes, bytes});
      write(frame);
    }
  }
  std::uint64_t sent() const { return sent_; }
  void end() { pipe_.close(); }

 private:
  template <typename T>
  void write(T const& values) {
    const std::size_t bytes = values.size() * sizeof(values[0]);
    EXPECT_EQ(::write(pipe_.get(), values.data(), bytes), static_cast<ssize_t>(bytes));
  }

  FileDescriptor pipe_;
  std::uint32_t sent_ = 0;
};

/// A capture is read on from where the chain before left off.
TEST_F(Takeover, a_source_that_ends_ends_the_last_chain) {
  Feed feed(folder_.path("feed.pcap"));
  const std::string ends = "  rx: {pcap: feed.pcap}\n  tx: null\n";
  for (Shape const& shape : {kTwo, kGraph, kShards}) {
    auto next = make(load(shape, 0, ends), running_.session != nullptr);
    ASSERT_TRUE(next.ok()) << next.status();
    run(*std::move(next));
    feed.send(300);
    wait_until_sent(feed.sent());
  }
  feed.send(100);
  feed.end();
  end_running();
  EXPECT_EQ(sent_by_all(), feed.sent());
}

/// A live rx whose packets are other ones than were assumed: a placement that suits those is taken over to.
TEST_F(Takeover, nfs_go_where_they_are_faster_for_the_packets_that_come) {
  if (device() == "none") {
    GTEST_SKIP() << "no device, and so nothing to choose";
  }
  const std::string nf = "{type: firewall, on: auto, config: {rules: all.rules, default: deny}, name: ";
  folder_.write("all.rules", "allow any any any any any\n");
  const std::string spec = "\n  nfs: [" + nf + "small}, " + nf + "large}]\n";
  const std::string ends =
      "  rx: {generator: {packet: imix, flows: 64}}\n  tx: null\n";  // IMIX, for the first placement
  const auto config = load_spec(spec, ends);
  ASSERT_TRUE(config.ok()) << config.status();
  runtime::RunOptions options;
  options.workers = 2;
  // each NF has a size for which the gpu is far better, and others for which the CPU is
  chain::CostProfile& costs = options.sync.profile;
  costs = chain::CostProfile::built_in();
  for (const std::uint32_t bytes : {60U, 354U, 1500U}) {
    const auto measured = costs_of_nfs(*config, nf::builtin_nfs());
    ASSERT_TRUE(measured.ok()) << measured.status();
    for (chain::MeasuredNf of_nf : *measured) {
      constexpr double kMuch = 1e6;
      const bool is_better_on_gpu = bytes == 60;
      of_nf.packet_bytes = bytes;
      of_nf.cost.overhead_ns = is_better_on_gpu ? 0 : kMuch;
      costs.nfs.push_back(of_nf);
      costs.nfs_on_cpu.push_back({of_nf.nf, bytes, of_nf.measured, is_better_on_gpu ? 100'000.0 : 10.0, 0});
    }
  }
  options.make_source = [] { return io::make_replay({.packet_bytes = {60}, .flows = 64, .packets_per_s = 50'000}); };
  auto first = runtime::Session::create(*config, options, nf::builtin_nfs());
  ASSERT_TRUE(first.ok()) << first.status();
  run(*std::move(first));
  const auto places = [this] {
    std::vector<std::string> on;
    for (runtime::NfReport const& of_nf : last().report().nfs) {
      on.push_back(of_nf.placement);
    }
    return on;
  };
  EXPECT_THAT(places(), ::testing::Each("cpu"));
  std::optional<runtime::Replacement> replacement;
  for (int look = 0; look < 2; ++look) {
    EXPECT_FALSE(replacement) << "once may be a burst";
    wait_for_packets(2 * runtime::TrafficWatch::kMinPackets);
    auto found = last().sample_traffic(nf::builtin_nfs());
    ASSERT_TRUE(found.ok()) << found.status();
    replacement = *std::move(found);
  }
  ASSERT_TRUE(replacement);
  EXPECT_THAT(replacement->why, HasSubstr("packets have 60 bytes now"));
  EXPECT_THAT(replacement->why, HasSubstr("'small' to the gpu, 'large' to the gpu go"));
  auto next = runtime::Session::create(std::move(replacement->config), replacement->options, nf::builtin_nfs(), {},
                                       runtime::PreviousPipeline{running_.session.get(), running_.session});
  ASSERT_TRUE(next.ok()) << next.status();
  run(*std::move(next));
  wait_for_packets(2 * runtime::TrafficWatch::kMinPackets);
  EXPECT_THAT(places(), ::testing::Each("gpu"));
  const auto again = last().sample_traffic(nf::builtin_nfs());
  EXPECT_TRUE(again.ok() && !*again) << "it stays";
  stop();
  for (runtime::Report const& report : reports_) {
    EXPECT_EQ(report.dropped(), 0U);
  }
}

}  // namespace
}  // namespace catena::testing
