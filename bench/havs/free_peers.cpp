// SPDX-License-Identifier: Apache-2.0
#include "bench/havs/free_peers.hpp"

#include <sys/eventfd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstring>

#include "stack/tcp/frame.hpp"

namespace catena::bench {
namespace {

constexpr std::uint32_t kServer = 0x0A7B0002;
constexpr std::uint32_t kClient = 0x0A7B0001;
constexpr std::array<std::uint8_t, 6> kServerMac{2, 0, 0, 0, 0, 2};
constexpr std::array<std::uint8_t, 6> kClientMac{2, 0, 0, 0, 0, 1};
constexpr std::uint16_t kFirstPort = 1024;
constexpr std::size_t kIp = stack::kEthernetBytes;
constexpr std::size_t kTcp = 34;
constexpr std::size_t kData = 54;
constexpr std::uint16_t kTypeArp = 0x0806;
constexpr std::size_t kMaxWaits = 65536;

void put16(std::span<std::byte> bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8U);
  bytes[at + 1] = static_cast<std::byte>(value);
}
void put32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  put16(bytes, at, static_cast<std::uint16_t>(value >> 16U));
  put16(bytes, at + 2, static_cast<std::uint16_t>(value));
}
void put_mac(std::span<std::byte> bytes, std::size_t at, std::array<std::uint8_t, 6> const& mac) {
  std::memcpy(&bytes[at], mac.data(), mac.size());
}

}  // namespace

FreePeers::FreePeers(std::uint32_t connections, std::uint32_t body_bytes)
    : event_(::eventfd(0, EFD_CLOEXEC)), body_bytes_(body_bytes), connections_(connections) {
  queue_.push_back({Kind::kArp, 0});  // lwIP keeps few answers for an address that it has to ask for
  for (std::uint32_t i = 0; i < connections; ++i) {
    connections_[i].sent = i * 7919;
    queue_.push_back({Kind::kSyn, i});
  }
  waits_.reserve(kMaxWaits);
}

stack::TcpOptions FreePeers::tcp_options() {
  stack::TcpOptions options;
  options.mac = kServerMac;
  options.ipv4 = stack::TcpOptions::Network{packet::Address::of_v4(kServer), 24, std::nullopt};
  return options;
}

bool FreePeers::send(stack::OutgoingFrame const& frame) {
  const std::span<const std::byte> head = frame.parts[0];
  if (stack::load_be16(&head[12]) == kTypeArp) {
    queue_.push_back({Kind::kArp, 0});
    return true;
  }
  const std::optional<stack::Segment> segment = stack::find_segment(head, /*is_incoming=*/false);
  if (!segment) {
    return true;
  }
  const auto number = static_cast<std::uint32_t>(segment->remote_port - kFirstPort);
  if (number >= connections_.size()) {
    return true;
  }
  Connection& connection = connections_[number];
  const std::byte* const tcp = &head[segment->tcp];
  const std::uint32_t sequence = stack::load_be32(tcp + 4);
  const std::size_t header = segment->tcp + 4 * (std::to_integer<std::size_t>(tcp[12]) >> 4U);
  constexpr std::byte kSyn{2};
  if ((tcp[13] & kSyn) != std::byte{0}) {
    connection.received = sequence + 1;
    ++connection.sent;
    queue_.push_back({Kind::kRequest, number});
  } else if (frame.bytes > header && sequence == connection.received) {
    take_data(number, frame, header);
  }
  return true;
}

