// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lb.hpp"

/// What the tests of the load balancer share.
namespace catena::lb::testing {

using nf::testing::Frame;
using nf::testing::make_frame;
using nf::testing::PacketResult;
using nf::testing::RunOptions;
using nf::testing::RunResult;

constexpr std::uint8_t kTcp = packet::kProtocolTcp;
constexpr std::uint8_t kUdp = packet::kProtocolUdp;
constexpr std::uint32_t kServiceAddress = 0xCB00710A;  // 203.0.113.10
constexpr std::uint32_t kClientAddress = 0xC6336407;   // 198.51.100.7
constexpr std::uint64_t kSecondNs = 1000000000;

/// Three web servers behind 203.0.113.10:80/tcp, two name servers behind 203.0.113.10:53/udp.
constexpr std::string_view kYaml = R"(services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends:
      - {name: web1, address: 10.0.0.1, port: 8080}
      - {name: web2, address: 10.0.0.2, port: 8080}
      - {name: web3, address: 10.0.0.3, port: 8080}
  - address: 203.0.113.10
    port: 53
    protocol: udp
    backends:
      - {name: dns1, address: 10.0.1.1}
      - {name: dns2, address: 10.0.1.2}
)";

inline std::uint32_t source_of(Frame const& frame) { return packet::load_be32(frame.data() + 26); }
inline std::uint32_t destination_of(Frame const& frame) { return packet::load_be32(frame.data() + 30); }

inline std::unique_ptr<nf::Nf> make_lb(std::string_view yaml = kYaml) {
  // room for a million flows, which most tests do not say, is most of their time
  const bool says = yaml.find("max_flows") != std::string_view::npos;
  auto made = nf::testing::make_nf(catena_nf_lb(), says ? std::string(yaml) : concat(yaml, "\nmax_flows: 20000\n"));
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? std::move(*made) : nullptr;
}

/// Decides the frames on the CPU and on every device here, expects the same of all, and returns it with its records in
/// packet order.
inline RunResult run(std::vector<Frame> const& frames, std::string_view yaml = kYaml, RunOptions const& options = {}) {
  const auto sort = [](std::vector<std::string>& lines) {
    const auto number = [](std::string const& line) { return std::stoull(line.substr(line.find(':') + 1)); };
    std::ranges::stable_sort(lines, {}, number);
  };
  auto cpu = nf::testing::run(catena_nf_lb(), make_lb(yaml), frames, nullptr, options);
  EXPECT_TRUE(cpu.ok()) << cpu.status();
  if (!cpu.ok()) {
    return {};
  }
  sort(cpu->records);
  for (device::Device* device : nf::testing::devices()) {
    SCOPED_TRACE(nf::testing::name_of(device));
    auto other = nf::testing::run(catena_nf_lb(), make_lb(yaml), frames, device, options);
    EXPECT_TRUE(other.ok()) << other.status();
    if (!other.ok()) {
      continue;
    }
    sort(other->records);
    EXPECT_TRUE(other->packets == cpu->packets);
    EXPECT_EQ(other->records, cpu->records);
    EXPECT_EQ(other->drops, cpu->drops);
    EXPECT_EQ(other->counters.kernel_faults, 0U);
    const std::uint64_t dropped = cpu->dropped("no_backend") + cpu->dropped("fragment");
    EXPECT_EQ(other->counters.device_packets, cpu->counters.processed - dropped);
    for (std::size_t i = 0; i < cpu->statistics.size(); ++i) {
      EXPECT_EQ(other->statistics[i].value, cpu->statistics[i].value) << cpu->statistics[i].name;
    }
  }
  return std::move(*cpu);
}

inline std::uint64_t value_of(std::vector<nf::Statistic> const& statistics, std::string_view name) {
  const auto found = std::ranges::find(statistics, name, &nf::Statistic::name);
  EXPECT_NE(found, statistics.end()) << name;
  return found == statistics.end() ? 0 : found->value;
}

/// Sums bytes as big-endian words, RFC 1071 written out; the last odd byte is padded with zero.
inline std::uint32_t sum_of(std::uint8_t const* bytes, std::size_t length) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < length; ++i) {
    sum += static_cast<std::uint32_t>(i % 2 == 0 ? bytes[i] << 8 : bytes[i]);
  }
  return sum;
}
inline std::uint32_t folded(std::uint32_t sum) {
  while (sum > 0xFFFF) {
    sum = (sum & 0xFFFF) + (sum >> 16);
  }
  return sum;
}

