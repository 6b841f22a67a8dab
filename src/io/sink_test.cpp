// SPDX-License-Identifier: Apache-2.0
// What all sinks do alike: packets with an MTU leave as fragments, and replies leave where they came in.
#include "io/sink.hpp"
#include "io/test_support.hpp"

#include <catena/packet/fragments.hpp>
#include <catena/packet/testing/frames.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace catena::io {
namespace {

using packet::testing::make_frame;
using testing::count_of;
using testing::Frame;
using testing::make_pool;
using testing::receive_all;
using testing::same_frames;

constexpr std::uint16_t kMtu = 600;

/// A UDP datagram; every payload differs.
Frame datagram(std::size_t payload_bytes, bool keep_whole = false) {
  static char letter = 'a';
  const std::string payload(payload_bytes, letter++);
  return packet::testing::with_fragment(make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A000002, 1, 2, payload),
                                        keep_whole ? 0x4000 : 0);
}

/// A unit of `frames`, all marked with kMtu; frame i arrived at i ns.
memory::Unit* fill(memory::PacketPool& pool, std::vector<Frame> const& frames) {
  memory::Unit* unit = pool.acquire_unit();
  EXPECT_TRUE(pool.acquire_slots(*unit, static_cast<std::uint32_t>(frames.size())));
  unit->count = static_cast<std::uint32_t>(frames.size());
  for (std::uint32_t i = 0; i < unit->count; ++i) {
    std::copy(frames[i].begin(), frames[i].end(), pool.slot(unit->slots()[i]) + packet::kSlotHeadroom);
    pool.set_arrived(unit->slots()[i], static_cast<std::uint32_t>(frames[i].size()), i, i);
    pool.batch(*unit)[i].set_mtu(kMtu);
  }
  return unit;
}

/// The frames in which `frames` are to leave. (fragments_test holds Fragments to scapy.)
std::vector<Frame> expected_of(memory::PacketPool& pool, std::vector<Frame> const& frames) {
  std::vector<Frame> expected;
  memory::Unit* unit = fill(pool, frames);
  for (std::uint32_t i = 0; i < unit->count; ++i) {
    const packet::Packet packet = pool.batch(*unit)[i];
    const std::uint32_t count = packet::leaves_in(packet);
    if (count == 1) {
      expected.push_back(frames[i]);
    }
    for (std::uint32_t number = 0; count > 1 && number < count; ++number) {
      Frame frame(packet::kSlotBytes);
      frame.resize(packet::Fragments(packet).write(number, frame.data()));
      expected.push_back(std::move(frame));
    }
  }
  pool.release_slots(*unit, 0, unit->count);
  pool.release_unit(unit);
  return expected;
}

/// 3 fragments, whole, DF, whole, 2 fragments.
const std::vector<Frame>& mixed_frames() {
  static const std::vector<Frame> kFrames{datagram(1400), datagram(100), datagram(1000, true), datagram(572),
                                          datagram(573)};
  return kFrames;
}

void send_mixed(Sink& sink, memory::PacketPool& pool) {
  memory::Unit* unit = fill(pool, mixed_frames());
  ASSERT_TRUE(sink.send(pool, *unit).ok());
  pool.release_unit(unit);
  EXPECT_EQ(sink.sent(), 4U) << "a packet counts once";
  EXPECT_EQ(count_of(sink.drops(), "df_set"), 1U);
  EXPECT_EQ(sink.fragments(), 5U);
}

