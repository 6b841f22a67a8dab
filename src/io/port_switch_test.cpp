// SPDX-License-Identifier: Apache-2.0
#include "io/shared_port_registry.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/testing/frames.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/sink.hpp"
#include "io/test_support.hpp"

namespace catena::io {
namespace {

using testing::Frame;
using ::testing::HasSubstr;
using testing::make_pool;

constexpr auto kPatience = std::chrono::seconds(20);

/// What is at the other end of a port of tests: frames that are to arrive, and those that were sent.
struct Wire {
  std::mutex mutex;
  std::deque<Frame> arriving;
  std::vector<Frame> sent;
  std::size_t room = SIZE_MAX;  ///< frames that the port still takes
  std::size_t failing = 0;      ///< of what it takes next, so many are not sent
  std::atomic<bool> is_removed{false};
  std::atomic<int> open{0};  ///< ports that are

  void arrive(std::vector<Frame> const& frames) {
    const std::lock_guard lock(mutex);
    arriving.insert(arriving.end(), frames.begin(), frames.end());
  }
  std::size_t waiting() {
    const std::lock_guard lock(mutex);
    return arriving.size();
  }
};

class WirePort final : public Port {
 public:
  WirePort(Wire& wire, memory::PacketPool& pool) : wire_(&wire), pool_(&pool) { ++wire_->open; }
  ~WirePort() override { --wire_->open; }

  std::size_t receive(std::span<SlotFrame> frames) override {
    const std::lock_guard lock(wire_->mutex);
    std::size_t count = 0;
    while (count < frames.size() && !wire_->arriving.empty()) {
      Frame const& frame = wire_->arriving.front();
      if (frame.size() > packet::kMaxFrameBytes) {
        frames[count++] = {kTooLong, 0, 0};
      } else {
        std::uint32_t slot = 0;
        if (!pool_->acquire_slots(std::span(&slot, 1))) {
          break;
        }
        constexpr std::uint16_t kOffset = 64;
        std::copy(frame.begin(), frame.end(), pool_->slot(slot) + kOffset);
        frames[count++] = {slot, kOffset, static_cast<std::uint16_t>(frame.size())};
      }
      wire_->arriving.pop_front();
    }
    return count;
  }
  std::size_t send(std::span<const SlotFrame> frames) override {
    const std::lock_guard lock(wire_->mutex);
    const std::size_t taken = std::min(frames.size(), wire_->room);
    for (SlotFrame const& frame : frames.first(taken)) {
      if (wire_->failing > 0) {
        --wire_->failing;
        ++errors_;
      } else {
        const std::uint8_t* at = pool_->slot(frame.slot) + frame.offset;
        wire_->sent.emplace_back(at, at + frame.length);
        ++sent_;
      }
      pool_->release_slots(std::span(&frame.slot, 1));
    }
    wire_->room -= wire_->room == SIZE_MAX ? 0 : taken;
    return taken;
  }
  PortCounters counters() const override { return {.missed = 5, .sent = sent_, .tx_errors = errors_}; }
  std::uint32_t max_tx_bytes() const override { return 1514; }
  std::string const& interface() const override { return interface_; }
  Status check_interface() override {
    return wire_->is_removed ? absl::UnavailableError("interface wire0 was removed") : absl::OkStatus();
  }
  std::string describe() const override { return "wire"; }

