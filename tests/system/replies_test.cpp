// SPDX-License-Identifier: Apache-2.0
// Replies: packets that an NF turns into answers on the host are there alone. No later stage may bring their twins back
// over them, whatever it moves and how.
#include "system/chain_runner.hpp"
#include "system/responder.hpp"

#include <catena/packet/headers.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

namespace catena::testing {
namespace {

struct Way {
  std::string name;
  chain::SyncOptions options;
};
std::vector<Way> const& ways() {
  static const std::vector<Way> kWays = [] {
    std::vector<Way> ways{{"copy", {plan::Mode::kCopy}},
                          {"shared", {plan::Mode::kShared}},
                          {"adaptive", {plan::Mode::kAdaptive}},
                          {"adaptive without pushdown", {plan::Mode::kAdaptive, false}}};
    for (const TransferMethod method : kTransferMethods) {
      ways.push_back({concat("adaptive, ", to_string(method)), {plan::Mode::kAdaptive, true, costs_for(method)}});
    }
    ways.push_back({"shared, strided", {plan::Mode::kShared, true, costs_for(TransferMethod::kStrided)}});
    return ways;
  }();
  return kWays;
}

/// Answers before, between and after NFs that move frames to the device, rewrite them there and move them back. Few
/// answers at first, so that strided copies still suit the holes that they leave.
const std::vector<NfText> kNfs{
    {"first", "responder", "at: prepare, every: 97"},
    {"second", "responder", "at: complete, every: 89"},
    {"ids", "nids", "rules: ids.rules"},
    {"vpn", "ipsec", "direction: encrypt, sa: sa.yaml"},
    {"third", "responder", "at: complete, every: 101"},
};

/// The mixed capture, then datagrams that IPsec answers: too long for its tunnels, and not to be fragmented.
std::string const& capture() {
  static const std::string kPath = [] {
    constexpr std::uint16_t kDontFragment = 0x4000;
    std::vector<packet::testing::Frame> frames = nf::testing::read_capture(clear_traffic().front().capture).value();
    for (std::uint16_t port = 1; port <= 10; ++port) {
      const std::string payload(1514 - packet::testing::kL4 - packet::kUdpBytes, 'x');
      packet::testing::Frame frame = packet::testing::with_fragment(
          packet::testing::make_frame(packet::kProtocolUdp, 0xC0A80001, 0xC6336401, port, port, payload),
          kDontFragment);
      packet::store_be16(&frame[packet::testing::kL3 + 4], port);  // identifications that no responder answers
      frames.push_back(packet::testing::with_header_checksum(std::move(frame)));
    }
    std::string path = (scratch_folder() / "too-long.pcap").string();
    EXPECT_EQ(write_capture(path, frames), absl::OkStatus());
    return path;
  }();
  return kPath;
}

ChainOutput run(std::uint32_t gpu_mask, std::string const& device, chain::SyncOptions const& sync = {},
                std::string const& extra = "") {
  ChainRun run{kNfs, gpu_mask, capture(), device, extra, 1, sync};
  run.registry = &registry_with_responder();
  Result<ChainOutput> output = run_chain(run);
  EXPECT_TRUE(output.ok()) << output.status();
  return output.ok() ? *std::move(output) : ChainOutput{};
}

void expect_same(ChainOutput const& actual, ChainOutput const& expected, std::string const& what) {
  EXPECT_TRUE(actual.capture == expected.capture) << what << ": the output capture differs";
  EXPECT_EQ(first_difference(actual.records, expected.records), "") << what << ": the record lines differ";
  EXPECT_TRUE(actual.report.accounted()) << what;
  EXPECT_EQ(actual.report.rx.slots_in_use, 0U) << what;
  for (std::size_t i = 0; i < actual.report.nfs.size(); ++i) {
    EXPECT_EQ(actual.report.nfs[i].packets.replies, expected.report.nfs[i].packets.replies) << what;
    EXPECT_EQ(actual.report.nfs[i].packets.in, expected.report.nfs[i].packets.in) << what;
  }
}

TEST(Replies, are_seen_by_no_later_nf_and_written_to_the_capture) {
  const ChainOutput output = run(0, "none");
  runtime::Report const& report = output.report;
  ASSERT_EQ(report.nfs.size(), kNfs.size());
  std::uint64_t in = report.rx.received;
  for (runtime::NfReport const& nf : report.nfs) {
    EXPECT_EQ(nf.packets.in, in) << nf.name << " sees what the one before it passed";
    EXPECT_EQ(nf.packets.replies > 0, nf.type != "nids")
        << nf.name << "; IPsec answers what is too long for its tunnels";
    std::uint64_t dropped = 0;
    for (io::NamedCount const& drop : nf.packets.drops) {
      dropped += drop.count;
    }
    EXPECT_EQ(nf.packets.in, nf.packets.passed + nf.packets.replies + dropped) << nf.name;
    in = nf.packets.passed;
  }
  EXPECT_EQ(report.rx.seen, report.tx.sent + report.dropped());
  EXPECT_TRUE(report.accounted());

  // an answer is an ICMP message from 192.0.2.1, which no packet of the capture comes from
  const std::string path = (scratch_folder() / "replies.pcap").string();
  std::ofstream(path, std::ios::binary) << output.capture;
  const Result<std::vector<packet::testing::Frame>> frames = nf::testing::read_capture(path);
  ASSERT_TRUE(frames.ok()) << frames.status();
  EXPECT_EQ(frames->size(), report.tx.sent);
  std::uint64_t answers = 0;
  for (packet::testing::Frame const& frame : *frames) {
    const packet::Layers layers = packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()));
    answers += (layers.flags & packet::kIcmp) != 0 && packet::load_be32(&frame[layers.l3 + 12U]) == 0xC0000201 ? 1 : 0;
  }
  EXPECT_EQ(answers, report.nfs[0].packets.replies + report.nfs[1].packets.replies + report.nfs[4].packets.replies);
}

TEST(Replies, have_the_same_bytes_for_every_placement) {
  const ChainOutput expected = run(0, "none");
  for (std::string const& device : device_names()) {
    for (std::uint32_t mask = 1; mask < 1U << kNfs.size(); ++mask) {
      expect_same(run(mask, device), expected, fmt::format("placement {:b} on {}", mask, device));
    }
  }
}

TEST(Replies, have_the_same_bytes_for_every_way_to_synchronize) {
  const ChainOutput expected = run(0, "none");
  for (std::string const& device : device_names()) {
    for (Way const& way : ways()) {
      for (const std::uint32_t mask : {0b11111U, 0b11101U, 0b01010U, 0b11100U}) {
        expect_same(run(mask, device, way.options), expected, fmt::format("{}, {:b} on {}", way.name, mask, device));
      }
      expect_same(run(0b11111U, device, way.options, "  tuning: {unit_packets: 1024, units_per_launch: 2}\n"), expected,
                  fmt::format("{}, large units on {}", way.name, device));
    }
  }
}

}  // namespace
}  // namespace catena::testing
