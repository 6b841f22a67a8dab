// SPDX-License-Identifier: Apache-2.0
#include "io/schedule.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"
#include "io/test_support.hpp"

#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ip.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace catena::io {
namespace {

using testing::Frame;
using ::testing::HasSubstr;
using testing::make_pool;
using testing::receive_all;
using testing::same_frames;

std::vector<Frame> generate(GeneratorConfig const& config, std::uint32_t slots = 1024) {
  const auto pool = make_pool(slots);
  auto generator = make_generator(config);
  EXPECT_TRUE(generator.ok()) << generator.status();
  std::vector<Frame> frames = receive_all(**generator, *pool, 100'000'000).frames;
  EXPECT_EQ(pool->free_slots(), pool->slots());
  return frames;
}

/// The addresses, protocol and ports of a generated frame.
using FiveTuple = std::tuple<std::uint32_t, std::uint32_t, std::uint8_t, std::uint16_t, std::uint16_t>;
FiveTuple five_tuple(Frame const& frame) {
  const std::uint8_t* at = frame.data();
  return {packet::load_be32(at + 26), packet::load_be32(at + 30), at[23], packet::load_be16(at + 34),
          packet::load_be16(at + 36)};
}

bool is_private(std::uint32_t address) {  // RFC 1918
  return address >> 24 == 10 || address >> 20 == (172U << 4 | 1) || address >> 16 == (192U << 8 | 168);
}

TEST(Generator, makes_the_same_bytes_in_every_run_and_however_it_is_polled) {
  const GeneratorConfig config{.packet_bytes = 0, .flows = 100, .seed = 9, .count = 5000};
  const std::vector<Frame> frames = generate(config);
  ASSERT_EQ(frames.size(), 5000U);
  EXPECT_TRUE(same_frames(generate(config), frames));

  GeneratorConfig limited = config;
  limited.packets_per_s = 1'000'000;
  EXPECT_TRUE(same_frames(generate(limited), frames)) << "units of other sizes";

  // a pool that is often exhausted: units are held back, and come in other sizes at the end
  const auto pool = make_pool(512);
  const auto generator = make_generator(config);
  ASSERT_TRUE(generator.ok());
  std::vector<Frame> starving;
  std::uint64_t starved_calls = 0;
  std::uint64_t next_index = 0;
  while (!(*generator)->finished()) {
    std::array<memory::Unit*, 3> units{pool->acquire_unit(), pool->acquire_unit(), pool->acquire_unit()};
    for (memory::Unit* unit : units) {
      bool starved = false;
      ASSERT_TRUE((*generator)->receive(*pool, *unit, next_index, starved).ok());
      starved_calls += starved ? 1 : 0;
      const std::vector<Frame> part = testing::frames_of(*pool, *unit);
      starving.insert(starving.end(), part.begin(), part.end());
    }
    for (memory::Unit* unit : units) {
      pool->release_slots(*unit, 0, unit->count);
      pool->release_unit(unit);
    }
  }
  EXPECT_GT(starved_calls, 0U);
  EXPECT_TRUE(same_frames(starving, frames));

  GeneratorConfig other = config;
  other.seed = 10;
  EXPECT_FALSE(same_frames(generate(other), frames));
}

TEST(Generator, stops_after_exactly_count_packets) {
  for (const std::uint64_t count : {1U, 255U, 256U, 257U, 1000U}) {
    EXPECT_EQ(generate({.packet_bytes = 60, .flows = 3, .count = count}).size(), count);
  }
}

TEST(Generator, packets_arrive_evenly_at_any_rate) {
  const auto pool = make_pool();
  for (const std::uint64_t rate : {30ULL, 1'000'000ULL, 700'000'000ULL, 999'999'999ULL, 1'000'000'000ULL}) {
    const std::uint64_t count = rate < 100 ? 4 : 5000;
    const auto generator = make_generator({.packet_bytes = 60, .packets_per_s = rate, .count = count});
    ASSERT_TRUE(generator.ok());
    std::uint64_t number = 0;
    std::uint64_t next_index = 0;
    while (!(*generator)->finished()) {
      memory::Unit* unit = pool->acquire_unit();
      bool starved = false;
      ASSERT_TRUE((*generator)->receive(*pool, *unit, next_index, starved).ok());
      for (std::uint32_t i = 0; i < unit->count; ++i, ++number) {
        ASSERT_EQ(pool->batch(*unit)[i].arrival_ns(), number * 1'000'000'000 / rate) << rate << " packets a second";
      }
      pool->release_slots(*unit, 0, unit->count);
      pool->release_unit(unit);
    }
  }
}

TEST(Generator, without_a_count_it_never_finishes) {
  const auto pool = make_pool();
  const auto generator = make_generator({.packet_bytes = 64});
  ASSERT_TRUE(generator.ok());
  std::uint64_t next_index = 0;
  for (int i = 0; i < 100; ++i) {
    memory::Unit* unit = pool->acquire_unit();
    bool starved = false;
    ASSERT_TRUE((*generator)->receive(*pool, *unit, next_index, starved).ok());
    EXPECT_EQ(unit->count, memory::kDefaultUnitPackets);
    pool->release_slots(*unit, 0, unit->count);
    pool->release_unit(unit);
  }
  EXPECT_FALSE((*generator)->finished());
  EXPECT_EQ((*generator)->seen(), 100 * memory::kDefaultUnitPackets);
}

TEST(Generator, flows_are_distinct_private_tcp_and_udp_and_take_turns) {
  constexpr std::uint32_t kFlows = 5000;
  const std::vector<Frame> frames = generate({.packet_bytes = 64, .flows = kFlows, .seed = 4, .count = 2 * kFlows});
  std::map<FiveTuple, int> packets;
  std::set<std::string> payloads;
  std::size_t tcp = 0;
  for (Frame const& frame : frames) {
    const FiveTuple flow = five_tuple(frame);
    ++packets[flow];
    EXPECT_TRUE(is_private(std::get<0>(flow)) && is_private(std::get<1>(flow)));
    tcp += std::get<2>(flow) == packet::kProtocolTcp ? 1 : 0;
    payloads.emplace(frame.begin() + (std::get<2>(flow) == packet::kProtocolTcp ? 54 : 42), frame.end());
  }
  EXPECT_EQ(packets.size(), kFlows);
  EXPECT_TRUE(std::all_of(packets.begin(), packets.end(), [](auto const& entry) { return entry.second == 2; }));
  EXPECT_EQ(tcp, kFlows) << "every second flow";
  EXPECT_GT(payloads.size(), kFlows / 2) << "payloads differ by flow";
}

class GeneratorSize : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(GeneratorSize, every_frame_is_whole_and_has_right_checksums_and_printable_payload) {
  const std::uint32_t bytes = GetParam();
  const auto pool = make_pool();
  const auto generator = make_generator({.packet_bytes = bytes, .flows = 512, .seed = bytes, .count = 70'000});
  ASSERT_TRUE(generator.ok());
  std::uint64_t packets = 0;
  std::uint64_t next_index = 0;
  std::uint64_t wrong_identification = 0;
  std::uint64_t wrong_checksum = 0;
  std::uint64_t unprintable = 0;
  while (!(*generator)->finished()) {
    memory::Unit* unit = pool->acquire_unit();
    bool starved = false;
    ASSERT_TRUE((*generator)->receive(*pool, *unit, next_index, starved).ok());
    const packet::Batch batch = pool->batch(*unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i, ++packets) {
      const packet::Packet packet = batch[i];
      ASSERT_TRUE(packet.is(packet::kIpv4 | packet::kPorts));
      ASSERT_EQ(packet.l3_length(), packet.length() - 14U) << "no trailer";
      ASSERT_EQ(packet.index(), packets);
      if (bytes != 0) {
        ASSERT_EQ(packet.length(), bytes);
      }
      auto* ipv4 = reinterpret_cast<rte_ipv4_hdr*>(packet.l3());
      wrong_identification += packet::load_be16(packet.l3() + 4) != (packets & 0xFFFFU) ? 1 : 0;
      // DPDK's own sums
      const rte_be16_t ipv4_checksum = ipv4->hdr_checksum;
      ipv4->hdr_checksum = 0;
      wrong_checksum += ipv4_checksum != rte_ipv4_cksum(ipv4) ? 1 : 0;
      rte_be16_t l4_checksum = 0;
      std::uint8_t* at = packet.l4() + (packet.is(packet::kTcp) ? 16 : 6);
      std::memcpy(&l4_checksum, at, 2);
      std::memset(at, 0, 2);
      wrong_checksum += l4_checksum != rte_ipv4_udptcp_cksum(ipv4, packet.l4()) ? 1 : 0;
      for (const std::uint8_t letter : packet.payload()) {
        unprintable += letter < ' ' || letter > '~' ? 1 : 0;
      }
    }
    pool->release_slots(*unit, 0, unit->count);
    pool->release_unit(unit);
  }
  EXPECT_EQ(packets, 70'000U);
  EXPECT_EQ(wrong_identification, 0U);
  EXPECT_EQ(wrong_checksum, 0U);
  EXPECT_EQ(unprintable, 0U);
}

INSTANTIATE_TEST_SUITE_P(Bytes, GeneratorSize, ::testing::Values(0, 60, 61, 64, 65, 512, 1518, 1791, 1792));

TEST(Generator, wireshark_finds_every_checksum_good) {
  if (!testing::have_program("tshark")) {
    GTEST_SKIP() << "tshark is not installed";
  }
  const auto pool = make_pool();
  const ScratchFolder folder;
  const auto generator = make_generator({.packet_bytes = 0, .flows = 200, .count = 3000});
  auto sink = open_pcap_sink(folder.path("generated.pcap"));
  ASSERT_TRUE(generator.ok() && sink.ok());
  ASSERT_TRUE(testing::pump(**generator, **sink, *pool).ok());
  const std::string tshark = "tshark -r " + folder.path("generated.pcap") +
                             " -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE"
                             " -T fields -e frame.number -Y '";
  const auto count = [&](std::string const& filter) {
    const std::string lines = testing::run_command(tshark + filter + "' 2>/dev/null");
    return std::count(lines.begin(), lines.end(), '\n');
  };
  EXPECT_EQ(count("ip.checksum.status == 1 && tcp.checksum.status == 1"), 1500);
  EXPECT_EQ(count("ip.checksum.status == 1 && udp.checksum.status == 1"), 1500);
}

TEST(Generator, imix_sizes_are_7_4_1_in_every_dozen_and_reach_every_flow) {
  // as many flows as a dozen has packets: sizes in a fixed order would tie each flow to one size
  const std::vector<Frame> frames = generate({.packet_bytes = 0, .flows = 12, .count = 12'000});
  ASSERT_EQ(frames.size(), 12'000U);
  std::map<FiveTuple, std::set<std::size_t>> sizes_of_flow;
  std::set<std::vector<std::size_t>> orders;
  for (std::size_t first = 0; first < frames.size(); first += 12) {
    std::map<std::size_t, int> dozen;
    std::vector<std::size_t> order;
    for (std::size_t i = first; i < first + 12; ++i) {
      ++dozen[frames[i].size()];
      order.push_back(frames[i].size());
      sizes_of_flow[five_tuple(frames[i])].insert(frames[i].size());
    }
    ASSERT_EQ(dozen, (std::map<std::size_t, int>{{64, 7}, {594, 4}, {1518, 1}}));
    orders.insert(order);
  }
  EXPECT_EQ(sizes_of_flow.size(), 12U);
  for (auto const& [flow, sizes] : sizes_of_flow) {
    EXPECT_EQ(sizes.size(), 3U);
  }
  EXPECT_GT(orders.size(), 100U);
}

TEST(Generator, impossible_configurations_are_refused) {
  for (GeneratorConfig const& config : std::vector<GeneratorConfig>{{.packet_bytes = 1},
                                                                    {.packet_bytes = 59},
                                                                    {.packet_bytes = 1793},
                                                                    {.packet_bytes = 0xFFFFFFFF},
                                                                    {.flows = 0},
                                                                    {.flows = (1U << 20) + 1},
                                                                    {.flows = 0xFFFFFFFF}}) {
    const auto generator = make_generator(config);
    EXPECT_EQ(generator.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(generator.status().message()), HasSubstr("write "));
  }
}

TEST(Generator, the_largest_number_of_flows_is_distinct) {
  std::set<FiveTuple> flows;
  for (Frame const& frame : generate({.packet_bytes = 60, .flows = 1U << 20, .count = 1U << 20})) {
    flows.insert(five_tuple(frame));
  }
  EXPECT_EQ(flows.size(), 1U << 20);
}

TEST(Generator, never_exceeds_its_rate) {
  const auto start = Schedule::Clock::now();
  const auto pool = make_pool();
  const auto generator = make_generator({.packet_bytes = 64, .packets_per_s = 50});
  ASSERT_TRUE(generator.ok());
  const std::size_t packets = receive_all(**generator, *pool, 1000).frames.size();
  const std::chrono::duration<double> passed = Schedule::Clock::now() - start;
  EXPECT_GE(packets, 1U);
  EXPECT_LE(static_cast<double>(packets), 1.0 + 50.0 * passed.count());
}

TEST(Schedule, leaves_nothing_out_after_a_pause) {
  using std::chrono::milliseconds;
  const Schedule::Clock::time_point start{milliseconds(7)};
  Schedule slow(1000);
  EXPECT_EQ(slow.due(start), 1U);
  slow.take(1);
  EXPECT_EQ(slow.due(start), 0U);
  EXPECT_EQ(slow.due(start + std::chrono::microseconds(2500)), 2U);
  slow.take(2);
  EXPECT_EQ(slow.due(start + milliseconds(3)), 1U) << "the half is not lost";
  EXPECT_EQ(slow.due(start + milliseconds(3)), 1U) << "asking takes nothing";
  EXPECT_EQ(slow.due(start + milliseconds(100'000)), 99'998U) << "a long pause is made up for";
}

TEST(Schedule, knows_when_each_packet_was_due) {
  using std::chrono::milliseconds;
  const Schedule::Clock::time_point start{milliseconds(7)};
  Schedule slow(1000);
  slow.due(start);
  EXPECT_EQ(slow.due_ns(0), 7'000'000U);
  slow.due(start + milliseconds(50));
  EXPECT_EQ(slow.due_ns(3), 10'000'000U) << "whenever it is taken";
  Schedule thirds(3e6);
  thirds.due(start);
  EXPECT_EQ(thirds.due_ns(1), 7'000'333U);
  EXPECT_EQ(thirds.due_ns(3'000'000'000), 1'007'000'000ULL + 999 * 1'000'000'000ULL) << "no error adds up";
}

TEST(Schedule, a_rate_may_be_any) {
  const Schedule::Clock::time_point start{};
  Schedule extreme(1e19);
  extreme.due(start);
  EXPECT_GE(extreme.due(start + std::chrono::hours(1000)), 1'000'000'000U);
  Schedule rare(1e-3);
  EXPECT_EQ(rare.due(start), 1U);
  rare.take(1);
  EXPECT_EQ(rare.due(start + std::chrono::seconds(999)), 0U);
  EXPECT_EQ(rare.due(start + std::chrono::seconds(1000)), 1U);
}

}  // namespace
}  // namespace catena::io
