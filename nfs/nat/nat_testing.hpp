// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nat.hpp"

#include <gtest/gtest.h>
#include <catena/nf/testing/harness.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Shared by the tests of this NF.
namespace catena::nat::testing {

using nf::testing::CpuNf;
using nf::testing::Frame;
using nf::testing::make_frame;
using nf::testing::RunResult;

inline constexpr std::uint64_t kSecond = 1'000'000'000;

inline constexpr std::uint8_t kIcmpProtocol = packet::kProtocolIcmp;
inline constexpr std::uint8_t kTcpProtocol = packet::kProtocolTcp;
inline constexpr std::uint8_t kUdpProtocol = packet::kProtocolUdp;

inline constexpr std::uint32_t kHost = 0x0A000005;      // 10.0.0.5
inline constexpr std::uint32_t kServer = 0xC6336407;    // 198.51.100.7
inline constexpr std::uint32_t kExternal = 0xCB007101;  // 203.0.113.1

inline constexpr std::string_view kOneAddress = "inside: [10.0.0.0/8]\nexternal: [203.0.113.1]\n";

inline Frame udp(std::uint32_t source, std::uint16_t source_port, std::uint32_t destination,
                 std::uint16_t destination_port, std::string_view payload = "0123456789abcdef") {
  return make_frame(kUdpProtocol, source, destination, source_port, destination_port, payload);
}
inline Frame echo_request(std::uint32_t source, std::uint32_t destination, std::uint16_t identifier,
                          std::uint16_t sequence = 1) {
  return nf::testing::make_echo(source, destination, identifier, sequence, "abcde");
}
inline Frame echo_reply(std::uint32_t source, std::uint32_t destination, std::uint16_t identifier,
                        std::uint16_t sequence = 1) {
  return nf::testing::make_echo(source, destination, identifier, sequence, "abcde", 0);
}

/// The NAT's answer to an echo request.
Frame echo_answer(Frame const& request);
/// The TCP segment with these sequence and acknowledgement numbers.
Frame with_numbers(Frame segment, std::uint32_t sequence, std::uint32_t acknowledged);

/// An NF with this configuration.
Result<std::unique_ptr<nf::Nf>> make(std::string_view yaml = kOneAddress);
/// Runs the NF over the frames on the CPU and on every device, with units of several sizes, expects equal frames,
/// verdicts, records, drop counts and statistics, and returns them. `arrivals_ns`: as RunOptions.
RunResult run_everywhere(std::vector<Frame> const& frames, std::string_view yaml = kOneAddress,
                         std::vector<std::uint64_t> const& arrivals_ns = {});

/// Several NATs with one configuration, each with its packets from the sharder, on the CPU and one by one.
class DividedNat {
 public:
  struct Sent {
    Frame frame;                   ///< as sent; empty: dropped
    std::string_view drop_reason;  ///< empty: passed
    std::uint32_t shard = 0;       ///< that processed it
  };

  /// Precondition: `yaml` is valid.
  DividedNat(std::string_view yaml, std::uint32_t shards);

  Sent send(Frame const& frame, std::uint64_t arrival_ns);
  /// Takes the place of NATs in any number of shards.
  void take_over(DividedNat& before);
  /// The sum of all shards.
  std::uint64_t statistic(std::string_view name);
  CpuNf& nat(std::uint32_t shard) { return *nats_[shard]; }
  nf::Sharder& sharder() { return *sharder_; }

 private:
  std::vector<nf::Nf*> all() const;
  static std::vector<std::uint64_t> drops(CpuNf const& nat);

  std::vector<std::unique_ptr<CpuNf>> nats_;
  std::unique_ptr<nf::Sharder> sharder_;
  std::uint64_t sent_ = 0;
};

std::uint64_t statistic(RunResult const& result, std::string_view name);
inline bool passed(RunResult const& result, std::size_t i) {
  return result.packets[i].verdict != packet::Verdict::kDrop;
}

}  // namespace catena::nat::testing
