// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "system/chain_runner.hpp"

#include <gtest/gtest.h>
#include <catena/core/text.hpp>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

/// What the tests of "the same bytes everywhere" have in common: the ways to run a chain, and how two runs are
/// compared.
namespace catena::testing {

inline const NfText kFirewall{"fw", "firewall", "rules: fw.rules, default: allow"};
inline const NfText kNids{"ids", "nids", "rules: ids.rules"};
inline const NfText kEncrypt{"vpn", "ipsec", "direction: encrypt, sa: sa.yaml, mtu: 2034"};
inline const NfText kDecrypt{"vpn", "ipsec", "direction: decrypt, sa: sa.yaml"};
inline const NfText kRouter{"rt", "router", "routes: routes.txt"};
inline const NfText kNat{"nat", "nat", "inside: [10.0.0.0/8], external: [203.0.113.1-203.0.113.3]"};
inline const NfText kMonitor{"flows", "monitor",
                             concat("max_flows: 1000, export: [{format: json, file: \"", kFlowsFile, "\"}]")};
inline const NfText kLb{"lb", "lb", ""};  // its services depend on the traffic

struct ChainCase {
  const char* name;
  std::vector<NfText> nfs;
  bool esp_input;
};

/// The branch office's outbound chain, S_a .. S_d of G-NET with IPsec in both directions, and C1 .. C5 of AdaptChain.
/// C1 and C4 are S_b and S_d, decrypting. Last a monitor whose keys two NFs before it have written.
inline std::vector<ChainCase> const& chains() {
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
      {"monitor_last", {kDecrypt, kNat, kMonitor}, true},
  };
  return kChains;
}

inline constexpr plan::MethodSet kStagedAlone = plan::method_bit(TransferMethod::kStaged);

/// Ways to synchronize host and device, besides the default.
struct SyncCase {
  std::string name;
  chain::SyncOptions options;
};
inline std::vector<SyncCase> const& sync_cases() {
  static const std::vector<SyncCase> kCases = [] {
    std::vector<SyncCase> cases{
        {"copy", {plan::Mode::kCopy}},
        {"copy, staged", {plan::Mode::kCopy, true, chain::CostProfile::built_in(), kStagedAlone}},
        {"adaptive, no kernel in the host's memory",
         {plan::Mode::kAdaptive, true, chain::CostProfile::built_in(), plan::method_bit(TransferMethod::kStrided)}},
        {"shared", {plan::Mode::kShared}},
        {"adaptive without pushdown", {plan::Mode::kAdaptive, false}}};
    for (const TransferMethod method : kTransferMethods) {
      cases.push_back({concat("adaptive, ", to_string(method)), {plan::Mode::kAdaptive, true, costs_for(method)}});
    }
    cases.push_back({"shared, staged", {plan::Mode::kShared, true, costs_for(TransferMethod::kStaged)}});
    cases.push_back({"shared, gather", {plan::Mode::kShared, true, costs_for(TransferMethod::kGather)}});
    return cases;
  }();
  return kCases;
}

/// How much is wanted. CATENA_SAME_BYTES: `full`, every combination, however long that takes; `traffics`, every traffic
/// meets what otherwise only the mixed capture meets whole.
inline bool wants(std::string_view much) {
  const char* value = std::getenv("CATENA_SAME_BYTES");
  return value != nullptr && (value == much || std::string_view(value) == "full");
}
inline bool is_full_product() { return wants("full"); }

/// Whether the traffic `number` meets the case `index` of a chain: the mixed capture (0) meets each, the others share
/// them out, `every` of them between two.
inline bool meets(std::size_t number, std::size_t chain, std::size_t index, std::size_t every) {
  return number == 0 || (chain + number + index) % every == 0 || wants("traffics");
}

inline void expect_same_packets(ChainOutput const& actual, ChainOutput const& expected, std::string const& what) {
  // byte strings of megabytes: say that they differ, do not print them
  EXPECT_TRUE(actual.capture == expected.capture) << what << ": the output capture differs, " << actual.capture.size()
                                                  << " bytes against " << expected.capture.size();
  EXPECT_EQ(first_difference(actual.flows, expected.flows), "") << what << ": the exported flows differ";
  EXPECT_TRUE(actual.report.accounted()) << what;
  EXPECT_EQ(actual.report.rx.slots_in_use, 0U) << what << ": slots leaked";
  EXPECT_EQ(actual.report.tx.sent, expected.report.tx.sent) << what;
}

inline void expect_same(ChainOutput const& actual, ChainOutput const& expected, std::string const& what) {
  expect_same_packets(actual, expected, what);
  EXPECT_EQ(first_difference(actual.records, expected.records), "") << what << ": the record lines differ";
}

/// Whether every NF ran where `mask` wants it: none gave its device up.
inline void expect_placed(ChainOutput const& actual, std::uint32_t mask, std::string const& what) {
  for (std::size_t i = 0; i < actual.report.nfs.size(); ++i) {
    EXPECT_EQ(actual.report.nfs[i].placement, (mask >> i & 1U) != 0 ? "gpu" : "cpu") << what;
  }
}

}  // namespace catena::testing
