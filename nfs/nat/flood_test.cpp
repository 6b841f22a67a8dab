// SPDX-License-Identifier: Apache-2.0
// Floods of half open connections: what they cost, and whom.
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <string>
#include <utility>
#include <vector>

#include "nat_testing.hpp"

namespace catena::nat::testing {
namespace {

using namespace nf::testing;

constexpr std::uint32_t kFlooder = 0x0A630000;  // 10.99.0.0

/// A NAT that gets its packets one after another, on the CPU.
class LiveNat {
 public:
  explicit LiveNat(std::string_view yaml) : instance_(catena_nf_nat(), make(yaml).value()) {}

  /// What leaves for the frame; empty: it was dropped.
  Frame send(Frame const& frame) {
    now_ns_ += 1000;
    nf::testing::PacketStore store(std::span(&frame, 1), std::span(&now_ns_, 1));
    instance_.process(store.all());
    const packet::Packet packet = store.all()[0];
    return packet.verdict() == packet::Verdict::kDrop ? Frame()
                                                      : Frame(packet.frame(), packet.frame() + packet.length());
  }
  std::uint64_t statistic(std::string_view name) {
    for (nf::Statistic const& entry : instance_.nf().statistics()) {
      if (entry.name == name) {
        return entry.value;
      }
    }
    ADD_FAILURE() << name;
    return 0;
  }
  std::uint64_t dropped() const { return instance_.drops(); }

 private:
  nf::testing::CpuNf instance_;
  std::uint64_t now_ns_ = 1'700'000'000 * kSecond;
};

/// A client behind the NAT that connects to a server and talks with it; the server answers to where the NAT says.
class Client {
 public:
  Client(LiveNat& nat, std::uint32_t address, std::uint16_t port) : nat_(&nat), address_(address), port_(port) {}

  bool connect() { return out(kSyn) && in(kSyn | kAck) && out(kAck); }
  bool talk() { return out(kAck) && in(kAck) && external_ == first_external_; }

 private:
  bool out(std::uint8_t flags) {
    const Frame sent = nat_->send(make_segment(address_, kServer, port_, 80, flags));
    if (sent.empty()) {
      return false;
    }
    external_ = {source_of(sent), source_port_of(sent)};
    first_external_ = first_external_.first == 0 ? external_ : first_external_;
    return true;
  }
  bool in(std::uint8_t flags) {
    const Frame received = nat_->send(make_segment(kServer, external_.first, 80, external_.second, flags));
    return !received.empty() && destination_of(received) == address_ && destination_port_of(received) == port_;
  }

