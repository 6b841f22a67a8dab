// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nat.hpp"

#include <gtest/gtest.h>
#include <catena/nf/testing/harness.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the tests of this NF share. Frames are plain Ethernet, so IPv4 starts at kL3.
namespace catena::nat::testing {

using nf::testing::Frame;
using nf::testing::make_frame;
using nf::testing::RunResult;

inline constexpr std::size_t kL3 = 14;
inline constexpr std::size_t kL4 = 34;
inline constexpr std::uint64_t kSecond = 1'000'000'000;

inline constexpr std::uint8_t kIcmpProtocol = 1;
inline constexpr std::uint8_t kTcpProtocol = 6;
inline constexpr std::uint8_t kUdpProtocol = 17;

inline constexpr std::uint8_t kSyn = 0x02;
inline constexpr std::uint8_t kAck = 0x10;
inline constexpr std::uint8_t kFin = 0x01;
inline constexpr std::uint8_t kRst = 0x04;

inline constexpr std::uint32_t kHost = 0x0A000005;      // 10.0.0.5
inline constexpr std::uint32_t kServer = 0xC6336407;    // 198.51.100.7
inline constexpr std::uint32_t kExternal = 0xCB007101;  // 203.0.113.1

inline constexpr std::string_view kOneAddress = "inside: [10.0.0.0/8]\nexternal: [203.0.113.1]\n";

/// Big-endian fields by their offset in the frame.
std::uint16_t get16(Frame const& frame, std::size_t at);
std::uint32_t get32(Frame const& frame, std::size_t at);
void set16(Frame& frame, std::size_t at, std::uint16_t value);
void set32(Frame& frame, std::size_t at, std::uint32_t value);

inline std::uint32_t source_of(Frame const& frame) { return get32(frame, kL3 + 12); }
inline std::uint32_t destination_of(Frame const& frame) { return get32(frame, kL3 + 16); }
inline std::uint16_t source_port_of(Frame const& frame) { return get16(frame, kL4); }
inline std::uint16_t destination_port_of(Frame const& frame) { return get16(frame, kL4 + 2); }

/// RFC 1071 written out: the complement of the one's complement sum of the words of `bytes`, to which `start` is added.
std::uint16_t rfc1071(std::span<const std::uint8_t> bytes, std::uint32_t start = 0);
/// Sets the checksums of the IPv4 header at `l3` and of the whole UDP, TCP or ICMP message after it.
void set_checksums(Frame& frame, std::size_t l3 = kL3);
/// Whether every checksum of an unfragmented frame holds: IPv4, transport (a UDP checksum may be 0), and the quoted
/// header of an ICMP error.
::testing::AssertionResult has_right_checksums(Frame const& frame);

inline Frame udp(std::uint32_t source, std::uint16_t source_port, std::uint32_t destination,
                 std::uint16_t destination_port, std::string_view payload = "0123456789abcdef") {
  return make_frame(kUdpProtocol, source, destination, source_port, destination_port, payload);
}
/// An ICMP message from `source` to `destination`; `rest`: bytes 4 to 7.
Frame make_icmp(std::uint8_t type, std::uint8_t code, std::uint32_t source, std::uint32_t destination,
                std::uint32_t rest, std::span<const std::uint8_t> body);
Frame make_echo(std::uint8_t type, std::uint32_t source, std::uint32_t destination, std::uint16_t identifier,
                std::uint16_t sequence = 1);
/// The ICMP error that a host at `from` sends about `frame`, quoting `quoted_l4` bytes after the IPv4 header.
Frame make_error(std::uint8_t type, std::uint32_t from, Frame const& frame, std::size_t quoted_l4 = 8);
/// A TCP segment with these flags.
Frame make_segment(std::uint32_t source, std::uint32_t destination, std::uint16_t source_port,
                   std::uint16_t destination_port, std::uint8_t flags);
/// What the receiver of a TCP, UDP or echo request frame answers.
Frame answer_to(Frame const& frame);
/// The same datagram with its ends as given; checksums are computed anew. For echoes `source_port` is the identifier.
Frame with_ends(Frame frame, std::uint32_t source, std::uint16_t source_port, std::uint32_t destination,
                std::uint16_t destination_port);

/// `frame` in two parts; the first has `first_bytes` bytes after the IPv4 header, a multiple of 8.
std::pair<Frame, Frame> in_two(Frame const& frame, std::uint16_t id, std::size_t first_bytes);

/// An NF of this configuration.
Result<std::unique_ptr<nf::Nf>> make(std::string_view yaml = kOneAddress);
/// Runs the NF over the frames on the CPU and on every device, with units of several sizes, and expects the same
/// frames, verdicts, records, drop counts and statistics of all. Returns them. `arrivals_ns`: as
/// nf::testing::RunOptions.
RunResult run_everywhere(std::vector<Frame> const& frames, std::string_view yaml = kOneAddress,
                         std::vector<std::uint64_t> const& arrivals_ns = {});

/// Several NATs of one configuration, each with the packets that the divider gives it, on the CPU and one by one.
class DividedNat {
 public:
  struct Sent {
    Frame frame;                   ///< as it leaves; empty: it was dropped
    std::string_view drop_reason;  ///< empty: it passed
    std::uint32_t shard = 0;       ///< that had it
  };

  /// `yaml` must be right.
  DividedNat(std::string_view yaml, std::uint32_t shards);

  Sent send(Frame const& frame, std::uint64_t arrival_ns);
  /// The sum of all shards.
  std::uint64_t statistic(std::string_view name);
  nf::testing::CpuNf& nat(std::uint32_t shard) { return *nats_[shard]; }
  nf::Divider& divider() { return *divider_; }

 private:
  static std::vector<std::uint64_t> drops(nf::testing::CpuNf const& nat);

  std::vector<std::unique_ptr<nf::testing::CpuNf>> nats_;
  std::unique_ptr<nf::Divider> divider_;
  std::uint64_t sent_ = 0;
};

std::uint64_t statistic(RunResult const& result, std::string_view name);
inline bool passed(RunResult const& result, std::size_t i) {
  return result.packets[i].verdict != packet::Verdict::kDrop;
}

}  // namespace catena::nat::testing
