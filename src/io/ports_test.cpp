// SPDX-License-Identifier: Apache-2.0
#include "io/sink.hpp"

#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rte_thash.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "io/dpdk/ethdev_port.hpp"
#include "io/eal/eal.hpp"
#include "io/interface.hpp"
#include "io/test_support.hpp"

namespace catena::io {
namespace {

using ::testing::AllOf;
using testing::count_of;
using testing::Frame;
using ::testing::HasSubstr;
using testing::make_frames;
using testing::make_pool;
using testing::make_segment;
using testing::read_with_libpcap;
using testing::receive_all;
using testing::Received;
using testing::same_frames;
using testing::send_frames;
using testing::set_checksums;
using testing::write_with_libpcap;

DpdkPort open_port(std::string const& device, memory::PacketPool& pool) {
  Result<DpdkPort> port = open_dpdk_port(device, pool);
  if (!port.ok()) {
    throw std::runtime_error(port.status().ToString());
  }
  return std::move(port).value();
}

TEST(DpdkPort, a_ring_port_returns_the_same_bytes) {
  const auto pool = make_pool(2048);
  {
    const DpdkPort port = open_port("net_ring_same", *pool);
    const std::vector<Frame> frames = make_frames(1000, 60, packet::kMaxFrameBytes);
    ASSERT_TRUE(send_frames(*port.sink, *pool, frames, 100).ok());
    ASSERT_TRUE(port.sink->finish().ok());
    EXPECT_EQ(pool->free_slots(), 1048U) << "the ring holds the mbufs themselves";
    const Received received = receive_all(*port.source, *pool);
    EXPECT_TRUE(same_frames(received.frames, frames));
    EXPECT_EQ(received.indices.back(), 999U);
    EXPECT_EQ(port.sink->sent(), 1000U);
    EXPECT_EQ(port.source->seen(), 1000U);
    EXPECT_FALSE(port.source->finished());
    EXPECT_THAT(port.source->describe(), AllOf(HasSubstr("net_ring_same"), HasSubstr("link up")));
  }
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(DpdkPort, packets_arrive_by_the_live_clock_of_their_source) {
  const auto pool = make_pool();
  const DpdkPort port = open_port("net_ring_clock", *pool);
  ASSERT_TRUE(port.source->live_clock().has_value());
  const std::uint64_t before = port.source->live_clock()->now_ns();
  ASSERT_TRUE(testing::send_frames(*port.sink, *pool, testing::make_frames(10, 60, 100)).ok());
  memory::Unit* unit = pool->acquire_unit();
  bool starved = false;
  std::uint64_t next_index = 0;
  ASSERT_TRUE(port.source->receive(*pool, *unit, next_index, starved).ok());
  ASSERT_EQ(unit->count, 10U);
  const std::uint64_t after = port.source->live_clock()->now_ns();
  for (const std::uint32_t slot : unit->used_slots()) {
    EXPECT_GE(pool->meta().arrival_ns[slot], before);
    EXPECT_LE(pool->meta().arrival_ns[slot], after);
  }
  pool->release_slots(*unit, 0, unit->count);
  pool->release_unit(unit);
}

TEST(DpdkPort, packets_leave_as_they_stand_in_their_slots) {
  const auto pool = make_pool();
  const DpdkPort port = open_port("net_ring_extents", *pool);
  memory::Unit* unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, 5));
  unit->count = 5;
  for (std::uint32_t i = 0; i < 5; ++i) {
    std::memset(pool->slot(unit->slots()[i]), static_cast<int>(i), packet::kSlotBytes);
    pool->set_arrived(unit->slots()[i], 100, i, 0);
  }
  const packet::Batch batch = pool->batch(*unit);
  batch[0].set_verdict(packet::Verdict::kDrop);
  batch[1].set_extent(64, 164);  // encapsulated
  batch[2].set_verdict(packet::Verdict::kDrop);
  batch[3].set_extent(192, 36);  // decapsulated
  batch[4].set_verdict(packet::Verdict::kDrop);
  ASSERT_TRUE(port.sink->send(*pool, *unit).ok());
  pool->release_unit(unit);
  EXPECT_EQ(port.sink->sent(), 2U);
  EXPECT_EQ(pool->free_slots(), pool->slots() - 2);

