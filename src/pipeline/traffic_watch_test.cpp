// SPDX-License-Identifier: Apache-2.0
#include "pipeline/traffic_watch.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace catena::runtime {
namespace {

class Watched {
 public:
  explicit Watched(std::uint32_t placed_for, bool was_found = false) : watch_(placed_for, was_found) {}
  /// After a period with such packets.
  std::optional<std::uint32_t> look(std::uint32_t bytes, std::uint64_t packets = 1'000'000) {
    packets_ += packets;
    bytes_ += packets * bytes;
    return watch_.look(packets_, bytes_);
  }

 private:
  TrafficWatch watch_;
  std::uint64_t packets_ = 0;
  std::uint64_t bytes_ = 0;
};

TEST(TrafficWatch, says_once_what_it_found_twice) {
  Watched watched(362);
  EXPECT_EQ(watched.look(362), std::nullopt);
  EXPECT_EQ(watched.look(64), std::nullopt) << "once may be a burst";
  EXPECT_EQ(watched.look(65), 65U);
  EXPECT_EQ(watched.look(65), std::nullopt) << "it was said";
  EXPECT_EQ(watched.look(70), std::nullopt) << "about the same";
  EXPECT_EQ(watched.look(1500), std::nullopt);
  EXPECT_EQ(watched.look(1500), 1500U) << "and back";
}

TEST(TrafficWatch, says_nothing_of_bursts_nor_of_few_packets) {
  Watched watched(362);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(watched.look(i % 2 == 0 ? 64 : 362), std::nullopt);
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(watched.look(i % 2 == 0 ? 64 : 1500), std::nullopt) << "which one?";
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(watched.look(64, TrafficWatch::kMinPackets - 1), std::nullopt);
  }
}

TEST(TrafficWatch, rests_after_a_change) {
  Watched watched(64, true);
  for (int i = 0; i < TrafficWatch::kRest + 1; ++i) {
    EXPECT_EQ(watched.look(1500), std::nullopt);
  }
  EXPECT_EQ(watched.look(1500), 1500U);
}

}  // namespace
}  // namespace catena::runtime
