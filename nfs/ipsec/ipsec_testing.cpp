// SPDX-License-Identifier: Apache-2.0
#include "ipsec_testing.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace catena::ipsec::testing {
namespace {

/// Record lines start with {"packet":N, so a stable sort by N is packet order.
std::vector<std::string> in_packet_order(std::vector<std::string> lines) {
  const auto number = [](std::string const& line) { return std::stoull(line.substr(line.find(':') + 1)); };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](std::string const& a, std::string const& b) { return number(a) < number(b); });
  return lines;
}

void expect_same(RunResult const& expected, RunResult const& actual, std::string const& where) {
  ASSERT_EQ(expected.packets.size(), actual.packets.size()) << where;
  for (std::size_t i = 0; i < expected.packets.size(); ++i) {
    ASSERT_EQ(expected.packets[i].verdict, actual.packets[i].verdict) << where << ", packet " << i;
    ASSERT_EQ(expected.packets[i].port, actual.packets[i].port) << where << ", packet " << i;
  }
  expect_frames(frames_of(actual), frames_of(expected), where);
  EXPECT_EQ(expected.records, actual.records) << where;
  EXPECT_EQ(expected.drops, actual.drops) << where;
}

std::string hex(Frame const& frame) {
  std::string text;
  for (const std::uint8_t byte : frame) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<nf::Nf>> make(std::string_view direction, std::string_view sa_text, std::string_view more) {
  const ScratchFolder folder;
  folder.write("sa.yaml", sa_text);
  return nf::testing::make_nf(catena_nf_ipsec(), concat("direction: ", direction, "\nsa: sa.yaml\n", more, "\n"),
                              folder.path());
}

std::string one_tunnel(std::string_view more) {
  return concat(R"(associations:
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
)",
                more);
}

std::string two_tunnels(std::string_view selector, std::string_view in_udp) {
  return concat(one_tunnel(), "    selector: ", selector, R"(
  - spi: 4097
    source: 192.0.2.1
    destination: 198.51.100.2
    encryption_key: a0a1a2a3a4a5a6a7a8a9aaabacadaeafdeadbeef
    authentication_key: 505152535455565758595a5b5c5d5e5f60616263
    selector: )",
                in_udp, R"(
    udp_encapsulation: {}
)");
}

RunResult run_everywhere(std::string_view direction, std::string_view sa_text, std::vector<Frame> const& frames,
                         std::string_view more, std::vector<std::uint32_t> const& sizes) {
  std::vector<device::Device*> places{nullptr};
  places.insert(places.end(), nf::testing::devices().begin(), nf::testing::devices().end());
  std::optional<RunResult> first;
  for (device::Device* place : places) {
    for (const std::uint32_t size : sizes) {
      const std::string where = concat(nf::testing::name_of(place), ", units of ", size);
      auto nf = make(direction, sa_text, more);
      if (!nf.ok()) {
        ADD_FAILURE() << nf.status();
        return {};
      }
      nf::testing::RunOptions options;
      options.unit_size = size;
      options.units_per_launch = size == 1 ? 64 : 4;
      auto result = nf::testing::run(catena_nf_ipsec(), std::move(nf).value(), frames, place, options);
      if (!result.ok()) {
        ADD_FAILURE() << where << ": " << result.status();
        return {};
      }
      result->records = in_packet_order(std::move(result->records));
      EXPECT_EQ(result->counters.kernel_faults, 0U) << where;
      EXPECT_EQ(result->dropped("crypto_failed"), 0U) << where;
      if (!first) {
        first = std::move(result).value();
      } else {
        expect_same(*first, *result, where);
      }
    }
  }
  return std::move(*first);
}

std::vector<Frame> survivors(RunResult const& result) {
  std::vector<Frame> frames;
  for (nf::testing::PacketResult const& packet : result.packets) {
    if (packet.verdict != packet::Verdict::kDrop) {
      frames.push_back(packet.frame);
    }
  }
  return frames;
}

std::vector<Frame> frames_of(RunResult const& result) {
  std::vector<Frame> frames;
  for (nf::testing::PacketResult const& packet : result.packets) {
    frames.push_back(packet.frame);
  }
  return frames;
}

void expect_frames(std::vector<Frame> const& actual, std::vector<Frame> const& expected, std::string_view where) {
  ASSERT_EQ(actual.size(), expected.size()) << where;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(actual[i] == expected[i])
        << where << ", packet " << i << "\n  is        " << hex(actual[i]) << "\n  should be " << hex(expected[i]);
  }
}

std::vector<Frame> ipv4_frames(std::vector<Frame> const& frames) {
  std::vector<Frame> result;
  for (Frame const& frame : frames) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    const packet::Layers layers = packet::parse(frame.data(), length);
    if ((layers.flags & packet::kIpv4) != 0) {
      const std::uint32_t end = layers.l3 + packet::l3_length(frame.data(), length, layers);
      result.emplace_back(frame.begin(), frame.begin() + end);
    }
  }
  return result;
}

std::vector<Frame> frames_of_every_size(std::uint32_t sizes) {
  std::vector<Frame> frames;
  for (std::uint32_t size = 0; size < sizes; ++size) {
    std::string payload(size, '\0');
    for (std::uint32_t i = 0; i < size; ++i) {
      payload[i] = static_cast<char>(size + 31 * i);
    }
    frames.push_back(nf::testing::make_frame(packet::kProtocolUdp, 0x0A010001, 0x0A020001,
                                             static_cast<std::uint16_t>(1024 + size), 53, payload));
  }
  return frames;
}

}  // namespace catena::ipsec::testing
