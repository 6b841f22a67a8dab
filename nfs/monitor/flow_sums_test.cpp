// SPDX-License-Identifier: Apache-2.0
#include "flow_sums.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/nf/testing/packet_store.hpp>

#include <random>

#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using nf::testing::Frame;
using ::testing::ElementsAreArray;

/// Packets of a launch whose flows go on over the borders of groups and batches, with stamps that go back.
struct Launch {
  explicit Launch(std::uint32_t packets, std::uint32_t flows)
      : frames(frames_of(packets, flows)), store(frames, arrivals_of(packets)) {
    const packet::Batch all = store.all();
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      observed.push_back(observe(all[i]));
    }
    results = testing::results_of(observed);
  }
  static std::vector<Frame> frames_of(std::uint32_t packets, std::uint32_t flows) {
    std::mt19937 random(packets);
    std::vector<Frame> result;
    for (std::uint32_t i = 0; i < packets; ++i) {
      result.push_back(nf::testing::make_frame(6, 1, static_cast<std::uint32_t>(random()) % flows, 3, 4,
                                               std::string(random() % 100, 'x')));
      result.back()[15] = static_cast<std::uint8_t>(random());
      result.back()[47] = static_cast<std::uint8_t>(1U << random() % 8);
    }
    return result;
  }
  static std::vector<std::uint64_t> arrivals_of(std::uint32_t packets) {
    std::vector<std::uint64_t> result;
    for (std::uint32_t i = 0; i < packets; ++i) {
      result.push_back(1'000'000 + i * 1000 - (i % 5 == 3 ? 4500 : 0));
    }
    return result;
  }
  std::vector<Frame> frames;
  nf::testing::PacketStore store;
  std::vector<Observation> observed;
  std::vector<FlowResult> results;
};

void expect_summed(Launch& launch, std::uint32_t batch_size) {
  FlowSums sums;
  for (std::uint32_t row = 0; row < launch.observed.size(); row += batch_size) {
    const std::size_t count = std::min<std::size_t>(batch_size, launch.observed.size() - row);
    SummedBatch const& actual =
        sums.add_up(launch.store.batch(row, count), std::span(launch.results).subspan(row, count));
    const SummedBatch expected = testing::summed(std::span(launch.observed).subspan(row, count), row);
    ASSERT_THAT(actual.sums, ElementsAreArray(expected.sums)) << "batch of " << batch_size << " from row " << row;
    ASSERT_EQ(actual.sum_of_packet, expected.sum_of_packet) << "batch of " << batch_size << " from row " << row;
    ASSERT_EQ(actual.stamps_ns, expected.stamps_ns);
  }
}

TEST(FlowSums, are_those_of_the_packets_wherever_groups_and_batches_begin) {
  for (const std::uint32_t flows : {1U, 5U, 100U, 100'000U}) {
    Launch launch(1500, flows);
    for (const std::uint32_t batch_size : {1U, 2U, 63U, 253U, 256U, 257U, 1024U, 1500U}) {
      expect_summed(launch, batch_size);
    }
  }
}

/// A kernel that was wrong must not take the host along; what it gives then is of no meaning.
TEST(FlowSums, survive_any_results) {
  Launch launch(700, 10);
  std::mt19937 random(1);
  FlowSums sums;
  for (std::uint32_t round = 0; round < 200; ++round) {
    for (FlowResult& result : launch.results) {
      const bool is_any = random() % 4 != 0;
      result = is_any ? FlowResult{static_cast<u32>(random()), static_cast<u16>(random()), static_cast<u8>(random()),
                                   static_cast<u8>(random())}
                      : FlowResult{};
    }
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random()) % 700;
    SummedBatch const& summed = sums.add_up(launch.store.batch(0, count), std::span(launch.results).first(count));
    ASSERT_EQ(summed.sum_of_packet.size(), count);
    for (const std::uint32_t number : summed.sum_of_packet) {
      ASSERT_LT(number, summed.sums.size());
    }
    for (FlowSum const& sum : summed.sums) {
      ASSERT_LT(sum.last, count);
    }
  }
}

}  // namespace
}  // namespace catena::monitor
