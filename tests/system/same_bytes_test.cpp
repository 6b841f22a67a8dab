// SPDX-License-Identifier: Apache-2.0
// The invariant of the project: the output of a chain is the same, byte for byte, for every placement of its NFs and
// on every device. The all-CPU run is what the others are compared with; the NFs' own tests hold that run to oracles.
#include "system/chain_runner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>

namespace catena::testing {
namespace {

const NfText kFirewall{"fw", "firewall", "rules: fw.rules, default: allow"};
const NfText kNids{"ids", "nids", "rules: ids.rules"};
const NfText kEncrypt{"vpn", "ipsec", "direction: encrypt, sa: sa.yaml"};
const NfText kDecrypt{"vpn", "ipsec", "direction: decrypt, sa: sa.yaml"};
const NfText kRouter{"rt", "router", "routes: routes.txt"};
const NfText kNat{"nat", "nat", "inside: [10.0.0.0/8], external: [203.0.113.1-203.0.113.3]"};
const NfText kMonitor{"flows", "monitor", "max_flows: 1000", false};
const NfText kLb{"lb", "lb", ""};  // its services depend on the traffic

struct ChainCase {
  const char* name;
  std::vector<NfText> nfs;
  bool esp_input;
};

/// The branch office's outbound chain, S_a .. S_d of G-NET with IPsec in both directions, and C1 .. C5 of AdaptChain.
/// C1 and C4 are S_b and S_d, decrypting.
std::vector<ChainCase> const& chains() {
  static const std::vector<ChainCase> kChains{
      {"branch_office", {kFirewall, kNids, kEncrypt, kRouter}, false},
      {"Sa_encrypt", {kEncrypt, kNids}, false},
      {"Sa_decrypt", {kDecrypt, kNids}, true},
      {"Sb_encrypt", {kFirewall, kEncrypt, kNids}, false},
      {"C1_Sb_decrypt", {kFirewall, kDecrypt, kNids}, true},
      {"Sc_encrypt", {kEncrypt, kNids, kRouter}, false},
      {"Sc_decrypt", {kDecrypt, kNids, kRouter}, true},
      {"Sd_encrypt", {kFirewall, kEncrypt, kNids, kRouter}, false},
      {"C4_Sd_decrypt", {kFirewall, kDecrypt, kNids, kRouter}, true},
      {"C2", {kNids, kNat, kEncrypt}, false},
      {"C3", {kDecrypt, kLb, kNids}, true},
      {"C5", {kFirewall, kMonitor, kNat, kEncrypt, kNids}, false},
  };
  return kChains;
}

/// Ways to synchronize host and device, besides the default.
struct SyncCase {
  const char* name;
  chain::SyncOptions options;
};
std::vector<SyncCase> const& sync_cases() {
  static const std::vector<SyncCase> kCases{
      {"copy", {plan::Mode::kCopy}},
      {"shared", {plan::Mode::kShared}},
      {"adaptive without pushdown", {plan::Mode::kAdaptive, false}},
      {"adaptive, staged", {plan::Mode::kAdaptive, true, costs_for(plan::Method::kStaged)}},
      {"adaptive, strided", {plan::Mode::kAdaptive, true, costs_for(plan::Method::kStrided)}},
      {"adaptive, gather", {plan::Mode::kAdaptive, true, costs_for(plan::Method::kGather)}},
      {"shared, staged", {plan::Mode::kShared, true, costs_for(plan::Method::kStaged)}},
      {"shared, gather", {plan::Mode::kShared, true, costs_for(plan::Method::kGather)}}};
  return kCases;
}

constexpr const char* kTrafficNames[] = {"mixed", "imix", "64", "512", "1518"};

class SameBytes : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
 protected:
  ChainCase const& chain() const { return chains()[std::get<0>(GetParam())]; }
  Traffic const& traffic() const {
    return (chain().esp_input ? esp_traffic() : clear_traffic())[std::get<1>(GetParam())];
  }