  unit = pool->acquire_unit();
  bool starved = false;
  std::uint64_t next_index = 70;
  ASSERT_TRUE(port.source->receive(*pool, *unit, next_index, starved).ok());
  EXPECT_EQ(next_index, 72U);
  ASSERT_EQ(unit->count, 2U);
  const packet::Batch received = pool->batch(*unit);
  EXPECT_EQ(received[0].offset(), 64U);
  EXPECT_EQ(received[1].offset(), 192U);
  EXPECT_EQ(testing::frames_of(*pool, *unit), (std::vector<Frame>{Frame(164, 1), Frame(36, 3)}));
  EXPECT_EQ(received[1].index(), 71U);
  EXPECT_EQ(received[0].verdict(), packet::Verdict::kPass);
  pool->release_slots(*unit, 0, 2);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(DpdkPort, frames_that_a_port_cannot_carry_are_counted) {
  const auto pool = make_pool();
  const DpdkPort port = open_port("net_ring_sizes", *pool);
  std::vector<Frame> frames;
  for (std::size_t bytes = 0; bytes <= 64; ++bytes) {
    frames.emplace_back(bytes, static_cast<std::uint8_t>(bytes));
  }
  ASSERT_TRUE(send_frames(*port.sink, *pool, frames).ok());
  EXPECT_EQ(count_of(port.sink->drops(), "too_short"), 17U);
  EXPECT_EQ(port.sink->sent(), 48U);
  frames.erase(frames.begin(), frames.begin() + 17);
  EXPECT_TRUE(same_frames(receive_all(*port.source, *pool).frames, frames));

  memory::Unit* unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, 2));
  unit->count = 2;
  for (std::uint32_t i = 0; i < 2; ++i) {
    pool->set_arrived(unit->slots()[i], packet::kMaxFrameBytes, i, 0);
    pool->batch(*unit)[i].set_extent(64, packet::kMaxFrameBytes + i);
  }
  ASSERT_TRUE(port.sink->send(*pool, *unit).ok());
  EXPECT_EQ(receive_all(*port.source, *pool).frames.size(), 1U);
  EXPECT_EQ(count_of(port.source->drops(), "too_long"), 1U);
  EXPECT_EQ(port.source->seen(), 50U);
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(DpdkPort, a_port_that_takes_no_more_loses_packets_but_no_slots_and_does_not_hang) {
  const auto pool = make_pool(4096);
  const DpdkPort port = open_port("net_ring_full", *pool);  // a ring of 1023
  const std::vector<Frame> frames = make_frames(2000, 60, 100);
  ASSERT_TRUE(send_frames(*port.sink, *pool, frames).ok());
  EXPECT_EQ(count_of(port.sink->drops(), "tx_full"), 977U);
  EXPECT_EQ(count_of(port.sink->drops(), "tx_error"), 0U) << "counted once";
  EXPECT_EQ(port.sink->sent(), 1023U);
  EXPECT_EQ(pool->free_slots(), 4096U - 1023U);
  const std::vector<Frame> received = receive_all(*port.source, *pool).frames;
  EXPECT_TRUE(same_frames(received, {frames.begin(), frames.begin() + 1023}));
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(DpdkPort, an_exhausted_pool_is_told_from_a_quiet_line) {
  const auto pool = make_pool(512);
  const DpdkPort port = open_port("net_ring_starved", *pool);
  memory::Unit* unit = pool->acquire_unit();
  bool starved = true;
  std::uint64_t next_index = 0;
  ASSERT_TRUE(port.source->receive(*pool, *unit, next_index, starved).ok());
  EXPECT_FALSE(starved);
  memory::Unit* one = pool->acquire_unit();
  memory::Unit* other = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*one, 256) && pool->acquire_slots(*other, 256));
  ASSERT_TRUE(port.source->receive(*pool, *unit, next_index, starved).ok());
  EXPECT_TRUE(starved);
}

