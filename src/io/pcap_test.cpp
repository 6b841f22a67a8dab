// SPDX-License-Identifier: Apache-2.0
#include "io/sink.hpp"
#include "io/source.hpp"
#include "io/test_support.hpp"

#include <catena/core/testing/test_data.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace catena::io {
namespace {

using ::testing::AllOf;
using testing::Captured;
using testing::count_of;
using testing::Frame;
using ::testing::HasSubstr;
using testing::make_frames;
using testing::make_pool;
using testing::read_file;
using testing::read_with_libpcap;
using testing::receive_all;
using testing::Received;
using testing::same_frames;
using testing::write_file;
using testing::write_with_libpcap;

std::unique_ptr<Source> open_source(std::string const& path, std::uint64_t loops = 1) {
  Result<std::unique_ptr<Source>> source = open_pcap_source(path, loops);
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? std::move(source).value() : nullptr;
}

std::unique_ptr<Sink> open_sink(std::string const& path) {
  Result<std::unique_ptr<Sink>> sink = open_pcap_sink(path);
  EXPECT_TRUE(sink.ok()) << sink.status();
  return sink.ok() ? std::move(sink).value() : nullptr;
}

TEST(OutputFile, a_fifo_is_opened_when_it_has_a_reader_and_not_waited_for_in_vain) {
  const ScratchFolder folder;
  const std::string path = folder.path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::stop_source give_up;
  std::thread impatient([&give_up] { give_up.request_stop(); });
  EXPECT_EQ(OutputFile::open(path, OutputBegin::kReplaced, give_up.get_token()).status().code(),
            absl::StatusCode::kCancelled);
  impatient.join();
  std::thread reader([&path] { EXPECT_EQ(read_file(path), Frame({'a', 'b'})); });
  Result<OutputFile> file = OutputFile::open(path, OutputBegin::kReplaced);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->is_stream());
  EXPECT_TRUE(file->write("ab", 2).ok());
  EXPECT_TRUE(file->close().ok());
  reader.join();
}

TEST(OutputFile, is_replaced_or_appended_to_and_follows_its_name_then) {
  const ScratchFolder folder;
  const std::string path = folder.path("out");
  const auto write = [&path](OutputBegin begin, const char* letter, bool is_rotated = false) {
    Result<OutputFile> file = OutputFile::open(path, begin);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->start().ok());
    EXPECT_TRUE(file->write(letter, 1).ok());
    if (is_rotated) {
      std::filesystem::rename(path, path + ".1");
      check_names_of_outputs();
      EXPECT_TRUE(file->write(letter, 1).ok());
    }
    EXPECT_TRUE(file->close().ok());
  };
  write(OutputBegin::kReplaced, "a");
  write(OutputBegin::kAppended, "b");
  EXPECT_EQ(read_file(path), Frame({'a', 'b'}));
  write(OutputBegin::kReplaced, "c");
  EXPECT_EQ(read_file(path), Frame({'c'}));
  write(OutputBegin::kAppended, "d", true);
  EXPECT_EQ(read_file(path + ".1"), Frame({'c', 'd'}));
  EXPECT_EQ(read_file(path), Frame({'d'}));
}

TEST(OutputFile, writes_the_next_part_where_an_earlier_run_has_written) {
  const ScratchFolder folder;
  const std::string path = folder.path("out");
  const auto write = [&path](const char* letter) {
    Result<OutputFile> file = OutputFile::open(path, OutputBegin::kNextPart);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->start().ok());
    OutputFile moved = *std::move(file);
    EXPECT_TRUE(moved.write(letter, 1).ok());
    EXPECT_TRUE(moved.close().ok());
  };
  write("a");
  write("b");
  EXPECT_EQ(OutputFile::open(path, OutputBegin::kNextPart)->path(), path + ".2");
  EXPECT_FALSE(std::filesystem::exists(path + ".2")) << "its run did not start";
  folder.write("out.7", "x");
  folder.write("out.x", "x");
  for (const char* strange : {"out.99999999999", "out.4294967295", "out.05", "out. 6"}) {
    folder.write(strange, "x");
  }
  std::filesystem::create_symlink(folder.path("elsewhere"), path + ".8");
  write("c");
  EXPECT_EQ(read_file(path), Frame({'a'}));
  EXPECT_EQ(read_file(path + ".1"), Frame({'b'}));
  EXPECT_EQ(read_file(path + ".9"), Frame({'c'}));
  EXPECT_FALSE(std::filesystem::exists(folder.path("elsewhere")));
  std::filesystem::resize_file(path, 0);
  write("d");
  EXPECT_EQ(read_file(path), Frame({'d'})) << "an empty file";
}

