// SPDX-License-Identifier: Apache-2.0
#include "monitor_testing.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <random>
#include <utility>

namespace catena::monitor {

std::ostream& operator<<(std::ostream& out, FlowRecord const& record) {
  return out << to_string(record.key.whole()) << ", " << record.packets << " packets, " << record.bytes << " bytes, "
             << record.first_ns << ".." << record.last_ns << " ns, flags " << record.tcp_flags << ", tos "
             << int{record.tos} << ", reason " << static_cast<int>(record.end_reason);
}

std::ostream& operator<<(std::ostream& out, FlowSum const& sum) {
  return out << to_string(sum.key.whole()) << ", " << sum.packets << " packets, " << sum.bytes << " bytes, "
             << sum.first_ns << ".." << sum.last_ns << " ns, " << sum.first << ".." << sum.last << ", flags "
             << sum.tcp_flags << ", tos " << int{sum.tos};
}

namespace testing {
namespace {

using Pair = std::pair<std::uint64_t, std::uint64_t>;
Pair pair_of(packet::Ipv4FlowKey const& key) { return {key.addresses, key.transport}; }

}  // namespace

void remove_flows(ScratchFolder const& folder) {
  for (const char* name : {"flows.jsonl", "flows.ipfix"}) {
    std::filesystem::remove(folder.path(name));
  }
}

nf::testing::RunResult run(std::string_view yaml, std::vector<nf::testing::Frame> const& frames,
                           ScratchFolder const& folder, nf::testing::RunOptions const& options,
                           device::Device* device) {
  remove_flows(folder);
  auto monitor = nf::testing::make_nf(catena_nf_monitor(), yaml, folder.path());
  if (!monitor.ok()) {
    ADD_FAILURE() << monitor.status();
    return {};
  }
  auto result = nf::testing::run(catena_nf_monitor(), std::move(monitor).value(), frames, device, options);
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return {};
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_TRUE(result->packets[i].frame == frames[i]) << i;
    const bool was_dropped = options.dropped_before && options.dropped_before(i);
    EXPECT_EQ(result->packets[i].verdict, was_dropped ? packet::Verdict::kDrop : packet::Verdict::kPass) << i;
  }
  EXPECT_TRUE(result->records.empty());
  EXPECT_EQ(result->counters.device_packets, device == nullptr ? 0 : result->counters.processed);
  EXPECT_EQ(result->counters.kernel_faults, 0U);
  return std::move(result).value();
}

Traffic::Traffic(std::size_t packets, std::uint32_t seed) {
  auto random = [engine = std::mt19937(seed)]() mutable { return static_cast<std::uint32_t>(engine()); };
  std::uint64_t now = 1'700'000'000 * kTestSecond;
  for (std::size_t i = 0; i < packets; ++i) {
    const std::uint8_t protocol = random() % 2 == 0 ? 6 : 17;
    const bool is_busy = random() % 4 == 0;  // one flow goes on all the time
    nf::testing::Frame frame = nf::testing::make_frame(protocol, 0x0A000000 + (is_busy ? 0 : random() % 50), 0x0B000000,
                                                       static_cast<std::uint16_t>(is_busy ? 0 : random() % 9), 80,
                                                       std::string(random() % 200, 'x'));
    if (random() % 20 == 0) {
      frame.resize(random() % frame.size());
    } else if (random() % 20 == 0) {
      frame[23] = static_cast<std::uint8_t>(random());
    } else if (random() % 20 == 0) {
      frame[14 + random() % (frame.size() - 14)] = static_cast<std::uint8_t>(random());
    }
    frames.push_back(std::move(frame));
    now += random() % 500 == 0 ? 20 * kTestSecond : random() % 100'000'000;
    arrivals_ns.push_back(random() % 10 == 0 ? now - random() % (30 * kTestSecond) : now);
  }
}

std::vector<FlowResult> results_of(std::span<const Observation> launch) {
  std::vector<FlowResult> results;
  for (std::size_t i = 0; i < launch.size(); ++i) {
    const std::size_t begin = i - i % kGroupPackets;
    const std::size_t end = std::min(begin + kGroupPackets, launch.size());
    std::vector<std::size_t> of_flow;  // rows of the group with packets of the same flow
    for (std::size_t row = begin; row < end; ++row) {
      if (launch[row].key == launch[i].key) {
        of_flow.push_back(row);
      }
    }
    FlowResult result{launch[i].length, launch[i].tcp_flags, 0, static_cast<u8>(i - of_flow.front())};
    if (of_flow.front() == i) {
      for (std::size_t other = 1; other < of_flow.size(); ++other) {
        result.bytes += launch[of_flow[other]].length;
        result.tcp_flags |= launch[of_flow[other]].tcp_flags;
      }
      result.others = static_cast<u8>(of_flow.size() - 1);
      result.distance = static_cast<u8>(of_flow.back() - i);
    }
    results.push_back(result);
  }
  return results;
}

SummedBatch summed(std::span<const Observation> batch, std::uint32_t first_row) {
  SummedBatch result;
  std::map<Pair, std::uint32_t> sums;  // of the group
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if ((first_row + i) % kGroupPackets == 0) {
      sums.clear();
    }
    Observation const& packet = batch[i];
    const auto [found, is_new] = sums.emplace(pair_of(packet.key), static_cast<std::uint32_t>(result.sums.size()));
    result.stamps_ns.push_back(packet.arrival_ns);
    result.sum_of_packet.push_back(found->second);
    if (is_new) {
      result.sums.push_back({packet.key, 0, 0, packet.arrival_ns, packet.arrival_ns, i, i, 0, packet.tos});
    }
    FlowSum& sum = result.sums[found->second];
    sum.packets += 1;
    sum.bytes += packet.length;
    sum.first_ns = std::min(sum.first_ns, packet.arrival_ns);
    sum.last_ns = std::max(sum.last_ns, packet.arrival_ns);
    sum.last = i;
    sum.tcp_flags = static_cast<std::uint16_t>(sum.tcp_flags | packet.tcp_flags);
  }
  return result;
}

std::uint64_t statistic(nf::testing::RunResult const& result, std::string_view name) {
  for (nf::Statistic const& entry : result.statistics) {
    if (entry.name == name) {
      return entry.value;
    }
  }
  ADD_FAILURE() << "no statistic " << name;
  return 0;
}

Receiver::Receiver(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
  port_ = ntohs(address.sin_port);
}
Receiver::~Receiver() { ::close(socket_); }
std::vector<std::vector<std::uint8_t>> Receiver::take() const {
  std::vector<std::vector<std::uint8_t>> datagrams;
  std::vector<std::uint8_t> buffer(65'535);
  for (ssize_t bytes = 0; (bytes = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT)) >= 0;) {
    datagrams.emplace_back(buffer.begin(), buffer.begin() + bytes);
  }
  return datagrams;
}

}  // namespace testing
}  // namespace catena::monitor
