// SPDX-License-Identifier: Apache-2.0
// Hostile packets: no crash, no access outside (the sanitizer builds run this too), and every packet accounted for,
// with the same bytes whether the CPU or a device looked at it.
#include "system/chain_runner.hpp"

#include <catena/packet/headers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace catena::testing {
namespace {

using nf::testing::Frame;
using nf::testing::make_frame;

const std::vector<NfText> kEncryptChain{{"fw", "firewall", "rules: fw.rules, default: allow"},
                                        {"ids", "nids", "rules: ids.rules"},
                                        {"vpn", "ipsec", "direction: encrypt, sa: sa.yaml"},
                                        {"rt", "router", "routes: routes.txt"}};
const std::vector<NfText> kDecryptChain{{"vpn", "ipsec", "direction: decrypt, sa: sa.yaml"},
                                        {"fw", "firewall", "rules: fw.rules, default: allow"},
                                        {"ids", "nids", "rules: ids.rules"},
                                        {"rt", "router", "routes: routes.txt"}};

Frame with_vlan(Frame frame, unsigned tags) {
  for (unsigned i = 0; i < tags; ++i) {
    const std::uint8_t tag[] = {0x81, 0x00, 0x00, 0x07};
    frame.insert(frame.begin() + 12, std::begin(tag), std::end(tag));
  }
  return frame;
}

/// `words` words of no-operation options behind the IPv4 header.
Frame with_options(Frame frame, unsigned words) {
  frame.insert(frame.begin() + 34, words * 4, 1);
  frame[14] = static_cast<std::uint8_t>(0x45 + words);
  packet::store_be16(frame.data() + 16, static_cast<std::uint16_t>(packet::load_be16(frame.data() + 16) + words * 4));
  return frame;
}

Frame with_fragment(Frame frame, std::uint16_t field) {
  packet::store_be16(frame.data() + 20, field);
  return frame;
}

Frame esp_frame(std::uint32_t spi, std::size_t bytes) {
  Frame frame = make_frame(packet::kProtocolUdp, 0xC6336401, 0xCB007101, 0, 0, std::string(bytes, 'c'));
  frame[23] = packet::kProtocolEsp;
  packet::store_be32(frame.data() + 34, spi);
  packet::store_be32(frame.data() + 38, 1);
  return frame;
}

/// Frames of every kind, all well formed.
std::vector<Frame> seeds() {
  const Frame tcp =
      make_frame(packet::kProtocolTcp, 0x0A000006, 0xD4C7CA09, 40000, 80, "GET / HTTP/1.1\r\nHost: example\r\n\r\n");
  const Frame udp = make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A00008A, 5353, 53,
                               "\x03"
                               "com");
  Frame icmp = udp;
  icmp[23] = packet::kProtocolIcmp;
  Frame ipv6 = tcp;
  ipv6[12] = 0x86;
  ipv6[13] = 0xDD;
  return {tcp,
          udp,
          icmp,
          ipv6,
          esp_frame(4096, 64),
          esp_frame(99, 64),
          with_vlan(tcp, 1),
          with_vlan(udp, 2),
          with_vlan(tcp, 3),
          with_options(tcp, 10),
          with_options(udp, 1),
          with_fragment(udp, 0x2000),
          with_fragment(udp, 0x0001),
          with_fragment(tcp, 0x3FFF),
          with_fragment(esp_frame(4096, 64), 0x2000)};
}