TEST(SampleCapture, gives_lengths_and_headers_of_the_first_frames) {
  const ScratchFolder folder;
  const std::string path = folder.path("three.pcap");
  const std::vector<Frame> frames = make_frames(3, 60, 1400);
  write_with_libpcap(path, frames);
  const auto sampled = sample_capture(path, 2);
  ASSERT_TRUE(sampled.ok()) << sampled.status();
  ASSERT_EQ(sampled->size(), 2U);
  EXPECT_EQ((*sampled)[0].bytes, frames[0].size());
  EXPECT_EQ((*sampled)[1].bytes, frames[1].size());
  // frames that are too long for a chain count, too: a capture of nothing else is not read to its end
  write_with_libpcap(path, {Frame(9000, 1), Frame(9000, 2), Frame(60, 3)});
  EXPECT_TRUE(sample_capture(path, 2)->empty());
  EXPECT_TRUE(absl::IsNotFound(sample_capture(folder.path("none.pcap"), 2).status()));
}

std::vector<std::uint64_t> numbers_from_0(std::size_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return numbers;
}

class SharedCapture : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string path_ = shared_data() + "/traces/" + GetParam();
};

TEST_P(SharedCapture, passes_byte_for_byte) {
  const auto pool = make_pool();
  const std::uint32_t units = pool->free_units();
  const ScratchFolder folder;
  const auto source = open_source(path_);
  const auto sink = open_sink(folder.path("out.pcap"));
  ASSERT_TRUE(testing::pump(*source, *sink, *pool).ok());

  const Captured in = read_with_libpcap(path_);
  const Captured out = read_with_libpcap(folder.path("out.pcap"));
  ASSERT_GT(in.frames.size(), 1'900U);
  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.link_type, DLT_EN10MB);
  EXPECT_TRUE(same_frames(out.frames, in.frames));
  EXPECT_EQ(out.stamps_ns, in.stamps_ns);
  EXPECT_EQ(source->seen(), in.frames.size());
  EXPECT_EQ(sink->sent(), in.frames.size());
  EXPECT_EQ(pool->free_slots(), pool->slots());
  EXPECT_EQ(pool->free_units(), units);
}