 private:
  Wire* wire_;
  memory::PacketPool* pool_;
  std::string interface_ = "wire0";
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> errors_{0};
};

std::shared_ptr<SharedPortRegistry> switches_on(Wire& wire) {
  return std::make_shared<SharedPortRegistry>([&wire](std::string const& /*device*/, memory::PacketPool& pool) {
    return Result<std::shared_ptr<Port>>(std::make_shared<WirePort>(wire, pool));
  });
}

/// A chain that is not at work yet.
std::shared_ptr<Port> join(SharedPortRegistry& switches, memory::PacketPool& pool, std::string chain,
                           std::vector<TrafficMatch> matches) {
  Result<std::shared_ptr<Port>> port = switches.attach("wire", {std::move(chain), std::move(matches)}, pool);
  if (!port.ok()) {
    throw std::runtime_error(port.status().ToString());
  }
  return *std::move(port);
}

/// One that is.
std::shared_ptr<Port> attach(SharedPortRegistry& switches, memory::PacketPool& pool, std::string chain,
                             std::vector<TrafficMatch> matches) {
  std::shared_ptr<Port> port = join(switches, pool, std::move(chain), std::move(matches));
  port->start_receiving();
  return port;
}

/// A UDP frame to a port, with a number in it.
Frame frame_to(std::uint16_t dport, std::uint32_t number = 0, std::size_t bytes = 20) {
  std::string payload(bytes, 'x');
  std::memcpy(payload.data(), &number, sizeof number);
  return packet::testing::make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A000002, 1000, dport, payload);
}

std::vector<Frame> take(Port& port, memory::PacketPool& pool) {
  std::array<SlotFrame, 64> frames;
  std::vector<Frame> taken;
  for (SlotFrame const& frame : std::span(frames).first(port.receive(frames))) {
    const std::uint8_t* at = pool.slot(frame.slot) + frame.offset;
    taken.emplace_back(at, at + frame.length);
    pool.release_slots(std::span(&frame.slot, 1));
  }
  return taken;
}

/// Receives until there are `count`, or nobody has patience any more.
std::vector<Frame> take(Port& port, memory::PacketPool& pool, std::size_t count) {
  std::vector<Frame> taken;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (taken.size() < count && std::chrono::steady_clock::now() < deadline) {
    for (Frame& frame : take(port, pool)) {
      taken.push_back(std::move(frame));
    }
  }
  return taken;
}

template <typename Condition>
bool comes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::size_t send(Port& port, memory::PacketPool& pool, std::vector<Frame> const& frames) {
  std::vector<SlotFrame> given;
  for (Frame const& frame : frames) {
    std::uint32_t slot = 0;
    EXPECT_TRUE(pool.acquire_slots(std::span(&slot, 1)));
    std::copy(frame.begin(), frame.end(), pool.slot(slot) + packet::kSlotHeadroom);
    given.push_back({slot, packet::kSlotHeadroom, static_cast<std::uint16_t>(frame.size())});
  }
  const std::size_t taken = port.send(given);
  for (SlotFrame const& frame : std::span(given).subspan(taken)) {
    pool.release_slots(std::span(&frame.slot, 1));
  }
  return taken;
}

const TrafficMatch kWeb{.destination_ports = PortRange{80, 80}};
const TrafficMatch kNames{.destination_ports = PortRange{53, 53}};
const TrafficMatch kAll{};

TEST(PortSwitch, each_chain_has_its_own_frames_in_order_and_in_its_own_memory) {
  Wire wire;
  const auto switches = switches_on(wire);
  constexpr std::uint32_t kSlots = 4096;  // a quarter of them may wait, and so all frames
  const auto web_pool = make_pool(kSlots);
  const auto rest_pool = make_pool(kSlots);
  std::vector<Frame> web_frames;
  std::vector<Frame> rest_frames;
  std::vector<Frame> all;
  for (std::uint32_t i = 0; i < 500; ++i) {
    Frame frame = frame_to(i % 3 == 0 ? 80 : static_cast<std::uint16_t>(1000 + i), i, 20 + i % 1400);
    (i % 3 == 0 ? web_frames : rest_frames).push_back(frame);
    all.push_back(std::move(frame));
  }
  {
    const auto web = attach(*switches, *web_pool, "web", {kWeb});
    const auto rest = attach(*switches, *rest_pool, "rest", {kAll});
    std::vector<Frame> of_rest;
    std::thread other([&] { of_rest = take(*rest, *rest_pool, rest_frames.size()); });
    wire.arrive(all);
    EXPECT_TRUE(testing::same_frames(take(*web, *web_pool, web_frames.size()), web_frames));
    other.join();
    EXPECT_TRUE(testing::same_frames(of_rest, rest_frames));
    EXPECT_EQ(web->counters().missed + web->counters().no_slot, 0U);
    EXPECT_THAT(web->describe(), HasSubstr("shared: dport 80"));
  }
  EXPECT_EQ(web_pool->free_slots(), web_pool->slots());
  EXPECT_EQ(rest_pool->free_slots(), rest_pool->slots());
}

TEST(PortSwitch, frames_that_no_chain_wants_are_counted) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto web = attach(*switches, *pool, "web", {kWeb, kNames});
  wire.arrive({frame_to(80), frame_to(81), Frame(packet::kMaxFrameBytes + 1, 'x'), frame_to(53), frame_to(82)});
  EXPECT_EQ(take(*web, *pool, 2).size(), 2U);
  ASSERT_TRUE(comes_true([&] { return switches->list().front().received == 5; }));
  const SharedPort port = switches->list().front();
  EXPECT_EQ(port.unmatched, 2U);
  EXPECT_EQ(port.too_long, 1U);
  EXPECT_EQ(port.port.missed, 5U);
  EXPECT_EQ(port.name, "device wire");
  ASSERT_EQ(port.members.size(), 1U);
  EXPECT_EQ(port.members.front().chain, "web");
}

