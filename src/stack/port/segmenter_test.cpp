// SPDX-License-Identifier: Apache-2.0
#include "stack/port/segmenter.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "stack/tcp/frame.hpp"
#include "stack/tcp/raw_peer.hpp"

namespace catena::stack {
namespace {

using testing::Bytes;

/// A segment with `data` bytes and a FIN, before it is cut: with the sum of nothing in its checksum.
Bytes large_frame(bool is_v4, std::size_t data, Bytes const& options) {
  std::minstd_rand random(static_cast<unsigned>(data));
  Bytes content(data);
  for (std::uint8_t& byte : content) {
    byte = static_cast<std::uint8_t>(random());
  }
  const Bytes segment = testing::tcp(7, 40'000,
                                     {.flags = testing::kAck | testing::kPush | testing::kFin | 0x80,
                                      .number = 0xFFFFF000,
                                      .acknowledged = 77,
                                      .options = options,
                                      .data = content});
  return is_v4 ? testing::ipv4(testing::kPeerV4, kTcpProtocol, segment) : testing::ipv6(kTcpProtocol, segment);
}

std::vector<Bytes> cut(Bytes const& frame, std::uint16_t segment_bytes, std::size_t split) {
  const std::size_t tcp = find_segment(testing::as_frame(frame), true)->tcp;
  const std::size_t header = tcp + std::size_t{4} * (frame[tcp + 12] >> 4U);
  const std::span<const std::byte> all = testing::as_frame(frame);
  const std::array<std::span<const std::byte>, 3> parts = {all.first(header), all.subspan(header, split),
                                                           all.subspan(header + split)};
  const OutgoingFrame outgoing{.parts = parts,
                               .bytes = static_cast<std::uint32_t>(frame.size()),
                               .checksum_start = static_cast<std::uint16_t>(tcp),
                               .header_bytes = static_cast<std::uint16_t>(header),
                               .segment_bytes = segment_bytes};
  Segmenter segmenter(outgoing);
  std::vector<Bytes> segments;
  while (segmenter.left() > 0) {
    Bytes segment(segmenter.max_bytes());
    segment.resize(segmenter.write_next(std::as_writable_bytes(std::span(segment))));
    segments.push_back(segment);
  }
  return segments;
}

void write_capture(std::string const& path, std::vector<Bytes> const& frames) {
  std::ofstream file(path, std::ios::binary);
  const auto word = [&file](std::uint32_t value) { file.write(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const std::uint32_t value : {0xA1B2C3D4U, 0x00040002U, 0U, 0U, 0x40000U, 1U}) {
    word(value);
  }
  for (Bytes const& frame : frames) {
    word(1);
    word(0);
    word(static_cast<std::uint32_t>(frame.size()));
    word(static_cast<std::uint32_t>(frame.size()));
    file.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  }
}

TEST(Segmenter, tshark_finds_its_numbers_flags_and_checksums_right) {
  if (std::system("tshark --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no tshark";
  }
  std::vector<Bytes> frames;
  std::ostringstream expected;
  for (const bool is_v4 : {true, false}) {
    for (const std::size_t data : {std::size_t{1}, std::size_t{1448}, std::size_t{1449}, std::size_t{9999}}) {
      const std::vector<Bytes> segments = cut(large_frame(is_v4, data, {1, 1, 1, 1}), 1448, data / 3);
      frames.insert(frames.end(), segments.begin(), segments.end());
      for (std::size_t at = 0; at < data; at += 1448) {
        const bool is_last = at + 1448 >= data;
        const unsigned flags = 0x10U | (is_last ? 0x09U : 0U) | (at == 0 ? 0x80U : 0U);
        std::array<char, 80> line{};
        std::snprintf(line.data(), line.size(), "%u,%zu,0x%04x,1,%s\n", static_cast<std::uint32_t>(0xFFFFF000U + at),
                      std::min<std::size_t>(1448, data - at), flags, is_v4 ? "1" : "");
        expected << line.data();
      }
    }
  }
  const std::string capture = "segmenter_test." + std::to_string(::getpid());
  write_capture(capture, frames);
  const std::string command = "tshark -r " + capture +
                              " -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -T fields -E separator=, "
                              "-e tcp.seq_raw -e tcp.len -e tcp.flags -e tcp.checksum.status -e ip.checksum.status "
                              "2>/dev/null";
  std::string found;
  FILE* const output = ::popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::array<char, 4096> bytes{};
  while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), output)) {
    found.append(bytes.data(), count);
  }
  ::pclose(output);
  std::remove(capture.c_str());
  EXPECT_EQ(found, expected.str());
}

TEST(Segmenter, keeps_the_bytes) {
  for (const bool is_v4 : {true, false}) {
    const Bytes frame = large_frame(is_v4, 64'240, {});
    for (const std::uint16_t segment_bytes : {std::uint16_t{88}, std::uint16_t{536}, std::uint16_t{1460}}) {
      Bytes joined;
      for (Bytes const& segment : cut(frame, segment_bytes, 1000)) {
        EXPECT_TRUE(has_right_checksum(testing::as_frame(segment)));
        joined.insert(joined.end(), segment.begin() + (is_v4 ? 54 : 74), segment.end());
      }
      EXPECT_TRUE(std::equal(joined.begin(), joined.end(), frame.begin() + (is_v4 ? 54 : 74), frame.end()));
    }
    const std::vector<Bytes> whole = cut(frame, 0, 5);  // the checksum alone
    ASSERT_EQ(whole.size(), 1U);
    EXPECT_TRUE(has_right_checksum(testing::as_frame(whole[0])));
  }
}

}  // namespace
}  // namespace catena::stack
