// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_hash.hpp"

#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace catena::runtime {
namespace {

using Frame = std::vector<std::uint8_t>;

constexpr std::uint32_t kClient = 0x0A000001;
constexpr std::uint32_t kServer = 0xC0A80109;
constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint64_t kKey = 42;

void put16(Frame& to, std::uint32_t value) {
  to.push_back(static_cast<std::uint8_t>(value >> 8U));
  to.push_back(static_cast<std::uint8_t>(value));
}
void put32(Frame& to, std::uint32_t value) {
  put16(to, value >> 16U);
  put16(to, value);
}

std::uint16_t checksum(std::uint8_t const* bytes, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += std::uint32_t{bytes[i]} << (i % 2 == 0 ? 8U : 0U);
  }
  while (sum > 0xFFFF) {
    sum = (sum & 0xFFFF) + (sum >> 16U);
  }
  return static_cast<std::uint16_t>(~sum);
}

/// An IPv4 datagram.
Frame datagram(std::uint32_t from, std::uint32_t to, std::uint8_t protocol, Frame const& payload,
               std::uint16_t fragment = 0) {
  Frame ip{0x45, 0};
  put16(ip, static_cast<std::uint32_t>(20 + payload.size()));
  put16(ip, 7);
  put16(ip, fragment);
  ip.push_back(64);
  ip.push_back(protocol);
  put16(ip, 0);
  put32(ip, from);
  put32(ip, to);
  const std::uint16_t sum = checksum(ip.data(), ip.size());
  ip[10] = static_cast<std::uint8_t>(sum >> 8U);
  ip[11] = static_cast<std::uint8_t>(sum);
  ip.insert(ip.end(), payload.begin(), payload.end());
  return ip;
}

Frame ports(std::uint16_t from, std::uint16_t to, std::uint8_t protocol) {
  Frame l4;
  put16(l4, from);
  put16(l4, to);
  if (protocol == kUdp) {
    put16(l4, 8 + 12);
    put16(l4, 0);
    l4.resize(8 + 12);
  } else {
    l4.resize(12);
    l4.push_back(0x50);
    l4.resize(20);
  }
  return l4;
}

Frame icmp(std::uint8_t type, std::uint16_t identifier, Frame const& quote = {}) {
  Frame message{type, 0, 0, 0};
  put16(message, identifier);
  put16(message, 1);
  message.insert(message.end(), quote.begin(), quote.end());
  const std::uint16_t sum = checksum(message.data(), message.size());
  message[2] = static_cast<std::uint8_t>(sum >> 8U);
  message[3] = static_cast<std::uint8_t>(sum);
  return message;
}

std::uint32_t hash(Frame const& ip, std::uint64_t key = kKey) {
  Frame frame(12);
  put16(frame, 0x0800);
  frame.insert(frame.end(), ip.begin(), ip.end());
  frame.resize(std::max<std::size_t>(frame.size(), 60));
  nf::testing::PacketStore store(std::array{frame});
  return flow_hash(store.all()[0], key);
}

TEST(FlowHash, is_the_same_in_both_directions_and_differs_between_flows) {
  for (const std::uint8_t protocol : {kTcp, kUdp}) {
    const std::uint32_t there = hash(datagram(kClient, kServer, protocol, ports(40000, 443, protocol)));
    EXPECT_NE(there, 0U);
    EXPECT_EQ(there, hash(datagram(kServer, kClient, protocol, ports(443, 40000, protocol))));
    EXPECT_NE(there, hash(datagram(kClient, kServer, protocol, ports(40001, 443, protocol))));
    EXPECT_NE(there, hash(datagram(kClient, kServer, protocol, ports(443, 40000, protocol)))) << "ports change sides";
    EXPECT_NE(there, hash(datagram(kClient + 1, kServer, protocol, ports(40000, 443, protocol))));
    EXPECT_NE(there, hash(datagram(kClient, kServer, protocol, ports(40000, 443, protocol)), kKey + 1));
  }
  EXPECT_NE(hash(datagram(kClient, kServer, kTcp, ports(1, 2, kTcp))),
            hash(datagram(kClient, kServer, kUdp, ports(1, 2, kUdp))));
}

TEST(FlowHash, fragments_of_a_pair_of_addresses_are_together) {
  constexpr std::uint16_t kMoreFragments = 0x2000;
  const std::uint32_t first = hash(datagram(kClient, kServer, kUdp, ports(5, 6, kUdp), kMoreFragments));
  EXPECT_EQ(first, hash(datagram(kClient, kServer, kUdp, Frame(16, 1), 3)));
  EXPECT_EQ(first, hash(datagram(kServer, kClient, kUdp, Frame(16, 1), 3)));
  EXPECT_EQ(first, hash(datagram(kClient, kServer, kUdp, ports(7, 8, kUdp), kMoreFragments)));
  EXPECT_NE(first, hash(datagram(kClient, kServer + 1, kUdp, Frame(16, 1), 3)));
}

TEST(FlowHash, icmp_errors_are_with_the_flow_that_they_quote) {
  constexpr std::uint8_t kUnreachable = 3;
  constexpr std::uint32_t kRouter = 0x01020304;
  for (const std::uint8_t protocol : {kTcp, kUdp}) {
    const Frame flow = datagram(kClient, kServer, protocol, ports(40000, 443, protocol));
    EXPECT_EQ(hash(flow), hash(datagram(kRouter, kClient, 1, icmp(kUnreachable, 0, flow))));
    EXPECT_EQ(hash(flow), hash(datagram(kServer, kClient, 1, icmp(kUnreachable, 0, flow))));
  }
  const Frame echo = datagram(kClient, kServer, 1, icmp(8, 99));
  EXPECT_EQ(hash(echo), hash(datagram(kServer, kClient, 1, icmp(0, 99))));
  EXPECT_NE(hash(echo), hash(datagram(kClient, kServer, 1, icmp(8, 98))));
  EXPECT_EQ(hash(echo), hash(datagram(kRouter, kClient, 1, icmp(kUnreachable, 0, echo))));
  // what cannot be read goes by its own addresses
  EXPECT_EQ(hash(datagram(kRouter, kClient, 1, icmp(kUnreachable, 0, Frame(8, 0x45)))),
            hash(datagram(kClient, kRouter, 1, icmp(kUnreachable, 0, Frame(10, 0x46)))));
}

TEST(FlowHash, what_is_not_ipv4_has_none) {
  nf::testing::PacketStore store(std::array{Frame(60, 0), Frame(20, 0xFF)});
  EXPECT_EQ(flow_hash(store.all()[0], kKey), 0U);
  EXPECT_EQ(flow_hash(store.all()[1], kKey), 0U);
}

TEST(FlowHash, shares_flows_out_evenly) {
  constexpr std::uint32_t kFlows = 8000;
  for (const std::uint32_t shards : {1U, 2U, 3U, 16U}) {
    std::vector<std::uint32_t> flows(shards);
    for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
      // as in practice: few servers, neighbouring addresses, ports that count up
      const Frame frame = datagram(kClient + flow % 20, kServer + flow % 3, kTcp,
                                   ports(static_cast<std::uint16_t>(1024 + flow), 443, kTcp));
      const std::uint32_t shard = shard_of(hash(frame), shards);
      ASSERT_LT(shard, shards);
      ++flows[shard];
    }
    for (const std::uint32_t count : flows) {
      EXPECT_NEAR(count, kFlows / shards, kFlows / shards * 0.2) << shards;
    }
  }
}

}  // namespace
}  // namespace catena::runtime