/// Whether both checksums of a frame without tags and options are right; a UDP checksum of 0 is.
inline bool has_right_checksums(Frame const& frame) {
  const std::size_t l4_bytes = frame.size() - 34;
  const bool has_none = frame[23] == kUdp && frame[40] == 0 && frame[41] == 0;
  const std::uint32_t pseudo = sum_of(frame.data() + 26, 8) + frame[23] + static_cast<std::uint32_t>(l4_bytes);
  return folded(sum_of(frame.data() + 14, 20)) == 0xFFFF &&
         (has_none || folded(pseudo + sum_of(frame.data() + 34, l4_bytes)) == 0xFFFF);
}

inline Frame with_tcp_flags(Frame frame, std::uint8_t flags) {
  packet::store_be16(frame.data() + 50,
                     packet::checksum_update(packet::load_be16(frame.data() + 50), packet::load_be16(&frame[46]),
                                             static_cast<std::uint16_t>(frame[46] << 8 | flags)));
  frame[47] = flags;
  return frame;
}
constexpr std::uint8_t kFin = 0x11;  // with ACK
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kRst = 0x04;
constexpr std::uint8_t kAck = 0x10;

/// A request of client `number` to the web service, and the answer of the backend at `backend`.
inline std::uint16_t client_port(std::uint32_t number) { return static_cast<std::uint16_t>(1024 + number % 60000); }
inline std::uint32_t client_address(std::uint32_t number) { return kClientAddress + number / 60000; }
inline Frame request(std::uint32_t number, std::uint8_t flags = kAck) {
  return with_tcp_flags(
      make_frame(kTcp, client_address(number), kServiceAddress, client_port(number), 80, "GET / HTTP/1.1"), flags);
}
inline Frame answer(std::uint32_t number, std::uint32_t backend, std::uint8_t flags = kAck) {
  return with_tcp_flags(make_frame(kTcp, backend, client_address(number), 8080, client_port(number), "HTTP/1.1 200"),
                        flags);
}

inline void set16(Frame& frame, std::size_t at, std::uint32_t value) {
  packet::store_be16(&frame[at], static_cast<std::uint16_t>(value));
}

/// The error of this type that a host at `from` sends about `frame`, quoting `quoted_l4` bytes after the IPv4 header.
inline Frame make_error(std::uint8_t type, std::uint32_t from, Frame const& frame, std::size_t quoted_l4 = 8) {
  const std::size_t quoted = std::min<std::size_t>(20 + quoted_l4, frame.size() - 14);
  Frame error = make_frame(kUdp, from, source_of(frame), 0, 0, std::string(quoted, '\0'));
  error[23] = packet::kProtocolIcmp;
  set16(error, 24, 0);
  set16(error, 24, ~folded(sum_of(&error[14], 20)));
  std::fill(error.begin() + 34, error.begin() + 42, std::uint8_t{0});
  error[34] = type;
  error[35] = type == 3 ? 3 : 0;
  std::copy_n(frame.begin() + 14, quoted, error.begin() + 42);
  set16(error, 36, ~folded(sum_of(&error[34], error.size() - 34)));
  return error;
}

/// An instance that gets its packets one after another, for tests that change something between them.
class LiveLb {
 public:
  explicit LiveLb(std::string_view yaml = kYaml) : LiveLb(make_lb(yaml)) {}

  PacketResult send(Frame const& frame) {
    nf::testing::PacketStore store(std::span(&frame, 1), std::span(&now_ns, 1));
    instance_.process(store.all());
    const packet::Packet packet = store.all()[0];
    return {Frame(packet.frame(), packet.frame() + packet.length()), packet.verdict(), packet.port()};
  }
  /// Address of the backend that gets the frame.
  std::uint32_t backend_for(Frame const& frame) {
    const PacketResult result = send(frame);
    EXPECT_EQ(result.verdict, packet::Verdict::kPass);
    return destination_of(result.frame);
  }
  Lb& lb() { return *lb_; }
  std::uint64_t statistic(std::string_view name) { return value_of(lb_->statistics(), name); }
  std::uint64_t no_backend() { return instance_.dropped("no_backend"); }

  std::uint64_t now_ns = 1000 * kSecondNs;

 private:
  explicit LiveLb(std::unique_ptr<nf::Nf> nf)
      : lb_(static_cast<Lb*>(nf.get())), instance_(catena_nf_lb(), std::move(nf)) {}

  Lb* lb_;
  nf::testing::CpuNf instance_;
};

}  // namespace catena::lb::testing