/// Checks the last whole word of a frame, at the server's alignment: the first word of a body says where it begins.
void FreePeers::take_data(std::uint32_t number, stack::OutgoingFrame const& frame, std::size_t header_bytes) {
  Connection& connection = connections_[number];
  const auto bytes = static_cast<std::uint32_t>(frame.bytes - header_bytes);
  std::span<const std::byte> data = frame.parts.back();
  if (frame.parts.size() == 1) {
    data = data.subspan(header_bytes);
  }
  if (connection.of_body == 0 && frame.parts.size() <= 2 && data.size() >= sizeof(std::uint64_t)) {
    std::memcpy(&connection.first_word, data.data(), sizeof connection.first_word);
  }
  connection.received += bytes;
  connection.of_body += bytes;
  if (connection.of_body % sizeof(std::uint64_t) == 0 && data.size() >= sizeof(std::uint64_t)) {
    std::uint64_t last = 0;
    std::memcpy(&last, &data[data.size() - sizeof last], sizeof last);
    ++compared_;
    wrong_ += last == connection.first_word + connection.of_body / sizeof last - 1 ? 0 : 1;
  }
  if (connection.of_body < body_bytes_) {
    queue_.push_back({Kind::kAck, number});
    return;
  }
  connection.of_body = 0;
  const std::uint64_t wait = __rdtsc() - connection.asked_at;
  if (waits_.size() < kMaxWaits) {
    waits_.push_back(wait);
  } else {
    waits_[responses_ % kMaxWaits] = wait;
  }
  ++responses_;
  queue_.push_back({Kind::kRequest, number});
}

std::optional<std::span<const std::byte>> FreePeers::receive() {
  if (queue_.empty() || !is_started_) {
    return std::nullopt;
  }
  const Next next = queue_.front();
  queue_.pop_front();
  return make_frame(next);
}

std::span<const std::byte> FreePeers::make_frame(Next const& next) {
  const std::span<std::byte> frame(frame_);
  std::ranges::fill(frame, std::byte{0});
  put_mac(frame, 0, kServerMac);
  put_mac(frame, 6, kClientMac);
  if (next.kind == Kind::kArp) {
    put16(frame, 12, kTypeArp);
    put16(frame, 14, 1);
    put16(frame, 16, stack::kTypeIpv4);
    put16(frame, 18, 0x0604);
    put16(frame, 20, 2);
    put_mac(frame, 22, kClientMac);
    put32(frame, 28, kClient);
    put_mac(frame, 32, kServerMac);
    put32(frame, 38, kServer);
    return frame.first(60);
  }
  Connection& connection = connections_[next.connection];
  const bool is_syn = next.kind == Kind::kSyn;
  const std::size_t options = is_syn ? 8 : 0;  // MSS and window scale
  const std::size_t data = next.kind == Kind::kRequest ? kRequestBytes : 0;
  put16(frame, 12, stack::kTypeIpv4);
  frame[kIp] = std::byte{0x45};
  put16(frame, kIp + 2, static_cast<std::uint16_t>(40 + options + data));
  frame[kIp + 8] = std::byte{64};
  frame[kIp + 9] = std::byte{stack::kTcpProtocol};
  put32(frame, kIp + 12, kClient);
  put32(frame, kIp + 16, kServer);
  put16(frame, kIp + 10, packet::checksum_finish(packet::checksum_add(stack::octets(&frame[kIp]), 20)));
  put16(frame, kTcp, static_cast<std::uint16_t>(kFirstPort + next.connection));
  put16(frame, kTcp + 2, kServerPort);
  put32(frame, kTcp + 4, connection.sent);
  put32(frame, kTcp + 8, is_syn ? 0 : connection.received);
  frame[kTcp + 12] = static_cast<std::byte>((5 + options / 4) << 4U);
  frame[kTcp + 13] = is_syn ? std::byte{2} : data > 0 ? std::byte{0x18} : std::byte{0x10};
  put16(frame, kTcp + 14, 0xFFFF);
  if (is_syn) {
    put32(frame, kData, 0x02040000 + 1460);
    put32(frame, kData + 4, 0x01030307);  // no operation, window scale 7
  }
  if (data > 0) {
    connection.sent += static_cast<std::uint32_t>(data);
    connection.asked_at = __rdtsc();
  }
  return frame.first(kData + options + data);
}

}  // namespace catena::bench
