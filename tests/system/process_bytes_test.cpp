// SPDX-License-Identifier: Apache-2.0
// The same bytes with every NF in a process of its own, and with all of them in one, on the CPU and on a device through
// its server, as in the chain's own process on the CPU: for the mixed capture and another traffic of each chain; for
// all of them with CATENA_SAME_BYTES=traffics in the environment, or `full`, as `make soak` has it.
#include "system/packet_sets.hpp"
#include "system/same_bytes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace catena::testing {
namespace {

class ProcessBytes : public ::testing::TestWithParam<std::size_t> {
 protected:
  ChainCase const& chain() const { return chains()[GetParam()]; }

  /// The chain's NFs, configured for the traffic.
  std::vector<NfText> nfs_for(Traffic const& clear) const {
    std::vector<NfText> nfs = chain().nfs;
    for (NfText& nf : nfs) {
      if (nf.type == "lb") {
        nf.config = lb_config_for(clear.capture);
      }
    }
    return nfs;
  }

  ChainRun run_of(std::size_t traffic) const {
    std::string const& capture = (chain().esp_input ? esp_traffic() : clear_traffic())[traffic].capture;
    return {nfs_for(clear_traffic()[traffic]), 0, capture, "none", ""};
  }

  static void expect_same_in_processes(ChainRun run, std::string const& what) {
    const Result<ChainOutput> expected = run_chain(run);
    ASSERT_TRUE(expected.ok()) << what << ": " << expected.status();
    ASSERT_GT(expected->report.rx.seen, 1000U) << what;
    run.processes = true;
    for (const bool is_one_group : {false, true}) {
      run.is_one_group = is_one_group;
      run.device = "none";
      run.gpu_mask = 0;
      const std::string where = is_one_group ? concat(what, " in one process") : what;
      expect_same_as(*expected, run, where);
      for (std::string const& device : device_names()) {
        run.device = device;
        run.gpu_mask = (1U << run.nfs.size()) - 1;
        expect_same_as(*expected, run, concat(where, " on ", device));
      }
    }
  }

