// SPDX-License-Identifier: Apache-2.0
#include "io/schedule.hpp"
#include "io/source.hpp"
#include "io/test_support.hpp"

#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace catena::io {
namespace {

using testing::Frame;
using ::testing::HasSubstr;
using testing::make_pool;
using testing::receive_all;
using testing::same_frames;

std::unique_ptr<Source> replay(ReplayConfig const& config) {
  auto source = make_replay(config);
  EXPECT_TRUE(source.ok()) << source.status();
  return std::move(source).value();
}

/// What a test does to the packets of a unit, as a chain would, before their slots are released.
using Chain = void (*)(packet::Batch const&);
void leave_alone(packet::Batch const& /*batch*/) {}
/// Every byte changes, and the frame grows at both ends, as in a tunnel.
void encrypt(packet::Batch const& batch) {
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const packet::Packet packet = batch[i];
    for (std::uint32_t at = 0; at < packet.length(); ++at) {
      packet.frame()[at] ^= 0x5A;
    }
    packet.set_extent(packet.offset() - 40U, packet.length() + 80U);
    std::memset(packet.frame(), 0xEE, 40);
    std::memset(packet.frame() + packet.length() - 40, 0xEE, 40);
    packet.set_verdict(packet::Verdict::kDrop);
    packet.set_port(7);
  }
}

std::vector<Frame> play(Source& source, memory::PacketPool& pool, Chain chain) {
  std::vector<Frame> frames;
  std::uint64_t next_index = 0;
  while (!source.finished()) {
    memory::Unit* unit = pool.acquire_unit();
    bool starved = false;
    EXPECT_TRUE(source.receive(pool, *unit, next_index, starved).ok());
    for (Frame& frame : testing::frames_of(pool, *unit)) {
      frames.push_back(std::move(frame));
    }
    chain(pool.batch(*unit));
    pool.release_slots(*unit, 0, unit->count);
    pool.release_unit(unit);
  }
  return frames;
}

std::vector<Frame> generated(GeneratorConfig const& config) {
  const auto pool = make_pool();
  auto generator = make_generator(config);
  EXPECT_TRUE(generator.ok()) << generator.status();
  return receive_all(**generator, *pool).frames;
}

/// Several rounds of the pool.
constexpr std::uint64_t kCount = 5000;

class ReplaySize : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(ReplaySize, gives_the_bytes_of_the_generator_where_nothing_is_changed) {
  const auto pool = make_pool(1024);
  const auto source = replay({.packet_bytes = {GetParam()}, .flows = 128, .seed = 3, .count = kCount});
  EXPECT_TRUE(same_frames(play(*source, *pool, leave_alone),
                          generated({.packet_bytes = GetParam(), .flows = 128, .seed = 3, .count = kCount})));
  EXPECT_EQ(pool->free_slots(), pool->slots());
  EXPECT_EQ(source->seen(), kCount);
}

