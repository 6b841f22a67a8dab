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

/// Shared by the tests of the load balancer.
namespace catena::lb::testing {

using nf::testing::destination_of;
using nf::testing::Frame;
using nf::testing::kAck;
using nf::testing::kFin;
using nf::testing::make_segment;
using nf::testing::PacketResult;
using nf::testing::RunOptions;
using nf::testing::RunResult;

constexpr std::uint8_t kTcp = packet::kProtocolTcp;
constexpr std::uint8_t kUdp = packet::kProtocolUdp;
constexpr std::uint32_t kServiceAddress = 0xCB00710A;  // 203.0.113.10
constexpr std::uint32_t kClientAddress = 0xC6336407;   // 198.51.100.7
constexpr std::uint64_t kSecondNs = 1000000000;
constexpr std::uint8_t kFinAck = kFin | kAck;

/// Three web servers at 203.0.113.10:80/tcp, two name servers at 203.0.113.10:53/udp.
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

inline std::unique_ptr<nf::Nf> make_lb(std::string_view yaml = kYaml) {
  auto made = nf::testing::make_nf(catena_nf_lb(), nf::testing::with_room(yaml, "max_flows"));
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? std::move(*made) : nullptr;
}

/// Processes the frames on the CPU and on every available device, expects equal results, and returns them with records
/// in packet order.
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

/// A request of client `number` to the web service, and the response of the backend at `backend`.
inline std::uint16_t client_port(std::uint32_t number) { return static_cast<std::uint16_t>(1024 + number % 60000); }
inline std::uint32_t client_address(std::uint32_t number) { return kClientAddress + number / 60000; }
inline Frame request(std::uint32_t number, std::uint8_t flags = kAck) {
  return make_segment(client_address(number), kServiceAddress, client_port(number), 80, flags, "GET / HTTP/1.1");
}
inline Frame answer(std::uint32_t number, std::uint32_t backend, std::uint8_t flags = kAck) {
  return make_segment(backend, client_address(number), 8080, client_port(number), flags, "HTTP/1.1 200");
}

/// An instance that receives packets one by one, for tests that change something between them.
class LiveLb {
 public:
  explicit LiveLb(std::string_view yaml = kYaml) : LiveLb(make_lb(yaml)) {}

  PacketResult send(Frame const& frame) {
    nf::testing::PacketStore store(std::span(&frame, 1), std::span(&now_ns, 1));
    instance_.process(store.all());
    const packet::Packet packet = store.all()[0];
    return {Frame(packet.frame(), packet.frame() + packet.length()), packet.verdict(), packet.port()};
  }
  /// Address of the frame's backend.
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
