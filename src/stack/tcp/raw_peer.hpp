// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stack/tcp/frame.hpp"
#include "stack/tcp/tcp.hpp"

/// For tests: frames of any content, and a peer for them.
namespace catena::stack::testing {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint8_t kFin = 0x01;
inline constexpr std::uint8_t kSyn = 0x02;
inline constexpr std::uint8_t kRst = 0x04;
inline constexpr std::uint8_t kPush = 0x08;
inline constexpr std::uint8_t kAck = 0x10;
inline constexpr std::uint8_t kUrg = 0x20;

inline constexpr std::array<std::uint8_t, 6> kStackMac = {2, 0, 0, 0, 9, 2};
inline constexpr std::array<std::uint8_t, 6> kPeerMac = {2, 0, 0, 0, 9, 1};
inline constexpr std::uint32_t kStackV4 = 0x0A090002;
inline constexpr std::uint32_t kPeerV4 = 0x0A090001;

inline std::span<const std::byte> as_frame(Bytes const& bytes) { return std::as_bytes(std::span(bytes)); }
inline void put16(Bytes& to, std::uint32_t value) {
  to.push_back(static_cast<std::uint8_t>(value >> 8U));
  to.push_back(static_cast<std::uint8_t>(value));
}
inline void put32(Bytes& to, std::uint32_t value) {
  put16(to, value >> 16U);
  put16(to, value);
}
inline void set16(Bytes& in, std::size_t at, std::uint32_t value) {
  in[at] = static_cast<std::uint8_t>(value >> 8U);
  in[at + 1] = static_cast<std::uint8_t>(value);
}
inline void put(Bytes& to, std::span<const std::uint8_t> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

inline Bytes ethernet(std::uint16_t type) {
  Bytes frame(kStackMac.begin(), kStackMac.end());
  put(frame, kPeerMac);
  put16(frame, type);
  return frame;
}
/// An IPv4 packet with the right header checksum. `options`: a multiple of 4 bytes.
inline Bytes ipv4(std::uint32_t source, std::uint8_t protocol, Bytes const& payload, std::uint16_t fragment = 0,
                  Bytes const& options = {}) {
  Bytes frame = ethernet(kTypeIpv4);
  const std::size_t header = 20 + options.size();
  put16(frame, 0x4000U | (static_cast<std::uint32_t>(header) / 4) << 8U);
  put16(frame, static_cast<std::uint32_t>(header + payload.size()));
  put16(frame, 1);
  put16(frame, fragment);
  put16(frame, 0x4000U | protocol);
  put16(frame, 0);
  put32(frame, source);
  put32(frame, kStackV4);
  put(frame, options);
  set16(frame, 24, packet::checksum_finish(packet::checksum_add(&frame[14], header)));
  put(frame, payload);
  return frame;
}
/// fd00:9::`host`
inline Bytes address_v6(std::uint8_t host) { return {0xFD, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host}; }
inline Bytes ipv6(std::uint8_t next, Bytes const& payload) {
  Bytes frame = ethernet(kTypeIpv6);
  put32(frame, 0x60000000);
  put16(frame, static_cast<std::uint32_t>(payload.size()));
  frame.push_back(next);
  frame.push_back(255);
  put(frame, address_v6(1));
  put(frame, address_v6(2));
  put(frame, payload);
  return frame;
}
inline Bytes icmpv6(Bytes message) {
  Bytes pseudo = address_v6(1);
  put(pseudo, address_v6(2));
  put32(pseudo, static_cast<std::uint32_t>(message.size()));
  put32(pseudo, kIcmpv6Protocol);
  set16(message, 2, 0);
  const std::uint64_t sum = packet::checksum_add(pseudo.data(), pseudo.size());
  set16(message, 2, packet::checksum_finish(packet::checksum_add(message.data(), message.size(), sum)));
  return ipv6(kIcmpv6Protocol, message);
}

/// Fields of a TCP segment. Its checksum is left out: the port verifies it.
struct RawSegment {
  std::uint8_t flags = kAck;
  std::uint32_t number = 0;
  std::uint32_t acknowledged = 0;
  std::uint16_t window = 0xFFFF;
  Bytes options = {};  ///< padded to a multiple of 4 bytes
  Bytes data = {};
  std::uint16_t urgent = 0;
};
inline Bytes tcp(std::uint16_t from, std::uint16_t to, RawSegment const& segment) {
  Bytes bytes;
  put16(bytes, from);
  put16(bytes, to);
  put32(bytes, segment.number);
  put32(bytes, segment.acknowledged);
  const std::size_t words = 5 + (segment.options.size() + 3) / 4;
  put16(bytes, static_cast<std::uint32_t>(words) << 12U | segment.flags);
  put16(bytes, segment.window);
  put16(bytes, 0);
  put16(bytes, segment.urgent);
  put(bytes, segment.options);
  bytes.resize(4 * words);
  put(bytes, segment.data);
  return bytes;
}

/// A TCP segment of the stack.
struct SentSegment {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint32_t number = 0;
  std::uint32_t acknowledged = 0;
  std::uint8_t flags = 0;
  std::uint16_t window = 0;
  Bytes options;
  Bytes data;
};

/// Keeps the stack's TCP segments, and answers nothing.
class Wire final : public FramePort {
 public:
  bool send(OutgoingFrame const& frame) override {
    Bytes bytes;
    for (const std::span<const std::byte> part : frame.parts) {
      const auto* const first = reinterpret_cast<const std::uint8_t*>(part.data());
      bytes.insert(bytes.end(), first, first + part.size());
    }
    ++frames;
    if (const std::optional<Segment> found = find_segment(as_frame(bytes), false)) {
      std::uint8_t* const header = &bytes[found->tcp];
      const std::size_t length = std::size_t{4} * (header[12] >> 4U);
      segments.push_back({.from = found->local_port,
                          .to = found->remote_port,
                          .number = packet::load_be32(header + 4),
                          .acknowledged = packet::load_be32(header + 8),
                          .flags = header[13],
                          .window = packet::load_be16(header + 14),
                          .options = Bytes(header + 20, header + length),
                          .data = Bytes(header + length, bytes.data() + bytes.size())});
    }
    return true;
  }
  /// Removes and returns the segments for `port`.
  std::vector<SentSegment> take(std::uint16_t port) {
    std::vector<SentSegment> taken;
    std::erase_if(segments, [&](SentSegment const& segment) {
      if (segment.to == port) {
        taken.push_back(segment);
      }
      return segment.to == port;
    });
    return taken;
  }
  std::deque<SentSegment> segments;
  std::uint64_t frames = 0;
};

/// One end of a connection; the test may bend its numbers.
class RawPeer {
 public:
  RawPeer(Wire& wire, Tcp& stack, std::uint16_t own_port, std::uint16_t port = 7, bool is_v4 = true)
      : wire_(&wire), stack_(&stack), own_port_(own_port), port_(port), is_v4_(is_v4) {}

  void send(RawSegment const& segment) {
    const Bytes payload = tcp(own_port_, port_, segment);
    const Bytes frame = is_v4_ ? ipv4(kPeerV4, kTcpProtocol, payload) : ipv6(kTcpProtocol, payload);
    stack_->input(as_frame(frame));
  }
  std::vector<SentSegment> take() { return wire_->take(own_port_); }
  /// The answer to a SYN; nullopt: none.
  std::optional<SentSegment> begin(Bytes const& options = {}, std::uint16_t window = 0xFFFF) {
    send({.flags = kSyn, .number = number - 1, .window = window, .options = options});
    for (SentSegment const& sent : take()) {
      if (sent.flags == (kSyn | kAck)) {
        acknowledged = sent.number + 1;
        return sent;
      }
    }
    return std::nullopt;
  }
  bool connect(Bytes const& options = {}, std::uint16_t window = 0xFFFF) {
    const bool is_answered = begin(options, window).has_value();
    acknowledge(window);
    return is_answered;
  }
  void acknowledge(std::uint16_t window = 0xFFFF) {
    send({.flags = kAck, .number = number, .acknowledged = acknowledged, .window = window});
  }
  /// The next bytes in order.
  void say(std::string_view text) {
    send({.flags = kAck | kPush,
          .number = number,
          .acknowledged = acknowledged,
          .data = Bytes(text.begin(), text.end())});
    number += static_cast<std::uint32_t>(text.size());
  }
  /// Takes data in order, and acknowledges it.
  std::string hear(std::uint16_t window = 0xFFFF) {
    std::string text;
    for (SentSegment const& sent : take()) {
      const auto skipped = static_cast<std::int32_t>(acknowledged - sent.number);
      if (skipped >= 0 && static_cast<std::size_t>(skipped) <= sent.data.size()) {
        text.append(sent.data.begin() + skipped, sent.data.end());
        acknowledged += static_cast<std::uint32_t>(sent.data.size()) - static_cast<std::uint32_t>(skipped);
      }
      has_fin = has_fin || (sent.flags & kFin) != 0;
    }
    if (!text.empty()) {
      acknowledge(window);
    }
    return text;
  }
  std::uint32_t number = 1'000'001;  ///< of the next byte
  std::uint32_t acknowledged = 0;    ///< of the stack's next byte
  bool has_fin = false;

 private:
  Wire* wire_;
  Tcp* stack_;
  std::uint16_t own_port_;
  std::uint16_t port_;
  bool is_v4_;
};

}  // namespace catena::stack::testing
