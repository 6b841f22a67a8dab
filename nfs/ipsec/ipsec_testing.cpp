// SPDX-License-Identifier: Apache-2.0
#include "ipsec_testing.hpp"

#include <catena/core/text.hpp>

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace catena::ipsec::testing {
namespace {

namespace fs = std::filesystem;

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

ScratchFolder::ScratchFolder() {
  std::string pattern = (fs::temp_directory_path() / "catena-ipsec-XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}
std::string ScratchFolder::path(std::string_view name) const { return (fs::path(folder_) / name).string(); }
void ScratchFolder::write(std::string_view name, std::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

Result<std::unique_ptr<nf::Nf>> make(std::string_view direction, std::string_view sa_text, std::string_view more) {
  const ScratchFolder folder;
  folder.write("sa.yaml", sa_text);
  return nf::testing::make_nf(catena_nf_ipsec(), concat("direction: ", direction, "\nsa: sa.yaml\n", more, "\n"),
                              folder.path(""));
}

RunResult run_everywhere(std::string_view direction, std::string_view sa_text, std::vector<Frame> const& frames,
                         std::string_view more, std::vector<std::uint32_t> const& sizes) {
  std::vector<device::Device*> places{nullptr};
  places.insert(places.end(), nf::testing::devices().begin(), nf::testing::devices().end());
  std::optional<RunResult> first;
  for (device::Device* place : places) {
    for (const std::uint32_t size : sizes) {
      const std::string where = concat(place == nullptr ? "CPU" : place->info().name, ", units of ", size);
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
    const packet::Layers layers = packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()));
    if ((layers.flags & packet::kIpv4) != 0) {
      result.emplace_back(frame.begin(), frame.begin() + layers.l3 + layers.l3_length);
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

void write_pcap(std::string const& path, std::vector<Frame> const& frames) {
  std::ofstream file(path, std::ios::binary);
  const auto put = [&file](std::vector<std::uint32_t> const& words) {
    file.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
  };
  put({0xA1B2C3D4, 2 | 4 << 16, 0, 0, 65535, 1});
  for (Frame const& frame : frames) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    put({0, 0, length, length});
    file.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  }
}

CommandResult run_command(std::string const& command) {
  CommandResult result;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> buffer;
  while (const std::size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), bytes);
  }
  result.status = pclose(pipe);
  return result;
}

bool has_scapy() {
  static const bool kHas = run_command("/usr/bin/python3 -c 'import scapy.layers.ipsec, cryptography'").status == 0;
  return kHas;
}

bool has_tshark() {
  static const bool kHas = run_command("tshark --version").status == 0;
  return kHas;
}

CommandResult run_oracle(std::string_view script, std::vector<std::string> const& arguments) {
  std::string command = concat("/usr/bin/python3 '", CATENA_SOURCE_DIR "/nfs/ipsec/oracle/", script, "'");
  for (std::string const& argument : arguments) {
    command += concat(" '", argument, "'");
  }
  return run_command(command);
}

}  // namespace catena::ipsec::testing