/// Runs both chains over the frames, on the CPU and with every NF on each device.
void expect_survival(std::vector<Frame> const& frames, std::string const& name) {
  const std::string capture = (scratch_folder() / (name + ".pcap")).string();
  ASSERT_TRUE(write_capture(capture, frames).ok());
  for (auto const* nfs : {&kEncryptChain, &kDecryptChain}) {
    const Result<ChainOutput> expected = run_chain({*nfs, 0, capture, "none", "", 1});
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(expected->report.seen, frames.size());
    EXPECT_TRUE(expected->report.accounted());
    for (std::string const& device : device_names()) {
      for (const std::uint32_t mask : {0b1111U, 0b0101U, 0b1010U}) {
        const Result<ChainOutput> actual = run_chain({*nfs, mask, capture, device, "", 1});
        ASSERT_TRUE(actual.ok()) << actual.status();
        EXPECT_TRUE(actual->report.accounted());
        EXPECT_TRUE(actual->capture == expected->capture) << "placement " << mask << " on " << device;
        EXPECT_EQ(first_difference(actual->records, expected->records), "") << "placement " << mask << " on " << device;
        for (chain::NfReport const& nf : actual->report.nfs) {
          EXPECT_EQ(nf.kernel_faults, 0U) << nf.name;
        }
      }
    }
  }
}

TEST(BadInput, frames_cut_at_every_length) {
  std::vector<Frame> frames;
  for (Frame const& seed : seeds()) {
    for (std::size_t length = 0; length <= 64; ++length) {
      frames.emplace_back(seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(std::min(length, seed.size())));
    }
  }
  expect_survival(frames, "cut");
}

TEST(BadInput, every_header_byte_with_extreme_values) {
  std::vector<Frame> frames;
  for (Frame const& seed : seeds()) {
    for (std::size_t at = 12; at < std::min<std::size_t>(seed.size(), 74); ++at) {
      for (const int value : {0x00, 0x01, 0x0F, 0x40, 0x46, 0x4F, 0x7F, 0x80, 0xFF}) {
        frames.push_back(seed);
        frames.back()[at] = static_cast<std::uint8_t>(value);
      }
    }
  }
  expect_survival(frames, "extreme");
}

TEST(BadInput, random_damage) {
  std::mt19937 random(11);
  const std::vector<Frame> whole = seeds();
  std::vector<Frame> frames;
  for (int i = 0; i < 20'000; ++i) {
    Frame frame = whole[random() % whole.size()];
    for (auto flips = random() % 8; flips > 0 && !frame.empty(); --flips) {
      frame[random() % frame.size()] = static_cast<std::uint8_t>(random());
    }
    if (random() % 3 == 0) {
      frame.resize(random() % (frame.size() + 1));
    }
    frames.push_back(std::move(frame));
  }
  expect_survival(frames, "damaged");
}

TEST(BadInput, captures_that_broke_other_programs) {
  const std::string shared = nf::testing::shared_data();
  if (shared.empty()) {
    GTEST_SKIP() << "the shared test data is not beside the checkout";
  }
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(shared + "/malformed")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GT(files.size(), 200U);
  std::vector<Frame> frames;
  std::size_t opened = 0;
  for (auto const& file : files) {
    // a damaged file may be refused, with a reason; what it holds up to the damage is used
    if (Result<std::vector<Frame>> read = nf::testing::read_capture(file.string(), UINT32_MAX); read.ok()) {
      ++opened;
      frames.insert(frames.end(), read->begin(), read->end());
    }
  }
  EXPECT_GT(opened, files.size() * 9 / 10);
  frames.erase(std::remove_if(frames.begin(), frames.end(), [](Frame const& frame) { return frame.size() > 65535; }),
               frames.end());
  expect_survival(frames, "malformed");
}

TEST(BadInput, each_malformed_capture_by_itself_through_rx) {
  const std::string shared = nf::testing::shared_data();
  if (shared.empty()) {
    GTEST_SKIP() << "the shared test data is not beside the checkout";
  }
  std::size_t ran = 0;
  for (auto const& entry : std::filesystem::directory_iterator(shared + "/malformed")) {
    const Result<ChainOutput> output =
        run_chain({{{"fw", "firewall", "rules: fw.rules, default: allow"}}, 0, entry.path().string(), "none", "", 1});
    if (output.ok()) {
      ++ran;
      EXPECT_TRUE(output->report.accounted()) << entry.path();
    } else {
      EXPECT_NE(output.status().message().find(entry.path().filename().string()), std::string::npos)
          << "the error names the file: " << output.status();
    }
  }
  EXPECT_GT(ran, 200U);
}

}  // namespace
}  // namespace catena::testing
