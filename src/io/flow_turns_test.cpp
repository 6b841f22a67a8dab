// SPDX-License-Identifier: Apache-2.0
#include "io/flow_turns.hpp"
#include "io/paced_source.hpp"
#include "io/test_support.hpp"

#include <catena/packet/headers.hpp>

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

namespace catena::io {
namespace {

using testing::make_pool;

struct Seen {
  std::vector<std::uint8_t> frame;
  std::uint64_t arrival_ns;
  bool operator==(Seen const&) const = default;
};

/// The first `most` packets of a source by their number, or all that there are.
std::map<std::uint64_t, Seen> play(Source& source, std::uint64_t most) {
  const auto pool = make_pool();
  std::map<std::uint64_t, Seen> packets;
  std::uint64_t next_index = 0;
  while (!source.finished() && packets.size() < most) {
    memory::Unit* unit = pool->acquire_unit();
    bool starved = false;
    EXPECT_TRUE(source.receive(*pool, *unit, next_index, starved).ok());
    const packet::Batch batch = pool->batch(*unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      EXPECT_LT(batch[i].index(), next_index);
      const std::vector<std::uint8_t> frame(batch[i].frame(), batch[i].frame() + batch[i].length());
      EXPECT_TRUE(packets.emplace(batch[i].index(), Seen{frame, batch[i].arrival_ns()}).second)
          << "a number comes once";
    }
    pool->release_slots(*unit, 0, unit->count);
    pool->release_unit(unit);
  }
  return packets;
}

/// By the last byte of the source address: parts of different sizes.
PartOf by_source(std::uint32_t parts) {
  return [parts](packet::Packet const& packet) { return packet.l3()[15] % parts; };
}

class Parts : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static void expect_same(Source& whole, std::vector<std::unique_ptr<Source>> const& parts, std::uint64_t count) {
    const std::map<std::uint64_t, Seen> expected = play(whole, count);
    ASSERT_EQ(parts.size(), GetParam());
    std::map<std::uint64_t, Seen> together;
    for (std::uint32_t part = 0; part < parts.size(); ++part) {
      std::map<std::uint64_t, Seen> own = play(*parts[part], count);
      EXPECT_EQ(parts[part]->part_done(), 1);
      for (auto const& [number, seen] : own) {
        EXPECT_EQ(seen.frame[packet::kEthernetBytes + 15] % GetParam(), part);
      }
      together.merge(own);
      EXPECT_TRUE(own.empty()) << "a packet belongs to one part";
    }
    EXPECT_EQ(together.size(), count);
    EXPECT_TRUE(together == expected);
  }
};

TEST_P(Parts, of_a_generator_are_its_packets_with_their_numbers_and_times) {
  for (const std::uint32_t bytes : {0U, 100U}) {
    for (const std::uint32_t flows : {1U, 7U, 300U}) {
      GeneratorConfig config;
      config.packet_bytes = bytes;
      config.flows = flows;
      config.count = 2011;
      expect_same(**make_generator(config), *make_generators(config, GetParam(), by_source(GetParam())), config.count);
    }
  }
}

TEST_P(Parts, of_a_replay_are_its_packets_with_their_numbers_and_times) {
  for (std::vector<std::uint32_t> const& sizes : {std::vector<std::uint32_t>{64}, {60, 200, 1518}}) {
    for (const std::uint32_t flows : {1U, 7U, 300U}) {
      ReplayConfig config;
      config.packet_bytes = sizes;
      config.flows = flows;
      config.count = 2011;
      config.sample_every = 1;  // whole, whatever was in the slot before
      expect_same(**make_replay(config), *make_replays(config, GetParam(), by_source(GetParam())), config.count);
    }
  }
}

TEST_P(Parts, share_a_rate) {
  GeneratorConfig config;
  config.count = 3000;
  for (const std::uint64_t rate : {1U, 31U, 1'000'000U}) {
    config.packets_per_s = rate;
    const std::vector<std::unique_ptr<Source>> parts = *make_generators(config, GetParam(), by_source(GetParam()));
    double together = 0;
    for (auto const& part : parts) {
      together += part->offered_per_second();
    }
    EXPECT_NEAR(together, static_cast<double>(rate), 1e-6 * static_cast<double>(rate));
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, Parts, ::testing::Values(1U, 2U, 3U, 8U, 16U));

TEST(Parts, one_without_flows_is_finished) {
  GeneratorConfig config;
  config.flows = 1;  // without end
  const auto parts = *make_generators(config, 2, [](packet::Packet const& /*packet*/) { return 1U; });
  EXPECT_TRUE(parts[0]->finished());
  EXPECT_FALSE(parts[1]->finished());
  EXPECT_EQ(parts[1]->part_done(), -1);
}

TEST(EvenTimes, are_rounded_down_however_far_a_number_is) {
  for (const std::uint64_t per_second : {1ULL, 3ULL, 7ULL, 999'999'937ULL, 14'880'952ULL}) {
    EvenTimes times(per_second);
    for (const std::uint64_t number : {0ULL, 1ULL, 2ULL, 77ULL, 78ULL, 1'000'003ULL, 9'000'001ULL}) {
      const auto exact = static_cast<unsigned __int128>(number) * 1'000'000'000 / per_second;
      EXPECT_EQ(times.at(number), static_cast<std::uint64_t>(exact)) << number << " of " << per_second;
    }
  }
}

}  // namespace
}  // namespace catena::io