TEST_P(SharedCapture, reads_the_same_as_pcapng_and_with_nanoseconds) {
  if (!testing::have_program("editcap")) {
    GTEST_SKIP() << "editcap (wireshark-common) is not installed";
  }
  const auto pool = make_pool();
  const ScratchFolder folder;
  const std::vector<Frame> expected = read_with_libpcap(path_).frames;
  for (const std::string format : {"pcapng", "nsecpcap", "pcap"}) {
    testing::run_command("editcap -F " + format + " " + path_ + " " + folder.path(format));
    const auto source = open_source(folder.path(format));
    EXPECT_TRUE(same_frames(receive_all(*source, *pool).frames, expected)) << format;
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, SharedCapture, ::testing::Values("mixed.pcap", "onvm_64B_download.pcap"),
                         [](auto const& capture) { return std::string(capture.param, 5); });

constexpr int kCooked[] = {DLT_LINUX_SLL, DLT_LINUX_SLL2};

/// libpcap cuts frames to the snapshot length of the file, the source does not: see SharedCaptures of
/// capture_reader_test.cpp, which has tshark as the judge.
::testing::AssertionResult begin_with(std::vector<Frame> const& frames, std::vector<Frame> const& expected) {
  const auto begins = [](Frame const& frame, Frame const& start) {
    return frame.size() >= start.size() && std::equal(start.begin(), start.end(), frame.begin());
  };
  return frames.size() == expected.size() && std::ranges::equal(frames, expected, begins)
             ? ::testing::AssertionSuccess()
             : same_frames(frames, expected);
}

TEST(PcapSource, reads_hostile_captures_as_far_as_libpcap_does) {
  const auto pool = make_pool();
  std::size_t ethernet = 0;
  for (auto const& entry : std::filesystem::directory_iterator(shared_data() + "/malformed")) {
    const std::string path = entry.path().string();
    Captured judge = read_with_libpcap(path);
    const auto source = open_pcap_source(path);
    const bool is_cooked = std::ranges::find(kCooked, judge.link_type) != std::end(kCooked);
    ASSERT_EQ(source.ok(), judge.link_type == DLT_EN10MB || is_cooked) << path << ": " << source.status();
    if (!source.ok()) {
      EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument) << path;
      continue;
    }
    ++ethernet;
    const Received received = receive_all(**source, *pool);
    const std::size_t all = judge.frames.size();
    std::erase_if(judge.frames, [](Frame const& frame) { return frame.size() > packet::kMaxFrameBytes; });
    EXPECT_TRUE(is_cooked || begin_with(received.frames, judge.frames)) << path;
    EXPECT_EQ(received.status.ok(), judge.error.empty()) << path << ": " << received.status << judge.error;
    EXPECT_EQ((*source)->seen(), all) << path;
    EXPECT_EQ(count_of((*source)->drops(), "too_long"), all - judge.frames.size()) << path;
  }
  EXPECT_GT(ethernet, 100U);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(PcapSource, frames_of_every_length_up_to_the_limit_are_delivered_and_longer_ones_counted) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  std::vector<Frame> frames;
  for (std::size_t bytes = 0; bytes <= packet::kMaxFrameBytes; ++bytes) {
    frames.emplace_back(bytes, static_cast<std::uint8_t>(bytes));
  }
  std::vector<Frame> file = frames;
  for (const std::size_t bytes : {std::size_t{packet::kMaxFrameBytes} + 1, std::size_t{2048}, std::size_t{9000},
                                  std::size_t{65535}, std::size_t{262144}}) {
    file.insert(file.begin() + static_cast<std::ptrdiff_t>(bytes % frames.size()), Frame(bytes, 0xEE));
  }
  write_with_libpcap(folder.path("in.pcap"), file);
  const auto source = open_source(folder.path("in.pcap"));
  const Received received = receive_all(*source, *pool);
  EXPECT_TRUE(received.status.ok()) << received.status;
  EXPECT_TRUE(same_frames(received.frames, frames));
  std::vector<std::uint64_t> delivered;
  for (std::size_t number = 0; number < file.size(); ++number) {
    if (file[number].size() <= packet::kMaxFrameBytes) {
      delivered.push_back(number);
    }
  }
  EXPECT_EQ(received.indices, delivered) << "what is dropped has a number, too";
  EXPECT_EQ(source->seen(), file.size());
  EXPECT_EQ(count_of(source->drops(), "too_long"), 5U);
}