TEST(PortSwitch, a_chain_that_takes_nothing_loses_its_own_frames_alone) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto slow_pool = make_pool();
  const auto pool = make_pool();
  const auto slow = attach(*switches, *slow_pool, "slow", {kWeb});
  const auto fast = attach(*switches, *pool, "fast", {kAll});
  constexpr std::uint32_t kFrames = 3000;
  std::vector<Frame> taken;
  for (std::uint32_t i = 0; i < kFrames; i += 100) {
    std::vector<Frame> frames;
    for (std::uint32_t j = i; j < i + 100; ++j) {
      frames.push_back(frame_to(80, j));
      frames.push_back(frame_to(81, j));
    }
    wire.arrive(frames);
    for (Frame& frame : take(*fast, *pool, 100)) {
      taken.push_back(std::move(frame));
    }
  }
  EXPECT_EQ(taken.size(), kFrames);
  EXPECT_EQ(fast->counters().missed + fast->counters().no_slot, 0U);
  ASSERT_TRUE(comes_true([&] { return switches->list().front().received == 2 * kFrames; }));
  const std::size_t kept = take(*slow, *slow_pool, kFrames - slow->counters().missed).size();
  EXPECT_EQ(kept + slow->counters().missed, kFrames);
  EXPECT_LE(kept, slow_pool->slots());
  EXPECT_GT(slow->counters().missed, 0U);
}

TEST(PortSwitch, a_chain_without_a_slot_loses_what_finds_none) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto port = attach(*switches, *pool, "web", {kAll});
  std::vector<std::uint32_t> held(pool->slots() - 3);
  ASSERT_TRUE(pool->acquire_slots(held));
  wire.arrive(std::vector<Frame>(10, frame_to(80)));
  ASSERT_TRUE(comes_true([&] { return switches->list().front().received == 10; }));
  EXPECT_EQ(take(*port, *pool, 3).size(), 3U);
  EXPECT_EQ(port->counters().no_slot, 7U);
  pool->release_slots(held);
}

TEST(PortSwitch, chains_send_through_the_same_port) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto a_pool = make_pool();
  const auto b_pool = make_pool();
  {
    const auto a = attach(*switches, *a_pool, "a", {});
    const auto b = attach(*switches, *b_pool, "b", {});
    EXPECT_EQ(send(*a, *a_pool, {frame_to(1), frame_to(2)}), 2U);
    EXPECT_EQ(send(*b, *b_pool, {frame_to(3)}), 1U);
    ASSERT_TRUE(comes_true([&] { return a->counters().sent == 2 && b->counters().sent == 1; }));
    std::sort(wire.sent.begin(), wire.sent.end());
    std::vector<Frame> expected{frame_to(1), frame_to(2), frame_to(3)};
    std::sort(expected.begin(), expected.end());
    EXPECT_TRUE(testing::same_frames(wire.sent, expected));
  }
  EXPECT_EQ(a_pool->free_slots(), a_pool->slots());
  EXPECT_EQ(b_pool->free_slots(), b_pool->slots());
}

TEST(PortSwitch, what_the_port_could_not_send_is_of_who_sent_it) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto a = attach(*switches, *pool, "a", {});
  const auto b = attach(*switches, *pool, "b", {});
  EXPECT_EQ(send(*a, *pool, {frame_to(1)}), 1U);
  ASSERT_TRUE(comes_true([&] { return a->counters().sent == 1; }));
  {
    const std::lock_guard lock(wire.mutex);
    wire.failing = 2;
  }
  EXPECT_EQ(send(*b, *pool, {frame_to(2), frame_to(3), frame_to(4)}), 3U);
  ASSERT_TRUE(comes_true([&] { return b->counters().tx_errors == 2; }));
  EXPECT_EQ(b->counters().sent, 1U);
  EXPECT_EQ(a->counters().tx_errors, 0U);
}

