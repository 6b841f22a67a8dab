// SPDX-License-Identifier: Apache-2.0
// Hostile packets: no crash, no access outside (the sanitizer builds run this too), and every packet accounted for,
// with the same bytes whether the CPU or a device inspected it.
#include "system/chain_runner.hpp"

#include <catena/core/testing/test_data.hpp>
#include <catena/packet/testing/traffic.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace catena::testing {
namespace {

using packet::testing::Frame;

const std::vector<NfText> kEncryptChain{{"fw", "firewall", "rules: fw.rules, default: allow"},
                                        {"ids", "nids", "rules: ids.rules"},
                                        {"vpn", "ipsec", "direction: encrypt, sa: sa.yaml"},
                                        {"rt", "router", "routes: routes.txt"}};
const std::vector<NfText> kDecryptChain{{"vpn", "ipsec", "direction: decrypt, sa: sa.yaml"},
                                        {"fw", "firewall", "rules: fw.rules, default: allow"},
                                        {"ids", "nids", "rules: ids.rules"},
                                        {"rt", "router", "routes: routes.txt"}};

const std::vector<NfText> kStatefulChain{
    {"flows", "monitor", "max_flows: 1000"},
    {"nat", "nat", "inside: [10.0.0.0/8], external: [203.0.113.1]"},
    {"lb", "lb",
     "services: [{address: 212.199.202.9, port: 80, protocol: tcp, backends: [{name: a, address: 10.200.0.1}]}]"}};

/// Runs the chains over the frames, on the CPU and with every NF on each device.
void expect_survival(std::vector<Frame> const& frames, std::string const& name) {
  const std::string capture = (scratch_folder() / (name + ".pcap")).string();
  ASSERT_TRUE(write_capture(capture, frames).ok());
  for (auto const* nfs : {&kEncryptChain, &kDecryptChain, &kStatefulChain}) {
    const Result<ChainOutput> expected = run_chain({*nfs, 0, capture, "none", "", 1});
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(expected->report.rx.seen, frames.size());
    EXPECT_TRUE(expected->report.accounted());
    for (std::string const& device : device_names()) {
      for (const std::uint32_t mask :
           nfs == &kStatefulChain ? std::vector{0b111U, 0b101U} : std::vector{0b1111U, 0b0101U, 0b1010U}) {
        const Result<ChainOutput> actual = run_chain({*nfs, mask, capture, device, "", 1});
        ASSERT_TRUE(actual.ok()) << actual.status();
        EXPECT_TRUE(actual->report.accounted());
        EXPECT_EQ(actual->report.rx.slots_in_use, 0U);
        EXPECT_TRUE(actual->capture == expected->capture) << "placement " << mask << " on " << device;
        EXPECT_EQ(first_difference(actual->records, expected->records), "") << "placement " << mask << " on " << device;
        for (runtime::NfReport const& nf : actual->report.nfs) {
          EXPECT_EQ(nf.device.kernel_faults, 0U) << nf.name;
        }
      }
    }
  }
}

TEST(BadInput, frames_cut_at_every_length_and_every_header_byte_with_extreme_values) {
  expect_survival(packet::testing::hostile_frames(), "hostile");
}

TEST(BadInput, random_damage) {
  std::mt19937 random(11);
  const std::vector<Frame> whole = packet::testing::frames_of_every_kind();
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
  const std::string shared = shared_data();
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
  const std::string shared = shared_data();
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