TEST(PcapSource, a_file_of_another_byte_order_and_a_snapped_frame_are_read) {
  const ScratchFolder folder;
  // clang-format off
  const std::vector<std::uint8_t> file{
      0xA1, 0xB2, 0xC3, 0xD4,  0, 2, 0, 4,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0xFF, 0xFF,  0, 0, 0, 1,  // big-endian
      0, 0, 0, 5,  0, 0, 0, 6,  0, 0, 0, 4,  0, 0, 0, 9,  1, 2, 3, 4};  // 4 bytes captured of 9
  // clang-format on
  write_file(folder.path("in.pcap"), file);
  const auto pool = make_pool();
  const auto source = open_source(folder.path("in.pcap"));
  EXPECT_EQ(receive_all(*source, *pool).frames, (std::vector<Frame>{{1, 2, 3, 4}}));
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST(PcapSource, what_is_no_ethernet_capture_is_refused_with_its_name) {
  const ScratchFolder folder;
  const std::vector<std::uint8_t> text{'n', 'f', 's', ':', '\n', ' ', '-', ' ', 'f', 'w', '\n', 0, 0, 0, 0, 0,
                                       0,   0,   0,   0,   0,    0,   0,   0,   0,   0,   0,    0, 0, 0, 0, 0};
  write_file(folder.path("text.pcap"), text);
  write_file(folder.path("gz.pcap"), std::vector<std::uint8_t>{0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0});
  write_file(folder.path("empty.pcap"), {});
  write_file(folder.path("short.pcap"), std::vector<std::uint8_t>{0xD4, 0xC3, 0xB2, 0xA1, 2, 0});
  write_with_libpcap(folder.path("raw.pcap"), make_frames(3, 20, 40), false, DLT_RAW);
  struct Case {
    std::string file;
    absl::StatusCode code;
    std::string text;
  };
  const std::ptrdiff_t descriptors = open_descriptors();
  for (Case const& expected : std::vector<Case>{
           {"missing.pcap", absl::StatusCode::kNotFound, "No such file"},
           {"text.pcap", absl::StatusCode::kInvalidArgument, "not a pcap or pcapng capture"},
           {"gz.pcap", absl::StatusCode::kInvalidArgument, "it is compressed by gzip; decompress it: gunzip FILE"},
           {"empty.pcap", absl::StatusCode::kInvalidArgument, "not a pcap or pcapng capture"},
           {"short.pcap", absl::StatusCode::kInvalidArgument, "not a pcap or pcapng capture"},
           {"", absl::StatusCode::kInvalidArgument, "not a pcap or pcapng capture"},
           {"raw.pcap", absl::StatusCode::kInvalidArgument, "link type RAW"},
       }) {
    const auto source = open_pcap_source(folder.path(expected.file));
    EXPECT_EQ(source.status().code(), expected.code) << expected.file;
    EXPECT_THAT(std::string(source.status().message()),
                AllOf(HasSubstr(folder.path(expected.file)), HasSubstr(expected.text)));
  }
  EXPECT_EQ(open_descriptors(), descriptors) << "what is refused is closed";
  write_with_libpcap(folder.path("good.pcap"), make_frames(3, 20, 40));
  EXPECT_EQ(open_pcap_source(folder.path("good.pcap"), 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PcapSource, a_capture_that_is_a_fifo_by_now_is_not_waited_for) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(sample_capture(folder.path("fifo"), 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PcapSource, who_waits_for_the_first_bytes_of_a_fifo_can_give_up) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  std::stop_source give_up;
  std::jthread later([&give_up] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    give_up.request_stop();
  });
  EXPECT_TRUE(absl::IsCancelled(open_pcap_source(folder.path("fifo"), 1, give_up.get_token()).status()));
  EXPECT_TRUE(absl::IsCancelled(open_pcap_source(folder.path("fifo"), 1, give_up.get_token()).status())) << "at once";
}

/// As a name is exchanged between two looks at it.
TEST(PcapSource, all_passes_are_of_the_file_that_was_opened) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  const std::vector<Frame> frames = make_frames(700, 60, 1500);  // more than a buffer of the reader
  write_with_libpcap(folder.path("in.pcap"), frames);
  const auto source = open_source(folder.path("in.pcap"), 3);
  ASSERT_NE(source, nullptr);
  std::filesystem::remove(folder.path("in.pcap"));
  ASSERT_EQ(::mkfifo(folder.path("in.pcap").c_str(), 0600), 0);
  std::vector<Frame> expected;
  for (int pass = 0; pass < 3; ++pass) {
    expected.insert(expected.end(), frames.begin(), frames.end());
  }
  const Received received = receive_all(*source, *pool);
  EXPECT_TRUE(received.status.ok()) << received.status;
  EXPECT_TRUE(same_frames(received.frames, expected));
}

TEST(PcapSource, frames_before_the_damage_are_delivered_then_the_damage_is_reported) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  const std::vector<Frame> frames = make_frames(600, 100, 100);
  write_with_libpcap(folder.path("in.pcap"), frames);
  const Frame bytes = read_file(folder.path("in.pcap"));
  // cut in frame 301 (the header, then the frame) and in frame 257, the first of a unit
  for (const std::size_t whole : {300U, 256U, 0U}) {
    for (const std::size_t more : {7U, 16U + 50U}) {
      write_file(folder.path("cut.pcap"), std::span(bytes).first(24 + whole * 116 + more));
      const auto source = open_source(folder.path("cut.pcap"));
      const Received received = receive_all(*source, *pool);
      EXPECT_TRUE(same_frames(received.frames, {frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(whole)}));
      EXPECT_EQ(received.status.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(received.status.message()),
                  AllOf(HasSubstr("cut.pcap"), HasSubstr("frame " + std::to_string(whole + 1))));
      EXPECT_FALSE(source->finished()) << "it failed";
      EXPECT_EQ(pool->free_slots(), pool->slots());
    }
  }
  Frame huge = bytes;
  huge[24 + 116 + 11] = 0x7F;  // the captured length of the second frame
  write_file(folder.path("huge.pcap"), huge);
  const auto source = open_source(folder.path("huge.pcap"));
  const Received received = receive_all(*source, *pool);
  EXPECT_EQ(received.frames, std::vector<Frame>{frames[0]});
  EXPECT_THAT(std::string(received.status.message()), HasSubstr("frame 2"));
}