TEST(PortSwitch, a_port_that_takes_nothing_holds_up_who_sends_and_nobody_else) {
  Wire wire;
  wire.room = 5;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto web_pool = make_pool();
  {
    const auto sender = attach(*switches, *pool, "sender", {});
    const auto web = attach(*switches, *web_pool, "web", {kWeb});
    std::size_t taken = 0;
    // what the port took, what waits in front of it, what waits in the queue: then there is no room
    ASSERT_TRUE(comes_true([&] {
      const std::size_t more = send(*sender, *pool, std::vector<Frame>(50, frame_to(1)));
      taken += more;
      return more < 50;
    }));
    wire.arrive({frame_to(80)});
    EXPECT_EQ(take(*web, *web_pool, 1).size(), 1U);
    {
      const std::lock_guard lock(wire.mutex);
      EXPECT_EQ(wire.sent.size(), 5U);
      wire.room = SIZE_MAX;
    }
    EXPECT_TRUE(comes_true([&] { return sender->counters().sent == taken; })) << "nothing that was taken is lost";
  }
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(PortSwitch, many_that_send_to_a_port_that_takes_nothing_leave_room_for_what_arrives) {
  Wire wire;
  wire.room = 0;
  const auto switches = switches_on(wire);
  const auto web_pool = make_pool();
  const auto web = attach(*switches, *web_pool, "web", {kWeb});
  constexpr std::size_t kSenders = 40;  // each may have a burst in the port's memory
  std::vector<std::unique_ptr<memory::PacketPool>> pools;
  std::vector<std::shared_ptr<Port>> senders;
  for (std::size_t i = 0; i < kSenders; ++i) {
    pools.push_back(make_pool());
    senders.push_back(attach(*switches, *pools.back(), concat("sender", i), {}));
  }
  for (std::size_t i = 0; i < kSenders; ++i) {
    send(*senders[i], *pools[i], std::vector<Frame>(256, frame_to(1)));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // or the switch takes fewer at once, and it is easier
  wire.arrive(std::vector<Frame>(500, frame_to(80)));
  std::size_t taken = 0;
  ASSERT_TRUE(comes_true([&] {
    taken += take(*web, *web_pool).size();
    return taken + web->counters().missed == 500;
  })) << wire.waiting()
      << " frames still wait";
  EXPECT_GE(taken, 256U) << "as many as may wait for it";
}

TEST(PortSwitch, a_chain_that_leaves_takes_nothing_with_it) {
  Wire wire;
  wire.room = 0;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto stays_pool = make_pool();
  const auto stays = attach(*switches, *stays_pool, "stays", {kAll});
  {
    const auto leaves = attach(*switches, *pool, "leaves", {kWeb});
    send(*leaves, *pool, std::vector<Frame>(20, frame_to(1)));
    wire.arrive(std::vector<Frame>(20, frame_to(80)));
    ASSERT_TRUE(comes_true([&] { return switches->list().front().received == 20; }));
  }
  EXPECT_EQ(pool->free_slots(), pool->slots()) << "frames that waited both ways";
  EXPECT_EQ(switches->list().front().left_behind, 20U);
  wire.arrive({frame_to(80)});
  EXPECT_EQ(take(*stays, *stays_pool, 1).size(), 1U) << "its traffic goes to who is left";
}

TEST(PortSwitch, frames_are_a_chains_from_its_start_to_its_stop) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto rest_pool = make_pool();
  const auto rest = attach(*switches, *rest_pool, "rest", {kAll});
  const auto web = join(*switches, *pool, "web", {kWeb});
  const auto names_of = [&switches] {
    std::vector<std::string> names;
    const SharedPort port = switches->list().front();
    for (PortMember const& member : port.members) {
      names.push_back(member.chain);
    }
    return names;
  };
  wire.arrive({frame_to(80, 1)});
  EXPECT_TRUE(testing::same_frames(take(*rest, *rest_pool, 1), {frame_to(80, 1)}));
  EXPECT_THAT(names_of(), ::testing::ElementsAre("rest"));
  web->start_receiving();
  wire.arrive({frame_to(80, 2)});
  EXPECT_TRUE(testing::same_frames(take(*web, *pool, 1), {frame_to(80, 2)}));
  EXPECT_THAT(names_of(), ::testing::ElementsAre("rest", "web"));
  wire.arrive(std::vector<Frame>(7, frame_to(80, 3)));
  ASSERT_TRUE(comes_true([&] { return switches->list().front().received == 9; }));
  web->stop_receiving();
  web->stop_receiving();
  EXPECT_EQ(switches->list().front().left_behind, 7U);
  EXPECT_EQ(pool->free_slots(), pool->slots());
  wire.arrive({frame_to(80, 4)});
  EXPECT_TRUE(testing::same_frames(take(*rest, *rest_pool, 1), {frame_to(80, 4)}));
  EXPECT_THAT(names_of(), ::testing::ElementsAre("rest"));
  web->start_receiving();
  EXPECT_THAT(names_of(), ::testing::ElementsAre("rest")) << "it ended";
}

TEST(PortSwitch, a_chain_that_never_started_has_lost_no_frames) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto sender = attach(*switches, *pool, "sender", {});
  {
    const auto web = join(*switches, *pool, "web", {kWeb});
    wire.arrive({frame_to(80), frame_to(80)});
    ASSERT_TRUE(comes_true([&] { return switches->list().front().received == 2; }));
  }
  EXPECT_EQ(switches->list().front().unmatched, 2U);
  EXPECT_EQ(switches->list().front().left_behind, 0U);
}

