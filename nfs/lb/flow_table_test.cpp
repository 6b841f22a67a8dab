// SPDX-License-Identifier: Apache-2.0
#include "flow_table.hpp"

#include <gtest/gtest.h>
#include <catena/nf/tcp_state.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "hash.hpp"

namespace catena::lb {
namespace {

constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint32_t kBackends = 8;
constexpr std::uint8_t kHalfOpen = 0;
constexpr std::uint8_t kOpen = nf::kTcpAnswered | nf::kTcpOpened;
constexpr std::uint8_t kClosing = kOpen | nf::kTcpReset;

Timeouts timeouts(std::uint32_t established, std::uint32_t closing) {
  return {.tcp_opening = 5, .tcp_established = established, .tcp_closing = closing, .udp = 7};
}

/// A table whose flows are told apart by their client's address alone.
class Flows {
 public:
  explicit Flows(std::uint32_t max_flows, std::uint32_t established = 300, std::uint32_t closing = 10)
      : Flows(FlowLimits{max_flows, max_flows}, established, closing) {}
  explicit Flows(FlowLimits limits, std::uint32_t established = 300, std::uint32_t closing = 10)
      : table(limits, kBackends, timeouts(established, closing)) {}

  static std::uint64_t to_backend(std::uint32_t client) { return mix(client); }
  static std::uint64_t to_client(std::uint32_t client) { return mix(mix(client)); }
  static auto is(std::uint32_t client) {
    return [client](Flow const& flow) { return flow.client_address == client; };
  }
  FlowTable::Id find(std::uint32_t client) { return table.find(to_backend(client), is(client)); }
  FlowTable::Id find_reply(std::uint32_t client) { return table.find(to_client(client), is(client)); }
  FlowTable::Id insert(std::uint32_t client, std::uint8_t tcp_state = kOpen, bool is_udp = false) {
    Flow flow;
    flow.tcp_state = tcp_state;
    flow.is_udp = is_udp;
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

TEST(FlowTable, a_flow_in_the_record_of_an_evicted_one_is_found_in_both_directions) {
  Flows before(10);
  before.table.advance(0);
  const FlowTable::Id first = before.insert(1, kHalfOpen);
  Flow same_port;
  same_port.client_address = 2;
  before.table.erase(before.table.insert(same_port, Flows::to_backend(2), Flows::to_client(1), first));
  EXPECT_EQ(before.find_reply(1), FlowTable::kNone) << "the other flow had its place";
  before.insert(3);
  before.insert(4);
  Flows after(2);
  FlowTable const* const table = &before.table;
  after.table.take_over(
      std::span(&table, 1), [](Flow const&, std::size_t) { return true; },
      [](Flow const& flow, std::size_t) {
        const std::uint32_t client = flow.client_address;
        return FlowTable::FlowSlot{Flows::to_backend(client), Flows::to_client(client), FlowTable::kNone,
                                   FlowTable::kNone};
      });
  EXPECT_EQ(after.table.evicted(), 1U);
  for (const std::uint32_t client : {3U, 4U}) {
    EXPECT_NE(after.find(client), FlowTable::kNone);
    EXPECT_EQ(after.find_reply(client), after.find(client)) << client;
  }
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
    flows.table.touch(id, kOpen);
  }
}

TEST(FlowTable, a_closing_flow_has_the_shorter_timeout) {
  Flows flows(10, 300, 10);
  flows.table.advance(0);
  const FlowTable::Id id = flows.insert(7);
  flows.table.touch(id, kClosing);
  flows.table.advance(8 * kSecond);
  flows.table.touch(id, kClosing);
  flows.table.advance(18 * kSecond);
  EXPECT_EQ(flows.find(7), id);
  flows.table.advance(19 * kSecond);
  EXPECT_EQ(flows.find(7), FlowTable::kNone);
}

TEST(FlowTable, the_end_of_time_does_no_harm) {
  Flows flows(10, 300);
  flows.table.advance(1000 * kSecond);
  flows.insert(7);
  flows.table.advance(~std::uint64_t{0});
  EXPECT_EQ(flows.find(7), FlowTable::kNone);
  flows.insert(8);
  flows.table.advance(~std::uint64_t{0});
  EXPECT_NE(flows.find(8), FlowTable::kNone);
}

TEST(FlowTable, each_kind_of_flow_has_its_timeout) {
  constexpr std::uint32_t kNever = 1000;
  const auto dies_at = [](std::uint8_t state, bool is_udp) {
    Flows flows(10, 20, 10);
    flows.table.advance(0);
    flows.insert(7, state, is_udp);
    for (std::uint32_t second = 1; second < 30; ++second) {
      flows.table.advance(second * kSecond);
      if (flows.table.size() == 0) {
        return second;
      }
    }
    return kNever;
  };
  EXPECT_EQ(dies_at(kHalfOpen, false), 6U);
  EXPECT_EQ(dies_at(0, true), 8U);
  EXPECT_EQ(dies_at(kClosing, false), 11U);
  EXPECT_EQ(dies_at(kOpen, false), 21U);
}

TEST(FlowTable, a_note_changes_the_state_and_leaves_the_timeout_running) {
  Flows flows(10);
  flows.table.advance(0);
  const FlowTable::Id id = flows.insert(7, kHalfOpen);
  flows.table.advance(4 * kSecond);
  flows.table.note(id, nf::kTcpAnswered);
  EXPECT_EQ(flows.table[id].tcp_state, nf::kTcpAnswered);
  flows.table.advance(6 * kSecond);
  EXPECT_EQ(flows.find(7), FlowTable::kNone);
  const FlowTable::Id other = flows.insert(8, nf::kTcpAnswered);
  flows.table.note(other, kOpen);
  flows.table.advance(306 * kSecond);
  EXPECT_EQ(flows.find(8), other) << "another time-out begins";
}

TEST(FlowTable, a_full_table_forgets_half_open_then_closing_then_udp_then_established_flows) {
  Flows flows(8);
  std::uint32_t client = 0;
  for (int twice = 0; twice < 2; ++twice) {  // the older of each kind has the lower number
    flows.table.advance(static_cast<std::uint64_t>(twice) * kSecond);
    for (const std::uint8_t state : {kOpen, kClosing, kHalfOpen}) {
      flows.insert(client++, state);
    }
    flows.insert(client++, 0, true);
  }
  ASSERT_EQ(flows.table.size(), 8U);
  EXPECT_EQ(flows.table.half_open(), 2U);
  std::vector<std::uint32_t> gone;
  for (std::uint32_t more = 0; more < 8; ++more) {
    flows.table.make_room(true);
    for (std::uint32_t old = 0; old < 8; ++old) {
      if (flows.find(old) == FlowTable::kNone && std::find(gone.begin(), gone.end(), old) == gone.end()) {
        gone.push_back(old);
      }
    }
    flows.insert(100 + more, kOpen);
  }
  EXPECT_EQ(gone, (std::vector<std::uint32_t>{2, 6, 1, 5, 3, 7, 0, 4}));
  EXPECT_EQ(flows.table.evicted(), 8U);
  EXPECT_EQ(flows.table.expired(), 0U);
}

TEST(FlowTable, half_open_flows_have_a_limit_of_their_own_and_the_oldest_goes) {
  Flows flows(FlowLimits{.flows = 100, .half_open = 3});
  const auto add = [&flows](std::uint32_t client) {
    flows.table.make_room(false);
    return flows.insert(client, kHalfOpen);
  };
  for (std::uint32_t client = 0; client < 4; ++client) {
    ASSERT_NE(add(client), FlowTable::kNone);
  }
  EXPECT_EQ(flows.find(0), FlowTable::kNone);
  EXPECT_NE(flows.find(1), FlowTable::kNone);
  EXPECT_EQ(flows.table.half_open(), 3U);
  flows.table.touch(flows.find(1), kOpen);
  add(4);
  EXPECT_NE(flows.find(1), FlowTable::kNone);
  EXPECT_NE(flows.find(2), FlowTable::kNone) << "there was room again";
  add(5);
  EXPECT_EQ(flows.find(2), FlowTable::kNone);
  EXPECT_EQ(flows.table.evicted(), 2U);
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
  FlowTable table({1000, 1000}, kBackends, timeouts(300, 10));
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
  constexpr std::uint32_t kTableClients = 100;
  std::mt19937 random(11);
  Flows flows(kLimit, 30, 5);
  Model model(kLimit, 30, 5);
  std::uint64_t second = 0;
  std::uint32_t refused = 0;
  for (int step = 0; step < 200000; ++step) {
    second += random() % 4 == 0 ? 1U : 0U;
    const std::uint64_t stamp = second;
    // one packet more for each flow that a gap could leave over: the model removes expired flows at once
    for (std::uint32_t i = 0; i < kLimit; ++i) {
      flows.table.advance(stamp * kSecond);
    }
    model.advance(stamp);
    const std::uint32_t client = static_cast<std::uint32_t>(random()) % kTableClients;
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
      flows.table.touch(id, closes ? kClosing : flows.table[id].tcp_state);
      model.touch(client, closes);
    }
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(flows.table.expired(), 1000U);
}

TEST(FlowTable, a_million_flows_fit_into_65_bytes_each) {
  EXPECT_LE(FlowTable({1000000, 1000}, kBackends, timeouts(300, 10)).bytes(), 65U * 1000000);
}

}  // namespace
}  // namespace catena::lb
