// SPDX-License-Identifier: Apache-2.0
#include "flow_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "hash.hpp"

namespace catena::lb {
namespace {

constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint32_t kBackends = 8;

/// A table whose flows are told apart by their client's address alone.
class Flows {
 public:
  explicit Flows(std::uint32_t max_flows, std::uint32_t timeout = 300, std::uint32_t closing = 10)
      : table(max_flows, kBackends, timeout, closing) {}

  static std::uint64_t to_backend(std::uint32_t client) { return mix(client); }
  static std::uint64_t to_client(std::uint32_t client) { return mix(mix(client)); }
  static auto is(std::uint32_t client) {
    return [client](Flow const& flow) { return flow.client_address == client; };
  }
  FlowTable::Id find(std::uint32_t client) { return table.find(to_backend(client), is(client)); }
  FlowTable::Id find_reply(std::uint32_t client) { return table.find(to_client(client), is(client)); }
  FlowTable::Id insert(std::uint32_t client) {
    Flow flow;
    flow.client_address = client;
    flow.backend = static_cast<std::uint16_t>(client % kBackends);
    return table.insert(flow, to_backend(client), to_client(client), FlowTable::kNone);
  }

  FlowTable table;
};

TEST(FlowTable, a_flow_is_found_in_both_directions_until_it_is_erased) {
  Flows flows(10);
  const FlowTable::Id id = flows.insert(7);
  ASSERT_NE(id, FlowTable::kNone);
  EXPECT_EQ(flows.find(7), id);
  EXPECT_EQ(flows.find_reply(7), id);
  EXPECT_EQ(flows.find(8), FlowTable::kNone);
  EXPECT_EQ(flows.table.flows_of(7), 1U);
  flows.table.erase(id);
  EXPECT_EQ(flows.find(7), FlowTable::kNone);
  EXPECT_EQ(flows.find_reply(7), FlowTable::kNone);
  EXPECT_EQ(flows.table.flows_of(7), 0U);
  EXPECT_EQ(flows.table.size(), 0U);
  EXPECT_EQ(flows.table.expired(), 0U);
}

TEST(FlowTable, a_flow_expires_when_more_than_the_timeout_has_passed) {
  for (const std::uint64_t idle : {299 * kSecond, 300 * kSecond, 301 * kSecond, 1000 * kSecond}) {
    Flows flows(10, 300);
    flows.table.advance(5);
    flows.insert(7);
    flows.table.advance(5 + idle);
    EXPECT_EQ(flows.find(7) != FlowTable::kNone, idle <= 300 * kSecond) << idle;
  }
}

TEST(FlowTable, a_packet_in_time_keeps_a_flow) {
  Flows flows(10, 2);
  flows.table.advance(0);
  const FlowTable::Id id = flows.insert(7);
  for (std::uint64_t second = 1; second < 20; ++second) {
    flows.table.advance(second * kSecond);
    ASSERT_EQ(flows.find(7), id);
    flows.table.touch(id, false);
  }
}

TEST(FlowTable, a_closing_flow_has_the_shorter_timeout_for_good) {
  Flows flows(10, 300, 10);
  flows.table.advance(0);
  const FlowTable::Id id = flows.insert(7);
  flows.table.touch(id, true);
  flows.table.advance(8 * kSecond);
  flows.table.touch(id, false);
  flows.table.advance(18 * kSecond);
  EXPECT_EQ(flows.find(7), id);
  flows.table.advance(19 * kSecond);
  EXPECT_EQ(flows.find(7), FlowTable::kNone);
}

TEST(FlowTable, a_clock_that_goes_back_or_to_the_end_of_time_does_no_harm) {
  Flows flows(10, 300);
  flows.table.advance(1000 * kSecond);
  flows.insert(7);
  flows.table.advance(0);
  flows.table.advance(1300 * kSecond);
  EXPECT_NE(flows.find(7), FlowTable::kNone);
  flows.table.advance(~std::uint64_t{0});
  EXPECT_EQ(flows.find(7), FlowTable::kNone);
  flows.insert(8);
  flows.table.advance(~std::uint64_t{0});
  flows.table.advance(1);
  EXPECT_NE(flows.find(8), FlowTable::kNone);
}

TEST(FlowTable, a_gap_removes_few_flows_a_packet_but_none_of_them_is_found) {
  Flows flows(1000, 300);
  flows.table.advance(0);
  for (std::uint32_t client = 0; client < 1000; ++client) {
    ASSERT_NE(flows.insert(client), FlowTable::kNone);
  }
  flows.table.advance(1000 * kSecond);
  EXPECT_GT(flows.table.size(), 900U);
  EXPECT_EQ(flows.find(999), FlowTable::kNone);
  for (int i = 0; i < 1000; ++i) {
    flows.table.advance(1000 * kSecond);
  }
  EXPECT_EQ(flows.table.size(), 0U);
  EXPECT_EQ(flows.table.expired(), 1000U);
}

TEST(FlowTable, has_room_for_every_flow_up_to_its_limit_and_for_none_beyond) {
  for (const std::uint32_t limit : {1U, 2U, 3U, 5U, 17U, 100U, 1000U, 1000000U}) {
    Flows flows(limit);
    for (std::uint32_t client = 0; client < limit; ++client) {
      ASSERT_NE(flows.insert(client), FlowTable::kNone) << client << " of " << limit;
    }
    EXPECT_EQ(flows.insert(limit), FlowTable::kNone);
    EXPECT_EQ(flows.find(limit), FlowTable::kNone);
    EXPECT_EQ(flows.table.size(), limit);
    flows.table.erase(flows.find(limit / 2));
    EXPECT_NE(flows.insert(limit), FlowTable::kNone);
  }
}

TEST(FlowTable, keys_made_to_collide_are_refused_when_their_buckets_are_full) {
  FlowTable table(1000, kBackends, 300, 10);
  std::uint32_t inserted = 0;
  for (std::uint32_t client = 0; client < 100; ++client) {
    Flow flow;
    flow.client_address = client;
    inserted += table.insert(flow, 42, 43, FlowTable::kNone) != FlowTable::kNone ? 1U : 0U;
  }
  EXPECT_GT(inserted, 0U);
  EXPECT_LE(inserted, 16U) << "two buckets of eight entries";
  EXPECT_EQ(table.size(), inserted);
  std::uint32_t found = 0;
  for (std::uint32_t client = 0; client < 100; ++client) {
    const auto is_it = [client](Flow const& flow) { return flow.client_address == client; };
    const FlowTable::Id id = table.find(42, is_it);
    EXPECT_EQ(id, table.find(43, is_it));
    found += id != FlowTable::kNone ? 1U : 0U;
  }
  EXPECT_EQ(found, inserted);
}

TEST(FlowTable, a_twin_takes_over_the_direction_to_the_client) {
  Flows flows(10);
  const FlowTable::Id old = flows.insert(7);
  Flow twin;
  twin.client_address = 7;
  const FlowTable::Id id = flows.table.insert(twin, mix(99), Flows::to_client(7), flows.find_reply(7));
  EXPECT_EQ(flows.find_reply(7), id);
  EXPECT_EQ(flows.find(7), old);
  flows.table.erase(old);
  EXPECT_EQ(flows.find_reply(7), id) << "the entry is no longer the old flow's";
  flows.table.erase(id);
  EXPECT_EQ(flows.find_reply(7), FlowTable::kNone);
}

/// The same in words of the standard library, one flow after another.
class Model {
 public:
  Model(std::size_t limit, std::uint64_t timeout, std::uint64_t closing) : limit_(limit), timeouts_{timeout, closing} {}
  void advance(std::uint64_t second) { now_ = std::max(now_, second); }
  bool has(std::uint32_t client) {
    const auto flow = flows_.find(client);
    return flow != flows_.end() && now_ - flow->second.second <= timeouts_[flow->second.closing ? 1 : 0];
  }
  void touch(std::uint32_t client, bool closes) {
    flows_[client].second = now_;
    flows_[client].closing |= closes;
  }
  bool insert(std::uint32_t client) {
    std::erase_if(flows_, [this](auto const& entry) { return !has(entry.first); });
    if (flows_.size() >= limit_) {
      return false;
    }
    flows_[client] = {now_, false};
    return true;
  }
  void erase(std::uint32_t client) { flows_.erase(client); }