TEST(PortSwitch, every_frame_is_counted_once_whenever_a_chain_ends) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto rest_pool = make_pool();
  const auto rest = attach(*switches, *rest_pool, "rest", {kNames});
  std::uint64_t of_chains = 0;
  std::uint64_t arrived = 0;
  for (std::uint32_t round = 0; round < 50; ++round) {
    const auto pool = make_pool();
    const auto web = attach(*switches, *pool, "web", {kWeb});
    wire.arrive(std::vector<Frame>(400, frame_to(80)));  // of which 256 may wait
    ASSERT_TRUE(comes_true([&] { return switches->list().front().received > arrived; }));
    arrived += 400;
    of_chains += take(*web, *pool).size();
    web->stop_receiving();
    of_chains += web->counters().missed + web->counters().no_slot;
  }
  ASSERT_TRUE(comes_true([&] { return switches->list().front().received == arrived; }));
  const SharedPort port = switches->list().front();
  EXPECT_EQ(of_chains + port.left_behind + port.unmatched, arrived);
  EXPECT_GT(of_chains, 0U);
  EXPECT_GT(port.left_behind, 0U);
}

TEST(PortSwitch, a_chain_that_has_ended_keeps_nobody_from_its_match) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto ended = attach(*switches, *pool, "ended", {kWeb});
  ended->stop_receiving();
  const auto next = attach(*switches, *pool, "next", {kWeb});
  wire.arrive({frame_to(80)});
  EXPECT_EQ(take(*next, *pool, 1).size(), 1U);
}

TEST(PortSwitch, what_a_chain_gave_and_the_port_never_took_are_errors) {
  Wire wire;
  wire.room = 5;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto sender = attach(*switches, *pool, "sender", {});
  const std::size_t taken = send(*sender, *pool, std::vector<Frame>(100, frame_to(1)));
  ASSERT_TRUE(comes_true([&] { return sender->counters().sent == 5; }));
  sender->stop_sending();
  sender->stop_sending();
  EXPECT_EQ(sender->counters().tx_errors, taken - 5);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(PortSwitch, a_port_whose_interface_was_removed_is_not_joined) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  {
    const auto web = attach(*switches, *pool, "web", {kWeb});
    wire.is_removed = true;
    EXPECT_EQ(switches->attach("wire", {"names", {kNames}}, *pool).status(),
              absl::UnavailableError("interface wire0 was removed"));
  }
  EXPECT_FALSE(switches->attach("wire", {"names", {kNames}}, *pool).ok());
  EXPECT_TRUE(switches->list().empty()) << "nobody has it";
  wire.is_removed = false;  // made anew
  const auto names = attach(*switches, *pool, "names", {kNames});
  EXPECT_EQ(wire.open, 1);
}

/// A chain's tx at a shared port.
std::unique_ptr<Sink> sink_at(std::shared_ptr<SharedPortRegistry> const& switches, memory::PacketPool& pool) {
  memory::PacketPool* const only = &pool;
  Result<std::vector<DpdkPort>> ends =
      open_dpdk_ports({}, {"wire"}, std::span(&only, 1), {switches, false, true, "sender", {}});
  if (!ends.ok()) {
    throw std::runtime_error(ends.status().ToString());
  }
  return std::move(ends->front().sink);
}