TEST(DpdkPort, of_several_ports_each_packet_takes_the_one_it_names) {
  const auto pool = make_pool(4096);
  const std::vector<std::string> devices{"net_ring_several0", "net_ring_several1", "net_ring_several2"};
  Result<DpdkPort> ports = open_dpdk_ports(devices, devices, *pool);
  ASSERT_TRUE(ports.ok()) << ports.status();
  constexpr std::uint32_t kPackets = 40;
  memory::Unit* unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, kPackets));
  unit->count = kPackets;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    std::fill_n(pool->slot(unit->slots()[i]) + packet::kSlotHeadroom, 60, static_cast<std::uint8_t>(i % 4));
    pool->set_arrived(unit->slots()[i], 60, i, 0);
    pool->batch(*unit)[i].set_port(static_cast<std::uint16_t>(i % 4));  // there is no port 3
  }
  ASSERT_TRUE(ports->sink->send(*pool, *unit).ok());
  unit->count = 0;
  EXPECT_EQ(count_of(ports->sink->drops(), "no_such_port"), kPackets / 4);
  EXPECT_EQ(ports->sink->sent(), kPackets / 4 * 3);

  bool starved = false;
  std::uint64_t next_index = 0;
  ASSERT_TRUE(ports->source->receive(*pool, *unit, next_index, starved).ok());
  ASSERT_EQ(unit->count, kPackets / 4 * 3);
  for (std::uint32_t i = 0; i < unit->count; ++i) {
    const packet::Packet packet = pool->batch(*unit)[i];
    EXPECT_EQ(packet.port(), (packet.frame()[0] + 1) % 3) << "what came in at a port leaves at the next one";
    EXPECT_EQ(packet.index(), i);
  }
  pool->release_slots(*unit, 0, unit->count);
  pool->release_unit(unit);
}

TEST(DpdkPort, capture_devices_read_and_write_the_same_bytes) {
  const ScratchFolder folder;
  std::vector<Frame> frames = make_frames(700, 60, packet::kMaxFrameBytes);
  std::vector<Frame> file = frames;
  file.insert(file.begin() + 300, {Frame(1793, 1), Frame(9000, 2)});  // one segment too long, several segments
  write_with_libpcap(folder.path("in.pcap"), file);
  const auto pool = make_pool();
  {
    const DpdkPort port =
        open_port("net_pcap_files,rx_pcap=" + folder.path("in.pcap") + ",tx_pcap=" + folder.path("out.pcap"), *pool);
    ASSERT_TRUE(testing::pump(*port.source, *port.sink, *pool).ok());
    EXPECT_EQ(count_of(port.source->drops(), "too_long"), 2U);
    EXPECT_EQ(port.source->seen(), 702U);
    EXPECT_EQ(port.sink->sent(), 700U);
  }
  EXPECT_TRUE(same_frames(read_with_libpcap(folder.path("out.pcap")).frames, frames));
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(DpdkPort, frames_that_are_too_long_have_numbers) {
  const ScratchFolder folder;
  write_with_libpcap(folder.path("in.pcap"),
                     {Frame(1793, 1), Frame(60, 2), Frame(60, 3), Frame(1793, 4), Frame(1793, 5), Frame(60, 6)});
  const auto pool = make_pool();
  const DpdkPort port = open_port("net_pcap_numbers,rx_pcap=" + folder.path("in.pcap"), *pool);
  const testing::Received received = receive_all(*port.source, *pool);
  EXPECT_EQ(received.frames, (std::vector<Frame>{Frame(60, 2), Frame(60, 3), Frame(60, 6)}));
  EXPECT_EQ(received.indices, (std::vector<std::uint64_t>{1, 2, 5}));
}

TEST(DpdkPort, opens_again_after_it_was_closed_but_not_twice_at_once) {
  const auto pool = make_pool();
  for (int i = 0; i < 3; ++i) {
    DpdkPort port = open_port("net_null_again,size=64", *pool);
    const auto second = open_dpdk_port("net_null_again,size=64", *pool);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
    port.source.reset();
    EXPECT_EQ(open_dpdk_port("net_null_again", *pool).status().code(), absl::StatusCode::kAlreadyExists)
        << "one end is still there";
    ASSERT_TRUE(send_frames(*port.sink, *pool, make_frames(10, 60, 60)).ok());
    port.sink.reset();
  }
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(DpdkPort, what_cannot_be_opened_is_an_error_that_says_why) {
  const auto pool = make_pool();
  struct Case {
    std::string device;
    absl::StatusCode code;
    std::string text;
  };
  for (Case const& expected : std::vector<Case>{
           {"net_nonsense0", absl::StatusCode::kNotFound, "no driver takes it"},
           {"", absl::StatusCode::kNotFound, "no driver takes it"},
           {"net_af_packet_bad,iface=nosuchif0", absl::StatusCode::kNotFound, "no interface is named 'nosuchif0' here"},
           {"net_pcap_bad,rx_pcap=/no/such/file.pcap", absl::StatusCode::kNotFound, "no driver takes it"},
           {"0000:03:00.0", absl::StatusCode::kFailedPrecondition, "-a 0000:03:00.0"},
           {"03:00.0", absl::StatusCode::kFailedPrecondition, "-a 0000:03:00.0"},
       }) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto port = open_dpdk_port(expected.device, *pool);
      EXPECT_EQ(port.status().code(), expected.code) << expected.device << ": " << port.status();
      EXPECT_THAT(std::string(port.status().message()), HasSubstr(expected.text));
    }
  }
  EXPECT_EQ(pool->free_slots(), pool->slots());
}

