// SPDX-License-Identifier: Apache-2.0
// Peers that share no code with this project judge what we encrypt, and we decrypt what they encrypt: scapy and tshark.
#include "ipsec_testing.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/oracle.hpp>

#include <gtest/gtest.h>

namespace catena::ipsec::testing {
namespace {

using nf::testing::CommandResult;
using nf::testing::has_tshark;
using nf::testing::write_capture;

bool has_scapy() {
  static const bool kHas = nf::testing::can_import("scapy.layers.ipsec, cryptography");
  return kHas;
}

// Three tunnels, told apart by the inner source port; the second one is in UDP. The same text serves both directions.
constexpr std::string_view kOracleSaFile = R"(associations:
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
    selector: {protocol: udp, source_port: 1024-1400}
  - spi: 0x2001
    source: 192.0.2.1
    destination: 198.51.100.2
    encryption_key: a0a1a2a3a4a5a6a7a8a9aaabacadaeaf
    salt: deadbeef
    authentication_key: 505152535455565758595a5b5c5d5e5f60616263
    selector: {protocol: udp, source_port: 1401-1800}
    udp_encapsulation: {source_port: 4500, destination_port: 4500}
  - spi: 8195
    source: 192.0.2.9
    destination: 198.51.100.1
    encryption_key: 101112131415161718191a1b1c1d1e1f20212223
    authentication_key: 707172737475767778797a7b7c7d7e7f80818283
    first_sequence: 70000
)";
/// The frames of these tests are longer with ESP than an Ethernet carries.
constexpr std::string_view kLongMtu = "mtu: 2034";
constexpr std::string_view kSaJson = R"([
 {"spi": 4096, "source": "192.0.2.1", "destination": "198.51.100.1", "udp": null,
  "key": "000102030405060708090a0b0c0d0e0ff0f1f2f3",
  "authentication_key": "303132333435363738393a3b3c3d3e3f40414243"},
 {"spi": 8193, "source": "192.0.2.1", "destination": "198.51.100.2", "udp": [4500, 4500],
  "key": "a0a1a2a3a4a5a6a7a8a9aaabacadaeafdeadbeef",
  "authentication_key": "505152535455565758595a5b5c5d5e5f60616263"},
 {"spi": 8195, "source": "192.0.2.9", "destination": "198.51.100.1", "udp": null,
  "key": "101112131415161718191a1b1c1d1e1f20212223",
  "authentication_key": "707172737475767778797a7b7c7d7e7f80818283"}])";

/// For the peer's packets: its choice of tunnel is its own, so the selectors let everything through.
std::string sa_file_without_selectors() {
  std::string text;
  std::string_view rest = kOracleSaFile;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    rest.remove_prefix(line.size());
    if (line.find("selector") == std::string_view::npos) {
      text += line;
    }
  }
  return text;
}

class Oracle : public ::testing::Test {
 protected:
  Oracle() { folder_.write("sa.json", kSaJson); }

  void expect_scapy_decrypts(std::vector<Frame> const& originals, std::vector<Frame> const& encrypted) {
    write_capture(folder_.path("encrypted.pcap"), encrypted);
    const CommandResult run = nf::testing::run_oracle(
        "ipsec", "scapy_peer.py",
        {"decrypt", folder_.path("sa.json"), folder_.path("encrypted.pcap"), folder_.path("decrypted.pcap")});
    ASSERT_EQ(run.status, 0) << run.output;
    const auto decrypted = nf::testing::read_capture(folder_.path("decrypted.pcap"));
    ASSERT_TRUE(decrypted.ok()) << decrypted.status();
    expect_frames(*decrypted, originals);
  }

  void expect_tshark_decrypts(std::vector<Frame> const& originals, std::vector<Frame> const& encrypted) {
    write_capture(folder_.path("encrypted.pcap"), encrypted);
    write_capture(folder_.path("original.pcap"), originals);
    const CommandResult run = nf::testing::run_oracle(
        "ipsec", "tshark_check.py",
        {folder_.path("sa.json"), folder_.path("encrypted.pcap"), folder_.path("original.pcap")});
    EXPECT_EQ(run.status, 0) << run.output;
    EXPECT_NE(run.output.find(concat(originals.size(), " packets with a good ICV")), std::string::npos) << run.output;
  }

  std::vector<Frame> encrypted_by_scapy(std::vector<Frame> const& frames) {
    write_capture(folder_.path("plain.pcap"), frames);
    const CommandResult run = nf::testing::run_oracle(
        "ipsec", "scapy_peer.py",
        {"encrypt", folder_.path("sa.json"), folder_.path("plain.pcap"), folder_.path("peer.pcap")});
    EXPECT_EQ(run.status, 0) << run.output;
    auto encrypted = nf::testing::read_capture(folder_.path("peer.pcap"));
    EXPECT_TRUE(encrypted.ok()) << encrypted.status();
    return std::move(encrypted).value_or(std::vector<Frame>());
  }

  ScratchFolder folder_;
};

/// Sizes 42 .. 1541 bytes: with every remainder modulo 4, 16 and 64, through all three tunnels.
std::vector<Frame> every_size() { return frames_of_every_size(1500); }

TEST_F(Oracle, scapy_decrypts_packets_of_every_size) {
  if (!has_scapy()) {
    GTEST_SKIP() << "python3-scapy with cryptography is not installed";
  }
  const RunResult result = run_everywhere("encrypt", kOracleSaFile, every_size(), kLongMtu);
  expect_scapy_decrypts(every_size(), frames_of(result));
}

