// SPDX-License-Identifier: Apache-2.0
// Captures made by hand from the drafts, and all shared captures as tshark reads them.
#include "io/capture_reader.hpp"

#include "io/sink.hpp"
#include "io/source.hpp"
#include "io/test_support.hpp"

#include <catena/core/testing/test_data.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace catena::io {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using testing::Frame;
using ::testing::HasSubstr;

/// Reads bytes in pieces of `piece` bytes, so that a frame may be in many of them.
ReadBytes reading(Frame bytes, std::size_t piece = 7) {
  return [bytes = std::move(bytes), piece, at = std::size_t{0}](void* to, std::size_t most) mutable -> ssize_t {
    const std::size_t count = std::min({piece, most, bytes.size() - at});
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, static_cast<std::uint8_t*>(to));
    at += count;
    return static_cast<ssize_t>(count);
  };
}

struct Read {
  std::vector<Frame> frames;
  std::vector<std::uint64_t> stamps_ns;
  std::vector<std::uint32_t> missing;
  Status status;
};

Read read_all(ReadBytes bytes) {
  Read read;
  Result<std::unique_ptr<CaptureReader>> reader = CaptureReader::open(std::move(bytes), "in");
  if (!reader.ok()) {
    read.status = reader.status();
    return read;
  }
  for (;;) {
    const Result<std::optional<CapturedFrame>> frame = (*reader)->next();
    if (!frame.ok() || !frame->has_value()) {
      read.status = frame.status();
      return read;
    }
    read.frames.emplace_back((*frame)->bytes.begin(), (*frame)->bytes.end());
    read.stamps_ns.push_back((*frame)->stamp_ns);
    read.missing.push_back((*frame)->missing);
  }
}
Read read_all(Frame const& bytes) { return read_all(reading(bytes)); }

/// Numbers in one byte order, one after another.
class Writer {
 public:
  explicit Writer(bool is_big_endian = false) : is_big_endian_(is_big_endian) {}
  Writer& u8(std::uint8_t value) {
    bytes_.push_back(value);
    return *this;
  }
  Writer& u16(std::uint32_t value) { return number(value, 2); }
  Writer& u32(std::uint32_t value) { return number(value, 4); }
  Writer& bytes(Frame const& more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  Writer& pad() {
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
    return *this;
  }
  /// A pcapng block around `body`.
  Writer& block(std::uint32_t type, Writer const& body) {
    const auto length = static_cast<std::uint32_t>(12 + (body.bytes_.size() + 3) / 4 * 4);
    return u32(type).u32(length).bytes(body.bytes_).pad().u32(length);
  }
  Frame const& get() const { return bytes_; }

 private:
  Writer& number(std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i) {
      bytes_.push_back(static_cast<std::uint8_t>(value >> 8 * (is_big_endian_ ? count - 1 - i : i)));
    }
    return *this;
  }
  bool is_big_endian_;
  Frame bytes_;
};

Writer pcap(bool is_big_endian, std::uint32_t magic, std::uint32_t snapshot_length, std::uint32_t link_type = 1,
            std::uint32_t minor_version = 4) {
  Writer file(is_big_endian);
  file.u32(magic).u16(2).u16(minor_version).u32(0).u32(0).u32(snapshot_length).u32(link_type);
  return file;
}

constexpr std::uint32_t kSection = 0x0A0D0D0A;
constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kEnhanced = 6;

void add_section(Writer& file, bool is_big_endian = false) {
  file.block(kSection, Writer(is_big_endian).u32(0x1A2B3C4D).u16(1).u16(0).u32(~0U).u32(~0U));
}
void add_interface(Writer& file, std::uint32_t snapshot_length, std::uint32_t link_type = 1, bool is_big_endian = false,
                   Frame const& options = {}) {
  file.block(kInterface, Writer(is_big_endian).u16(link_type).u16(0).u32(snapshot_length).bytes(options));
}
void add_frame(Writer& file, std::uint32_t interface, std::uint64_t ticks, Frame const& frame, std::uint32_t original,
               bool is_big_endian = false) {
  file.block(kEnhanced, Writer(is_big_endian)
                            .u32(interface)
                            .u32(static_cast<std::uint32_t>(ticks >> 32))
                            .u32(static_cast<std::uint32_t>(ticks))
                            .u32(static_cast<std::uint32_t>(frame.size()))
                            .u32(original)
                            .bytes(frame));
}