TEST(FindDevice, says_what_this_machine_does_not_have) {
  for (auto const& [device, text] : std::vector<std::pair<std::string, std::string>>{
           {interface_device("nosuchif0"), "no interface is named 'nosuchif0' here"},
           {"net_af_packet7,blocksz=4096,iface=nosuchif0,qpairs=1", "no interface is named 'nosuchif0' here"},
           {"net_af_xdp0,iface=nosuchif0,start_queue=0", "no interface is named 'nosuchif0' here"},
           {"net_af_xdp0,iface=lo,queue_count=40", "interface lo has 1 receive queues"},
           {"net_af_xdp0,iface=lo,start_queue=1", "names 2"},
           {"ff:1f.7", "no PCI device is named '0000:ff:1f.7' here"},
           {"0000:ff:1f.7,key=value", "no PCI device is named '0000:ff:1f.7' here"},
       }) {
    const Status found = find_device(device);
    EXPECT_EQ(found.code(), absl::StatusCode::kNotFound) << device << ": " << found;
    EXPECT_THAT(std::string(found.message()), HasSubstr(text)) << device;
  }
  for (std::string const& device :
       {interface_device("lo"), std::string("net_af_xdp0,iface=lo"), std::string("net_null0"),
        std::string("net_tap0,iface=made0"), std::string("net_pcap0,iface=lo"), std::string("nonsense")}) {
    EXPECT_TRUE(find_device(device).ok()) << device << ": " << find_device(device);
  }
}

TEST(DpdkPort, each_of_several_queues_is_an_end_of_its_own) {
  const std::vector<std::shared_ptr<memory::PacketPool>> pools{make_pool(4096), make_pool(4096), make_pool(4096)};
  const std::vector<memory::PacketPool*> of{pools[0].get(), pools[1].get(), pools[2].get()};
  {
    // a ring joins the queues of one number
    Result<std::vector<DpdkPort>> ends = open_dpdk_ports({"net_ring_queues"}, {"net_ring_queues"}, of);
    ASSERT_TRUE(ends.ok()) << ends.status();
    ASSERT_EQ(ends->size(), 3U);
    EXPECT_THAT((*ends)[0].source->describe(), HasSubstr("3 queues"));
    std::vector<std::vector<Frame>> frames;
    for (std::uint32_t i = 0; i < 3; ++i) {
      frames.push_back(make_frames(100 * (i + 1), 60 + i, 800));
      ASSERT_TRUE(send_frames(*(*ends)[i].sink, *pools[i], frames.back()).ok());
      ASSERT_TRUE((*ends)[i].sink->finish().ok());
    }
    for (std::uint32_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(same_frames(receive_all(*(*ends)[i].source, *pools[i]).frames, frames[i])) << i;
      EXPECT_EQ((*ends)[i].sink->sent(), 100 * (i + 1));
      EXPECT_EQ((*ends)[i].source->seen(), 100 * (i + 1));
    }
    EXPECT_EQ(open_dpdk_port("net_ring_queues", *pools[0]).status().code(), absl::StatusCode::kAlreadyExists);
    (*ends)[0] = {};
    ASSERT_TRUE(send_frames(*(*ends)[1].sink, *pools[1], frames[1]).ok())
        << "the port is there until its last end goes";
    EXPECT_EQ(receive_all(*(*ends)[1].source, *pools[1]).frames.size(), 200U);
  }
  for (auto const& pool : pools) {
    EXPECT_EQ(pool->free_slots(), pool->slots());
  }
}

TEST(DpdkPort, divides_by_flow_where_its_driver_has_a_hash) {
  EXPECT_TRUE(can_divide({"net_null_hash"}, {}, 4).value());
  EXPECT_TRUE(can_divide({"net_null_hash"}, {"net_null_hash"}, 4).value());
  EXPECT_FALSE(can_divide({"net_ring_hash"}, {}, 4).value()) << "a ring has queues, and no hash";
  EXPECT_FALSE(can_divide({"net_null_hash"}, {"net_ring_hash"}, 4).value()) << "both ends have to";
  EXPECT_FALSE(can_divide({"net_null_hash"}, {}, RTE_MAX_QUEUES_PER_PORT + 1).value()) << "more than it has queues";
  EXPECT_FALSE(can_divide({"net_null_hash"}, {interface_device("eth0")}, 2).value());
  EXPECT_FALSE(can_divide({}, {"net_null_hash"}, 2).value());
  EXPECT_EQ(can_divide({"net_nonsense0"}, {}, 2).status().code(), absl::StatusCode::kNotFound);
}