TEST(PcapSource, a_replay_repeats_the_file_and_goes_on_counting) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  const std::vector<Frame> frames = make_frames(100, 60, 200);
  write_with_libpcap(folder.path("in.pcap"), frames);
  const auto source = open_source(folder.path("in.pcap"), 7);
  const Received received = receive_all(*source, *pool);
  std::vector<Frame> expected;
  for (int pass = 0; pass < 7; ++pass) {
    expected.insert(expected.end(), frames.begin(), frames.end());
  }
  EXPECT_TRUE(same_frames(received.frames, expected));
  EXPECT_EQ(received.indices, numbers_from_0(700));
  EXPECT_TRUE(source->finished());
}

TEST(PcapSource, each_pass_of_a_replay_is_later_than_the_one_before) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  write_with_libpcap(folder.path("in.pcap"), make_frames(3, 60, 200), true);
  const auto source = open_source(folder.path("in.pcap"), 3);
  const auto sink = open_sink(folder.path("out.pcap"));
  ASSERT_TRUE(testing::pump(*source, *sink, *pool).ok());
  const std::vector<std::uint64_t> stamps = read_with_libpcap(folder.path("out.pcap")).stamps_ns;
  ASSERT_EQ(stamps.size(), 9U);
  for (std::size_t i = 3; i < stamps.size(); ++i) {
    EXPECT_EQ(stamps[i] - stamps[i - 3], stamps[2] - stamps[0] + 1000) << i;
  }
}

TEST(PcapSource, a_replay_goes_on_with_the_file_that_it_opened) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  const std::vector<Frame> frames = make_frames(100, 60, 200);
  write_with_libpcap(folder.path("in.pcap"), frames);
  const auto source = open_source(folder.path("in.pcap"), 2);
  std::filesystem::remove(folder.path("in.pcap"));
  write_with_libpcap(folder.path("in.pcap"), make_frames(7, 60, 60));
  const Received received = receive_all(*source, *pool);
  std::vector<Frame> expected = frames;
  expected.insert(expected.end(), frames.begin(), frames.end());
  EXPECT_TRUE(same_frames(received.frames, expected));
  EXPECT_TRUE(received.status.ok()) << received.status;
}