const Frame kFrame = testing::make_frames(1, 60, 60).front();

TEST(Pcap, a_snapshot_length_below_the_frames_cuts_nothing) {
  for (const std::uint32_t snapshot_length : {0U, 1U, 64U, 262'144U, ~0U}) {
    Writer file = pcap(false, 0xA1B2C3D4, snapshot_length);
    const Frame frame(160, 9);
    file.u32(5).u32(6).u32(160).u32(1500).bytes(frame);
    const Read read = read_all(file.get());
    EXPECT_TRUE(read.status.ok()) << read.status;
    EXPECT_THAT(read.frames, ElementsAre(frame)) << snapshot_length;
    EXPECT_THAT(read.missing, ElementsAre(1340U));
    EXPECT_THAT(read.stamps_ns, ElementsAre(5'000'006'000ULL));
  }
}

TEST(Pcap, byte_orders_resolutions_and_an_fcs_in_the_link_type) {
  for (const bool is_big_endian : {false, true}) {
    for (const bool has_nanoseconds : {false, true}) {
      Writer file = pcap(is_big_endian, has_nanoseconds ? 0xA1B23C4D : 0xA1B2C3D4, 65535, 0x24000001);
      file.u32(4'000'000'000).u32(123'456).u32(60).u32(60).bytes(kFrame);
      const Read read = read_all(file.get());
      EXPECT_THAT(read.frames, ElementsAre(kFrame)) << read.status;
      EXPECT_THAT(read.stamps_ns, ElementsAre(4'000'000'000'000'000'000ULL + (has_nanoseconds ? 123'456 : 123'456'000)))
          << "seconds are unsigned";
    }
  }
}

TEST(Pcap, lengths_in_the_other_order_and_captured_lengths_above_the_original_are_understood) {
  Writer old = pcap(false, 0xA1B2C3D4, 65535, 1, 2);
  old.u32(1).u32(0).u32(100).u32(60).bytes(kFrame);  // version 2.2: original length first
  EXPECT_THAT(read_all(old.get()).missing, ElementsAre(40U));
  Writer longer = pcap(false, 0xA1B2C3D4, 65535);
  longer.u32(1).u32(0).u32(60).u32(20).bytes(kFrame);
  EXPECT_THAT(read_all(longer.get()).missing, ElementsAre(0U));
  EXPECT_THAT(read_all(longer.get()).frames, ElementsAre(kFrame));
}

TEST(Pcap, an_older_kind_has_longer_headers_of_frames) {
  Writer file = pcap(true, 0xA1B2CD34, 65535);
  file.u32(1).u32(0).u32(60).u32(60).u32(7).u16(0x0800).u8(0).u8(0).bytes(kFrame);
  EXPECT_THAT(read_all(file.get()).frames, ElementsAre(kFrame));
}

TEST(Pcapng, interfaces_have_snapshot_lengths_and_clocks_of_their_own) {
  Writer file;
  add_section(file);
  add_interface(file, 262'144);
  add_interface(file, 96, 1, false, Writer().u16(9).u16(1).u8(9).pad().u16(0).u16(0).get());  // nanoseconds
  add_interface(file, 0, 1, false, Writer().u16(9).u16(1).u8(0x80 | 10).pad().get());         // 1/1024 s
  add_interface(file, 0, 1, false, Writer().u16(14).u16(8).u32(100).u32(0).get());            // 100 s later
  for (std::uint32_t interface = 0; interface < 4; ++interface) {
    add_frame(file, interface, 3'000'000'512, kFrame, 60);
  }
  const Read read = read_all(file.get());
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.frames.size(), 4U);
  EXPECT_THAT(read.stamps_ns, ElementsAre(3'000'000'512'000ULL, 3'000'000'512ULL,
                                          2'929'687'500'000'000ULL + 500'000'000, 3'100'000'512'000ULL));
}

TEST(Pcapng, sections_change_the_byte_order_and_number_their_interfaces_from_0) {
  Writer first;
  add_section(first);
  add_interface(first, 65535);
  add_frame(first, 0, 1, kFrame, 60);
  Writer second(true);
  add_section(second, true);
  add_interface(second, 64, 1, true);
  add_frame(second, 0, 2, kFrame, 77, true);
  Writer file;
  file.bytes(first.get()).bytes(second.get());
  const Read read = read_all(file.get());
  EXPECT_THAT(read.frames, ElementsAre(kFrame, kFrame)) << read.status;
  EXPECT_THAT(read.stamps_ns, ElementsAre(1'000U, 2'000U));
  EXPECT_THAT(read.missing, ElementsAre(0U, 17U));
  add_section(file);
  add_frame(file, 0, 3, kFrame, 60);
  EXPECT_THAT(std::string(read_all(file.get()).status.message()),
              AllOf(HasSubstr("frame 3"), HasSubstr("interface 0, which the file does not describe")));
}

TEST(Pcapng, simple_and_obsolete_packets_are_read_and_unknown_blocks_of_any_length_skipped) {
  Writer file;
  add_section(file);
  file.block(0x0BAD, Writer().bytes(Frame(20 << 20, 1)));  // longer than any block that is read
  add_interface(file, 40);
  file.block(3, Writer().u32(60).bytes(Frame(kFrame.begin(), kFrame.begin() + 40)));
  file.block(2, Writer().u16(0).u16(5).u32(0).u32(9).u32(60).u32(61).bytes(kFrame));
  const Read read = read_all(reading(file.get(), 1 << 20));
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_THAT(read.frames, ElementsAre(Frame(kFrame.begin(), kFrame.begin() + 40), kFrame));
  EXPECT_THAT(read.missing, ElementsAre(20U, 1U));
  EXPECT_THAT(read.stamps_ns, ElementsAre(0U, 9'000U));
}

TEST(LinkTypes, cooked_frames_get_an_ethernet_header_and_others_are_refused_by_name) {
  const Frame payload(50, 0x45);
  const Frame mac{2, 4, 6, 8, 10, 12};
  Frame expected(6, 0);
  expected.insert(expected.end(), mac.begin(), mac.end());
  expected.insert(expected.end(), {0x08, 0x00});
  expected.insert(expected.end(), payload.begin(), payload.end());
  const Frame sll = Writer(true).u16(0).u16(1).u16(6).bytes(mac).u16(0).u16(0x0800).bytes(payload).get();
  const Frame sll2 = Writer(true).u16(0x0800).u16(0).u32(3).u16(1).u8(0).u8(6).bytes(mac).u16(0).bytes(payload).get();
  for (auto const& [link_type, cooked] : {std::pair(113U, sll), std::pair(276U, sll2)}) {
    Writer file = pcap(false, 0xA1B2C3D4, 65535, link_type);
    const auto length = static_cast<std::uint32_t>(cooked.size());
    file.u32(1).u32(0).u32(length).u32(length + 9).bytes(cooked);
    const Read read = read_all(file.get());
    EXPECT_THAT(read.frames, ElementsAre(expected)) << read.status;
    EXPECT_THAT(read.missing, ElementsAre(9U));
  }
  EXPECT_THAT(std::string(read_all(pcap(false, 0xA1B2C3D4, 65535, 101).get()).status.message()),
              AllOf(HasSubstr("link type RAW (101)"), HasSubstr("Linux cooked")));
  Writer later;
  add_section(later);
  add_interface(later, 65535);
  add_interface(later, 65535, 105);
  add_frame(later, 0, 1, kFrame, 60);
  add_frame(later, 1, 1, kFrame, 60);
  const Read read = read_all(later.get());
  EXPECT_EQ(read.frames.size(), 1U);
  EXPECT_EQ(read.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.status.message()), AllOf(HasSubstr("frame 2"), HasSubstr("IEEE802_11")));
}

TEST(Damage, is_told_by_the_frame_after_the_last_whole_one) {
  Writer ng;
  add_section(ng);
  add_interface(ng, 65535);
  add_frame(ng, 0, 1, kFrame, 60);
  Writer old = pcap(false, 0xA1B2C3D4, 65535);
  old.u32(1).u32(0).u32(60).u32(60).bytes(kFrame);
  for (Frame const& whole : {ng.get(), old.get()}) {
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const Read read = read_all(Frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)));
      EXPECT_TRUE(read.frames.empty());
      if (read.status.ok()) {  // the file ends between two blocks, or has a header alone
        EXPECT_TRUE(bytes == 24 || bytes == 28 || bytes == 48) << bytes;
      }
    }
  }
  Writer unequal;
  add_section(unequal);
  add_interface(unequal, 65535);
  add_frame(unequal, 0, 1, kFrame, 60);
  Frame bytes = unequal.get();
  bytes[bytes.size() - 4] ^= 4;
  EXPECT_THAT(std::string(read_all(bytes).status.message()), HasSubstr("different lengths"));
}

TEST(Damage, a_failed_read_is_the_systems_error) {
  const Read read = read_all([](void*, std::size_t) -> ssize_t {
    errno = EIO;
    return -1;
  });
  EXPECT_THAT(std::string(read.status.message()), HasSubstr(std::strerror(EIO)));
}

/// A frame as tshark lists it.
struct Listed {
  std::uint64_t stamp_ns = 0;
  std::uint32_t captured = 0;
  std::uint32_t original = 0;
};
std::vector<Listed> list_with_tshark(std::string const& path) {
  const std::string text = testing::run_command(
      "tshark -n -r '" + path + "' -T fields -e frame.time_epoch -e frame.cap_len -e frame.len 2>/dev/null || true");
  std::vector<Listed> frames;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Listed frame;
    char fraction[10] = "";
    unsigned long long seconds = 0;
    if (std::sscanf(line.c_str(), "%llu.%9[0-9]\t%u\t%u", &seconds, fraction, &frame.captured, &frame.original) == 4) {
      frame.stamp_ns = seconds * 1'000'000'000 + std::stoull(fraction);
    } else {
      ADD_FAILURE() << path << ": " << line;
    }
    frames.push_back(frame);
  }
  return frames;
}

/// Whether libpcap reads the same frames at the same times.
bool is_as_libpcap_reads(Read const& read, testing::Captured const& captured) {
  return read.frames == captured.frames && read.stamps_ns == captured.stamps_ns &&
         read.status.ok() == captured.error.empty();
}

/// tshark is the judge where libpcap differs, and of pcapng files.
TEST(SharedCaptures, are_read_as_libpcap_or_tshark_reads_them) {
  if (!testing::have_program("tshark")) {
    GTEST_SKIP() << "tshark is not installed";
  }
  std::size_t read_files = 0;
  for (const char* folder : {"/traces", "/malformed"}) {
    for (auto const& entry : std::filesystem::directory_iterator(shared_data() + folder)) {
      const std::string path = entry.path().string();
      const Read read = read_all(reading(testing::read_file(path), 1 << 20));
      if (absl::IsInvalidArgument(read.status)) {
        EXPECT_THAT(std::string(read.status.message()), HasSubstr("link type")) << path;
        continue;
      }
      ++read_files;
      const testing::Captured captured = testing::read_with_libpcap(path);
      if (!path.ends_with("ng") && is_as_libpcap_reads(read, captured)) {
        continue;
      }
      const std::vector<Listed> listed = list_with_tshark(path);
      ASSERT_EQ(read.frames.size(), listed.size()) << path << ": " << read.status;
      for (std::size_t i = 0; i < listed.size(); ++i) {
        // of fractions above a second tshark keeps the low 32 bits; libpcap adds them, and so does the reader
        const auto by_libpcap = i < captured.stamps_ns.size() ? static_cast<std::int64_t>(captured.stamps_ns[i]) : -1;
        ASSERT_THAT(read.stamps_ns[i],
                    AnyOf(listed[i].stamp_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(by_libpcap, 0))))
            << path << ", frame " << i + 1;
        ASSERT_EQ(read.missing[i], std::max(listed[i].original, listed[i].captured) - listed[i].captured) << path;
      }
    }
  }
  EXPECT_GT(read_files, 100U);
}

TEST(PcapSink, writes_the_original_length_of_a_frame_that_was_captured_in_part) {
  const ScratchFolder folder;
  Writer file = pcap(false, 0xA1B2C3D4, 96);
  file.u32(1).u32(0).u32(60).u32(442).bytes(kFrame);
  file.u32(1).u32(1).u32(60).u32(60).bytes(kFrame);
  testing::write_file(folder.path("in.pcap"), file.get());
  const auto pool = testing::make_pool();
  const auto source = open_pcap_source(folder.path("in.pcap"), 2);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto sink = open_pcap_sink(folder.path("out.pcap"));
  ASSERT_TRUE(sink.ok()) << sink.status();
  ASSERT_TRUE(testing::pump(**source, **sink, *pool).ok());
  EXPECT_THAT(read_all(testing::read_file(folder.path("out.pcap"))).missing, ElementsAre(382U, 0U, 382U, 0U));
}

}  // namespace
}  // namespace catena::io