TEST(Sinks, a_capture_gets_the_fragments_of_packets_above_their_mtu) {
  const ScratchFolder folder;
  const auto pool = make_pool();
  auto sink = open_pcap_sink(folder.path("out.pcap"));
  ASSERT_TRUE(sink.ok()) << sink.status();
  send_mixed(**sink, *pool);
  ASSERT_TRUE((*sink)->finish().ok());
  const testing::Captured captured = testing::read_with_libpcap(folder.path("out.pcap"));
  EXPECT_TRUE(same_frames(captured.frames, expected_of(*pool, mixed_frames())));
  EXPECT_EQ(captured.stamps_ns, (std::vector<std::uint64_t>{0, 0, 0, 1, 3, 4, 4})) << "those of their packets";
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(Sinks, null_counts_them) {
  const auto pool = make_pool();
  send_mixed(*make_null_sink(), *pool);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(Sinks, a_port_sends_them_in_their_packets_place) {
  const auto pool = make_pool(4096);
  const Result<DpdkPort> port = open_dpdk_port("net_ring_parts", *pool);
  ASSERT_TRUE(port.ok()) << port.status();
  send_mixed(*port->sink, *pool);
  EXPECT_TRUE(same_frames(receive_all(*port->source, *pool).frames, expected_of(*pool, mixed_frames())));
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(Sinks, a_port_carries_more_fragments_than_a_unit_has_packets) {
  const auto pool = make_pool(8192);
  const Result<DpdkPort> ring = open_dpdk_port("net_ring_many", *pool);
  ASSERT_TRUE(ring.ok()) << ring.status();
  const std::vector<Frame> frames(256, datagram(1700));
  memory::Unit* unit = fill(*pool, frames);
  for (std::uint32_t i = 0; i < unit->count; ++i) {
    pool->batch(*unit)[i].set_mtu(68);  // 36 fragments each: 9,216, of which the ring takes 1,023
  }
  ASSERT_TRUE(ring->sink->send(*pool, *unit).ok());
  pool->release_unit(unit);
  EXPECT_EQ(receive_all(*ring->source, *pool).frames.size(), 1023U);
  const std::uint64_t dropped = count_of(ring->sink->drops(), "tx_full") + count_of(ring->sink->drops(), "no_slot");
  EXPECT_EQ(ring->sink->sent() + dropped, 256U) << "a packet is sent or dropped, once";
  EXPECT_EQ(ring->sink->sent(), 1023U / 36);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(Sinks, a_port_without_slots_for_the_fragments_drops_the_packet_alone) {
  const auto pool = make_pool(512);
  const Result<DpdkPort> port = open_dpdk_port("net_ring_no_slots", *pool);
  ASSERT_TRUE(port.ok()) << port.status();
  memory::Unit* unit = fill(*pool, mixed_frames());
  memory::Unit* others = pool->acquire_unit();
  memory::Unit* more = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*others, 256) && pool->acquire_slots(*more, pool->free_slots()));
  ASSERT_EQ(pool->free_slots(), 0U);
  const std::uint32_t taken = pool->slots() - 256 - 5;
  // the packet with DF gives its slot back before the last one asks for one
  ASSERT_TRUE(port->sink->send(*pool, *unit).ok());
  pool->release_unit(unit);
  EXPECT_EQ(count_of(port->sink->drops(), "no_slot") + port->sink->sent(), 4U);
  EXPECT_GE(count_of(port->sink->drops(), "no_slot"), 1U);
  EXPECT_EQ(count_of(port->sink->drops(), "df_set"), 1U);
  pool->release_slots(*others, 0, 256);
  pool->release_slots(*more, 0, taken);
  receive_all(*port->source, *pool);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(Sinks, a_reply_leaves_through_the_port_that_it_came_in_on) {
  const auto pool = make_pool(8192);
  // port 0 receives alone, port 1 does both and is number 0 of tx
  Result<DpdkPort> ports =
      open_dpdk_ports({"net_ring_reply0", "net_ring_reply1"}, {"net_ring_reply1", "net_ring_reply2"}, *pool);
  ASSERT_TRUE(ports.ok()) << ports.status();
  memory::Unit* unit = fill(*pool, {Frame(60, 0), Frame(60, 1), Frame(60, 2), Frame(60, 3)});
  const packet::Batch batch = pool->batch(*unit);
  for (std::uint32_t i = 0; i < 3; ++i) {
    batch[i].set_verdict(packet::Verdict::kReply);
    pool->meta().ingress[unit->slots()[i]] = static_cast<std::uint16_t>(i);
  }
  batch[3].set_port(1);  // no reply
  ASSERT_TRUE(ports->sink->send(*pool, *unit).ok());
  unit->count = 0;
  EXPECT_EQ(count_of(ports->sink->drops(), "no_such_port"), 1U) << "there is no rx port 2";
  EXPECT_EQ(ports->sink->sent(), 3U);

  bool starved = false;
  std::uint64_t next_index = 0;
  ASSERT_TRUE(ports->source->receive(*pool, *unit, next_index, starved).ok());
  ASSERT_EQ(unit->count, 2U) << "a ring gives back what was sent to it";
  EXPECT_EQ(pool->batch(*unit)[0].frame()[0], 0U);
  EXPECT_EQ(pool->batch(*unit)[0].ingress(), 0U);
  EXPECT_EQ(pool->batch(*unit)[1].frame()[0], 1U);
  EXPECT_EQ(pool->batch(*unit)[1].ingress(), 1U);
  pool->release_slots(*unit, 0, unit->count);
  pool->release_unit(unit);
}

TEST(Sinks, a_reply_to_a_capture_leaves_through_port_0) {
  const auto pool = make_pool(4096);
  Result<DpdkPort> ports = open_dpdk_ports({}, {"net_ring_answer0", "net_ring_answer1"}, *pool);
  ASSERT_TRUE(ports.ok()) << ports.status();
  memory::Unit* unit = fill(*pool, {Frame(60, 7)});
  pool->batch(*unit)[0].set_verdict(packet::Verdict::kReply);
  pool->batch(*unit)[0].set_port(1);
  ASSERT_TRUE(ports->sink->send(*pool, *unit).ok());
  pool->release_unit(unit);
  EXPECT_EQ(ports->sink->sent(), 1U);
  EXPECT_EQ(count_of(ports->sink->drops(), "no_such_port"), 0U);
}

}  // namespace
}  // namespace catena::io
