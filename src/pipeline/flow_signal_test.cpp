// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_signal.hpp"

#include "pipeline/testing/faulty_relay.hpp"

#include <catena/core/text.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::runtime {
namespace {

std::vector<std::uint8_t> signal_key() {
  return {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF};
}

TEST(FlowSignal, a_datagram_is_as_it_was_written_and_as_python_makes_it) {
  // python3 -c 'import hmac; b=b"CTFS\1\2\0\0"+(0x0102030405060708).to_bytes(8,"big")+(9).to_bytes(8,"big");
  //             print((b+hmac.new(bytes.fromhex("00112233445566778899aabbccddeeff"),b,"sha256").digest()[:16]).hex())'
  constexpr std::array<std::uint8_t, kFlowSignalBytes> kFromPython{
      0x43, 0x54, 0x46, 0x53, 0x01, 0x02, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
      0x07, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, 0x64, 0xA4, 0xC4, 0xB5,
      0x6C, 0xC9, 0xBA, 0xBD, 0x52, 0x41, 0x7F, 0x0A, 0x9F, 0x3F, 0x3F, 0x50};
  const FlowSignal signal{FlowSignal::Kind::kSlowDown, 0x0102030405060708, 9};
  EXPECT_EQ(seal(signal, signal_key()), kFromPython);
  EXPECT_EQ(open_signal(kFromPython, signal_key()), signal);
}

TEST(FlowSignal, a_datagram_that_is_not_as_it_was_written_says_nothing) {
  const auto datagram = seal({FlowSignal::Kind::kFastenUp, 1, 2}, signal_key());
  for (std::size_t bit = 0; bit < 8 * datagram.size(); ++bit) {
    auto other = datagram;
    other[bit / 8] = static_cast<std::uint8_t>(other[bit / 8] ^ 1U << bit % 8);
    EXPECT_FALSE(open_signal(other, signal_key())) << "bit " << bit;
  }
  for (std::size_t bytes = 0; bytes < datagram.size(); ++bytes) {
    EXPECT_FALSE(open_signal(std::span(datagram).first(bytes), signal_key())) << bytes << " bytes";
  }
  std::vector<std::uint8_t> longer(datagram.begin(), datagram.end());
  longer.push_back(0);
  EXPECT_FALSE(open_signal(longer, signal_key()));
  std::vector<std::uint8_t> other_key = signal_key();
  ++other_key[3];
  EXPECT_FALSE(open_signal(datagram, other_key));
  EXPECT_FALSE(open_signal(seal({static_cast<FlowSignal::Kind>(4), 1, 2}, signal_key()), signal_key()))
      << "of the right one, and no kind";
}

TEST(FlowSignalSession, each_signal_is_accepted_once_and_in_order) {
  const FlowSignalSession::Clock::time_point start{};
  FlowSignalSession requester(7, start);
  const FlowSignal first = requester.next(FlowSignal::Kind::kAsk);
  EXPECT_EQ(first, (FlowSignal{FlowSignal::Kind::kAsk, 7, 1}));
  FlowSignalSession other(first, start);
  EXPECT_FALSE(other.accept(first, start)) << "it began the session";
  const FlowSignal second = requester.next(FlowSignal::Kind::kAsk);
  const FlowSignal third = requester.next(FlowSignal::Kind::kAsk);
  const auto later = start + std::chrono::seconds(1);
  EXPECT_TRUE(other.accept(third, later));
  EXPECT_EQ(other.heard(), later);
  EXPECT_FALSE(other.accept(second, later + std::chrono::seconds(1))) << "late";
  EXPECT_FALSE(other.accept(third, later + std::chrono::seconds(1))) << "a duplicate";
  EXPECT_EQ(other.heard(), later);
  EXPECT_TRUE(requester.accept(other.next(FlowSignal::Kind::kSlowDown, 3), later));
  EXPECT_FALSE(requester.accept({FlowSignal::Kind::kSlowDown, 8, 100}, later)) << "of another requester";
}

TEST(FlowSignalTransport, counts_forged_and_unsent_datagrams) {
  std::uint16_t own_port = 0;
  std::uint16_t port = 0;
  const FileDescriptor from = testing::udp_socket(own_port);
  const FileDescriptor to = testing::udp_socket(port);
  const SocketAddress address = *parse_socket_address(concat("127.0.0.1:", port));
  FlowSignalTransport transport(signal_key());
  FlowSignalTransport forger({1, 2, 3});
  const FlowSignal signal{FlowSignal::Kind::kFastenUp, 1, 2};
  EXPECT_TRUE(forger.send(from.get(), &address, signal));
  EXPECT_TRUE(transport.send(from.get(), &address, signal));
  SocketAddress sender;
  std::optional<FlowSignal> received;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!received && std::chrono::steady_clock::now() < end) {
    received = transport.receive(to.get(), sender);
  }
  EXPECT_EQ(received, signal);
  EXPECT_EQ(transport.forged(), 1U);
  EXPECT_FALSE(transport.send(-1, nullptr, signal));
  EXPECT_EQ(transport.unsent(), 1U);
  transport.erase_key();
  EXPECT_FALSE(transport.has_key(signal_key()));
}

}  // namespace
}  // namespace catena::runtime
