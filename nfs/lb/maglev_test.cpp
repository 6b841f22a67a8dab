// SPDX-License-Identifier: Apache-2.0
#include "maglev.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace catena::lb {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kSize = 65537;

/// Backends of a table, numbered in order.
class Members {
 public:
  explicit Members(std::vector<std::uint32_t> weights) : weights_(std::move(weights)) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      names_.push_back(concat("web", i));
    }
  }
  std::vector<MaglevMember> list() const {
    std::vector<MaglevMember> result;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      result.push_back({names_[i], weights_[i], static_cast<std::uint16_t>(i)});
    }
    return result;
  }
  std::vector<MaglevMember> without(std::size_t number) const {
    std::vector<MaglevMember> result = list();
    result.erase(result.begin() + static_cast<std::ptrdiff_t>(number));
    return result;
  }
  std::size_t size() const { return weights_.size(); }
  /// Entries that a backend would have if entries could be divided.
  double fair_share(std::size_t number, std::uint32_t table_size) const {
    double sum = 0;
    for (const std::uint32_t weight : weights_) {
      sum += weight;
    }
    return table_size * (weights_[number] / sum);
  }

 private:
  std::vector<std::uint32_t> weights_;
  std::vector<std::string> names_;
};

Members equal(std::size_t count) { return Members(std::vector<std::uint32_t>(count, 1)); }
Members weighted(std::size_t count, std::uint32_t heaviest) {
  std::mt19937 random(static_cast<std::uint32_t>(count));
  std::vector<std::uint32_t> weights;
  for (std::size_t i = 0; i < count; ++i) {
    weights.push_back(1 + static_cast<std::uint32_t>(random()) % heaviest);
  }
  return Members(weights);
}

// The paper's example, table 1: three backends, seven entries, and what is left when the second one is removed.
TEST(Maglev, fills_the_table_of_the_papers_example) {
  const Permutation b0{.offset = 3, .skip = 4, .weight = 1, .number = 0};
  const Permutation b1{.offset = 0, .skip = 2, .weight = 1, .number = 1};
  const Permutation b2{.offset = 3, .skip = 1, .weight = 1, .number = 2};
  EXPECT_THAT(fill_maglev_table(std::vector{b0, b1, b2}, 7), ElementsAre(1, 0, 1, 0, 2, 2, 0));
  EXPECT_THAT(fill_maglev_table(std::vector{b0, b2}, 7), ElementsAre(0, 0, 0, 0, 2, 2, 2));
}

TEST(Maglev, every_backend_has_its_weights_share_of_the_entries) {
  for (const std::uint32_t heaviest : {1U, 10U, 256U}) {
    for (std::size_t count = 3; count <= 100; count += 1 + count / 8) {
      const Members members = heaviest == 1 ? equal(count) : weighted(count, heaviest);
      const MaglevTable table(members.list(), kSize);
      std::vector<std::uint32_t> entries(count);
      for (const std::uint16_t number : table.entries()) {
        ++entries.at(number);
      }
      for (std::size_t i = 0; i < count; ++i) {
        const double fair = members.fair_share(i, kSize);
        EXPECT_LE(std::abs(entries[i] - fair), std::max(1.0, 0.01 * fair)) << i << " of " << count;
      }
    }
  }
}

TEST(Maglev, does_not_depend_on_the_order_of_the_backends) {
  const Members members = weighted(40, 20);
  const MaglevTable expected(members.list(), kSize);
  std::vector<MaglevMember> list = members.list();
  std::mt19937 random(5);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(list.begin(), list.end(), random);
    EXPECT_TRUE(std::ranges::equal(MaglevTable(list, kSize).entries(), expected.entries()));
  }
}

/// Share of the entries of other backends that change when backend `removed` leaves.
double moved_share(Members const& members, MaglevTable const& before, std::size_t removed) {
  const MaglevTable after(members.without(removed), static_cast<std::uint32_t>(before.entries().size()));
  std::uint32_t others = 0;
  std::uint32_t moved = 0;
  for (std::size_t i = 0; i < before.entries().size(); ++i) {
    EXPECT_NE(after.entries()[i], removed);
    const bool of_another = before.entries()[i] != removed;
    others += of_another ? 1U : 0U;
    moved += of_another && before.entries()[i] != after.entries()[i] ? 1U : 0U;
  }
  return static_cast<double>(moved) / others;
}

TEST(Maglev, a_backend_that_leaves_moves_at_most_one_percent_of_the_entries_of_the_others) {
  for (const std::uint32_t heaviest : {1U, 10U, 256U}) {
    double worst = 0;
    for (const std::size_t count : {3U, 10U, 30U, 100U}) {
      const Members members = heaviest == 1 ? equal(count) : weighted(count, heaviest);
      const MaglevTable table(members.list(), kSize);
      for (std::size_t removed = 0; removed < count; removed += 1 + count / 12) {
        worst = std::max(worst, moved_share(members, table, removed));
      }
    }
    EXPECT_LE(worst, 0.01) << "weights up to " << heaviest;
    RecordProperty(concat("worst_moved_percent_weights_to_", heaviest), concat(100 * worst));
  }
}

TEST(Maglev, find_reaches_all_entries_evenly) {
  const Members members = equal(5);
  const MaglevTable table(members.list(), 101);
  std::vector<std::uint32_t> found(5);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    ++found.at(table.find(random()));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto entries = static_cast<double>(std::ranges::count(table.entries(), i));
    EXPECT_NEAR(found[i], 100000 * entries / 101, 1000);
  }
  EXPECT_EQ(table.find(0), table.entries().front());
  EXPECT_EQ(table.find(~std::uint64_t{0}), table.entries().back());
}

TEST(Maglev, one_backend_has_every_entry_and_none_makes_an_empty_table) {
  const MaglevTable one(equal(1).list(), kSize);
  EXPECT_TRUE(std::ranges::all_of(one.entries(), [](std::uint16_t number) { return number == 0; }));
  EXPECT_EQ(one.entries().size(), kSize);
  EXPECT_TRUE(MaglevTable({}, kSize).empty());
}

TEST(Primes, are_told_from_other_numbers) {
  for (const std::uint32_t prime : {2U, 3U, 5U, 101U, 251U, 65537U, 1048573U, 4294967291U}) {
    EXPECT_TRUE(is_prime(prime)) << prime;
  }
  for (const std::uint32_t other : {0U, 1U, 4U, 9U, 65535U, 65536U, 1048575U, 4294967295U}) {
    EXPECT_FALSE(is_prime(other)) << other;
  }
  EXPECT_EQ(next_prime(65536), 65537U);
  EXPECT_EQ(next_prime(65537), 65537U);
  EXPECT_EQ(next_prime(65538), 65539U);
}

}  // namespace
}  // namespace catena::lb