/// By DPDK's own Toeplitz hash.
TEST(SymmetricKey, hashes_both_directions_of_a_flow_alike_and_spreads_flows) {
  const std::vector<std::uint8_t> key = symmetric_key(40);
  std::mt19937 engine(1);
  std::uniform_int_distribution<std::uint32_t> any;
  std::array<std::uint32_t, 16> queues{};
  for (int i = 0; i < 16'000; ++i) {
    std::array<std::uint32_t, 3> there{any(engine), any(engine), any(engine)};  // addresses, then both ports
    std::array<std::uint32_t, 3> back{there[1], there[0], there[2] >> 16U | there[2] << 16U};
    const std::uint32_t hashed = rte_softrss(there.data(), 3, key.data());
    EXPECT_EQ(rte_softrss(back.data(), 3, key.data()), hashed);
    EXPECT_EQ(rte_softrss(back.data(), 2, key.data()), rte_softrss(there.data(), 2, key.data())) << "addresses alone";
    ++queues[hashed % queues.size()];
  }
  for (const std::uint32_t packets : queues) {
    EXPECT_NEAR(packets, 1000, 200);
  }
}

/// A network namespace that only this thread sees.
class PrivateNetwork : public ::testing::Test {
 protected:
  void SetUp() override {
    pool_ = make_pool(4096);
    if (geteuid() != 0) {
      GTEST_SKIP() << "making a network namespace needs root";
    }
    if (!testing::have_program("ip")) {
      GTEST_SKIP() << "ip (iproute2) is not installed";
    }
    if (unshare(CLONE_NEWNET) != 0) {
      GTEST_SKIP() << "no network namespace can be made here: " << std::strerror(errno);
    }
    // nothing but our frames on the lines
    const std::string ipv6 = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
    testing::run_command("test ! -e " + ipv6 + " || echo 1 > " + ipv6);
  }
  static void bring_up(std::string const& interface) {
    testing::run_command("ip link set " + interface + " up arp off");
  }
  /// What arrives at `to` when `frames` are sent to `from`, in portions that the sockets' rings hold.
  std::vector<Frame> transfer(DpdkPort const& from, DpdkPort const& to, std::vector<Frame> const& frames) {
    std::vector<Frame> arrived;
    for (std::size_t first = 0; first < frames.size(); first += 128) {
      const auto last = frames.begin() + static_cast<std::ptrdiff_t>(std::min(frames.size(), first + 128));
      EXPECT_TRUE(send_frames(*from.sink, *pool_, {frames.begin() + static_cast<std::ptrdiff_t>(first), last}).ok());
      std::vector<Frame> part = receive_all(*to.source, *pool_, 5000).frames;
      std::move(part.begin(), part.end(), std::back_inserter(arrived));
    }
    return arrived;
  }
  std::unique_ptr<memory::PacketPool> pool_;
};

class VethPair : public PrivateNetwork {
 protected:
  void SetUp() override {
    PrivateNetwork::SetUp();
    if (IsSkipped()) {
      return;
    }
    try {
      testing::run_command("ip link add name catena0 type veth peer name catena1 2>/dev/null");
    } catch (std::exception const& error) {
      GTEST_SKIP() << "no veth interfaces can be made here: " << error.what();
    }
    bring_up("catena0");
    bring_up("catena1");
  }
};

TEST_F(VethPair, carries_frames_between_two_af_packet_ports) {
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  const std::vector<Frame> frames = make_frames(2000, 60, 1514);
  EXPECT_TRUE(same_frames(transfer(left, right, frames), frames));
  const std::vector<Frame> back = make_frames(300, 60, 1514, 2);
  EXPECT_TRUE(same_frames(transfer(right, left, back), back));
  EXPECT_EQ(left.sink->sent(), 2000U);
  EXPECT_EQ(right.source->seen(), 2000U);
}

