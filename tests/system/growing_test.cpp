// SPDX-License-Identifier: Apache-2.0
// Packets that grow on their way: full-size frames in two and three tunnels, taken off again, with devices in every
// place after the first NF that makes them longer. What a launch carries is then more than what rx takes, and the
// frames begin where less than a kernel's headroom is left in their slots.
#include "system/same_bytes.hpp"

#include <catena/core/text.hpp>

namespace catena::testing {
namespace {

// the longest frames that the slots hold, not what a network would take; `tunnel`: each has keys of its own
NfText encrypt(unsigned tunnel) {
  return {"vpn", "ipsec", concat("direction: encrypt, sa: ", sa_file("sa-all.yaml", tunnel), ", mtu: 2034")};
}
NfText decrypt(unsigned tunnel) {
  return {"vpn", "ipsec", concat("direction: decrypt, sa: ", sa_file("sa-all.yaml", tunnel))};
}
const NfText kNids{"ids", "nids", "rules: ids.rules"};

constexpr std::uint32_t kUnitPackets = 32;
constexpr std::uint32_t kUnitsPerLaunch = 2;
constexpr std::size_t kFullFrames = 320;  // several launches of nothing but these
constexpr std::size_t kOtherFrames = 64;

/// TCP and UDP in turn: by sa-all.yaml ESP takes 36 bytes in front of the one and 44, with its own UDP, of the other.
std::string const& growing_traffic() {
  static const std::string kPath = [] {
    constexpr std::size_t kHeaders[] = {packet::kEthernetBytes + packet::kIpv4MinBytes + packet::kUdpBytes,
                                        packet::kEthernetBytes + packet::kIpv4MinBytes + packet::kTcpMinBytes};
    std::vector<packet::testing::Frame> frames;
    for (std::size_t i = 0; i < kFullFrames + kOtherFrames; ++i) {
      const bool is_tcp = i % 2 == 1;
      const std::size_t most = packet::kMaxFrameBytes - kHeaders[is_tcp ? 1 : 0];
      const std::size_t bytes = i < kFullFrames ? most : 1 + i * 7919 % most;
      std::string text(bytes, ' ');
      for (std::size_t at = 0; at < text.size(); ++at) {
        text[at] = static_cast<char>('!' + (i * 31 + at * 7) % 90);
      }
      frames.push_back(packet::testing::make_frame(is_tcp ? packet::kProtocolTcp : packet::kProtocolUdp,
                                                   0x0A000001U + static_cast<std::uint32_t>(i % 50), 0xC0A80001U,
                                                   static_cast<std::uint16_t>(1024 + i), 80, text));
    }
    std::string path = (scratch_folder() / "growing.pcap").string();
    EXPECT_TRUE(write_capture(path, frames).ok());
    return path;
  }();
  return kPath;
}

struct GrowingCase {
  const char* name;
  std::vector<NfText> nfs;
  std::uint32_t gpu_mask;
};
std::vector<GrowingCase> const& cases() {
  static const std::vector<GrowingCase> kCases{
      {"once_then_again_on_device", {encrypt(0), encrypt(1)}, 0b10},
      {"twice_then_nids_on_device", {encrypt(0), encrypt(1), kNids}, 0b100},
      {"three_times_the_last_on_device", {encrypt(0), encrypt(1), encrypt(2)}, 0b100},
      {"three_times_the_last_two_on_device", {encrypt(0), encrypt(1), encrypt(2)}, 0b110},
      {"twice_then_taken_off_on_device", {encrypt(0), encrypt(1), decrypt(1), decrypt(0), kNids}, 0b11100},
  };
  return kCases;
}

class GrowingPackets : public ::testing::TestWithParam<std::size_t> {};

TEST_P(GrowingPackets, have_the_same_bytes_for_every_way_to_synchronize) {
  GrowingCase const& test = cases()[GetParam()];
  std::vector<NfText> nfs = test.nfs;
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    nfs[i].name += std::to_string(i);
  }
  ChainRun run{nfs, 0, growing_traffic(), "none", ""};
  run.spec_extra = concat("  tuning: {unit_packets: ", kUnitPackets, ", units_per_launch: ", kUnitsPerLaunch, "}\n");
  const Result<ChainOutput> expected = run_chain(run);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_EQ(expected->report.rx.seen, kFullFrames + kOtherFrames);
  ASSERT_GE(expected->report.tx.sent, expected->report.rx.seen / 2)
      << "at most the UDP that a third tunnel has no room for";
  run.gpu_mask = test.gpu_mask;
  for (std::string const& device : device_names()) {
    run.device = device;
    std::vector<SyncCase> ways = sync_cases();
    ways.push_back({"adaptive", {}});
    for (SyncCase const& way : ways) {
      const std::string what = concat(way.name, " on ", device);
      run.sync = way.options;
      const Result<ChainOutput> actual = run_chain(run);
      ASSERT_TRUE(actual.ok()) << what << ": " << actual.status();
      expect_same(*actual, *expected, what);
      expect_placed(*actual, test.gpu_mask, what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, GrowingPackets, ::testing::Range<std::size_t>(0, cases().size()),
                         [](auto const& test) { return cases()[test.param].name; });

}  // namespace
}  // namespace catena::testing