TEST_P(ReplaySize, metadata_is_that_of_a_frame_that_arrived) {
  const auto pool = make_pool(512);
  const auto source = replay({.packet_bytes = {GetParam()}, .flows = 5, .packets_per_s = 1'000'000'000, .count = 3000});
  std::uint64_t packets = 0;
  std::uint64_t next_index = 1000;
  while (!source->finished()) {
    memory::Unit* unit = pool->acquire_unit();
    bool starved = false;
    ASSERT_TRUE(source->receive(*pool, *unit, next_index, starved).ok());
    const packet::Batch batch = pool->batch(*unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i, ++packets) {
      const packet::Packet packet = batch[i];
      const packet::Layers parsed = packet::parse(packet.frame(), packet.length());
      ASSERT_EQ(std::memcmp(&packet.layers(), &parsed, sizeof parsed), 0);
      ASSERT_TRUE(packet.is(packet::kIpv4 | packet::kPorts));
      ASSERT_EQ(packet.length(), GetParam());
      ASSERT_EQ(packet.offset(), packet::kSlotHeadroom);
      ASSERT_EQ(packet.verdict(), packet::Verdict::kPass);
      ASSERT_EQ(packet.port(), 0U);
      ASSERT_EQ(packet.index(), packets + 1000);
      ASSERT_EQ(packet.arrival_ns(), packets);
    }
    encrypt(batch);
    pool->release_slots(*unit, 0, unit->count);
    pool->release_unit(unit);
  }
  EXPECT_EQ(packets, 3000U);
}

TEST_P(ReplaySize, after_a_chain_that_changes_every_byte_headers_are_right_and_samples_are_whole) {
  const auto pool = make_pool(512);
  const auto source =
      replay({.packet_bytes = {GetParam()}, .flows = 128, .seed = 3, .count = kCount, .sample_every = 5});
  const std::vector<Frame> frames = play(*source, *pool, encrypt);
  const std::vector<Frame> expected = generated({.packet_bytes = GetParam(), .flows = 128, .seed = 3, .count = kCount});
  ASSERT_EQ(frames.size(), expected.size());
  std::size_t samples = 0;
  std::size_t not_whole = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    ASSERT_EQ(frames[i].size(), expected[i].size());
    ASSERT_TRUE(std::equal(frames[i].begin(), frames[i].begin() + std::min<std::ptrdiff_t>(64, GetParam()),
                           expected[i].begin()))
        << "head of packet " << i;
    const bool first_pass = i < 512;
    if (first_pass || is_replay_sample(i, 5)) {
      ASSERT_EQ(frames[i], expected[i]) << "sampled packet " << i;
    }
    samples += is_replay_sample(i, 5) ? 1 : 0;
    not_whole += frames[i] != expected[i] ? 1 : 0;
  }
  EXPECT_EQ(samples, 4U * kReplaySampleRun) << "runs 0, 5, 10 and 15 of 5000 packets";
  if (GetParam() > 128) {
    EXPECT_GT(not_whole, 2000U) << "else this test could not tell";
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes, ReplaySize, ::testing::Values(60, 64, 65, 127, 128, 129, 508, 1514, 1792));

TEST(Replay, sizes_take_turns_and_every_flow_meets_all_of_them) {
  for (const std::uint32_t flows : {1U, 7U, 8U, 9U, 64U}) {
    const auto pool = make_pool();
    const std::vector<std::uint32_t> sizes{60, 60, 594, 1514};
    const auto source = replay({.packet_bytes = sizes, .flows = flows, .count = 16ULL * flows, .sample_every = 1});
    std::map<std::uint32_t, std::map<std::size_t, int>> by_flow;
    for (Frame const& frame : play(*source, *pool, encrypt)) {
      ++by_flow[packet::load_be32(frame.data() + 26)][frame.size()];
    }
    EXPECT_EQ(by_flow.size(), flows);
    for (auto const& [flow, count] : by_flow) {
      EXPECT_EQ(count, (std::map<std::size_t, int>{{60, 8}, {594, 4}, {1514, 4}}));
    }
  }
}

TEST(Replay, a_slot_that_held_a_shorter_frame_is_filled) {
  const auto pool = make_pool(512);
  for (std::uint32_t slot = 0; slot < pool->slots(); ++slot) {
    std::memset(pool->slot(slot), 0xEE, packet::kSlotBytes);
  }
  const auto source = replay({.packet_bytes = {60, 1514, 200}, .flows = 64, .count = kCount});
  for (Frame const& frame : play(*source, *pool, leave_alone)) {
    ASSERT_EQ(std::count(frame.begin() + 54, frame.end(), 0xEE), 0) << "payloads are letters and blanks";
  }
}

TEST(Replay, without_slots_it_waits_and_says_so) {
  const auto pool = make_pool(512);
  const auto source = replay({.packet_bytes = {200}, .flows = 128, .seed = 3, .count = 1024});
  std::vector<memory::Unit*> held;
  std::vector<Frame> frames;
  std::uint64_t next_index = 0;
  for (int i = 0; i < 3; ++i) {
    held.push_back(pool->acquire_unit());
    bool starved = false;
    ASSERT_TRUE(source->receive(*pool, *held.back(), next_index, starved).ok());
    EXPECT_EQ(starved, i == 2);
    EXPECT_EQ(held.back()->count, i == 2 ? 0U : memory::kDefaultUnitPackets);
    for (Frame& frame : testing::frames_of(*pool, *held.back())) {
      frames.push_back(std::move(frame));
    }
  }
  EXPECT_EQ(source->seen(), 512U);
  EXPECT_FALSE(source->finished());
  for (memory::Unit* unit : held) {
    pool->release_slots(*unit, 0, unit->count);
    pool->release_unit(unit);
  }
  for (Frame& frame : play(*source, *pool, leave_alone)) {
    frames.push_back(std::move(frame));
  }
  EXPECT_TRUE(same_frames(frames, generated({.packet_bytes = 200, .flows = 128, .seed = 3, .count = 1024})))
      << "nothing is lost while it waits";
}

TEST(Replay, never_exceeds_its_rate) {
  const auto start = Schedule::Clock::now();
  const auto pool = make_pool();
  const auto source = replay({.packets_per_s = 50});
  const std::size_t packets = receive_all(*source, *pool, 1000).frames.size();
  const std::chrono::duration<double> passed = Schedule::Clock::now() - start;
  EXPECT_GE(packets, 1U);
  EXPECT_LE(static_cast<double>(packets), 1.0 + 50.0 * passed.count());
}

TEST(Replay, says_what_it_replays) {
  EXPECT_EQ(replay({.packet_bytes = {60, 1514}, .flows = 1, .packets_per_s = 9, .count = 1})->describe(),
            "replay of 60, 1514 B, 1 flow, 9 packets/s, 1 packet, seed 1");
}

TEST(Replay, impossible_configurations_are_refused) {
  for (ReplayConfig const& config : std::vector<ReplayConfig>{{.packet_bytes = {}},
                                                              {.packet_bytes = std::vector<std::uint32_t>(65, 60)},
                                                              {.packet_bytes = {60, 59}},
                                                              {.packet_bytes = {1793}},
                                                              {.flows = 0},
                                                              {.flows = (1U << 18) + 1},
                                                              {.packet_bytes = {60, 64}, .flows = (1U << 17) + 1},
                                                              {.sample_every = 0}}) {
    const auto source = make_replay(config);
    EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(source.status().message()), HasSubstr("write "));
  }
}

TEST(FrameReplay, repeats_the_frames_whole_whatever_the_chain_does) {
  const auto pool = make_pool(512);
  const std::vector<Frame> frames = testing::make_frames(300, 1, packet::kMaxFrameBytes);
  const auto source = make_frame_replay(frames, 0, 1000);
  ASSERT_TRUE(source.ok()) << source.status();
  std::vector<Frame> expected;
  for (std::size_t i = 0; i < 1000; ++i) {
    expected.push_back(frames[i % 300]);
  }
  const auto spoil = [](packet::Batch const& batch) {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      std::memset(batch[i].frame(), 0xEE, batch[i].length());
    }
  };
  EXPECT_TRUE(same_frames(play(**source, *pool, spoil), expected));
}

TEST(FrameReplay, nothing_empty_and_too_long_are_refused) {
  for (std::vector<Frame> const& frames : {std::vector<Frame>{}, std::vector<Frame>{Frame(60), Frame()},
                                           std::vector<Frame>{Frame(packet::kMaxFrameBytes + 1)}}) {
    EXPECT_EQ(make_frame_replay(frames, 0, 0).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace catena::io