 private:
  struct State {
    std::uint64_t second;
    bool closing;
  };
  std::size_t limit_;
  std::uint64_t timeouts_[2];
  std::uint64_t now_ = 0;
  std::map<std::uint32_t, State> flows_;
};

TEST(FlowTable, does_what_a_plain_map_with_time_stamps_does) {
  constexpr std::uint32_t kLimit = 50;
  constexpr std::uint32_t kClients = 100;
  std::mt19937 random(11);
  Flows flows(kLimit, 30, 5);
  Model model(kLimit, 30, 5);
  std::uint64_t second = 0;
  std::uint32_t refused = 0;
  for (int step = 0; step < 200000; ++step) {
    second += random() % 4 == 0 ? 1U : 0U;
    const std::uint64_t stamp = random() % 50 == 0 ? second / 2 : second;
    // one packet more for each flow that a gap could leave over: the model removes expired flows at once
    for (std::uint32_t i = 0; i < kLimit; ++i) {
      flows.table.advance(stamp * kSecond);
    }
    model.advance(stamp);
    const std::uint32_t client = static_cast<std::uint32_t>(random()) % kClients;
    const FlowTable::Id id = random() % 2 == 0 ? flows.find(client) : flows.find_reply(client);
    ASSERT_EQ(id != FlowTable::kNone, model.has(client)) << step;
    if (id == FlowTable::kNone) {
      const bool inserted = flows.insert(client) != FlowTable::kNone;
      ASSERT_EQ(inserted, model.insert(client)) << step;
      refused += inserted ? 0U : 1U;
    } else if (random() % 16 == 0) {
      flows.table.erase(id);
      model.erase(client);
    } else {
      const bool closes = random() % 8 == 0;
      flows.table.touch(id, closes);
      model.touch(client, closes);
    }
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(flows.table.expired(), 1000U);
}

TEST(FlowTable, a_million_flows_fit_into_65_bytes_each) {
  EXPECT_LE(FlowTable(1000000, kBackends, 300, 10).bytes(), 65U * 1000000);
}

}  // namespace
}  // namespace catena::lb