  ChainOutput run(std::uint32_t gpu_mask, std::string const& device, std::uint32_t workers = 1,
                  std::string const& extra = "", chain::SyncOptions const& sync = {}) const {
    Result<ChainOutput> output = run_chain({nfs(), gpu_mask, traffic().capture, device, extra, workers, sync});
    EXPECT_TRUE(output.ok()) << output.status();
    return output.ok() ? *std::move(output) : ChainOutput{};
  }
  /// The chain's NFs, configured for the traffic.
  std::vector<NfText> nfs() const {
    std::vector<NfText> nfs = chain().nfs;
    for (NfText& nf : nfs) {
      if (nf.type == "lb") {
        nf.config = lb_config_for(clear_traffic()[std::get<1>(GetParam())].capture);
      }
    }
    return nfs;
  }
  /// Bit i: NF i has a kernel.
  std::uint32_t kernels() const {
    std::uint32_t mask = 0;
    for (std::size_t i = 0; i < chain().nfs.size(); ++i) {
      mask |= chain().nfs[i].has_kernel ? 1U << i : 0;
    }
    return mask;
  }
  static void expect_same(ChainOutput const& actual, ChainOutput const& expected, std::string const& what) {
    // byte strings of megabytes: say that they differ, do not print them
    EXPECT_TRUE(actual.capture == expected.capture) << what << ": the output capture differs, " << actual.capture.size()
                                                    << " bytes against " << expected.capture.size();
    EXPECT_EQ(first_difference(actual.records, expected.records), "") << what << ": the record lines differ";
    EXPECT_TRUE(actual.report.accounted()) << what;
    EXPECT_EQ(actual.report.slots_in_use, 0U) << what << ": slots leaked";
    EXPECT_EQ(actual.report.sent, expected.report.sent) << what;
  }
};

TEST_P(SameBytes, for_every_placement_and_device) {
  const ChainOutput expected = run(0, "none");
  ASSERT_GT(expected.report.seen, 1000U);
  ASSERT_GT(expected.report.sent, 0U);
  ASSERT_FALSE(expected.records.empty());
  ASSERT_TRUE(expected.report.accounted());
  ASSERT_FALSE(device_names().empty()) << "at least PoCL must be there";
  for (std::string const& device : device_names()) {
    for (std::uint32_t mask = 1; mask < 1U << chain().nfs.size(); ++mask) {
      if ((mask & ~kernels()) != 0) {
        continue;
      }
      const ChainOutput actual = run(mask, device);
      expect_same(actual, expected, fmt::format("placement {:b} on {}", mask, device));
      for (std::size_t i = 0; i < chain().nfs.size(); ++i) {
        EXPECT_EQ(actual.report.nfs[i].placement, (mask >> i & 1U) != 0 ? "gpu" : "cpu")
            << "the device was really used";
      }
    }
  }
}

TEST_P(SameBytes, for_every_way_to_synchronize) {
  const ChainOutput expected = run(0, "none");
  // the mixed capture meets every way, the other traffics share them out
  const auto [chain_number, traffic_number] = GetParam();
  for (std::string const& device : device_names()) {
    for (std::size_t i = 0; i < sync_cases().size(); ++i) {
      SyncCase const& sync = sync_cases()[i];
      if (traffic_number == 0 || (i + chain_number + traffic_number) % 3 == 0) {
        expect_same(run(kernels(), device, 1, "", sync.options), expected, fmt::format("{} on {}", sync.name, device));
      }
    }
  }
}

TEST(SameBytesSuite, notices_a_plan_that_forgets_a_field) {
  const std::vector<NfText> nfs{kFirewall, kNids, kEncrypt, kRouter};
  const std::string capture = clear_traffic().front().capture;
  const Result<ChainOutput> right = run_chain({nfs, 7, capture, device_names().front(), ""});
  ASSERT_TRUE(right.ok()) << right.status();
  ASSERT_TRUE(right->plan.has_value());
  plan::GpuStep const& first = *right->plan->nfs[0].step;
  ASSERT_TRUE(first.shared && packet::contains(first.to_device, packet::kPayload))
      << "the firewall's step moves the payload for those behind it";

  chain::SyncOptions sync;
  sync.plan = right->plan;
  sync.plan->nfs[0].step->to_device &= ~packet::fields(packet::kPayload);
  const Result<ChainOutput> wrong = run_chain({nfs, 7, capture, device_names().front(), "", 1, sync});
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_FALSE(wrong->capture == right->capture);
  EXPECT_FALSE(wrong->records == right->records);
}

TEST_P(SameBytes, for_every_number_of_workers_and_batch_shape) {
  const ChainOutput expected = run(0, "none");
  const std::uint32_t all = kernels();
  for (const std::uint32_t workers : {2U, 6U}) {
    expect_same(run(0, "none", workers), expected, fmt::format("cpu, {} workers", workers));
    expect_same(run(all, device_names().front(), workers, "  tuning: {units_per_launch: 1, launches_in_flight: 5}\n"),
                expected, fmt::format("gpu, {} workers, small launches", workers));
  }
  expect_same(
      run(all, device_names().front(), 1, "  tuning: {pool_slots: 2048, units_per_launch: 3, launches_in_flight: 1}\n"),
      expected, "small pool");
}

INSTANTIATE_TEST_SUITE_P(Chains, SameBytes,
                         ::testing::Combine(::testing::Range<std::size_t>(0, chains().size()),
                                            ::testing::Range<std::size_t>(0, std::size(kTrafficNames))),
                         [](auto const& test) {
                           return std::string(chains()[std::get<0>(test.param)].name) + "_" +
                                  kTrafficNames[std::get<1>(test.param)];
                         });

}  // namespace
}  // namespace catena::testing
