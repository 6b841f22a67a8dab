// SPDX-License-Identifier: Apache-2.0
// The invariant of the project: the output of a chain is the same, byte for byte, for every placement of its NFs and
// on every device. The all-CPU run is what the others are compared with; the NFs' own tests hold that run to oracles.
//
// C1 .. C5 also meet placements, ways to synchronize and unit sizes in combination: C2, whose NAT also writes payloads,
// in every one; the others in every pair of them, a fifth of the runs. CATENA_SAME_BYTES=full in the environment takes
// every combination of all five, CATENA_SAME_BYTES=traffics each case with each traffic.
#include "system/same_bytes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string_view>

namespace catena::testing {
namespace {

constexpr const char* kTrafficNames[] = {"mixed", "imix", "64", "512", "1518"};

/// The placements with at least one NF on the device.
std::vector<std::uint32_t> device_placements(std::vector<NfText> const& nfs) {
  std::vector<std::uint32_t> masks;
  for (std::uint32_t mask = 1; mask < 1U << nfs.size(); ++mask) {
    masks.push_back(mask);
  }
  return masks;
}

class SameBytes : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
 protected:
  ChainCase const& chain() const { return chains()[std::get<0>(GetParam())]; }
  Traffic const& traffic() const {
    return (chain().esp_input ? esp_traffic() : clear_traffic())[std::get<1>(GetParam())];
  }