TEST_F(VethPair, keeps_vlan_tags_that_the_kernel_takes_out) {
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  constexpr std::uint16_t kTypes[] = {0x8100, 0x88A8, 0x9100, 0x9200};
  std::vector<Frame> frames = make_frames(200, 60, 1518);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::uint16_t outer = kTypes[i / 2 % std::size(kTypes)];
    if (outer != 0x8100) {
      frames[i].resize(std::min<std::size_t>(frames[i].size(), 1514));  // Linux lets no other tag exceed the MTU
    }
    packet::store_be16(frames[i].data() + 12, outer);
    packet::store_be16(frames[i].data() + 14, static_cast<std::uint16_t>(0xA000 + i));  // priority 5
    packet::store_be16(frames[i].data() + 16, i % 2 == 0 ? 0x88B5 : 0x8100);            // a second tag
  }
  EXPECT_TRUE(same_frames(transfer(left, right, frames), frames));
}

/// Segments of two connections: runs of several lengths, each with a shorter one at its end, and gaps.
std::vector<Frame> make_connections() {
  std::vector<Frame> frames;
  std::uint32_t sequence = 4'000'000'000;
  std::uint16_t identification = 65'500;
  for (std::uint32_t run = 0; run < 40; ++run) {
    for (std::uint32_t i = 0; i < 1 + run % 7 * 11; ++i) {
      frames.push_back(make_segment(sequence, identification++, 1448, 0x10));
      sequence += 1448;
    }
    frames.push_back(make_segment(sequence, identification++, 1 + run * 30, run % 2 == 0 ? 0x18 : 0x10));
    sequence += 1 + run * 30 + (run % 3 == 0 ? 1448 : 0);
    frames.push_back(make_segment(run * 100, static_cast<std::uint16_t>(run), 100, 0x10, 2000));
  }
  frames[5][60] ^= 1;  // a wrong checksum stays one
  return frames;
}

class Segments : public VethPair, public ::testing::WithParamInterface<const char*> {};

TEST_P(Segments, arrive_as_they_were_sent) {
  if (!testing::have_program("ethtool")) {
    GTEST_SKIP() << "ethtool is not installed";
  }
  testing::run_command(std::string("ethtool -K catena0 ") + GetParam());
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  const std::vector<Frame> frames = make_connections();
  EXPECT_TRUE(same_frames(transfer(left, right, frames), frames));
  EXPECT_EQ(left.sink->sent(), frames.size());
  EXPECT_EQ(count_of(right.source->drops(), "too_long"), 0U);
}

// with tso or tx a virtual cable would hand on what it is given to cut or to sum up
INSTANTIATE_TEST_SUITE_P(Offloads, Segments,
                         ::testing::Values("tx off tso off", "tx off tso off gso off", "tso off", "tx on tso on"),
                         [](auto const& param) { return "case" + std::to_string(param.index); });

// each claims to cut segments, and hands them on as they are
class VirtualSegments : public VethPair, public ::testing::WithParamInterface<const char*> {};