  LiveNat* nat_;
  std::uint32_t address_;
  std::uint16_t port_;
  std::pair<std::uint32_t, std::uint16_t> external_;
  std::pair<std::uint32_t, std::uint16_t> first_external_;
};

struct Flood {
  std::string_view name;
  std::string_view yaml;
  std::uint32_t half_open;  ///< so many fit at most
};

class Floods : public ::testing::TestWithParam<Flood> {};
INSTANTIATE_TEST_SUITE_P(Limits, Floods,
                         ::testing::Values(Flood{"max_half_open", "max_half_open: 300\n", 300},
                                           Flood{"max_mappings", "max_mappings: 600\nmax_half_open: 600\n", 600},
                                           Flood{"ports", "ports: 2000-2599\n", 600}),
                         [](auto const& flood) { return std::string(flood.param.name); });

TEST_P(Floods, ten_times_the_limit_leaves_established_connections_and_new_clients_alone) {
  LiveNat nat(concat(kOneAddress, GetParam().yaml));
  const std::uint64_t memory = nat.statistic("memory_bytes");
  std::vector<Client> established;
  for (std::uint16_t i = 0; i < 100; ++i) {
    established.emplace_back(nat, kHost + i, static_cast<std::uint16_t>(2000 + i));
    ASSERT_TRUE(established.back().connect()) << i;
  }
  for (std::uint32_t flood = 0; flood < 10 * GetParam().half_open; ++flood) {
    const std::uint32_t address = kFlooder + flood / 500;
    const auto port = static_cast<std::uint16_t>(2000 + flood % 500);
    ASSERT_FALSE(nat.send(make_segment(address, kServer, port, 80, kSyn)).empty()) << flood;
    if (flood % 30 == 0) {
      ASSERT_TRUE(established[flood / 30 % 100].talk()) << flood;
      established.emplace_back(nat, 0x0A010000 + flood, std::uint16_t{2222});
      ASSERT_TRUE(established.back().connect() && established.back().talk()) << flood;
    }
    ASSERT_LE(nat.statistic("half_open"), GetParam().half_open);
  }
  for (Client& client : established) {
    EXPECT_TRUE(client.talk());
  }
  Client last(nat, 0x0A020000, 2223);
  EXPECT_TRUE(last.connect() && last.talk());
  EXPECT_EQ(nat.dropped(), 0U);
  EXPECT_GT(nat.statistic("half_open_evicted"), 8 * GetParam().half_open);
  EXPECT_EQ(nat.statistic("memory_bytes"), memory) << "nothing grew";
}

TEST(Flood, the_half_open_connection_used_longest_ago_goes_first) {
  LiveNat nat(concat(kOneAddress, "max_half_open: 3\n"));
  const auto syn = [](std::uint16_t port) { return make_segment(kHost, kServer, port, 80, kSyn); };
  const auto answer = [](std::uint16_t port) { return make_segment(kServer, kExternal, 80, port, kSyn | kAck); };
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{2001, 2002, 2003}) {
    nat.send(syn(port));
  }
  nat.send(syn(2004));
  EXPECT_TRUE(nat.send(answer(2001)).empty());
  EXPECT_FALSE(nat.send(answer(2002)).empty());
  EXPECT_FALSE(nat.send(answer(2003)).empty());
  EXPECT_FALSE(nat.send(answer(2004)).empty());
  EXPECT_EQ(nat.statistic("mappings"), 3U);
  EXPECT_EQ(nat.statistic("half_open_evicted"), 1U);
  EXPECT_EQ(nat.statistic("mappings_expired"), 0U);
}

TEST(Flood, of_scarce_ports_only_those_of_the_same_address_give_way) {
  constexpr std::string_view kTwo = "inside: [10.0.0.0/8]\nexternal: [203.0.113.1, 203.0.113.2]\n";
  LiveNat probe(kTwo);
  std::vector<std::uint32_t> first;  // hosts are paired with external addresses
  std::vector<std::uint32_t> second;
  for (std::uint32_t host = kHost; first.size() < 3 || second.empty(); ++host) {
    const Frame out = probe.send(make_frame(kUdpProtocol, host, kServer, 9000, 9, ""));
    (source_of(out) == kExternal ? first : second).push_back(host);
  }
  LiveNat nat(concat(kTwo, "ports: 2000-2001\n"));
  const auto syn = [&nat](std::uint32_t host) { return nat.send(make_segment(host, kServer, 2000, 80, kSyn)); };
  const auto is_mapped = [&nat](Frame const& sent) {
    return !nat.send(make_segment(kServer, source_of(sent), 80, source_port_of(sent), kSyn | kAck)).empty();
  };
  const Frame oldest = syn(second[0]);
  syn(first[0]);
  const Frame other = syn(first[1]);
  ASSERT_EQ(nat.statistic("half_open_evicted"), 0U);
  const Frame newest = syn(first[2]);
  EXPECT_EQ(nat.statistic("half_open_evicted"), 1U);
  EXPECT_TRUE(is_mapped(oldest)) << "of the other address, whose ports are no help";
  EXPECT_TRUE(is_mapped(other));
  EXPECT_TRUE(is_mapped(newest));
  EXPECT_EQ(nat.statistic("mappings"), 3U) << "that of the first host has gone";
}

TEST(Flood, a_udp_flow_takes_the_memory_of_a_half_open_connection_but_not_its_port) {
  LiveNat nat(concat(kOneAddress, "max_mappings: 2\n"));
  nat.send(make_segment(kHost, kServer, 2001, 80, kSyn));
  EXPECT_FALSE(nat.send(make_frame(kUdpProtocol, kHost, kServer, 1, 53, "")).empty());
  EXPECT_FALSE(nat.send(make_frame(kUdpProtocol, kHost, kServer, 2, 53, "")).empty());
  EXPECT_EQ(nat.statistic("half_open_evicted"), 1U);
  EXPECT_TRUE(nat.send(make_frame(kUdpProtocol, kHost, kServer, 3, 53, "")).empty()) << "UDP flows keep their time";
  EXPECT_TRUE(nat.send(make_segment(kHost, kServer, 2001, 80, kSyn)).empty());
}

TEST(Flood, a_hairpinned_packet_whose_receiver_gives_way_to_its_sender_reaches_nobody) {
  LiveNat nat(concat(kOneAddress, "max_half_open: 1\n"));
  nat.send(make_segment(kHost, kServer, 2001, 80, kSyn));
  EXPECT_TRUE(nat.send(make_segment(kHost + 1, kExternal, 2002, 2001, kSyn)).empty());
  EXPECT_EQ(nat.statistic("mappings"), 1U);
}

TEST(Flood, gives_the_same_everywhere) {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    frames.push_back(make_segment(kFlooder + i / 300, kServer, static_cast<std::uint16_t>(2000 + i % 300), 80, kSyn));
    if (i % 7 == 0) {
      frames.push_back(make_segment(kServer, kExternal, 80, static_cast<std::uint16_t>(2000 + i % 97), kSyn | kAck));
      frames.push_back(make_segment(kFlooder + i / 300, kServer, static_cast<std::uint16_t>(2000 + i % 97), 80, kAck));
    }
  }
  const RunResult result = run_everywhere(frames, concat(kOneAddress, "ports: 2000-2100\nmax_half_open: 90\n"));
  EXPECT_GT(statistic(result, "half_open_evicted"), 1000U);
  EXPECT_LE(statistic(result, "half_open"), 90U);
}

}  // namespace
}  // namespace catena::nat::testing