TEST_F(Oracle, tshark_decrypts_packets_of_every_size) {
  if (!has_tshark()) {
    GTEST_SKIP() << "tshark is not installed";
  }
  const RunResult result = run_everywhere("encrypt", kOracleSaFile, every_size(), kLongMtu, {256});
  expect_tshark_decrypts(every_size(), frames_of(result));
}

class MixedTraffic : public Oracle {
 protected:
  void SetUp() override {
    auto capture = nf::testing::read_capture(shared_data() + "/traces/mixed.pcap");
    ASSERT_TRUE(capture.ok()) << capture.status();
    frames_ = ipv4_frames(*capture);
    ASSERT_GT(frames_.size(), 1500U);
  }
  std::vector<Frame> frames_;
};

TEST_F(MixedTraffic, scapy_and_tshark_decrypt_it) {
  if (!has_scapy() || !has_tshark()) {
    GTEST_SKIP() << "python3-scapy with cryptography, or tshark, is not installed";
  }
  const RunResult result = run_everywhere("encrypt", kOracleSaFile, frames_, kLongMtu, {33, 256});
  ASSERT_EQ(result.counters.processed, frames_.size());
  ASSERT_EQ(survivors(result).size(), frames_.size());
  expect_scapy_decrypts(frames_, frames_of(result));
  expect_tshark_decrypts(frames_, frames_of(result));
}

TEST_F(MixedTraffic, is_decrypted_as_scapy_encrypted_it) {
  if (!has_scapy()) {
    GTEST_SKIP() << "python3-scapy with cryptography is not installed";
  }
  const RunResult result =
      run_everywhere("decrypt", sa_file_without_selectors(), encrypted_by_scapy(frames_), "", {33, 256});
  expect_frames(frames_of(result), frames_);
  EXPECT_EQ(survivors(result).size(), frames_.size());
}

TEST_F(Oracle, packets_of_scapy_of_every_size_are_decrypted) {
  if (!has_scapy()) {
    GTEST_SKIP() << "python3-scapy with cryptography is not installed";
  }
  const RunResult result = run_everywhere("decrypt", sa_file_without_selectors(), encrypted_by_scapy(every_size()));
  expect_frames(frames_of(result), every_size());
  EXPECT_EQ(survivors(result).size(), every_size().size());
  ASSERT_GT(result.records.size(), 4U);
  EXPECT_EQ(result.records[4], R"({"packet":4,"nf":"ipsec","verdict":"pass","spi":8193,"seq":2})");
}

TEST_F(Oracle, every_damage_to_a_packet_of_scapy_is_found) {
  if (!has_scapy()) {
    GTEST_SKIP() << "python3-scapy with cryptography is not installed";
  }
  const std::vector<Frame> plain = frames_of_every_size(6);
  const std::vector<Frame> good = encrypted_by_scapy(plain);
  ASSERT_EQ(good.size(), plain.size());
  // one bit of every byte after the outer headers of packets 0 (plain ESP) and 1 (in UDP)
  std::vector<Frame> frames;
  for (const std::size_t number : {0, 1}) {
    const std::size_t esp = 14 + 20 + (number == 1 ? 8 : 0);
    for (std::size_t at = esp; at < good[number].size(); ++at) {
      frames.push_back(good[number]);
      frames.back()[at] = static_cast<std::uint8_t>(frames.back()[at] ^ (1U << (at % 8)));
    }
  }
  const RunResult result = run_everywhere("decrypt", sa_file_without_selectors(), frames);
  EXPECT_TRUE(survivors(result).empty());
  // the first four bytes are the SPI
  EXPECT_EQ(result.dropped("no_sa"), 2U * 4U);
  EXPECT_EQ(result.dropped("bad_icv"), frames.size() - 2U * 4U);
}

TEST_F(Oracle, a_packet_of_scapy_cut_at_any_length_is_dropped) {
  if (!has_scapy()) {
    GTEST_SKIP() << "python3-scapy with cryptography is not installed";
  }
  const std::vector<Frame> good = encrypted_by_scapy(frames_of_every_size(2));
  ASSERT_EQ(good.size(), 2U);
  std::vector<Frame> frames;
  for (Frame const& whole : good) {
    const bool udp = whole[23] == packet::kProtocolUdp;
    for (std::size_t length = 34 + (udp ? 8 : 0); length < whole.size(); ++length) {
      // cut at its end, with lengths that agree, as somebody on the way could do it
      Frame frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      packet::store_be16(frame.data() + 16, static_cast<std::uint16_t>(length - 14));
      if (udp) {
        packet::store_be16(frame.data() + 38, static_cast<std::uint16_t>(length - 34));
      }
      frames.push_back(frame);
    }
  }
  const RunResult result = run_everywhere("decrypt", sa_file_without_selectors(), frames);
  EXPECT_TRUE(survivors(result).empty());
  EXPECT_EQ(result.dropped("malformed") + result.dropped("bad_icv"), frames.size());
  EXPECT_GT(result.dropped("malformed"), result.dropped("bad_icv"));  // three of four lengths are no multiple of 4
}

TEST_F(Oracle, what_we_encrypt_we_decrypt) {
  const RunResult encrypted = run_everywhere("encrypt", kOracleSaFile, every_size(), kLongMtu, {64});
  const RunResult decrypted = run_everywhere("decrypt", kOracleSaFile, frames_of(encrypted), "", {64});
  expect_frames(frames_of(decrypted), every_size());
}

}  // namespace
}  // namespace catena::ipsec::testing