  static void expect_same_as(ChainOutput const& expected, ChainRun const& run, std::string const& what) {
    const Result<ChainOutput> actual = run_chain(run);
    ASSERT_TRUE(actual.ok()) << what << ": " << actual.status();
    expect_same(*actual, expected, what);
    for (std::size_t i = 0; i < run.nfs.size(); ++i) {
      runtime::NfReport const& nf = actual->report.nfs[i];
      EXPECT_EQ(nf.placement, "process") << what;
      EXPECT_EQ(nf.isolation.restarts, 0U) << what << ": " << nf.name;
      EXPECT_EQ(nf.packets.in, expected.report.nfs[i].packets.in) << what << ": " << nf.name;
      EXPECT_EQ(nf.packets.alerts, expected.report.nfs[i].packets.alerts) << what << ": " << nf.name;
      EXPECT_EQ(nf.packets.replies, expected.report.nfs[i].packets.replies) << what << ": " << nf.name;
      EXPECT_EQ(nf.packets.unsupported, expected.report.nfs[i].packets.unsupported) << what << ": " << nf.name;
      if ((run.gpu_mask >> i & 1U) != 0) {
        EXPECT_GT(nf.device.bytes_to_device_per_packet, 0) << what << ": " << nf.name << " was not on the device";
      }
    }
  }
};

TEST_P(ProcessBytes, are_those_of_one_process) {
  const std::size_t traffics = clear_traffic().size();
  for (std::size_t i = 0; i < traffics; ++i) {
    if (meets(i, GetParam(), 0, traffics - 1)) {
      expect_same_in_processes(run_of(i), clear_traffic()[i].name);
    }
  }
}

TEST(ProcessBytesOfGraph, are_those_of_one_process) {
  ChainRun run{{{"fw", "firewall", "rules: fw.rules, default: allow"},
                {"ids", "nids", "rules: ids.rules"},
                {"copies", "remark", "map: [{from: 0, to: 10}]"},
                {"rt", "router", "routes: routes.txt"}},
               0,
               clear_traffic().front().capture,
               "none",
               "  flow: {}\n  tuning: {pool_slots: 65536}\n  graph:\n    - {from: rx, match: {protocol: tcp}, to: fw}\n"
               "    - {from: rx, to: ids}\n    - {from: fw, to: ids}\n"
               "    - {from: ids, output: alert, to: {mirror: copies}}\n"
               "    - {from: ids, match: {protocol: udp}, to: tx}\n    - {from: ids, to: rt}\n"
               "    - {from: [copies, rt], to: tx}\n"};
  const Result<ChainOutput> expected = run_chain(run);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_GT(expected->report.mirrored(), 100U);
  run.processes = true;
  std::vector<std::string> devices = device_names();
  devices.emplace_back("none");
  for (std::string const& device : devices) {
    run.device = device;
    run.gpu_mask = device == "none" ? 0 : 0b1011;
    const Result<ChainOutput> actual = run_chain(run);
    ASSERT_TRUE(actual.ok()) << device << ": " << actual.status();
    EXPECT_TRUE(sorted(packets_of(actual->capture)) == sorted(packets_of(expected->capture))) << device;
    EXPECT_EQ(first_difference(sorted_lines(actual->records), sorted_lines(expected->records)), "") << device;
    EXPECT_TRUE(actual->report.accounted()) << to_text(actual->report);
    EXPECT_EQ(actual->report.mirrored(), expected->report.mirrored()) << "alerts of another process count, too";
    for (runtime::NfReport const& nf : actual->report.nfs) {
      EXPECT_EQ(nf.placement, "process");
      EXPECT_EQ(nf.queue.drops, 0U);
      EXPECT_EQ(nf.device.launches > 0, device != "none" && nf.name != "copies") << nf.name;
    }
  }
}

TEST(ProcessBytesOfGraph, packets_leave_by_the_outputs_that_an_nf_has_itself) {
  ChainRun run{
      {{"fw", "firewall", "rules: fw.rules, default: allow"}, kDecrypt, {"rt", "router", "routes: routes.txt"}},
      0,
      esp_traffic().front().capture,
      "none",
      "  graph:\n    - {from: rx, to: fw}\n    - {from: fw, to: vpn}\n"
      "    - {from: vpn, output: protected, to: rt}\n    - {from: [vpn, rt], to: tx}\n"};
  const Result<ChainOutput> expected = run_chain(run);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto of_router = [](ChainOutput const& output) {
    return std::ranges::find(output.report.nfs, "rt", &runtime::NfReport::name)->packets.in;
  };
  ASSERT_GT(of_router(*expected), 100U);
  ASSERT_LT(of_router(*expected), expected->report.rx.seen) << "others are not protected";
  run.processes = true;
  std::vector<std::string> devices = device_names();
  devices.emplace_back("none");
  for (std::string const& device : devices) {
    run.device = device;
    run.gpu_mask = device == "none" ? 0 : 0b010;
    const Result<ChainOutput> actual = run_chain(run);
    ASSERT_TRUE(actual.ok()) << device << ": " << actual.status();
    EXPECT_EQ(of_router(*actual), of_router(*expected)) << device;
    EXPECT_TRUE(sorted(packets_of(actual->capture)) == sorted(packets_of(expected->capture))) << device;
    EXPECT_EQ(first_difference(sorted_lines(actual->records), sorted_lines(expected->records)), "") << device;
  }
}

TEST(ProcessBytesOfFlow, count_launches_of_nfs_in_processes) {
  ChainRun run{{{"ids", "nids", "rules: ids.rules"}},
               0b1,
               clear_traffic().front().capture,
               "none",
               "  flow: {qt: 4}\n  tuning: {pool_slots: 16384}\n"};
  run.processes = true;
  for (std::string const& device : device_names()) {
    run.device = device;
    const Result<ChainOutput> refused = run_chain(run);
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << "four launches may wait, and four are in the process";
    EXPECT_THAT(std::string(refused.status().message()), ::testing::HasSubstr("'pool_slots' is 16384"));
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, ProcessBytes, ::testing::Range<std::size_t>(0, chains().size()),
                         [](auto const& test) { return std::string(chains()[test.param].name); });

}  // namespace
}  // namespace catena::testing
