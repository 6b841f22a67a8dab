// SPDX-License-Identifier: Apache-2.0
// What Linux makes of frames, as tests/oracle/kernel_router.py has recorded it in testdata/linux.txt, must become of
// them here too. That script compares more frames with the kernel at hand.
#include "router.hpp"

#include <gtest/gtest.h>
#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/run_everywhere.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace catena::router {
namespace {

using nf::testing::Frame;
using nf::testing::PacketResult;
using nf::testing::RunOptions;
using nf::testing::RunResult;
using packet::Verdict;

constexpr std::string_view kYaml =
    "routes: routes.txt\n"
    "frames: own\n"
    "icmp_rate: 1000000\n"
    "ports:\n"
    "  - {port: 0, mac: 02:00:00:00:09:01, next_hop_mac: 02:00:00:00:09:02, address: 10.9.0.1/24}\n"
    "  - {port: 1, mac: 02:00:00:00:51:01, next_hop_mac: 02:00:00:00:51:02, address: 198.51.100.1/24}\n";

struct Corpus {
  std::vector<std::string> names;
  std::vector<Frame> frames;
  std::vector<std::string> fates;  ///< "drop", or the side and the frame as it left
  std::vector<std::uint64_t> arrivals_ns;
};

Frame from_hex(std::string_view text) {
  Frame frame;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    frame.push_back(static_cast<std::uint8_t>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return frame;
}

Corpus read_corpus() {
  Corpus corpus;
  std::ifstream file(source_path("nfs/router/testdata/linux.txt"));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    std::istringstream fields(line);
    std::string name, time_ms, frame, fate;
    std::getline(fields, name, '|');
    fields >> time_ms >> fate >> frame >> fate >> fate;  // with a bar before the frame, and one after it
    corpus.names.push_back(name);
    corpus.frames.push_back(from_hex(frame));
    corpus.fates.push_back(fate);
    // a day for each: the rate of errors is no matter
    constexpr std::uint64_t kMsPerDay = 86'400'000;
    corpus.arrivals_ns.push_back((corpus.frames.size() * kMsPerDay + std::stoull(time_ms)) * 1'000'000);
  }
  return corpus;
}

std::string hex(Frame const& frame) {
  std::string text;
  for (const std::uint8_t byte : frame) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

/// As the corpus has it: without padding, and a router's own ICMP without identification, DF and header checksum.
std::string fate_of(PacketResult const& result) {
  if (result.verdict == Verdict::kDrop) {
    return "drop";
  }
  constexpr std::size_t kArpFrameBytes = 42;
  Frame frame = result.frame;
  const bool is_ip = packet::load_be16(&frame[12]) == 0x0800;
  frame.resize(is_ip ? 14U + packet::load_be16(&frame[16]) : kArpFrameBytes);
  if (result.verdict == Verdict::kReply && is_ip) {
    std::fill_n(frame.begin() + 18, 4, std::uint8_t{0});
    std::fill_n(frame.begin() + 24, 2, std::uint8_t{0});
  }
  return (result.verdict == Verdict::kReply || result.port == 0 ? "lan:" : "wan:") + hex(frame);
}

class Linux : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("routes.txt", "10.9.0.0/24 0\n10.20.0.0/16 0\n198.51.100.0/24 1\n203.0.113.0/24 1\n");
  }
  Result<std::unique_ptr<nf::Nf>> make() { return nf::testing::make_nf(catena_nf_router(), kYaml, folder_.path()); }

  ScratchFolder folder_;
};

TEST_F(Linux, drops_forwards_and_answers_the_same_frames_with_the_same_bytes) {
  const Corpus corpus = read_corpus();
  ASSERT_GT(corpus.frames.size(), 1000U);
  RunOptions options;
  options.arrivals_ns = corpus.arrivals_ns;
  const RunResult whole = nf::testing::run_everywhere(
      catena_nf_router(), [this] { return make(); }, corpus.frames, options);
  ASSERT_EQ(whole.packets.size(), corpus.frames.size());
  for (std::size_t i = 0; i < corpus.frames.size(); ++i) {
    EXPECT_EQ(fate_of(whole.packets[i]), corpus.fates[i]) << corpus.names[i] << hex(corpus.frames[i]);
    if (whole.packets[i].verdict == Verdict::kDrop) {
      EXPECT_EQ(whole.packets[i].frame, corpus.frames[i]) << corpus.names[i];
    }
  }
  // each shard as the whole
  constexpr std::size_t kShards = 3;
  std::unique_ptr<nf::Nf> first;
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    std::vector<Frame> frames;
    RunOptions part;
    for (std::size_t i = shard; i < corpus.frames.size(); i += kShards) {
      frames.push_back(corpus.frames[i]);
      part.arrivals_ns.push_back(corpus.arrivals_ns[i]);
    }
    const auto make_shard = [&] {
      first = make().value();
      return first->replicate(static_cast<std::uint32_t>(shard));
    };
    const RunResult result = nf::testing::run_everywhere(catena_nf_router(), make_shard, frames, part);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      ASSERT_EQ(result.packets[i], whole.packets[shard + i * kShards]) << corpus.names[shard + i * kShards];
    }
  }
}

}  // namespace
}  // namespace catena::router
