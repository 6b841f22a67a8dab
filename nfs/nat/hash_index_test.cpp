// SPDX-License-Identifier: Apache-2.0
#include "hash_index.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace catena::nat {
namespace {

TEST(HashIndex, random_inserts_and_erases_are_as_a_map_says) {
  // few distinct hashes at both ends of the table, so that runs of slots collide, wrap around and close their gaps
  std::mt19937_64 engine(1);
  constexpr std::uint32_t kEntries = 200;
  HashIndex index(kEntries);
  std::vector<std::uint64_t> hashes(kEntries);
  std::vector<bool> is_in(kEntries);
  for (int i = 0; i < 20000; ++i) {
    const auto position = static_cast<std::uint32_t>(engine() % kEntries);
    if (is_in[position]) {
      index.erase(hashes[position], position, [&](std::uint32_t other) { return hashes[other]; });
    } else {
      hashes[position] = (engine() % 2 == 0 ? ~std::uint64_t{0} << 54 : engine() << 61) | engine() % 0x1000000;
      index.insert(hashes[position], position);
    }
    is_in[position] = !is_in[position];
    for (std::uint32_t other = i % 7; other < kEntries; other += 7) {
      const std::uint32_t found =
          index.find(hashes[other], [&](std::uint32_t candidate) { return candidate == other; });
      ASSERT_EQ(found, is_in[other] ? other : HashIndex::kNone);
    }
  }
}

TEST(HashIndex, the_first_guess_is_a_position_with_the_same_tag) {
  HashIndex index(10);
  EXPECT_EQ(index.first_guess(0x12345678), HashIndex::kNone);
  index.insert(0x12000000, 3);
  EXPECT_EQ(index.first_guess(0x12FFFFFF), 3U);
  EXPECT_EQ(index.first_guess(0x13000000), HashIndex::kNone);
}

TEST(HashIndex, the_largest_number_of_entries_fits_beside_the_tag) {
  HashIndex index(HashIndex::kMaxEntries);
  index.insert(~std::uint64_t{0}, HashIndex::kMaxEntries - 1);
  EXPECT_EQ(index.find(~std::uint64_t{0}, [](std::uint32_t) { return true; }), HashIndex::kMaxEntries - 1);
}

TEST(HashIndex, two_hashes_have_different_keys) {
  const KeyedHash a;
  const KeyedHash b;
  EXPECT_NE(a(1), b(1));
  EXPECT_EQ(a(1), a(1));
  EXPECT_NE(a(1, 2), a(2, 1));
}

TEST(HashIndex, hashes_of_neighbouring_keys_spread_over_the_table) {
  const KeyedHash hash;
  std::vector<std::uint32_t> counts(256);
  for (std::uint64_t address = 0; address < 256; ++address) {
    for (std::uint64_t port = 0; port < 256; ++port) {
      ++counts[hash(address << 32 | port << 8) >> 56];
    }
  }
  for (const std::uint32_t count : counts) {  // 256 each if it were even
    EXPECT_GT(count, 64U);
    EXPECT_LT(count, 1024U);
  }
}

}  // namespace
}  // namespace catena::nat