TEST(PcapSource, endless_replays_without_a_frame_to_deliver_do_not_hang) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  write_with_libpcap(folder.path("empty.pcap"), {});
  const auto empty = open_source(folder.path("empty.pcap"), ~std::uint64_t{0});
  EXPECT_TRUE(receive_all(*empty, *pool).frames.empty());
  EXPECT_TRUE(empty->finished());

  write_with_libpcap(folder.path("long.pcap"), {Frame(2000, 1)});
  const auto source = open_source(folder.path("long.pcap"), ~std::uint64_t{0});
  memory::Unit* unit = pool->acquire_unit();
  bool starved = false;
  std::uint64_t next_index = 0;
  ASSERT_TRUE(source->receive(*pool, *unit, next_index, starved).ok());
  EXPECT_EQ(next_index, source->seen());
  EXPECT_EQ(unit->count, 0U);
  EXPECT_FALSE(starved);
  EXPECT_FALSE(source->finished());
  EXPECT_EQ(source->seen(), count_of(source->drops(), "too_long"));
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(PcapSource, waits_without_loss_while_no_slot_is_free) {
  const auto pool = make_pool(512);
  const ScratchFolder folder;
  const std::vector<Frame> frames = make_frames(1000, 60, 200);
  write_with_libpcap(folder.path("in.pcap"), frames);
  const auto source = open_source(folder.path("in.pcap"));
  memory::Unit* busy = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*busy, 256));
  busy->count = 256;
  std::vector<Frame> received;
  std::uint64_t next_index = 0;
  while (!source->finished()) {
    memory::Unit* first = pool->acquire_unit();
    memory::Unit* second = pool->acquire_unit();
    bool starved = false;
    ASSERT_TRUE(source->receive(*pool, *first, next_index, starved).ok());
    EXPECT_FALSE(starved);
    const bool more = !source->finished() && first->count == memory::kDefaultUnitPackets;
    ASSERT_TRUE(source->receive(*pool, *second, next_index, starved).ok());
    EXPECT_EQ(second->count, 0U);
    EXPECT_EQ(starved, more);
    const std::vector<Frame> part = testing::frames_of(*pool, *first);
    received.insert(received.end(), part.begin(), part.end());
    pool->release_slots(*first, 0, first->count);
    pool->release_unit(first);
    pool->release_unit(second);
  }
  EXPECT_TRUE(same_frames(received, frames));
}