TEST_P(VirtualSegments, arrive_as_they_were_sent) {
  constexpr std::uint8_t kNobodys = 0xFE;
  try {
    testing::run_command(GetParam() + std::string(" 2>/dev/null"));
  } catch (std::exception const& error) {
    GTEST_SKIP() << error.what();
  }
  bring_up("catenavirtual");
  const DpdkPort left = open_port("net_af_packet_left,iface=catenavirtual", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  std::vector<Frame> frames = make_connections();
  for (Frame& frame : frames) {
    frame[0] = kNobodys;  // a bridge sends it out of every port
  }
  std::vector<Frame> arrived = transfer(left, right, frames);
  std::erase_if(arrived, [](Frame const& frame) { return frame[0] != kNobodys; });  // a new bridge joins groups by IGMP
  EXPECT_TRUE(same_frames(arrived, frames));
  EXPECT_EQ(count_of(right.source->drops(), "too_long"), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Interfaces, VirtualSegments,
    ::testing::Values("ip link add catenavirtual type bridge && ip link set catena0 master catenavirtual",
                      "ip link add link catena0 catenavirtual type macvlan"),
    [](auto const& param) { return "case" + std::to_string(param.index); });

TEST_F(VethPair, fragments_arrive_as_fragments) {
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  std::vector<Frame> frames;
  for (std::uint16_t datagram = 0; datagram < 10; ++datagram) {
    for (const std::uint16_t fragment :
         std::initializer_list<std::uint16_t>{0x2000, 0x2032, 100}) {  // more of them, and at eights of bytes
      frames.push_back(make_segment(0, datagram, 400 - 32, 0x10));
      packet::store_be16(frames.back().data() + 20, fragment);
      set_checksums(frames.back());
    }
  }
  EXPECT_TRUE(same_frames(transfer(left, right, frames), frames));
}

TEST_F(VethPair, what_this_machine_sends_does_not_arrive) {
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort again = open_port("net_af_packet_again,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  const std::vector<Frame> frames = make_frames(20, 60, 1514);
  EXPECT_TRUE(same_frames(transfer(left, right, frames), frames));
  EXPECT_TRUE(receive_all(*again.source, *pool_).frames.empty());
  EXPECT_TRUE(receive_all(*left.source, *pool_).frames.empty());
}

TEST_F(VethPair, what_finds_no_slot_waits_and_what_finds_no_room_is_counted) {
  const auto small = make_pool(512);
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *small);
  const std::vector<Frame> frames = make_frames(4096 + 100, 60, 1514);
  for (std::size_t first = 0; first < frames.size(); first += 512) {
    const std::size_t count = std::min<std::size_t>(512, frames.size() - first);
    const auto begin = frames.begin() + static_cast<std::ptrdiff_t>(first);
    ASSERT_TRUE(send_frames(*left.sink, *pool_, {begin, begin + static_cast<std::ptrdiff_t>(count)}).ok());
  }
  const std::vector<Frame> arrived = receive_all(*right.source, *small, 5000).frames;
  EXPECT_TRUE(same_frames(arrived, {frames.begin(), frames.begin() + 4096}));
  EXPECT_EQ(count_of(right.source->drops(), "backlog_full"), 100U);
  EXPECT_EQ(right.source->seen(), frames.size());
  EXPECT_EQ(small->free_slots(), small->slots());
}

TEST_F(VethPair, frames_for_an_interface_that_is_down_are_errors_and_those_after_it_is_up_again_leave) {
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  const std::vector<Frame> frames = make_frames(300, 60, 1514);
  ::testing::internal::CaptureStdout();
  testing::run_command("ip link set catena0 down");
  EXPECT_TRUE(transfer(left, right, frames).empty());
  std::string log = ::testing::internal::GetCapturedStdout();
  const std::string line = "catena0: the kernel refuses frames: Network is down";
  EXPECT_THAT(log, AllOf(HasSubstr(line), HasSubstr("ip link set catena0 up")));
  EXPECT_EQ(log.find(line), log.rfind(line)) << "once";
  EXPECT_EQ(left.sink->counts().sent, 0U);
  EXPECT_EQ(count_of(left.sink->counts().drops, "tx_error"), 300U);
  bring_up("catena0");
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(same_frames(transfer(left, right, frames), frames));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it looks every 250 ms
  EXPECT_TRUE(receive_all(*left.source, *pool_).frames.empty());
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("catena0 is up again"));
  EXPECT_EQ(left.sink->counts().sent, 300U);
  EXPECT_EQ(pool_->free_slots(), pool_->slots());
}

TEST_F(VethPair, its_socket_is_readable_while_there_are_frames) {
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  const std::vector<int> sockets = right.source->sockets();
  ASSERT_EQ(sockets.size(), 1U);
  pollfd socket{sockets[0], POLLIN, 0};
  EXPECT_EQ(poll(&socket, 1, 0), 0);
  ASSERT_TRUE(send_frames(*left.sink, *pool_, make_frames(3, 60, 100)).ok());
  EXPECT_EQ(poll(&socket, 1, 10'000), 1);
  EXPECT_EQ(socket.revents, POLLIN);
  EXPECT_EQ(receive_all(*right.source, *pool_).frames.size(), 3U);
  EXPECT_EQ(poll(&socket, 1, 0), 0);
}

TEST_F(VethPair, a_socket_ring_that_does_not_fit_the_slots_or_has_gaps_is_refused) {
  for (const std::string ring : {"framesz=2048", "framesz=1504", "framesz=1952", "blocksz=4096", "framesz=0",
                                 "framesz=1952,blocksz=8192", "framesz=16,blocksz=4096"}) {
    const auto port = open_dpdk_port("net_af_packet_odd,iface=catena0," + ring, *pool_);
    EXPECT_EQ(port.status().code(), absl::StatusCode::kInvalidArgument) << ring << ": " << port.status();
    EXPECT_THAT(std::string(port.status().message()), HasSubstr("framesz"));
  }
  EXPECT_TRUE(open_dpdk_port("net_af_packet_few,iface=catena0,framecnt=128", *pool_).ok());
}

TEST_F(VethPair, counts_frames_above_the_room_of_a_small_socket_ring) {
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0,framesz=1024", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  const std::vector<Frame> frames{Frame(988, 0x02), Frame(989, 0x02), Frame(60, 0x02)};
  EXPECT_TRUE(same_frames(transfer(left, right, frames), {frames[0], frames[2]}));
  EXPECT_EQ(count_of(left.sink->drops(), "too_long"), 1U);
}

TEST_F(VethPair, counts_frames_above_the_interface_mtu) {
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  std::vector<Frame> frames = make_frames(3, 1514, 1514);
  frames.insert(frames.begin() + 1, Frame(1515, 0x02));
  std::vector<Frame> expected = frames;
  expected.erase(expected.begin() + 1);
  EXPECT_TRUE(same_frames(transfer(left, right, frames), expected));
  EXPECT_EQ(count_of(left.sink->drops(), "too_long"), 1U);
  EXPECT_EQ(left.sink->sent(), 3U);
}

TEST_F(VethPair, a_changed_mtu_is_noticed) {
  constexpr std::chrono::milliseconds kNoticed{300};  // it looks every 250 ms
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  std::vector<Frame> frames;
  for (std::uint16_t i = 0; i < 20; ++i) {
    frames.push_back(make_segment(i * 1448U, i, 1448, 0x10));
  }
  testing::run_command("ip link set catena0 mtu 1000");
  std::this_thread::sleep_for(kNoticed);
  EXPECT_TRUE(transfer(left, right, frames).empty());
  EXPECT_EQ(count_of(left.sink->drops(), "too_long"), 20U);
  testing::run_command("ip link set catena0 mtu 1600");
  testing::run_command("ip link set catena1 mtu 1600");
  std::this_thread::sleep_for(kNoticed);
  const std::vector<Frame> longer = make_frames(3, 1614, 1614);
  EXPECT_TRUE(same_frames(transfer(left, right, longer), longer));
}

TEST_F(VethPair, a_run_of_a_thousand_segments_is_sent) {
  testing::run_command("ethtool -K catena0 tx off tso off");
  Result<std::unique_ptr<memory::PacketPool>> large = memory::PacketPool::create(4096, 1024);
  ASSERT_TRUE(large.ok()) << large.status();
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", **large);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  std::vector<Frame> frames;
  for (std::uint16_t i = 0; i < 2048; ++i) {
    frames.push_back(make_segment(i * 10U, i, 10, 0x10));
  }
  ASSERT_TRUE(send_frames(*left.sink, **large, frames, 1024).ok());
  EXPECT_EQ(left.sink->sent(), frames.size());
  std::vector<Frame> arrived = receive_all(*right.source, *pool_, 5000).frames;
  constexpr std::size_t kSurelyArrive = 500;  // the kernel's backlog has room for 1,000, of all virtual cables
  ASSERT_GE(arrived.size(), kSurelyArrive);
  arrived.resize(kSurelyArrive);
  frames.resize(kSurelyArrive);
  EXPECT_TRUE(same_frames(arrived, frames));
}

TEST_F(VethPair, frames_wait_where_the_queue_of_the_interface_is_full) {
  try {
    testing::run_command("tc qdisc add dev catena0 root tbf rate 8mbit burst 3000 limit 4000 2>/dev/null");
  } catch (std::exception const& error) {
    GTEST_SKIP() << error.what();
  }
  const DpdkPort left = open_port("net_af_packet_left,iface=catena0", *pool_);
  const DpdkPort right = open_port("net_af_packet_right,iface=catena1", *pool_);
  const std::vector<Frame> frames = make_frames(50, 1000, 1000);
  ASSERT_TRUE(send_frames(*left.sink, *pool_, frames).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // what the queue holds takes 4 ms
  EXPECT_TRUE(same_frames(receive_all(*right.source, *pool_).frames, frames));
  EXPECT_EQ(count_of(left.sink->drops(), "tx_error"), 0U);
}

TEST_F(PrivateNetwork, carries_frames_between_a_tap_port_and_the_kernel) {
  if (access("/dev/net/tun", R_OK | W_OK) != 0) {
    GTEST_SKIP() << "/dev/net/tun cannot be opened here";
  }
  const DpdkPort tap = open_port("net_tap_kernel,iface=catenatap0", *pool_);
  bring_up("catenatap0");
  const DpdkPort kernel = open_port("net_af_packet_kernel,iface=catenatap0", *pool_);
  const std::vector<Frame> frames = make_frames(500, 60, 1514);
  EXPECT_TRUE(same_frames(transfer(tap, kernel, frames), frames));
  const std::vector<Frame> back = make_frames(500, 60, 1514, 2);
  EXPECT_TRUE(same_frames(transfer(kernel, tap, back), back));
}

}  // namespace
}  // namespace catena::io
