// SPDX-License-Identifier: Apache-2.0
// TCP with a peer that sends frames of its own making, one at a time.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include <cstring>
#include <memory>
#include <vector>

#include "stack/tcp/tcp.hpp"

namespace catena::stack {
namespace {

using Frame = std::vector<std::byte>;

constexpr std::uint32_t kStack = 0x0A090002;
constexpr std::uint32_t kPeer = 0x0A090001;
constexpr std::uint8_t kStackMac[ETH_ALEN] = {2, 0, 0, 0, 9, 2};
constexpr std::uint8_t kPeerMac[ETH_ALEN] = {2, 0, 0, 0, 9, 1};
constexpr std::uint16_t kPort = 80;
constexpr std::uint16_t kPeerPort = 5000;
constexpr std::size_t kTcpAt = sizeof(ether_header) + sizeof(iphdr);

template <typename Header>
Header& header_at(Frame& frame, std::size_t offset) {
  return *reinterpret_cast<Header*>(frame.data() + offset);
}

class RawPeer : public ::testing::Test, public FramePort, public TcpEvents {
 protected:
  void SetUp() override {
    TcpOptions options;
    std::memcpy(options.mac.data(), kStackMac, sizeof kStackMac);
    options.ipv4 = {packet::Address::of_v4(kStack), 24, std::nullopt};
    tcp_ = *Tcp::create(options, *this, *this);
    ASSERT_EQ(tcp_->listen(kPort, 16), absl::OkStatus());
  }
  void TearDown() override { tcp_.reset(); }

  bool send(OutgoingFrame const& frame) override {
    Frame whole;
    for (const std::span<const std::byte> part : frame.parts) {
      whole.insert(whole.end(), part.begin(), part.end());
    }
    sent_.push_back(std::move(whole));
    return true;
  }
  bool accepted(ConnectionId connection, Endpoint const& /*local*/, Endpoint const& /*peer*/) override {
    connection_ = connection;
    ++accepted_;
    return true;
  }
  bool received(ConnectionId /*connection*/, std::span<const std::byte> bytes) override {
    received_ += bytes.size();
    return true;
  }
  void acknowledged(ConnectionId /*connection*/, std::size_t /*bytes*/) override {}
  void peer_closed(ConnectionId /*connection*/) override {}
  void reset(ConnectionId /*connection*/) override {}

  static Frame frame_of(std::uint16_t type, std::size_t bytes) {
    Frame frame(sizeof(ether_header) + bytes);
    auto& ethernet = header_at<ether_header>(frame, 0);
    std::memcpy(ethernet.ether_dhost, kStackMac, sizeof kStackMac);
    std::memcpy(ethernet.ether_shost, kPeerMac, sizeof kPeerMac);
    ethernet.ether_type = htons(type);
    return frame;
  }
  /// Answers the stack's question for the peer's Ethernet address.
  void answer_arp() {
    struct [[gnu::packed]] Arp {
      arphdr head;
      std::uint8_t from_mac[ETH_ALEN];
      std::uint32_t from;
      std::uint8_t to_mac[ETH_ALEN];
      std::uint32_t to;
    };
    Frame frame = frame_of(ETHERTYPE_ARP, sizeof(Arp));
    auto& arp = header_at<Arp>(frame, sizeof(ether_header));
    arp.head = {htons(ARPHRD_ETHER), htons(ETHERTYPE_IP), ETH_ALEN, 4, htons(ARPOP_REPLY)};
    std::memcpy(arp.from_mac, kPeerMac, sizeof kPeerMac);
    std::memcpy(arp.to_mac, kStackMac, sizeof kStackMac);
    arp.from = htonl(kPeer);
    arp.to = htonl(kStack);
    tcp_->input(frame);
  }
  void send_segment(std::uint8_t flags, std::size_t bytes = 0) {
    Frame frame = frame_of(ETHERTYPE_IP, sizeof(iphdr) + sizeof(tcphdr) + bytes);
    auto& ip = header_at<iphdr>(frame, sizeof(ether_header));
    ip.version = 4;
    ip.ihl = sizeof(iphdr) / 4;
    ip.ttl = 64;
    ip.protocol = IPPROTO_TCP;
    ip.tot_len = htons(static_cast<std::uint16_t>(frame.size() - sizeof(ether_header)));
    ip.saddr = htonl(kPeer);
    ip.daddr = htonl(kStack);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < sizeof(iphdr); i += 2) {
      sum += header_at<std::uint16_t>(frame, sizeof(ether_header) + i);
    }
    sum = (sum & 0xFFFFU) + (sum >> 16U);
    ip.check = static_cast<std::uint16_t>(~((sum & 0xFFFFU) + (sum >> 16U)));
    auto& tcp = header_at<tcphdr>(frame, kTcpAt);
    tcp.th_sport = htons(kPeerPort);
    tcp.th_dport = htons(kPort);
    tcp.th_seq = htonl(next_);
    tcp.th_ack = htonl(acknowledges_);
    tcp.th_off = sizeof(tcphdr) / 4;
    tcp.th_flags = flags;
    tcp.th_win = htons(0xFFFF);
    next_ += static_cast<std::uint32_t>(bytes) + ((flags & TH_SYN) != 0 ? 1 : 0);
    tcp_->input(frame);
  }
  /// The last TCP header that the stack sent.
  tcphdr last_segment() {
    return sent_.empty() || sent_.back().size() < kTcpAt + sizeof(tcphdr) ? tcphdr{}
                                                                          : header_at<tcphdr>(sent_.back(), kTcpAt);
  }
  /// SYN and SYN-ACK. The ACK is the test's.
  void begin_handshake() {
    send_segment(TH_SYN);
    answer_arp();
    ASSERT_EQ(last_segment().th_flags, TH_SYN | TH_ACK);
    acknowledges_ = ntohl(last_segment().th_seq) + 1;
  }

  std::unique_ptr<Tcp> tcp_;
  std::vector<Frame> sent_;
  std::uint32_t next_ = 1000;
  std::uint32_t acknowledges_ = 0;
  ConnectionId connection_ = 0;
  int accepted_ = 0;
  std::size_t received_ = 0;
};

TEST_F(RawPeer, a_handshake_without_its_listener_is_reset) {
  begin_handshake();
  tcp_->stop_listening(kPort);
  ASSERT_EQ(tcp_->listen(kPort, 16), absl::OkStatus());  // it may have the memory of the last one
  send_segment(TH_ACK);
  EXPECT_EQ(accepted_, 0);
  EXPECT_NE(last_segment().th_flags & TH_RST, 0);
}

TEST_F(RawPeer, the_window_opens_for_a_part_of_the_buffer) {
  begin_handshake();
  send_segment(TH_ACK);
  ASSERT_EQ(accepted_, 1);
  constexpr std::size_t kWindow = std::size_t{64} * 1024;
  constexpr std::size_t kSegment = 1024;
  while (received_ < kWindow) {
    send_segment(TH_ACK, kSegment);
  }
  EXPECT_EQ(last_segment().th_win, 0);
  tcp_->consumed(connection_, kWindow / 4);
  EXPECT_EQ(ntohl(last_segment().th_ack), next_);
  // no window scale was agreed
  EXPECT_EQ(ntohs(last_segment().th_win), kWindow / 4);
}

}  // namespace
}  // namespace catena::stack