TEST(PcapSink, the_same_packets_give_the_same_file_whatever_the_units) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  const std::vector<Frame> frames = make_frames(3000, 0, packet::kMaxFrameBytes);
  Frame first;
  for (const std::uint32_t unit_packets : {1U, 7U, 255U, 256U}) {
    const auto sink = open_sink(folder.path("out.pcap"));
    ASSERT_TRUE(testing::send_frames(*sink, *pool, frames, unit_packets).ok());
    ASSERT_TRUE(sink->finish().ok());
    EXPECT_EQ(sink->sent(), frames.size());
    EXPECT_TRUE(same_frames(read_with_libpcap(folder.path("out.pcap")).frames, frames));
    const Frame file = read_file(folder.path("out.pcap"));
    if (first.empty()) {
      first = file;
    }
    EXPECT_TRUE(file == first) << "units of " << unit_packets;
  }
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(PcapSink, writes_packets_as_they_stand_and_leaves_dropped_ones_out) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  const auto sink = open_sink(folder.path("out.pcap"));
  memory::Unit* unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, 4));
  unit->count = 4;
  std::fill_n(pool->slot(unit->slots()[0]), 4 * packet::kSlotBytes, std::uint8_t{0});
  for (std::uint32_t i = 0; i < 4; ++i) {
    std::iota(pool->slot(unit->slots()[i]), pool->slot(unit->slots()[i]) + packet::kSlotBytes, std::uint8_t{0});
    pool->set_arrived(unit->slots()[i], 60, i, 3'000'000'007 + i);
  }
  const packet::Batch batch = pool->batch(*unit);
  batch[0].set_verdict(packet::Verdict::kAlert);
  batch[1].set_verdict(packet::Verdict::kDrop);
  batch[2].set_extent(0, packet::kSlotBytes);  // grown as far as a slot allows
  batch[3].set_extent(packet::kSlotBytes - 3, 3);
  ASSERT_TRUE(sink->send(*pool, *unit).ok());
  ASSERT_TRUE(sink->finish().ok());
  const Captured out = read_with_libpcap(folder.path("out.pcap"));
  ASSERT_EQ(out.frames.size(), 3U);
  EXPECT_EQ(out.frames[0].size(), 60U);
  EXPECT_EQ(out.frames[0][0], packet::kSlotHeadroom);
  ASSERT_EQ(out.frames[1].size(), packet::kSlotBytes);
  EXPECT_EQ(out.frames[1][2047], 0xFF);
  EXPECT_EQ(out.frames[2], (Frame{0xFD, 0xFE, 0xFF}));
  EXPECT_EQ(out.stamps_ns, (std::vector<std::uint64_t>{3'000'000'007, 3'000'000'009, 3'000'000'010}));
  EXPECT_EQ(sink->sent(), 3U);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(PcapSink, an_empty_run_leaves_a_valid_empty_file_and_a_given_up_one_what_it_had) {
  const auto pool = make_pool();
  const ScratchFolder folder;
  ASSERT_TRUE(open_sink(folder.path("empty.pcap"))->finish().ok());
  const Captured empty = read_with_libpcap(folder.path("empty.pcap"));
  EXPECT_EQ(empty.error, "");
  EXPECT_TRUE(empty.frames.empty());

  const std::vector<Frame> frames = make_frames(10, 60, 100);
  ASSERT_TRUE(testing::send_frames(*open_sink(folder.path("given_up.pcap")), *pool, frames).ok());
  EXPECT_TRUE(same_frames(read_with_libpcap(folder.path("given_up.pcap")).frames, frames));
}

TEST(PcapSink, a_file_that_cannot_be_created_is_an_error_with_its_name) {
  const ScratchFolder folder;
  const auto missing = open_pcap_sink(folder.path("no/such/folder.pcap"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("no/such/folder.pcap"));
  EXPECT_FALSE(open_pcap_sink(folder.path("")).ok()) << "a folder";

  std::filesystem::create_directory(folder.path("locked"));
  std::filesystem::permissions(folder.path("locked"), std::filesystem::perms::owner_read);
  const bool root = geteuid() == 0;  // who may write everywhere
  ASSERT_TRUE(!root || seteuid(65534) == 0);
  const auto locked = open_pcap_sink(folder.path("locked/out.pcap"));
  ASSERT_TRUE(!root || seteuid(0) == 0);
  EXPECT_EQ(locked.status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(PcapSink, a_full_disk_is_reported_and_slots_come_back) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "no /dev/full here";
  }
  const auto pool = make_pool();
  const auto little = open_sink("/dev/full");
  ASSERT_TRUE(testing::send_frames(*little, *pool, make_frames(10, 60, 100)).ok()) << "still buffered";
  const Status at_end = little->finish();
  EXPECT_EQ(at_end.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(at_end.message()), AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
  EXPECT_EQ(little->finish(), at_end) << "however often it is asked";

  const auto much = open_sink("/dev/full");
  const Status on_the_way = testing::send_frames(*much, *pool, make_frames(2000, 1000, 1500));
  EXPECT_EQ(on_the_way.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(much->finish().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(NullSink, counts_live_packets_and_gives_slots_back) {
  const auto pool = make_pool();
  const auto sink = make_null_sink();
  ASSERT_TRUE(testing::send_frames(*sink, *pool, make_frames(300, 60, 100)).ok());
  memory::Unit* unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, 2));
  unit->count = 2;
  pool->set_arrived(unit->slots()[0], 60, 300, 0);
  pool->set_arrived(unit->slots()[1], 60, 301, 0);
  pool->batch(*unit)[1].set_verdict(packet::Verdict::kDrop);
  ASSERT_TRUE(sink->send(*pool, *unit).ok());
  ASSERT_TRUE(sink->finish().ok());
  EXPECT_EQ(sink->sent(), 301U);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

}  // namespace
}  // namespace catena::io
