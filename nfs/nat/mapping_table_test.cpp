// SPDX-License-Identifier: Apache-2.0
#include "mapping_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace catena::nat {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

MappingTable::Settings settings(std::uint32_t max_mappings, std::uint32_t addresses = 1) {
  MappingTable::Settings result;
  for (std::uint32_t i = 0; i < addresses; ++i) {
    result.external_addresses.push_back(0xCB007101 + i);
  }
  result.max_mappings = max_mappings;
  return result;
}
Endpoint udp(std::uint32_t address, std::uint16_t port) { return {address, port, Protocol::kUdp}; }

TEST(MappingTable, a_mapping_is_found_from_both_sides) {
  MappingTable table(settings(10));
  Mapping const* made = table.create(udp(0x0A000001, 5000));
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(table.external_of(*made), (Endpoint{0xCB007101, 5000, Protocol::kUdp}));
  EXPECT_EQ(table.find_internal(udp(0x0A000001, 5000)), made);
  EXPECT_EQ(table.find_external(table.external_of(*made)), made);
  EXPECT_EQ(table.find_internal({0x0A000001, 5000, Protocol::kTcp}), nullptr);
  EXPECT_EQ(table.find_external(made->internal()), nullptr);
}

TEST(MappingTable, hosts_spread_over_the_external_addresses_whatever_their_pattern) {
  for (const std::uint32_t step : {1U, 4U, 256U, 65536U}) {
    MappingTable table(settings(4000, 4));
    std::map<std::uint32_t, std::uint32_t> hosts;
    for (std::uint32_t i = 0; i < 2000; ++i) {
      ++hosts[table.external_of(*table.create(udp(0x0A000000 + i * step, 5000))).address];
    }
    ASSERT_EQ(hosts.size(), 4U) << "hosts " << step << " apart";
    for (auto const& [address, count] : hosts) {
      EXPECT_GT(count, 300U) << "hosts " << step << " apart";
    }
  }
}

TEST(MappingTable, expiry_does_a_few_entries_a_call_and_all_of_them_when_room_is_needed) {
  MappingTable table(settings(100));
  table.advance(0);
  for (std::uint16_t port = 0; port < 100; ++port) {
    ASSERT_NE(table.create(udp(1, static_cast<std::uint16_t>(5000 + port))), nullptr);
  }
  EXPECT_EQ(table.create(udp(2, 5000)), nullptr);
  table.advance(400 * kSecond);
  EXPECT_GT(table.counts().live, 50U) << "no packet waits for the expiry of all";
  EXPECT_EQ(table.find_internal(udp(1, 5099)), nullptr) << "but what has expired is not found";
  for (int call = 0; call < 100; ++call) {
    table.advance(400 * kSecond);
  }
  EXPECT_EQ(table.counts().live, 0U);
  EXPECT_EQ(table.counts().expired, 100U);
}

TEST(MappingTable, a_full_table_takes_a_new_mapping_in_the_second_after_the_old_ones_expired) {
  MappingTable table(settings(50));
  table.advance(0);
  for (std::uint16_t port = 0; port < 50; ++port) {
    ASSERT_NE(table.create(udp(1, port)), nullptr);
  }
  table.advance(300 * kSecond);
  EXPECT_EQ(table.create(udp(2, 1)), nullptr);
  table.advance(301 * kSecond);
  for (std::uint16_t port = 0; port < 50; ++port) {
    EXPECT_NE(table.create(udp(2, port)), nullptr);
  }
}

/// The table written out: live mappings by their internal endpoint, with the time that their time-out began.
TEST(MappingTable, random_use_is_as_a_map_with_times_says) {
  std::mt19937 engine(7);
  const auto below = [&engine](std::uint32_t limit) { return static_cast<std::uint32_t>(engine() % limit); };
  MappingTable table(settings(200, 2));
  std::map<std::uint32_t, std::pair<std::uint64_t, Endpoint>> model;
  std::uint64_t now = 0;
  std::uint64_t full = 0;
  for (int step = 0; step < 50000; ++step) {
    now += below(10) == 0 ? below(40) : 0;
    table.advance(now * kSecond);
    std::erase_if(model, [now](auto const& entry) { return now - entry.second.first > 300; });
    const std::uint32_t host = below(400);
    const Endpoint internal = udp(0x0A000000 + host, static_cast<std::uint16_t>(2000 + host % 5));
    const auto known = model.find(host);
    Mapping const* found = table.find_internal(internal);
    ASSERT_EQ(found != nullptr, known != model.end());
    if (found != nullptr) {
      ASSERT_EQ(table.external_of(*found), known->second.second);
      ASSERT_EQ(table.find_external(table.external_of(*found)), found);
      if (below(2) == 0) {
        table.note_outbound(*found);
        known->second.first = now;
      }
      continue;
    }
    Mapping const* made = table.create(internal);
    ASSERT_EQ(made != nullptr, model.size() < 200);
    full += made == nullptr ? 1 : 0;
    if (made != nullptr) {
      for (auto const& [other, entry] : model) {
        ASSERT_FALSE(entry.second == table.external_of(*made));
      }
      model.emplace(host, std::pair(now, table.external_of(*made)));
    }
  }
  EXPECT_GT(full, 0U);
  EXPECT_GT(table.counts().expired, 1000U);
}

TEST(MappingTable, memory_is_what_the_readme_says) {
  const MappingTable table(settings(1'000'000, 16));
  EXPECT_LT(table.memory_bytes(), 123'000'000U);
  EXPECT_GT(table.memory_bytes(), 121'000'000U);
}

}  // namespace
}  // namespace catena::nat