  ChainOutput run(std::uint32_t gpu_mask, std::string const& device, std::uint32_t workers = 1,
                  std::string const& extra = "", chain::SyncOptions const& sync = {}) const {
    return run({nfs(), gpu_mask, traffic().capture, device, extra, workers, sync});
  }
  static ChainOutput run(ChainRun const& chain_run) {
    Result<ChainOutput> output = run_chain(chain_run);
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
  std::uint32_t all() const { return (1U << chain().nfs.size()) - 1; }
  bool is_met(std::size_t index, std::size_t every) const {
    return meets(std::get<1>(GetParam()), std::get<0>(GetParam()), index, every);
  }
};

TEST_P(SameBytes, for_every_placement_and_device) {
  const ChainOutput expected = run(0, "none");
  ASSERT_GT(expected.report.rx.seen, 1000U);
  ASSERT_GT(expected.report.tx.sent, 0U);
  ASSERT_FALSE(expected.records.empty());
  ASSERT_EQ(expected.flows.empty(), std::none_of(chain().nfs.begin(), chain().nfs.end(),
                                                 [](NfText const& nf) { return nf.type == "monitor"; }));
  ASSERT_TRUE(expected.report.accounted());
  ASSERT_FALSE(device_names().empty()) << "at least PoCL must be there";
  for (std::string const& device : device_names()) {
    for (const std::uint32_t mask : device_placements(chain().nfs)) {
      if (!is_met(mask, 4)) {
        continue;
      }
      const ChainOutput actual = run(mask, device);
      const std::string what = fmt::format("placement {:b} on {}", mask, device);
      expect_same(actual, expected, what);
      expect_placed(actual, mask, what);
    }
  }
}

TEST_P(SameBytes, for_every_way_to_synchronize) {
  const ChainOutput expected = run(0, "none");
  for (std::string const& device : device_names()) {
    for (std::size_t i = 0; i < sync_cases().size(); ++i) {
      SyncCase const& sync = sync_cases()[i];
      if (is_met(i, 3)) {
        expect_same(run(all(), device, 1, "", sync.options), expected, fmt::format("{} on {}", sync.name, device));
      }
    }
  }
}

TEST_P(SameBytes, for_every_way_to_share_the_device) {
  const ChainOutput expected = run(0, "none");
  std::size_t number = 0;
  for (std::string const& device : device_names()) {
    for (const share::Mode mode :
         {share::Mode::kScheduled, share::Mode::kFair, share::Mode::kUncoordinated, share::Mode::kTemporal}) {
      for (const share::Parts parts : {share::Parts::kGreen, share::Parts::kBlocks, share::Parts::kNone}) {
        if ((parts == share::Parts::kGreen && device != "cuda") || !is_met(++number, 5)) {
          continue;
        }
        ChainRun shared{nfs(), all(), traffic().capture, device, ""};
        shared.sharing = {mode, parts, 0};
        shared.workers = 2;
        const std::string what = fmt::format("{}, {}, on {}", to_string(mode), to_string(parts), device);
        const ChainOutput actual = run(shared);
        expect_same(actual, expected, what);
        expect_placed(actual, all(), what);
        EXPECT_EQ(actual.report.sharing.parts.size(), nfs().size()) << what;
      }
    }
  }
}

TEST_P(SameBytes, for_a_placement_that_costs_decide) {
  if (!is_met(0, 4)) {
    GTEST_SKIP() << "this chain meets another traffic";
  }
  const auto [chain_number, traffic_number] = GetParam();
  const ChainOutput expected = run(0, "none");
  const std::size_t nf = (chain_number + traffic_number) % nfs().size();
  for (std::string const& device : device_names()) {
    // one NF, as a device may have a single compute unit; none where there is no device
    for (auto const& [mask, name] :
         {std::pair(1U << nf, device), std::pair(0U, device), std::pair(0U, std::string("none"))}) {
      ChainRun placed{nfs(), mask, traffic().capture, name, ""};
      placed.is_auto = true;
      const std::string what = fmt::format("auto {:b} on {}", mask, name);
      const ChainOutput actual = run(placed);
      expect_same(actual, expected, what);
      expect_placed(actual, mask, what);
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
  if (!is_met(0, 4)) {
    GTEST_SKIP() << "this chain meets another traffic";
  }
  const ChainOutput expected = run(0, "none");
  for (const std::uint32_t workers : {2U, 6U}) {
    expect_same(run(0, "none", workers), expected, fmt::format("cpu, {} workers", workers));
    expect_same(run(all(), device_names().front(), workers, "  tuning: {units_per_launch: 1, launches_in_flight: 5}\n"),
                expected, fmt::format("gpu, {} workers, small launches", workers));
  }
  expect_same(run(all(), device_names().front(), 2, "  tuning: {unit_packets: auto}\n"), expected, "units by the plan");
  expect_same(run(all(), device_names().front(), 1,
                  "  tuning: {pool_slots: 2048, units_per_launch: 3, launches_in_flight: 1}\n"),
              expected, "small pool");
  for (std::string const& device : device_names()) {
    ChainRun served{nfs(), all(), traffic().capture, device, ""};
    served.device_server = true;
    const std::string what = fmt::format("on {} of a device server", device);
    const ChainOutput actual = run(served);
    expect_same(actual, expected, what);
    expect_placed(actual, all(), what);
    served.sync = {plan::Mode::kCopy, true, costs_for(TransferMethod::kStaged)};
    served.workers = 2;
    expect_same(run(served), expected, fmt::format("copies {}", what));
  }
  for (const std::uint32_t mask : {0U, all()}) {
    ChainRun grouped{nfs(), mask, traffic().capture, mask == 0 ? "none" : device_names().front(),
                     "  tuning: {unit_packets: 16}\n"};
    grouped.records = false;
    expect_same_packets(run(grouped), expected, fmt::format("units of 16 together, mask {}", mask));
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, SameBytes,
                         ::testing::Combine(::testing::Range<std::size_t>(0, chains().size()),
                                            ::testing::Range<std::size_t>(0, std::size(kTrafficNames))),
                         [](auto const& test) {
                           return std::string(chains()[std::get<0>(test.param)].name) + "_" +
                                  kTrafficNames[std::get<1>(test.param)];
                         });

const NfText kEncryptAll{"vpn", "ipsec", "direction: encrypt, sa: sa-all.yaml, mtu: 2034"};
const NfText kDecryptAll{"vpn", "ipsec", "direction: decrypt, sa: sa-all.yaml"};
/// One external address: combined_traffic() knows the endpoints that its hosts get.
/// Traffic of all directions arrives at one port: what comes to inside addresses goes on, so that later NFs see it.
const NfText kOneAddressNat{"nat", "nat",
                            "inside: [10.0.0.0/8, 100.64.0.0/10], external: [203.0.113.1], inbound_to_inside: pass"};

/// C1 .. C5, with associations that carry every packet: an old byte in a payload that IPsec moves on shows.
std::vector<ChainCase> const& combined_chains() {
  static const std::vector<ChainCase> kChains{
      {"C1", {kFirewall, kDecryptAll, kNids}, true},
      {"C2", {kNids, kOneAddressNat, kEncryptAll}, false},
      {"C3", {kDecryptAll, kLb, kNids}, true},
      {"C4", {kFirewall, kDecryptAll, kNids, kRouter}, true},
      {"C5", {kFirewall, kMonitor, kOneAddressNat, kEncryptAll, kNids}, false},
  };
  return kChains;
}

/// Pushdown is a choice of the adaptive mode alone: the others plan the same with and without.
std::vector<SyncCase> const& combined_ways() {
  static const std::vector<SyncCase> kWays{
      {"copy", {plan::Mode::kCopy}},
      {"shared", {plan::Mode::kShared}},
      {"adaptive", {plan::Mode::kAdaptive}},
      {"adaptive without pushdown", {plan::Mode::kAdaptive, false}},
      {"adaptive, gather", {plan::Mode::kAdaptive, true, costs_for(TransferMethod::kGather)}}};
  return kWays;
}

constexpr std::uint32_t kUnitPackets[] = {4, 16, 64, 256, 1024};
constexpr std::uint32_t kLaunchPackets = 2048;
static_assert(std::size(kUnitPackets) == 5, "as many as ways, for the pairs below");

std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size())) {
    ++count;
  }
  return count;
}

enum class Cover { kAll, kPairs };

/// Compares runs of `chain` on each device with its run on the CPU. kAll: for every placement, way and unit size.
/// kPairs: every pair of placement and way, of placement and unit size, and of way and unit size occurs. With as many
/// ways as unit sizes, and at least as many placements, that takes one run for each placement and unit size: the way is
/// the sum of their numbers, modulo 5 (a Latin square). The traffic of every run has ICMP errors about datagrams that
/// the NAT of C2 and C5 translates, in both directions (docs/adr/0011).
void expect_same_in_combination(ChainCase const& chain, Cover cover) {
  CombinedTraffic const& traffic = combined_traffic();
  std::vector<NfText> nfs = chain.nfs;
  bool has_nat = false;
  for (NfText& nf : nfs) {
    has_nat |= nf.type == "nat";
    if (nf.type == "lb") {
      nf.config = lb_config_for(traffic.clear);
    }
  }
  ChainRun run{nfs, 0, chain.esp_input ? traffic.esp : traffic.clear, "none", ""};
  const Result<ChainOutput> expected = run_chain(run);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_GT(expected->report.rx.seen, kLaunchPackets) << "a launch can be full";
  ASSERT_GT(expected->report.tx.sent, expected->report.rx.seen / 2);
  if (has_nat) {
    ASSERT_EQ(count_of(expected->records, "\"icmp_error\":3"), traffic.icmp_errors) << "the NAT translates all";
  }

  const std::vector<std::uint32_t> placements = device_placements(nfs);
  ASSERT_GE(placements.size(), combined_ways().size());
  ASSERT_EQ(std::size(kUnitPackets), combined_ways().size());
  for (std::string const& device : device_names()) {
    for (std::size_t p = 0; p < placements.size(); ++p) {
      for (std::size_t u = 0; u < std::size(kUnitPackets); ++u) {
        for (std::size_t w = 0; w < combined_ways().size(); ++w) {
          if (cover == Cover::kPairs && w != (p + u) % combined_ways().size()) {
            continue;
          }
          SyncCase const& way = combined_ways()[w];
          const std::string what =
              fmt::format("placement {:b}, {}, units of {} on {}", placements[p], way.name, kUnitPackets[u], device);
          run.gpu_mask = placements[p];
          run.device = device;
          run.sync = way.options;
          run.spec_extra = fmt::format("  tuning: {{unit_packets: {}, units_per_launch: {}}}\n", kUnitPackets[u],
                                       kLaunchPackets / kUnitPackets[u]);
          const Result<ChainOutput> actual = run_chain(run);
          ASSERT_TRUE(actual.ok()) << what << ": " << actual.status();
          expect_same(*actual, *expected, what);
          expect_placed(*actual, placements[p], what);
        }
      }
    }
  }
}

class SameBytesInEveryCombination : public ::testing::TestWithParam<std::size_t> {};
class SameBytesInEveryPair : public ::testing::TestWithParam<std::size_t> {};

TEST_P(SameBytesInEveryCombination, of_placement_way_and_unit_size) {
  expect_same_in_combination(combined_chains()[GetParam()], Cover::kAll);
}

TEST_P(SameBytesInEveryPair, of_placement_way_and_unit_size) {
  expect_same_in_combination(combined_chains()[GetParam()], is_full_product() ? Cover::kAll : Cover::kPairs);
}

std::string combined_name(::testing::TestParamInfo<std::size_t> const& test) {
  return combined_chains()[test.param].name;
}
INSTANTIATE_TEST_SUITE_P(Chains, SameBytesInEveryCombination, ::testing::Values(1), combined_name);
INSTANTIATE_TEST_SUITE_P(Chains, SameBytesInEveryPair, ::testing::Values(0, 2, 3, 4), combined_name);

}  // namespace
}  // namespace catena::testing