TEST(PortSwitch, a_sink_waits_for_a_port_that_is_slow_and_loses_nothing) {
  Wire wire;
  wire.room = 0;
  const auto switches = switches_on(wire);
  const auto pool = make_pool(4096);
  const auto sink = sink_at(switches, *pool);
  constexpr std::size_t kFrames = 2000;  // 1,024 may wait in the queue, and 256 at the port
  std::atomic<bool> is_sent{false};
  std::thread sender([&] {
    EXPECT_TRUE(testing::send_frames(*sink, *pool, std::vector<Frame>(kFrames, frame_to(1))).ok());
    is_sent = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(is_sent);
  {
    const std::lock_guard lock(wire.mutex);
    wire.room = SIZE_MAX;
  }
  sender.join();
  EXPECT_EQ(testing::count_of(sink->drops(), "tx_full"), 0U);
  EXPECT_TRUE(comes_true([&] {
    const std::lock_guard lock(wire.mutex);
    return wire.sent.size() == kFrames;
  }));
}

TEST(PortSwitch, a_sink_gives_a_port_up_that_is_stuck_and_counts_all) {
  Wire wire;
  wire.room = 0;
  const auto switches = switches_on(wire);
  const auto pool = make_pool(4096);
  const auto sink = sink_at(switches, *pool);
  constexpr std::size_t kFrames = 2000;
  EXPECT_TRUE(testing::send_frames(*sink, *pool, std::vector<Frame>(kFrames, frame_to(1))).ok());
  EXPECT_GT(testing::count_of(sink->drops(), "tx_full"), 0U);
  EXPECT_TRUE(sink->finish().ok());
  EXPECT_EQ(sink->sent(), 0U);
  EXPECT_EQ(testing::count_of(sink->drops(), "tx_full") + testing::count_of(sink->drops(), "tx_error"), kFrames);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(PortSwitch, the_port_is_open_as_long_as_a_chain_has_it) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  {
    const auto a = attach(*switches, *pool, "a", {kWeb});
    {
      const auto b = attach(*switches, *pool, "b", {kNames});
      EXPECT_EQ(wire.open, 1);
    }
    EXPECT_EQ(wire.open, 1);
  }
  EXPECT_EQ(wire.open, 0);
  EXPECT_TRUE(switches->list().empty());
  const auto again = attach(*switches, *pool, "a", {kWeb});
  EXPECT_EQ(wire.open, 1);
}

TEST(PortSwitch, two_chains_may_not_want_the_same_frames) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto web = attach(*switches, *pool, "web", {kWeb});
  EXPECT_EQ(switches->attach("wire", {"other", {kNames, kWeb}}, *pool).status().message(),
            "device wire: chains 'other' (dport 80) and 'web' (dport 80) want the same frames");
  const TrafficMatch crossing{.source = packet::Ipv4Prefix{0x0A000000, 8}};
  EXPECT_EQ(switches->attach("wire", {"ten", {crossing}}, *pool).status().message(),
            "device wire: chains 'ten' (src 10.0.0.0/8) and 'web' (dport 80) want some of the same frames, and each "
            "also wants others");
  EXPECT_EQ(switches->attach("wire,burst=1", {"x", {kNames}}, *pool).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(switches->list().front().members.size(), 1U);
}

TEST(PortSwitch, what_opening_says_is_said) {
  const auto switches = std::make_shared<SharedPortRegistry>(
      [](std::string const& device, memory::PacketPool& /*pool*/) -> Result<std::shared_ptr<Port>> {
        return absl::NotFoundError(concat(device, " is not there"));
      });
  const auto pool = make_pool();
  EXPECT_EQ(switches->attach("wire", {"a", {kAll}}, *pool).status(), absl::NotFoundError("wire is not there"));
  EXPECT_TRUE(switches->list().empty());
}

TEST(PortSwitch, a_descriptor_says_that_frames_are_there) {
  Wire wire;
  const auto switches = switches_on(wire);
  const auto pool = make_pool();
  const auto port = attach(*switches, *pool, "a", {kAll});
  const auto is_readable = [&port](int limit_ms) {
    pollfd waited{port->readable_when_received(), POLLIN, 0};
    return poll(&waited, 1, limit_ms) == 1;
  };
  EXPECT_FALSE(is_readable(0));
  for (std::uint32_t round = 0; round < 200; ++round) {
    wire.arrive({frame_to(1, round)});
    ASSERT_TRUE(is_readable(20'000));
    ASSERT_EQ(take(*port, *pool, 1).size(), 1U);
    take(*port, *pool);  // finds none, and quiets the descriptor
    ASSERT_FALSE(is_readable(0));
  }
}

}  // namespace
}  // namespace catena::io
